"""Settings of who is who: certificates of both sides, and tokens of an OpenID provider."""

from __future__ import annotations

from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

from msgspec import Meta

from checkstream.config.parts import Address, Settings

Algorithm = Literal["RS256", "PS256", "ES256", "EdDSA"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
Url = Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"\A[!-~]+\Z")]
Claim = Annotated[str, Meta(min_length=1, max_length=200)]
"""Name of a claim; dots lead into those that hold others, such as `realm_access.roles`."""
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


class TokenSettings(Settings, frozen=True):
    """Tokens (JWT) of an OpenID provider: whose, and how surely. None counts that is signed by a shared secret."""

    issuer: Url
    """Its address, as its tokens say it in `iss`; `/.well-known/openid-configuration` below it says the rest."""
    algorithms: Annotated[tuple[Algorithm, ...], Meta(min_length=1)] = ALGORITHMS
    """Signatures that count, whatever a token says of itself."""
    leeway_s: Annotated[int, Meta(ge=0, le=300)] = 60
    """How far the provider's clock may be from this one."""
    keys_s: Annotated[int, Meta(ge=60, le=604_800)] = 86_400
    """How long its keys count when it can't be reached; then no token does. They are fetched anew every ten minutes,
    and when a token names one that isn't known."""
    ca: File | None = None
    """File with the certificates that the provider's may be signed with; null: those of the system."""

    def __post_init__(self) -> None:
        """The provider is asked over TLS."""
        require_provider(self.issuer)


def require_provider(url: str) -> None:
    """Let a provider be asked at an address.

    Raises:
        ValueError: it is no address, or others could read or alter what goes there.
    """
    try:
        parts = urlsplit(url)
        host, sound = parts.hostname or "", parts.port != 0 and bool(parts.hostname)
    except ValueError:
        host, sound = "", False
    if not sound or parts.scheme not in ("https", "http") or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(f"`{url[:200]}` is not the address of a provider; write `https://login.example.com`")
    if parts.scheme == "http" and not Address(host, 0).loopback:
        raise ValueError(f"`{url[:200]}` would be asked in the clear; write `https://`")
