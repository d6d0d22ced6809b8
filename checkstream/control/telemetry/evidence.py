"""Evidence of an exchange, sealed to the key of whose it is: nobody between the node and that key can read it. Pure.

By HPKE (RFC 9180, base mode) with X25519, HKDF-SHA256 and AES-256-GCM. `info` names the node and the record in its
audit chain, so what was sealed for one record opens for no other.
"""

from __future__ import annotations

import hashlib
from typing import Annotated

import msgspec
from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from msgspec import Meta

from checkstream.config.servers import CALLER_CHARS
from checkstream.control.telemetry.delivery import Chain, Hash
from checkstream.control.telemetry.packing import packed, unpacked
from checkstream.errors import ControlError, RequestInvalid

MOST_SEALED = 786_432
"""Bytes of what was sealed: of more, nothing is kept."""
MOST_OPENED = 16_777_216
MOST_PARCEL = 2_097_152
"""Of a parcel, unpacked."""
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_DOMAIN = b"checkstream evidence 1"


class Exhibit(msgspec.Struct, frozen=True, kw_only=True):
    """What is sealed."""

    stream: str
    route: str
    caller: str | None
    transcript: str
    """The exchange as JSON lines (`core.transcript`): what was asked, what the model has answered, what it scored."""
    released: bytes
    """What the caller was sent."""


class Parcel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Evidence on its way: who may open it, which record it belongs to, and what nobody else can read."""

    chain: Chain
    seq: Annotated[int, Meta(ge=1, le=2**53 - 1)]
    hash: Hash
    """Of the record."""
    stream: Annotated[str, Meta(min_length=1, max_length=200)]
    route: Annotated[str, Meta(max_length=200)]
    caller: Annotated[str, Meta(max_length=CALLER_CHARS)] | None = None
    key: Annotated[str, Meta(pattern=r"\A[0-9a-f]{16}\Z")]
    """Name of the key that opens it."""
    at_ms: Annotated[int, Meta(ge=0, le=2**48)]
    """When the exchange began, by the node's clock."""
    sealed: Annotated[bytes, Meta(min_length=48, max_length=MOST_SEALED)]


class SealingKey:
    """Seals for whoever has the other half."""

    def __init__(self, key: X25519PublicKey) -> None:
        """Seal to `key`."""
        self._key = key
        self.name = hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]

    def seal(self, exhibit: Exhibit, info: bytes) -> bytes:
        """Return an exhibit that only the key's holder can read, and only as of this record. Takes CPU time."""
        return _SUITE.encrypt(packed(msgspec.json.encode(exhibit)), self._key, info=info)


class OpeningKey:
    """Opens what was sealed for its public half."""

    def __init__(self, key: X25519PrivateKey) -> None:
        """Open with `key`."""
        self._key = key
        self.sealing = SealingKey(key.public_key())

    @classmethod
    def made(cls) -> OpeningKey:
        """Return a fresh one."""
        return cls(X25519PrivateKey.generate())

    @property
    def private_pem(self) -> bytes:
        """For its holder alone."""
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @property
    def public_pem(self) -> bytes:
        """For nodes."""
        return self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def open(self, parcel: Parcel, node: str) -> Exhibit:
        """Return what a node has sealed.

        Raises:
            ControlError: it was sealed for another key, or for another record, or was changed.
        """
        if parcel.key != self.sealing.name:
            raise ControlError(f"this was sealed for the key `{parcel.key}`; yours is `{self.sealing.name}`")
        try:
            info = info_of(node, parcel.chain, parcel.seq, parcel.hash)
            content = _SUITE.decrypt(parcel.sealed, self._key, info=info)
            return msgspec.json.decode(unpacked(content, MOST_OPENED), type=Exhibit)
        except InvalidTag as error:
            raise ControlError(
                f"this is not what `{node}` has sealed for record {parcel.seq} of chain `{parcel.chain}`: it was "
                "changed, or moved from another record"
            ) from error
        except (RequestInvalid, msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            raise ControlError(f"what was sealed is of another version: {error}") from error


def info_of(node: str, chain: str, seq: int, hash_: str) -> bytes:
    """Return what ties evidence to one record of one node."""
    return b"\0".join((_DOMAIN, node.encode(), chain.encode(), str(seq).encode(), hash_.encode()))


def sealing_key(pem: bytes, name: str) -> SealingKey:
    """Read a public key.

    Raises:
        ControlError: it is none.
    """
    try:
        key = load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ControlError(f"`{name}` is no public key in PEM; {_ADVICE}") from error
    if not isinstance(key, X25519PublicKey):
        raise ControlError(f"`{name}` is no X25519 key; {_ADVICE}")
    return SealingKey(key)


def opening_key(pem: bytes, name: str) -> OpeningKey:
    """Read a private key.

    Raises:
        ControlError: it is none.
    """
    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ControlError(f"`{name}` is no private key in PEM without a passphrase; {_ADVICE}") from error
    if not isinstance(key, X25519PrivateKey):
        raise ControlError(f"`{name}` is no X25519 key; {_ADVICE}")
    return OpeningKey(key)


_ADVICE = "`checkstream control evidence-key FILE` makes a pair"
