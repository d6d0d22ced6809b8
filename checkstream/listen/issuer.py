"""An OpenID provider: its keys, kept and fetched anew, and what tokens of it claim.

Nobody waits for the provider as long as its keys are fresh enough: they are fetched beside. Who shows a token of a key
that isn't known waits for one try, of which there is one in half a minute, whatever strangers send.

INVARIANT: without keys that the provider had within `keys_s`, no token counts. Few wait for it at once, of whom each
address has a share; nobody does whose token no key could make count.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import ssl
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from urllib.parse import urlsplit

import aiohttp
import msgspec

from checkstream.config.identity import TokenSettings, require_provider
from checkstream.config.parts import Address
from checkstream.errors import KeyUnknown, NotReady, ProviderUnusable
from checkstream.listen.room import Room
from checkstream.listen.tokens import Key, Rules, read_header, read_keys, verified

_FRESH_S = 600.0
"""So old, keys are fetched anew."""
_AGAIN_S = 30.0
"""Between two fetches for keys that aren't known."""
_RETRY_S = 5.0
"""Between two fetches that failed."""
_TIMEOUT = aiohttp.ClientTimeout(total=5, connect=3)
_MOST_BYTES = 1 << 18
_MOST_TOKENS = 10_000
_MOST_WAITING = 256
"""Requests that may wait for the provider; they have no place among those that are let in yet."""


class Provider(msgspec.Struct, frozen=True):
    """What a provider says of itself (OpenID Connect Discovery 1.0, 3)."""

    issuer: str
    jwks_uri: str
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    authorization_response_iss_parameter_supported: bool = False


