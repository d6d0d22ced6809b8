"""Seals what is remembered: with a key for each conversation of each caller, and each kind of thing.

AES-256-GCM with a random nonce; the key comes out of the operator's secret by HKDF, with caller, conversation and kind
in it. So what was sealed for one can't be opened for another, also by somebody who copies it within the store.

Source: NIST SP 800-38D (GCM), RFC 5869 (HKDF), RFC 2104 (HMAC).
"""

from __future__ import annotations

import hmac
import os
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from checkstream.errors import VaultFailed

LEAST_SECRET_BYTES = 32
_SEALING = b"checkstream conversations v1: sealing"
_NAMING = b"checkstream conversations v1: naming"
_NONCE_BYTES = 12
_KEY_BYTES = 32
_FORMAT = b"\x01"


class Owner(NamedTuple):
    """Whose it is, and what."""

    caller: str
    conversation: str
    kind: str

    def spelled(self) -> bytes:
        """Return all three so that no two owners read alike."""
        parts = [part.encode("utf-8", "surrogatepass") for part in self]
        return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


class Seal:
    """Seals and opens, with one secret."""

    def __init__(self, secret: bytes) -> None:
        """Take the operator's secret, of at least `LEAST_SECRET_BYTES`."""
        self._root = hmac.digest(bytes(_KEY_BYTES), secret, "sha256")  # HKDF-Extract, which is the same for each key
        self._naming = self._derived(_NAMING)

    def key(self, owner: Owner) -> bytes:
        """Return the key under which a store keeps what an owner has: it tells nothing of the owner."""
        return hmac.digest(self._naming, owner.spelled(), "sha256")

    def sealed(self, owner: Owner, content: bytes) -> bytes:
        """Return the content as it is stored."""
        nonce = os.urandom(_NONCE_BYTES)
        return _FORMAT + nonce + self._cipher(owner).encrypt(nonce, content, _FORMAT)

    def opened(self, owner: Owner, sealed: bytes) -> bytes:
        """Return the content of what was sealed for this owner.

        Raises:
            VaultFailed: it was sealed for another, with another secret, or has been altered.
        """
        nonce, rest = sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        try:
            return self._cipher(owner).decrypt(nonce, rest, sealed[:1])
        except (InvalidTag, ValueError) as error:
            raise VaultFailed("what the store has was sealed with another secret, or altered") from error

    def _cipher(self, owner: Owner) -> AESGCM:
        return AESGCM(self._derived(_SEALING + owner.spelled()))

    def _derived(self, purpose: bytes) -> bytes:
        """Return a key for one purpose: HKDF-Expand to the length of one hash."""
        return hmac.digest(self._root, purpose + b"\x01", "sha256")
