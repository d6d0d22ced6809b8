"""What is sealed opens for its key and its record alone, and is what RFC 9180 says."""

from __future__ import annotations

import hashlib
import hmac

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.telemetry.evidence import (
    Exhibit,
    OpeningKey,
    Parcel,
    info_of,
    opening_key,
    sealing_key,
)
from checkstream.control.telemetry.packing import packed
from checkstream.errors import ControlError

PRIVATE = X25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = OpeningKey(PRIVATE)
EXHIBIT = Exhibit(stream="s1", route="chat", caller="app1", transcript='{"surface": "openai.chat"}\n', released=b"hi")
HASH = "ab" * 32


def parcel(exhibit: Exhibit = EXHIBIT, node: str = "n1") -> Parcel:
    return Parcel(
        chain="c1",
        seq=7,
        hash=HASH,
        stream="s1",
        route="chat",
        caller="app1",
        key=KEY.sealing.name,
        at_ms=1,
        sealed=KEY.sealing.seal(exhibit, info_of(node, "c1", 7, HASH)),
    )


@given(st.text(max_size=300), st.binary(max_size=300))
def test_what_is_sealed_opens_as_it_was(transcript: str, released: bytes) -> None:
    told = msgspec.structs.replace(EXHIBIT, transcript=transcript, released=released)
    assert KEY.open(parcel(told), "n1") == told


@given(st.data())
def test_nothing_that_was_changed_opens(data: st.DataObject) -> None:
    made = parcel()
    place = data.draw(st.integers(0, len(made.sealed) - 1))
    bit = data.draw(st.integers(0, 7))
    changed = bytearray(made.sealed)
    changed[place] ^= 1 << bit
    if bytes(changed[:32]) != made.sealed[:32] and place == 31 and bit == 7:
        return  # the highest bit of an X25519 key counts for nothing
    with pytest.raises(ControlError):
        KEY.open(msgspec.structs.replace(made, sealed=bytes(changed)), "n1")


@pytest.mark.parametrize(
    ("node", "moved"), [("n2", {}), ("n1", {"chain": "c2"}), ("n1", {"seq": 8}), ("n1", {"hash": "cd" * 32})]
)
def test_what_was_sealed_for_one_record_opens_for_no_other(node: str, moved: dict[str, object]) -> None:
    with pytest.raises(ControlError, match="moved from another record"):
        KEY.open(msgspec.structs.replace(parcel(), **moved), node)


def test_another_key_opens_nothing_and_is_told_which_one_would() -> None:
    with pytest.raises(ControlError, match=KEY.sealing.name):
        OpeningKey.made().open(parcel(), "n1")
    other = OpeningKey.made()
    with pytest.raises(ControlError, match="changed"):
        other.open(msgspec.structs.replace(parcel(), key=other.sealing.name), "n1")


def test_what_was_sealed_of_another_version_is_told() -> None:
    info = info_of("n1", "c1", 7, HASH)
    for content in (b"", b"no frame", packed(b"[1]")):
        sealed = sealed_plainly(content, PRIVATE.public_key(), info)
        with pytest.raises(ControlError, match="another version"):
            KEY.open(msgspec.structs.replace(parcel(), sealed=sealed), "n1")


def test_keys_are_read_as_they_are_written() -> None:
    assert opening_key(KEY.private_pem, "f").open(parcel(), "n1") == EXHIBIT
    assert sealing_key(KEY.public_pem, "f").name == KEY.sealing.name
    signing = Ed25519PrivateKey.generate()
    public = signing.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    private = signing.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for wrong in (b"", b"\xff", KEY.private_pem, public):
        with pytest.raises(ControlError, match="evidence-key"):
            sealing_key(wrong, "f")
    for wrong in (b"", b"\xff", KEY.public_pem, private):
        with pytest.raises(ControlError, match="evidence-key"):
            opening_key(wrong, "f")


# --- RFC 9180 by hand, base mode, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM

_KEM, _HPKE = b"KEM\x00\x20", b"HPKE\x00\x20\x00\x01\x00\x02"


def _extract(salt: bytes, suite: bytes, label: bytes, material: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + material, hashlib.sha256)


def _expand(key: bytes, suite: bytes, label: bytes, info: bytes, length: int) -> bytes:
    labelled = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
    return hmac.digest(key, labelled + b"\x01", hashlib.sha256)[:length]


def _keyed(shared: bytes, encapsulated: bytes, recipient: bytes, info: bytes) -> tuple[bytes, bytes]:
    eae = _extract(b"", _KEM, b"eae_prk", shared)
    secret = _expand(eae, _KEM, b"shared_secret", encapsulated + recipient, 32)
    of_nobody, of_info = _extract(b"", _HPKE, b"psk_id_hash", b""), _extract(b"", _HPKE, b"info_hash", info)
    context = b"\x00" + of_nobody + of_info
    drawn = _extract(secret, _HPKE, b"secret", b"")
    return _expand(drawn, _HPKE, b"key", context, 32), _expand(drawn, _HPKE, b"base_nonce", context, 12)


def sealed_plainly(content: bytes, to: X25519PublicKey, info: bytes) -> bytes:
    once = X25519PrivateKey.generate()
    encapsulated = once.public_key().public_bytes_raw()
    key, nonce = _keyed(once.exchange(to), encapsulated, to.public_bytes_raw(), info)
    return encapsulated + AESGCM(key).encrypt(nonce, content, b"")


def test_it_is_hpke_as_anybody_could_open_it() -> None:
    info = info_of("n1", "c1", 7, HASH)
    made = parcel()
    encapsulated, rest = made.sealed[:32], made.sealed[32:]
    shared = PRIVATE.exchange(X25519PublicKey.from_public_bytes(encapsulated))
    key, nonce = _keyed(shared, encapsulated, PRIVATE.public_key().public_bytes_raw(), info)
    assert AESGCM(key).decrypt(nonce, rest, b"") == packed(msgspec.json.encode(EXHIBIT))
    by_hand = sealed_plainly(packed(msgspec.json.encode(EXHIBIT)), PRIVATE.public_key(), info)
    assert KEY.open(msgspec.structs.replace(made, sealed=by_hand), "n1") == EXHIBIT