class Issuer:
    """Tells what tokens of one provider claim."""

    def __init__(self, settings: TokenSettings, told: Callable[[str], None] = lambda _: None) -> None:
        """Ask nobody yet; `told` hears why a fetch has failed."""
        self._settings = settings
        self._told = told
        self._context: ssl.SSLContext | None = None
        self._provider: Provider | None = None
        self._keys: tuple[Key, ...] = ()
        self._fetched: float | None = None
        """When the keys were, by the loop's clock."""
        self._tried = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._waiting = Room(_MOST_WAITING)
        self._known: OrderedDict[bytes, Mapping[str, object]] = OrderedDict()
        """Claims of tokens whose signature was good under the keys that there are."""

    async def close(self) -> None:
        """Fetch nothing more."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait((self._fetching,))

    async def provider(self, address: str) -> Provider:
        """Return what the provider says of itself, to who asks from `address`.

        Raises:
            NotReady: it can't be reached, or too many wait for it.
        """
        await self._fresh_keys(address)
        if self._provider is None:
            raise _unusable()
        return self._provider

    async def claims(self, token: str, audience: str, address: str) -> Mapping[str, object]:
        """Return what a token claims, which is meant for `audience` and came from `address`.

        Raises:
            TokenRefused: it is not one of this provider's for now.
            NotReady: the provider can't be reached, and its keys are too old or never came; or too many wait for it.
        """
        settings = self._settings
        rules = Rules(settings.issuer, audience, frozenset(settings.algorithms), settings.leeway_s)
        read_header(token, rules)
        keys = await self._fresh_keys(address)
        digest = hashlib.sha256(f"{audience}\0{token}".encode("utf-8", "surrogatepass")).digest()
        known = self._known.get(digest)
        now = datetime.now(UTC).timestamp()
        if known is not None and isinstance(end := known["exp"], int | float) and now < end + settings.leeway_s:
            self._known.move_to_end(digest)
            return known
        try:
            found = verified(token, keys, rules, now)
        except KeyUnknown:
            if not self._due(_AGAIN_S):
                raise
            await self._wait(self._begun(), address)
            found = verified(token, self._keys, rules, now)
        self._known[digest] = found
        if len(self._known) > _MOST_TOKENS:
            self._known.popitem(last=False)
        return found

    # --- its keys

    async def _fresh_keys(self, address: str) -> tuple[Key, ...]:
        """Return keys that count, and have them fetched anew when it is time."""
        now = asyncio.get_running_loop().time()
        counts = self._fetched is not None and now - self._fetched < self._settings.keys_s
        if (not counts or self._fetched is None or now - self._fetched > _FRESH_S) and self._due(_RETRY_S):
            fetching = self._begun()
            if not counts:
                await self._wait(fetching, address)
        elif not counts and self._fetching is not None:
            await self._wait(self._fetching, address)
        now = asyncio.get_running_loop().time()
        if self._fetched is None or now - self._fetched >= self._settings.keys_s:
            raise _unusable()
        return self._keys

    def _due(self, seconds: float) -> bool:
        return self._fetching is not None or asyncio.get_running_loop().time() - self._tried >= seconds

    async def _wait(self, fetching: asyncio.Task[None], address: str) -> None:
        with self.waiting(address):
            await asyncio.wait((fetching,))

    @contextmanager
    def waiting(self, address: str) -> Iterator[None]:
        """Have one of the places of those who wait for the provider meanwhile.

        Raises:
            NotReady: there is none for this address.
        """
        if not self._waiting.fits(address):
            raise NotReady("too many wait for the provider of identities; try again in a moment, or use a key")
        self._waiting.add(address)
        try:
            yield
        finally:
            self._waiting.give(address)

    def _begun(self) -> asyncio.Task[None]:
        """Return the fetch that runs; there is one at a time, and who waits for it has no part in its end."""
        if self._fetching is None:
            loop = asyncio.get_running_loop()
            self._tried = loop.time()
            self._fetching = loop.create_task(self._refresh())
        return self._fetching

    async def _refresh(self) -> None:
        try:
            provider, keys = await self._asked()
        except ProviderUnusable as error:
            self._told(str(error))
        else:
            if keys != self._keys:
                self._known.clear()  # a key that is gone vouches for nobody
            self._provider, self._keys = provider, keys
            self._fetched = asyncio.get_running_loop().time()
        finally:
            self._fetching = None

    async def _asked(self) -> tuple[Provider, tuple[Key, ...]]:
        issuer = self._settings.issuer
        body = await self.ask(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        provider = await asyncio.to_thread(_read_provider, body, issuer)
        return provider, await asyncio.to_thread(read_keys, await self.ask(provider.jwks_uri))

    async def ask(self, url: str, form: Mapping[str, str] | None = None, authorization: str = "") -> bytes:
        """Return what the provider answers, in bounded time and size; a form is posted.

        Raises:
            ProviderUnusable: it can't be reached, or answers with an error or without end.
        """
        if self._context is None:
            self._context = await asyncio.to_thread(self._trusting)
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        if authorization:
            headers["authorization"] = authorization
        try:
            async with (
                aiohttp.ClientSession(timeout=_TIMEOUT, auto_decompress=False) as session,
                session.request(
                    "GET" if form is None else "POST",
                    url,
                    data=form,
                    headers=headers,
                    allow_redirects=False,
                    ssl=self._context,
                ) as response,
            ):
                read = bytearray()
                async for chunk in response.content.iter_chunked(1 << 14):
                    read += chunk
                    if len(read) > _MOST_BYTES:
                        raise ProviderUnusable(f"`{url}` answers without end")
                if response.status != 200:
                    raise ProviderUnusable(f"`{url}` answers {response.status}{_reason(read)}")
                return bytes(read)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise ProviderUnusable(f"`{url}` can't be reached: {str(error) or type(error).__name__}") from error

    def _trusting(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self._settings.ca)
        except (OSError, ValueError) as error:
            raise ProviderUnusable(f"the certificates `{self._settings.ca}` can't be used: {error}") from error


def _unusable() -> NotReady:
    return NotReady(
        "who asks can't be told: the provider of identities can't be asked; try again in a moment, or use a key"
    )


def _reason(body: bytes | bytearray) -> str:
    """Return the code of an error of OAuth, which says what to mend; descriptions may say anything."""
    try:
        code = json.loads(body)["error"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return f" (`{code[:60]}`)" if isinstance(code, str) and code.isprintable() else ""


def _read_provider(body: bytes, issuer: str) -> Provider:
    """Read what a provider says of itself.

    Raises:
        ProviderUnusable: it can't be read, is another's, or names places where others could read what goes there.
    """
    try:
        found = msgspec.json.decode(body, type=Provider)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProviderUnusable(f"`{issuer}` says nothing of itself that can be read: {error}") from error
    if found.issuer != issuer:
        raise ProviderUnusable(f"`{issuer}` calls itself `{found.issuer[:200]}`; write its `issuer` just so")
    local = Address(urlsplit(issuer).hostname or "", 0).loopback
    for url in (found.jwks_uri, found.authorization_endpoint, found.token_endpoint):
        if not url and url != found.jwks_uri:
            continue
        try:
            require_provider(url.partition("?")[0])
        except ValueError as error:
            raise ProviderUnusable(f"`{issuer}` names a place that can't be asked: {error}") from error
        if not local and Address(urlsplit(url).hostname or "", 0).loopback:
            raise ProviderUnusable(f"`{issuer}` names a place of this machine, `{url[:200]}`")
    return found
