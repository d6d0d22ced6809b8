"""Who calls, and how that is known."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Protocol, Self

import msgspec
from aiohttp import hdrs
from aiohttp.web import BaseRequest

from checkstream.config.certificates import Pattern
from checkstream.errors import CallerUnknown

_DOTS = 2
"""Of a token; keys have none, or are found before."""
_KEY_HEADERS = ("x-api-key", "api-key")
"""Where Anthropic's clients put a key, and Azure's."""


class Identity(msgspec.Struct, frozen=True):
    """Who calls, and how that is known."""

    name: str | None = None
    """As configured; None when callers have no names."""
    key_header: str | None = None
    """The header in which the key or the token came, in lower case: it is for us and goes no further."""
    known: str = ""
    """What is surely known of the caller besides, a JSON object, which policies read as `context`; null stands for what
    they may not say themselves. Empty: nothing."""
    role: str | None = None
    """What a token alone makes of them; None: it is their name that says what they may."""


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


class Tokens(Protocol):
    """Tells whose tokens are."""

    async def identity(self, token: str, address: str) -> Identity:
        """Return who has a token that came from an address, as `network_of` has it.

        Raises:
            TokenRefused: nobody who may call.
            NotReady: it can't be told at present.
        """


class Callers:
    """Who may call: by key, by a provider's token, or by a certificate."""

    def __init__(
        self,
        keys: Mapping[str, str] | None,
        *,
        tokens: Tokens | None = None,
        certificates: Mapping[str, Pattern] | None = None,
        unsaid: str = "",
    ) -> None:
        """Know callers.

        Args:
            keys: `name -> key`; None: everyone may call, nameless.
            tokens: Knows those who have tokens; None: those count for nothing.
            certificates: `name -> what is to stand in the certificate` that TLS has verified.
            unsaid: `Identity.known` of those who come without a token.
        """
        self._digests = None if keys is None else [(name, _digest(key)) for name, key in keys.items()]
        self._tokens = tokens
        self._certificates = certificates or {}
        self._unsaid = unsaid

    @classmethod
    def hashed(
        cls,
        digests: Mapping[str, bytes],
        *,
        tokens: Tokens | None = None,
        certificates: Mapping[str, Pattern] | None = None,
    ) -> Self:
        """Know callers by `name -> SHA-256 of the key`, so that nobody reads the keys here."""
        callers = cls({}, tokens=tokens, certificates=certificates)
        callers._digests = [*digests.items()]
        return callers

    @property
    def known(self) -> bool:
        """Callers have names and keys."""
        return self._digests is not None

    @property
    def names(self) -> tuple[str | None, ...]:
        """Who may call, by name; None alone where callers have none. Those who have tokens are not known beforehand."""
        if self._digests is None:
            return (None,)
        return tuple(dict.fromkeys((*(name for name, _ in self._digests), *self._certificates)))

    def whose(self, key: str) -> str | None:
        """Return who has a key; None: nobody. Takes the same time for every key."""
        given, found = _digest(key), None
        for name, digest in self._digests or ():
            if hmac.compare_digest(digest, given):
                found = name
        return found

    async def identify(self, request: BaseRequest) -> Identity:
        """Return who calls. Takes the same time for every wrong key.

        Raises:
            CallerUnknown: there is no key in `Authorization: Bearer`, `x-api-key` or `api-key`, or nobody has it; nor
                is there a token or a certificate of somebody who may call.
            NotReady: whose a token is can't be told at present.
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
                found = Identity(name, header, self._unsaid)
        token = keys["authorization"].strip()
        if found.name is None and self._tokens is not None and token.count(".") == _DOTS:
            return await self._tokens.identity(token, network_of(request.remote or ""))
        if found.name is None and self._certificates:
            found = Identity(self._certified(request), known=self._unsaid)
        if found.name is None:
            ways = "`Authorization: Bearer KEY`, `x-api-key: KEY` or `api-key: KEY`"
            raise CallerUnknown(f"no valid key; send it as {ways}")
        return found

    def _certified(self, request: BaseRequest) -> str | None:
        """Return who has the certificate of a connection; None: there is none, or nobody has, or two may have."""
        shown = None if request.transport is None else request.transport.get_extra_info("peercert")
        if not shown:
            return None
        now = datetime.now(UTC).timestamp()
        found = [name for name, pattern in self._certificates.items() if pattern.takes(shown, now)]
        return found[0] if len(found) == 1 else None


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
