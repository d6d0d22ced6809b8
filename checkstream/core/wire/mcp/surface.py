"""MCP as a surface: who speaks it, in which form, and what stands in the place of what is refused."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

from checkstream.core.wire import sse
from checkstream.core.wire.framing import MESSAGES
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.mcp import messages, refusals
from checkstream.core.wire.surface import Request, Shaping

NAME = "mcp"


class Side:
    """The messages of one side. Fulfils `Requests`."""

    name = NAME

    def __init__(self, reading: Callable[[bytes], Generator[None, None, Request]]) -> None:
        """Be the side whose messages `reading` reads."""
        self._reading = reading

    def reading_request(self, body: bytes) -> Generator[None, None, Request]:
        """Read a message, in steps.

        Raises:
            RequestInvalid: a caller's is no message, or readers could take it for two things.
            WireError: as much of a server's.
        """
        return self._reading(body)

    def writing_request(
        self, request: Request, texts: Mapping[int, str], shaping: Shaping | None = None
    ) -> Generator[None, None, bytes]:
        """Return, in steps, a message with texts replaced, and without the entries that are taken out.

        Raises:
            WireError: it can't be edited so.
        """
        return messages.writing(request, texts, shaping)

    def undone(self, request: Request, shaping: Shaping) -> tuple[Path, ...]:
        """Return nothing: no member of a message undoes what policies do to others."""
        del request, shaping
        return ()


class Mcp:
    """The surface `mcp`. Fulfils `Spoken`."""

    name = NAME
    events = frozenset({"message"})
    framing = MESSAGES
    methods = frozenset({"POST", "GET", "DELETE"})
    parts_of_answers = frozenset[str]()
    id_headers: tuple[str, ...] = ("x-request-id",)
    callers = Side(messages.reading_callers)
    servers = Side(messages.reading_servers)
    errors = Side(messages.reading_errors)

    def error_body(self, kind: str, message: str, rule_id: str | None = None, param: str | None = None) -> bytes:
        """Return an error of JSON-RPC about a request that nobody has read."""
        return refusals.error(None, refusals.Why(kind, message, rule_id, param))

    def error_event(self, kind: str, message: str, rule_id: str | None = None) -> bytes:
        """Return such an error as an event."""
        return sse.encode(self.error_body(kind, message, rule_id), "message")


MCP = Mcp()
