"""Who calls, and how that is known."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from typing import Self

import msgspec
from aiohttp import hdrs
from aiohttp.web import BaseRequest

from checkstream.errors import CallerUnknown

_KEY_HEADERS = ("x-api-key", "api-key")
"""Where Anthropic's clients put a key, and Azure's."""


class Identity(msgspec.Struct, frozen=True):
    """Who calls, and how that is known."""

    name: str | None = None
    """As configured; None when callers have no names."""
    key_header: str | None = None
    """The header in which the key came, in lower case: it is for the proxy and goes no further."""


class Who(msgspec.Struct, frozen=True):
    """Whose a request is."""

    caller: str | None = None
    """The caller's name; None when callers have none."""
    address: str = ""
    """Where it comes from; of IPv6 the network, since one machine has as many addresses as it likes there."""

    def party(self, per: str) -> str:
        """Return for whom a quota counts."""
        return f"caller {self.caller}" if per == "caller" and self.caller is not None else f"address {self.address}"


def who_of(request: BaseRequest, identity: Identity) -> Who:
    """Return whose a request is."""
    return Who(identity.name, network_of(request.remote or ""))


def network_of(address: str) -> str:
    """Return an IPv4 address, or the network of an IPv6 one that its owner has to himself."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        mapped = found.ipv4_mapped
        return str(mapped) if mapped is not None else str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


class Callers:
    """Who may call, by key."""

    def __init__(self, keys: Mapping[str, str] | None) -> None:
        """Know callers by `name -> key`; None: everyone may call, nameless."""
        self._digests = None if keys is None else [(name, _digest(key)) for name, key in keys.items()]

    @classmethod
    def hashed(cls, digests: Mapping[str, bytes]) -> Self:
        """Know callers by `name -> SHA-256 of the key`, so that nobody reads the keys here."""
        callers = cls({})
        callers._digests = [*digests.items()]
        return callers

    @property
    def known(self) -> bool:
        """Callers have names and keys."""
        return self._digests is not None

    @property
    def names(self) -> tuple[str | None, ...]:
        """Who may call, by name; None alone where callers have none."""
        return (None,) if self._digests is None else tuple(name for name, _ in self._digests)

    def whose(self, key: str) -> str | None:
        """Return who has a key; None: nobody. Takes the same time for every key."""
        given, found = _digest(key), None
        for name, digest in self._digests or ():
            if hmac.compare_digest(digest, given):
                found = name
        return found

    def identify(self, request: BaseRequest) -> Identity:
        """Return who calls. Takes the same time for every wrong key.

        Raises:
            CallerUnknown: there is no key in `Authorization: Bearer`, `x-api-key` or `api-key`, or nobody has it.
        """
        if self._digests is None:
            return Identity()
        scheme, _, bearer = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        keys = {
            "authorization": bearer if scheme.lower() == "bearer" else "",
            **{name: request.headers.get(name, "") for name in _KEY_HEADERS},
        }
        found = Identity()
        for header, key in keys.items():
            name = self.whose(key.strip())
            if name is not None:
                found = Identity(name, header)
        if found.name is None:
            ways = "`Authorization: Bearer KEY`, `x-api-key: KEY` or `api-key: KEY`"
            raise CallerUnknown(f"no valid key; send it as {ways}")
        return found


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
