"""The audit secret: one random value, from which the signing key and the key of span digests are derived.

The secret stays outside the log. Whoever has the public key can verify heads; only who has the secret can
tell whether a digest in the log is that of a given text.

Source: HKDF RFC 5869, Ed25519 RFC 8032, HMAC RFC 2104.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from checkstream.errors import AuditError

SECRET_BYTES = 32
_TENANTS_KNOWN = 1024
"""Whose keys are at hand; another's is derived in some microseconds."""
_SIGNING = b"checkstream audit v1: signing heads"
_DIGESTS = b"checkstream audit v1: span digests"
_TENANTS = b"checkstream audit v1: span digests of "


class PublicKey:
    """Verifies heads. Needs nothing secret."""

    def __init__(self, key: Ed25519PublicKey) -> None:
        """Wrap a key; its name is the first 16 hex digits of the SHA-256 of its 32 raw bytes."""
        self._key = key
        self.raw = key.public_bytes_raw()
        self.name = hashlib.sha256(self.raw).hexdigest()[:16]

    def verify(self, signature: bytes, message: bytes) -> bool:
        """Return whether the signature over the message is this key's."""
        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return True

    def pem(self) -> bytes:
        """Return the key in PEM (SubjectPublicKeyInfo), which other tools read too."""
        return self._key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


class AuditKey:
    """Signs heads and makes span digests."""

    def __init__(self, secret: bytes) -> None:
        """Derive both keys from the secret (at least 32 bytes).

        Raises:
            AuditError: the secret is too short.
        """
        if len(secret) < SECRET_BYTES:
            raise AuditError(f"the audit key has {len(secret)} bytes; it needs at least {SECRET_BYTES}")
        self._signing = Ed25519PrivateKey.from_private_bytes(_derive(secret, _SIGNING))
        self._digests = _derive(secret, _DIGESTS)
        self._tenants = _derive(secret, _TENANTS)
        self.public = PublicKey(self._signing.public_key())

    def sign(self, message: bytes) -> bytes:
        """Return the Ed25519 signature, 64 bytes."""
        return self._signing.sign(message)

    def digest(self, text: str) -> str:
        """Return the keyed digest of a span's text, hex: equal texts give equal digests, and only with the secret."""
        return _digest(self._digests, text)

    def by_tenant(self, salt: bytes | None) -> Callable[[str | None], Callable[[str], str]]:
        """Return what gives each tenant (a caller's name, None: of those without) its keyed digest of a text.

        Equal texts of two tenants give other digests, those of one tenant equal ones wherever the salt is the same.

        Args:
            salt: a secret that nodes have in common; None: this key's own, so that digests are of this node.
        """
        secret = self._tenants if salt is None else salt

        @functools.lru_cache(maxsize=_TENANTS_KNOWN)
        def of(tenant: str | None) -> Callable[[str], str]:
            name = b"\x00" if tenant is None else b"\x01" + tenant.encode("utf-8", "surrogatepass")
            return functools.partial(_digest, _derive(secret, _TENANTS + name))

        return of


def _digest(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def _derive(secret: bytes, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(secret)


def key_from_text(text: str, origin: str) -> AuditKey:
    """Return the key of a secret given as hex digits (what the key file or the environment variable holds).

    Args:
        text: 64 or more hex digits; white space around them is ignored.
        origin: where the text came from, for the message.

    Raises:
        AuditError: not hex, or too short.
    """
    try:
        secret = bytes.fromhex(text.strip())
    except ValueError:
        raise AuditError(
            f"the audit key in `{origin}` is not hex; make one with `openssl rand -hex {SECRET_BYTES}`"
        ) from None
    return AuditKey(secret)


def load_key(file: Path) -> AuditKey:
    """Return the key in a file; make the file with a fresh secret (mode 0600) when there is none.

    The public key is written beside it as `<file>.pub`. Several processes may start at once: the first makes
    the secret and all use it.

    Raises:
        AuditError: the file can't be read or made, is open to other users, or holds no key.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            _create(file)
        with file.open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            content = stream.read(4096)
    except OSError as error:
        raise AuditError(f"the audit key file `{file}` can't be used: {why(error)}") from error
    if not stat.S_ISREG(mode) or mode & 0o007:
        raise AuditError(f"the audit key file `{file}` is open to other users; run `chmod 600` on it")
    key = key_from_text(content.decode("ascii", "replace"), str(file))
    _publish(key, file.with_name(file.name + ".pub"))
    return key


def why(error: OSError) -> str:
    """Return in the system's words why a file can't be used, and what to do where it is this user who may not."""
    if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return str(error.strerror)
    advice = f"user {os.geteuid()} must be able to write there, or name another folder as `audit.dir`"
    return f"{error.strerror}; {advice}"


def _create(file: Path) -> None:
    """Make a key file whole or not at all: a link never replaces what another process made in the meantime."""
    fresh = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(secrets.token_hex(SECRET_BYTES) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        with contextlib.suppress(FileExistsError):  # another process was first: its secret counts
            os.link(fresh, file)
    finally:
        fresh.unlink()


def _publish(key: AuditKey, file: Path) -> None:
    """Write the public key beside the secret, if it is not there already; a read-only folder is no fault."""
    try:
        if not file.exists() or file.read_bytes() != key.public.pem():
            file.write_bytes(key.public.pem())
    except OSError:
        return


def load_public_key(file: Path) -> PublicKey:
    """Return the public key in a PEM file.

    Raises:
        AuditError: the file can't be read or is no Ed25519 public key.
    """
    try:
        key = load_pem_public_key(file.read_bytes())
    except OSError as error:
        raise AuditError(f"the public key `{file}` can't be read: {error.strerror}") from error
    except (ValueError, UnsupportedAlgorithm):
        raise AuditError(f"`{file}` is not a public key in PEM; give the `.pub` file beside the audit key") from None
    if not isinstance(key, Ed25519PublicKey):
        raise AuditError(f"`{file}` is not an Ed25519 public key; give the `.pub` file beside the audit key")
    return PublicKey(key)
