"""Whose requests a listener on loopback takes that asks for no key.

Only this machine reaches it, and every page that a browser on this machine shows is on it too: under a name of its own
that it lets point to 127.0.0.1 (DNS rebinding; then `Host` is foreign), or from another site (then `Origin` is).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterable
from urllib.parse import urlsplit

from aiohttp import hdrs
from aiohttp.web import BaseRequest

from checkstream.errors import HostForeign, OriginForeign


def _none(_path: str) -> Collection[str]:
    return ()


class Hosts:
    """The names under which a listener may be asked, and the pages that may ask."""

    def __init__(self, names: Iterable[str] = (), origins: Callable[[str], Collection[str]] = _none) -> None:
        """Know this machine's own names.

        Args:
            names: Others that are allowed.
            origins: Returns the origins that may ask for a path besides pages of this machine.
        """
        self._names = frozenset(name.lower().rstrip(".") for name in names)
        self._origins = origins

    def require(self, request: BaseRequest) -> None:
        """Go on with a request that was meant for this machine.

        Raises:
            HostForeign: it was meant for another.
            OriginForeign: a page of another site asks.
        """
        target = request.rel_url.raw_authority if request.rel_url.absolute else None
        for host in (*request.headers.getall(hdrs.HOST, ()), *((target,) if target is not None else ())):
            if not self._is_ours(f"//{host}"):
                raise HostForeign(
                    f"nobody needs a key here, so requests are taken for this machine's own names alone, not for "
                    f"`{host[:100]}`; call `localhost`, or add the name to `server.hosts`"
                )
        for origin in request.headers.getall(hdrs.ORIGIN, ()):
            allowed = self._origins(request.rel_url.raw_path)
            if not self._is_ours(origin) and "*" not in allowed and origin.lower() not in allowed:
                raise OriginForeign(
                    f"nobody needs a key here, so pages of `{origin[:100]}` may not ask; add it to the route's "
                    "`cors.origins`"
                )

    def _is_ours(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
            name, port = parts.hostname, parts.port
        except ValueError:
            return False
        if not name or parts.path or parts.query or parts.fragment or "@" in parts.netloc or port == 0:
            return False
        name = name.rstrip(".")
        if name in self._names or name == "localhost" or name.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False
