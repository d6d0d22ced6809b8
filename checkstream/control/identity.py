r"""Who a node is: an Ed25519 key of its own, with which it signs each request to the control server.

Signed is `0x03 || method || 0x20 || path || 0x00 || SHA-256(body)`, where 0x03 keeps these signatures apart from those
of audit heads (0x02), and the path keeps what is meant for one operation from being sent to another. The name of the
node, the digest (64 hex digits) and the signature (128) stand in headers, so that nobody else's body is even read.

A request counts once. What an operation takes has a number that grows; what is only read, of which several may be on
their way, names the node's last attestation and a word by chance (`x-checkstream-once: 1764424800000000.9f86d0818...`),
which is signed in place of the body that it hasn't got.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from checkstream.audit.keys import PublicKey
from checkstream.config import read_file
from checkstream.errors import ControlError

NODE = "x-checkstream-node"
DIGEST = "x-checkstream-digest"
SIGNATURE = "x-checkstream-signature"
ONCE = "x-checkstream-once"
_DOMAIN = b"\x03"


def digest_of(body: bytes) -> str:
    """Return the digest of a body, hex."""
    return hashlib.sha256(body).hexdigest()


def signed_bytes(method: str, path: str, digest: str) -> bytes:
    """Return what is signed of a request whose body has this digest, hex."""
    return b"%b%b %b\x00%b" % (_DOMAIN, method.encode(), path.encode(), bytes.fromhex(digest))


class NodeKey:
    """Signs as a node."""

    def __init__(self, name: str, key: Ed25519PrivateKey) -> None:
        """Sign as `name`."""
        self.name = name
        self._key = key
        self.public = PublicKey(key.public_key())

    @classmethod
    def load(cls, name: str, file: Path) -> NodeKey:
        """Read the key of a node from PEM.

        Raises:
            ControlError: it can't be read, or is none.
        """
        try:
            key = load_pem_private_key(read_file(file), None)
        except OSError as error:
            reason = (error.strerror or "no reason given").lower()
            raise ControlError(f"the node's key `{file}` can't be read: {reason}") from error
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise ControlError(
                f"`{file}` is no private key in PEM without a passphrase; `checkstream bundle key NODE` makes one"
            ) from error
        if not isinstance(key, Ed25519PrivateKey):
            raise ControlError(f"`{file}` is no Ed25519 key; `checkstream bundle key NODE` makes one")
        return cls(name, key)

    def headers(self, method: str, path: str, body: bytes) -> dict[str, str]:
        """Return the headers by which a request is this node's."""
        digest = digest_of(body)
        signature = self._key.sign(signed_bytes(method, path, digest)).hex()
        return {NODE: self.name, DIGEST: digest, SIGNATURE: signature}


def reading(key: NodeKey, path: str, sequence: int) -> dict[str, str]:
    """Return the headers of a request that only reads, by the node that has attested under this number last."""
    once = f"{sequence}.{secrets.token_hex(16)}"
    return {**key.headers("GET", path, once.encode()), ONCE: once}


def signed_by(key: PublicKey, signature: str, method: str, path: str, digest: str) -> bool:
    """Tell whether a request is that of the node with this key, if its body has the digest."""
    try:
        signed = signed_bytes(method, path, digest)
        return len(signature) == 128 and len(digest) == 64 and key.verify(bytes.fromhex(signature), signed)
    except ValueError:
        return False
