"""What several groups of settings are made of."""

from __future__ import annotations

import ipaddress
from typing import Annotated
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta

Ms = Annotated[int, Meta(ge=1, le=86_400_000)]
Name = Annotated[str, Meta(min_length=1, max_length=64)]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of settings; unknown keys are refused."""


class Secret(Settings, frozen=True):
    """Where a secret is read from; the value itself is never part of the settings."""

    env: str | None = None
    """Name of an environment variable."""
    file: str | None = None
    """Path of a file; its content without the white space at the ends. Relative to the configuration file."""
    prefix: str = ""
    """Put before the value, such as `Bearer `."""

    def __post_init__(self) -> None:
        """Exactly one source."""
        if (self.env is None) == (self.file is None):
            raise ValueError("a secret has either `env` or `file`")
        if not self.prefix.isprintable():
            raise ValueError("`prefix` holds line breaks or control characters; write one line")


def require_no_password(url: str, instead: str) -> None:
    """Let an address be one that may stand in logs and messages.

    Args:
        url: As drivers read it: libpq takes a password that stands before the host, whatever is in it, or in the query.
        instead: The setting that takes the password.

    Raises:
        ValueError: it holds a password; the error does not.
    """
    _, _, rest = url.partition("://")
    user, at, _ = rest.partition("/")[0].rpartition("@")
    if (at and user.partition(":")[2]) or any(
        name.lower().endswith("password") for name, _ in parse_qsl(rest.partition("?")[2])
    ):
        raise ValueError(f"the store's address holds a password; give `{instead}` from the environment")


class Address(msgspec.Struct, frozen=True):
    """Where a listener binds. Port 0 lets the system choose."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
