"""Settings of who is who: certificates of both sides, and tokens of an OpenID provider."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from checkstream.config.parts import Settings

File = Annotated[str, Meta(min_length=1, max_length=4096)]


class TlsSettings(Settings, frozen=True):
    """TLS of a listener. Files are read anew when they change; a pair that can't be used leaves the old one in use."""

    certificate: File
    """File of the server's certificate (PEM), with those that it is signed with."""
    key: File
    """File of its private key (PEM, without a passphrase)."""
    client_ca: File | None = None
    """File with the certificates that a caller's may be signed with; null: callers are asked for none."""
    clients: Literal["required", "optional"] = "required"
    """With `client_ca`, whether a caller without a certificate gets in, where it may still have a key or a token."""
    minimum: Literal["1.2", "1.3"] = "1.2"
    """Oldest version of TLS that is spoken."""
