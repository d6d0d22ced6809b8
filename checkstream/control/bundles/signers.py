"""Private keys: in files, in the environment, in a PKCS#11 token or in a cloud's key management."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import parse_qs

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from securesystemslib.signer import (
    SIGNER_FOR_URI_SCHEME,
    AWSSigner,
    AzureSigner,
    CryptoSigner,
    GCPSigner,
    HSMSigner,
    Key,
    Signer,
    SSlibKey,
    VaultSigner,
)

from checkstream.config import read_file
from checkstream.control.bundles import PASSPHRASE
from checkstream.control.bundles.trust import name_of
from checkstream.errors import BundleError

_ENV = "env:"


def open_signer(reference: str, known: Iterable[Key]) -> Signer:
    """Return what signs with a private key.

    Args:
        reference: A file or `env:VARIABLE` with PEM; or `NAME=URI`, where securesystemslib finds the key called NAME
            (`hsm:`, `awskms:`, `gcpkms:`, `azurekms:`, `hv:`).
        known: Public keys that NAME may mean.

    Raises:
        BundleError: the key can't be used.
    """
    name, found, uri = reference.partition("=")
    if found and uri.partition(":")[0] in SIGNER_FOR_URI_SCHEME:
        return _signer_elsewhere(name, uri, known)
    try:
        data = _pem(reference)
    except OSError as error:
        reason = (error.strerror or "no reason given").lower()
        raise BundleError(f"can't read the key `{reference}`: {reason}") from error
    secret = os.environ.get(PASSPHRASE, "")
    try:
        private = load_pem_private_key(data, secret.encode() or None)
        return CryptoSigner(private, SSlibKey.from_crypto(private.public_key()))
    except TypeError as error:
        what = f"is not encrypted; unset `{PASSPHRASE}`" if secret else f"is encrypted; set `{PASSPHRASE}`"
        raise BundleError(f"the key `{reference}` {what}") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        advice = "check the passphrase" if b"ENCRYPTED" in data else "`checkstream bundle key` makes one"
        raise BundleError(f"`{reference}` is no private key in PEM that can be used; {advice}") from error


def _pem(reference: str) -> bytes:
    if not reference.startswith(_ENV):
        return read_file(Path(reference))
    variable = reference.removeprefix(_ENV)
    value = os.environ.get(variable, "")
    if not value:
        raise BundleError(f"the environment variable `{variable}` is not set; it should hold a private key in PEM")
    return value.encode()


def _signer_elsewhere(name: str, uri: str, known: Iterable[Key]) -> Signer:
    keys = {name_of(key): key for key in known}
    if name not in keys:
        raise BundleError(f"there is no key called `{name}`; known: {', '.join(sorted(keys)) or 'none'}")
    try:
        return Signer.from_priv_key_uri(uri, keys[name], _pin)
    except Exception as error:  # each kind of store raises errors of its own library
        raise BundleError(f"the key `{name}` can't be used at `{uri}`: {str(error) or type(error).__name__}") from error


def _pin(_: str) -> str:
    return os.environ.get(PASSPHRASE, "")


def write_public_key(address: str, public: Path) -> str:
    """Write the public key of a private one that stays where it is, and return the URI by which that one signs.

    Args:
        address: `hsm:[ID][?label=TOKEN]`, `awskms:KEY`, `gcpkms:VERSION`, `azurekms:VAULT/KEY` or `hv:KEY`.
        public: File to write, in PEM; an existing one is not touched.

    Raises:
        BundleError: there is no such key, it is of a kind that can't sign here, or the file can't be written.
    """
    scheme, _, rest = address.partition(":")
    if scheme not in _ELSEWHERE:
        raise BundleError(f"`{address}` is no address of a key; those begin with {', '.join(_ELSEWHERE)} and `:`")
    try:
        uri, key = _ELSEWHERE[scheme](rest)
    except Exception as error:  # as above
        raise BundleError(
            f"there is no key at `{address}` that can be used: {str(error) or type(error).__name__}"
        ) from error
    _write(public, str(key.keyval["public"]).encode(), 0o644)
    return uri


def _of_token(rest: str) -> tuple[str, SSlibKey]:
    number, _, query = rest.partition("?")
    return HSMSigner.import_(int(number) if number else None, parse_qs(query).get("label", [None])[0], _pin)


def _of_vault(rest: str) -> tuple[str, SSlibKey]:
    vault, _, name = rest.partition("/")
    return AzureSigner.import_(vault, name)


_ELSEWHERE: dict[str, Callable[[str], tuple[str, SSlibKey]]] = {
    "hsm": _of_token,
    "awskms": AWSSigner.import_,
    "gcpkms": GCPSigner.import_,
    "azurekms": _of_vault,
    "hv": VaultSigner.import_,
}


def write_key_pair(private: Path, public: Path) -> None:
    """Make an Ed25519 key pair; an existing file is not touched.

    Raises:
        BundleError: a file is there already, or can't be written.
    """
    key, secret = Ed25519PrivateKey.generate(), os.environ.get(PASSPHRASE, "")
    encryption = BestAvailableEncryption(secret.encode()) if secret else NoEncryption()
    _write(private, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption), 0o600)
    _write(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644)


def _write(path: Path, content: bytes, mode: int) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
    except FileExistsError as error:
        raise BundleError(f"`{path}` is there already; a key that is overwritten is lost") from error
    except OSError as error:
        raise BundleError(f"can't write `{path}`: {(error.strerror or 'no reason given').lower()}") from error
