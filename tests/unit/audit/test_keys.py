from __future__ import annotations

import multiprocessing
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from checkstream.audit.keys import AuditKey, key_from_text, load_key, load_public_key
from checkstream.errors import AuditError

TEXT = "00" * 32


def test_a_key_file_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "audit.key"
    first = load_key(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in sorted(file.parent.iterdir())] == ["audit.key", "audit.key.pub"]
    again = load_key(file)
    assert again.public.name == first.public.name
    assert again.digest("text") == first.digest("text")


def test_the_public_key_beside_it_verifies_and_says_nothing_of_the_secret(tmp_path: Path) -> None:
    key = load_key(tmp_path / "audit.key")
    public = load_public_key(tmp_path / "audit.key.pub")
    signature = key.sign(b"message")
    assert public.name == key.public.name
    assert public.verify(signature, b"message")
    assert not public.verify(signature, b"massage")
    assert not public.verify(b"\x00" * 64, b"message")
    assert not public.verify(b"", b"message")
    assert (tmp_path / "audit.key").read_text().strip() not in (tmp_path / "audit.key.pub").read_text()


def test_digest_is_keyed_stable_and_takes_any_text() -> None:
    key, other = AuditKey(b"a" * 32), AuditKey(b"b" * 32)
    assert key.digest("4111 1111") == key.digest("4111 1111")
    assert key.digest("4111 1111") != other.digest("4111 1111")
    assert key.digest("a") != key.digest("b")
    assert len(key.digest("\ud800 \U0001f600")) == 64


@pytest.mark.parametrize("text", ["", "xyz", "00" * 31, "passphrase", "é" * 64])
def test_what_is_no_secret_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(AuditError):
        key_from_text(text, "AUDIT_KEY")


def test_white_space_around_a_secret_is_ignored() -> None:
    assert key_from_text(f" {TEXT}\n", "env").public.name == key_from_text(TEXT, "env").public.name


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o666])
def test_a_key_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "audit.key"
    file.write_text(TEXT)
    file.chmod(mode)
    with pytest.raises(AuditError, match="chmod 600"):
        load_key(file)


def test_a_key_file_that_is_a_folder_or_garbage_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(AuditError, match="can't be used"):
        load_key(tmp_path / "folder")
    (tmp_path / "garbage").write_bytes(b"\xff\x00" * 100)
    (tmp_path / "garbage").chmod(0o600)
    with pytest.raises(AuditError, match="not hex"):
        load_key(tmp_path / "garbage")


def test_public_keys_of_other_kinds_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "key.pub"
    with pytest.raises(AuditError, match="can't be read"):
        load_public_key(file)
    file.write_text("-----BEGIN PUBLIC KEY-----\nnonsense\n-----END PUBLIC KEY-----\n")
    with pytest.raises(AuditError, match="not a public key"):
        load_public_key(file)
    elliptic = generate_private_key(SECP256R1()).public_key()
    file.write_bytes(elliptic.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(AuditError, match="not an Ed25519"):
        load_public_key(file)


def _name(file: Path) -> str:
    return load_key(file).public.name


def test_processes_that_start_at_once_agree_on_one_key(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        names = pool.map(_name, [tmp_path / "audit.key"] * 6)
    assert len(set(names)) == 1


def test_digests_of_a_tenant_are_equal_where_the_salt_is_and_never_those_of_another() -> None:
    one, two = AuditKey(b"a" * 32), AuditKey(b"b" * 32)
    here, there = one.by_tenant(b"s" * 32), two.by_tenant(b"s" * 32)
    names = [None, "", "app1", "app2", "\ud800"]
    for name in names:
        assert here(name)("text") == there(name)("text")
        assert here(name)("text") != here(name)("texts")
        assert one.by_tenant(None)(name)("text") == one.by_tenant(None)(name)("text")
        others = {two.by_tenant(None)(name)("text"), one.by_tenant(b"t" * 32)(name)("text"), one.digest("text")}
        assert here(name)("text") not in others
        assert one.by_tenant(None)(name)("text") not in others
    assert len({here(name)("text") for name in names}) == len(names)
