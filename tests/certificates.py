"""Certificates for tests: an authority, and what it signs."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Authority:
    """Signs certificates."""

    def __init__(self, name: str = "authority") -> None:
        self.name = name
        self.key = generate_private_key(SECP256R1())
        self.certificate = self._signed(name, self.key, authority=True)

    def _signed(self, name: str, key: EllipticCurvePrivateKey, *, authority: bool = False) -> x509.Certificate:
        now = datetime.now(UTC)
        local = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        return (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(_name(self.name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=2))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(local), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .sign(self.key, SHA256())
        )

    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(self, name: str) -> tuple[bytes, bytes]:
        """Return a certificate and its private key, both PEM."""
        key = generate_private_key(SECP256R1())
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return self._signed(name, key).public_bytes(Encoding.PEM), private


def put(folder: Path, name: str, pair: tuple[bytes, bytes]) -> tuple[str, str]:
    """Write a certificate and its key; return where."""
    folder.mkdir(parents=True, exist_ok=True)
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    certificate.write_bytes(pair[0])
    key.write_bytes(pair[1])
    return str(certificate), str(key)
