"""What a caller has sent, besides what the guard reads of its body: how it asks, and what stands around the body."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import msgspec
from aiohttp import hdrs
from aiohttp.web import BaseRequest

from checkstream.core.events import Envelope
from checkstream.core.exchange.plan import Plan
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.surface import Surface
from checkstream.errors import RequestInvalid
from checkstream.listen import Identity
from checkstream.proxy.accept import Route
from checkstream.proxy.envelope import around
from checkstream.proxy.headers import Media
from checkstream.proxy.outgoing import Outgoing
from checkstream.proxy.sessions import Sessions

CONTEXT, CONVERSATION = "x-checkstream-context", "x-checkstream-conversation"
_MAX_BYTES = MappingProxyType({CONTEXT: 8192, CONVERSATION: 512})
"""Of the headers that speak to policies."""
_BASE64 = b";base64,"
_MOST_FILES = 64
"""Of one body that are looked for, when it is reckoned how long it takes to read."""


class Sent(msgspec.Struct, frozen=True):
    """What a caller has sent."""

    identity: Identity
    body: bytes
    media: Media | None
    """What it is said to be."""
    share: str
    """In whose share of the work it is, and on whose connections it goes on: a caller's, or those of an address."""

    @property
    def content_type(self) -> str | None:
        """What it is, where it goes on unguarded."""
        return None if self.media is None else str(self.media)


def method_of(request: BaseRequest) -> str:
    """Return how a request asks; `WebSocket` where it asks for one, which no route takes: nobody would read it."""
    upgrades = ",".join(request.headers.getall(hdrs.UPGRADE, ())).lower().split(",")
    return "WebSocket" if any(each.strip().startswith("websocket") for each in upgrades) else request.method


def readable(body: bytes) -> int:
    """Return about how much of a body classifiers may have to read, in bytes: all but pictures and the like in it."""
    size, at = len(body), body.find(_BASE64)
    for _ in range(_MOST_FILES):
        end = body.find(b'"', at)
        if at < 0 or end < 0:
            break
        size -= end - at
        at = body.find(_BASE64, end)
    return size


def unread(request: BaseRequest, sent: Sent) -> Outgoing:
    """Return a request as it goes on unguarded."""
    url, identity = request.rel_url, sent.identity
    target = url.raw_path + (f"?{url.raw_query_string}" if url.raw_query_string else "")
    return Outgoing(target, tuple(request.headers.items()), identity.key_header, sent.content_type, sent.share)


def read_around(
    request: BaseRequest, sent: Sent, *, route: Route, plan: Plan, surface: Surface | Mcp, sessions: Sessions | None
) -> tuple[Outgoing, Envelope]:
    """Return what of a guarded request stands around its body as it goes on, and what of it rules are to read.

    Raises:
        RequestInvalid: two readers could read it differently.
        SessionUnknown: it names a session that is not its caller's.
    """
    url, key_header = request.rel_url, sent.identity.key_header
    headers = [(name, text) for name, text in request.headers.items() if name.lower() != key_header]
    outer = around(
        route.match.path,
        url.raw_path,
        url.raw_query_string,
        headers if sessions is None else sessions.opened(headers),
        keyed=route.upstream.keyed,
        strict=plan.unknown_fields == "refuse",
        refused=surface.parts_of_answers,
    )
    outgoing = Outgoing(
        outer.target,
        outer.headers,
        key_header,
        party=sent.share,
        method=request.method,
        patient=isinstance(surface, Mcp),
    )
    return outgoing, outer.envelope


def one_of(name: str, given: Sequence[str]) -> str | None:
    """Return the one header of a name by which the caller speaks to policies; None: there is none.

    Raises:
        RequestInvalid: it is too long or not UTF-8, or stands there more than once.
    """
    if len(given) > 1:
        raise RequestInvalid(f"`{name}` stands there {len(given)} times; send one")
    try:
        size = len(given[0].encode()) if given else 0
    except UnicodeEncodeError as error:
        raise RequestInvalid(f"`{name}` is not UTF-8; send UTF-8, or only ASCII") from error
    if size > _MAX_BYTES[name]:
        advice = f"send less, or send it in the body as `checkstream.{name.rpartition('-')[2]}`"
        raise RequestInvalid(f"`{name}` has {size} bytes, the limit is {_MAX_BYTES[name]}; {advice}")
    return given[0] if given else None
