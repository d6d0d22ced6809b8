"""What is sealed for one conversation of one caller is nothing to anybody else (G38)."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from checkstream.errors import VaultFailed
from checkstream.sealed.sealing import Owner, Seal

SECRET = bytes(range(32))
names = st.text(max_size=8)
owners = st.builds(Owner, names, names, names)


@given(owners, owners, st.binary(max_size=100))
def test_g38_what_is_sealed_for_one_opens_for_nobody_else(mine: Owner, other: Owner, content: bytes) -> None:
    seal = Seal(SECRET)
    sealed = seal.sealed(mine, content)
    assert seal.opened(mine, sealed) == content
    assert Seal(SECRET).opened(mine, sealed) == content
    assert (seal.key(mine) == seal.key(other)) == (mine == other)
    if mine != other:
        with pytest.raises(VaultFailed):
            seal.opened(other, sealed)
    with pytest.raises(VaultFailed):
        Seal(SECRET[::-1]).opened(mine, sealed)


@given(st.binary(min_size=1, max_size=60), st.integers(0, 200), st.integers(1, 255))
def test_what_is_altered_is_refused(content: bytes, at: int, by: int) -> None:
    owner, seal = Owner("app", "c", "names"), Seal(SECRET)
    sealed = bytearray(seal.sealed(owner, content))
    sealed[at % len(sealed)] ^= by
    with pytest.raises(VaultFailed):
        seal.opened(owner, bytes(sealed))
    with pytest.raises(VaultFailed):
        seal.opened(owner, bytes(sealed[: at % len(sealed)]))


def test_nothing_is_sealed_alike_twice_and_nothing_of_it_shows() -> None:
    owner, seal = Owner("app", "c-77", "names"), Seal(SECRET)
    one, two = seal.sealed(owner, b"Ann Lee"), seal.sealed(owner, b"Ann Lee")
    assert one != two
    assert b"Ann" not in one
    assert b"c-77" not in one + seal.key(owner)


@given(st.binary(min_size=32, max_size=100), owners)
def test_keys_are_those_of_hkdf_so_that_what_older_versions_have_sealed_opens(secret: bytes, owner: Owner) -> None:
    info = b"checkstream conversations v1: sealing" + owner.spelled()
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(secret)
    sealed = b"\x01" + bytes(12) + AESGCM(key).encrypt(bytes(12), b"known", b"\x01")
    assert Seal(secret).opened(owner, sealed) == b"known"
