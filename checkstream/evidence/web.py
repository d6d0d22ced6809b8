"""Documents fetched over https, from hosts that an operator named and nowhere else.

A page may redirect, and a name may resolve, to a place inside: a cloud's metadata, a database, this machine. So each
hop's host has to be on the list, each address that its name resolves to has to be a public one, and the connection
is made to that address and no other. A host inside has to be named as such.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection
from urllib.parse import SplitResult, urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from checkstream.errors import DocumentUnreadable, SourceRefused

MAX_REDIRECTS = 5
_CONNECT_S, _IDLE_S, _WHOLE_S = 10.0, 30.0, 120.0
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_PIECE_BYTES = 1 << 16
_HEADERS = {"accept-encoding": "identity", "accept": "text/html, text/markdown, text/plain, application/pdf, */*;q=0.1"}
"""What is counted is what is sent: nothing unpacks to more than it was."""


class Web:
    """Fetches from allowed hosts. Holds no connections between two calls."""

    def __init__(self, hosts: Collection[str] = (), private_hosts: Collection[str] = ()) -> None:
        """Allow these hosts, by name.

        Args:
            hosts: over https, at public addresses.
            private_hosts: at any address, and over http too.
        """
        self._hosts = frozenset(map(_plain, hosts))
        self._private = frozenset(map(_plain, private_hosts))

    def require_allowed(self, url: str) -> None:
        """Let an address pass whose host is on a list.

        Raises:
            SourceRefused: it is not.
        """
        parts = _parts(url)
        host = _plain(parts.hostname or "")
        if host not in self._hosts and host not in self._private:
            raise SourceRefused(
                f"nothing is fetched from `{host[:200]}`; name it in `evidence.hosts` or with `--allow-host`"
            )
        if parts.scheme == "http" and host not in self._private:
            raise SourceRefused(f"`{host}` is asked without encryption; write https")
        if host not in self._private and _is_inside(host):
            raise SourceRefused(f"`{host}` is no public address; name it with `--allow-private-host` if it is meant")

    async def fetch(self, url: str, limit: int) -> tuple[bytes, str]:
        """Return a document and what its server said it is.

        Raises:
            SourceRefused: the address, or one that it redirects to, is not allowed.
            DocumentUnreadable: it can't be had, or has more than `limit` bytes.
        """
        timeout = aiohttp.ClientTimeout(total=_WHOLE_S, sock_connect=_CONNECT_S, sock_read=_IDLE_S)
        connector = aiohttp.TCPConnector(resolver=_Resolver(self._private), use_dns_cache=False, force_close=True)
        try:
            async with aiohttp.ClientSession(
                timeout=timeout, connector=connector, auto_decompress=False, headers=_HEADERS, trust_env=False
            ) as client:
                return await self._fetched(client, url, limit)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            refused = error.__cause__ if isinstance(error.__cause__, _Inside) else error
            if isinstance(refused, _Inside):
                raise SourceRefused(str(refused)) from error
            why = str(error) or type(error).__name__
            raise DocumentUnreadable(f"it can't be fetched: {why[:200]}; check the address") from error

    async def _fetched(self, client: aiohttp.ClientSession, url: str, limit: int) -> tuple[bytes, str]:
        for _ in range(MAX_REDIRECTS + 1):
            self.require_allowed(url)
            async with client.get(url, allow_redirects=False) as response:
                if response.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, response.headers.get("location", ""))
                    continue
                if response.status != 200:
                    raise DocumentUnreadable(f"its server answered {response.status}; check the address")
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise DocumentUnreadable("its server packs what was asked for unpacked; fetch it by other means")
                data = bytearray()
                async for piece in response.content.iter_chunked(_PIECE_BYTES):
                    data += piece
                    if len(data) > limit:
                        raise DocumentUnreadable(f"it has more than the {limit} bytes allowed; split it")
                return bytes(data), response.headers.get("content-type", "")
        raise DocumentUnreadable(f"it redirects more than {MAX_REDIRECTS} times; give the place itself")


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is none, brackets without an address
        sound = False
    if not sound or not url.isprintable() or "\\" in url or parts.username is not None or parts.password is not None:
        raise SourceRefused(f"`{url[:200]}` is no address that is fetched; write `https://host/...`")
    return parts


class _Inside(OSError):
    """A name that resolves to an address inside."""


class _Resolver(AbstractResolver):
    """Resolves names; where one address of a name is inside, none of them is used."""

    def __init__(self, private: Collection[str]) -> None:
        self._private = private
        self._resolver = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        if _plain(host) not in self._private and any(_is_inside(each["host"]) for each in found):
            raise _Inside(f"`{host}` leads inside; name it with `--allow-private-host` if that is meant")
        return found

    async def close(self) -> None:
        await self._resolver.close()


def _plain(host: str) -> str:
    """Return a host's name in the one form that lists are compared in."""
    return host.strip().lower().rstrip(".")


def _is_inside(host: str) -> bool:
    """Tell whether this is an address that is not public; a name is not known to be."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None and not inner.is_global:
            return True
    return not address.is_global or address.is_multicast
