"""Names that a server gives to sessions and events, bound to the caller who has got them.

A server knows the proxy, and none of its callers: whoever has heard the name of a session, or of an event, could speak
in the one, end it, or have what came behind the other told again. So each leaves with a mark of its caller, and goes
on to the server only from that one. Nothing is remembered: a mark follows from the name, under a key of the proxy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from checkstream.core.wire.frame import Frame

SESSION, EVENT = "mcp-session-id", "last-event-id"
_BEFORE_MARK = "~"
_MARK_CHARS = 20
_LETTERS = str.maketrans("0123456789", "ghjkmnpqrs")
"""A mark has none but letters: by chance figures are a part of somebody's number."""
_ID = b"id: "
_MOST_HEAD = 3
"""Lines before the data: the type, the id, the time to wait before a stream is resumed."""


class Bound:
    """The names of one server as one caller knows them."""

    def __init__(self, digest: Callable[[str], str], server: str, caller: str) -> None:
        """Bind what `server` names to `caller`.

        Args:
            digest: Keyed digest of a text, hex; the same in all processes that callers reach.
            server: Whose names they are.
            caller: Who calls.
        """
        self._digest = digest
        self._of = server, caller

    def session(self, name: str) -> str:
        """Return the name of a session as its caller gets it."""
        return self._marked(name, SESSION)

    def event(self, frame: Frame, session: str) -> Frame:
        """Return an event of a session as its caller gets it; an empty name of a session: it has none yet."""
        lines = frame.raw.split(b"\n", _MOST_HEAD)  # the data is the rest
        for at, line in enumerate(lines[:-1]):
            if line.startswith(_ID) and len(line) > len(_ID):
                lines[at] = _ID + self._marked(line[len(_ID) :].decode("latin-1"), EVENT, session).encode("latin-1")
                return Frame(b"\n".join(lines), frame.data, frame.event, frame.complete, frame.strange)
        return frame

    def opened(self, name: str, text: str, sessions: Iterable[str]) -> str | None:
        """Return what the caller has sent as the name of a session, or of an event, as the server knows it.

        Args:
            name: Of the header.
            text: What it says.
            sessions: Those that the request is part of, as the server knows them.

        Returns:
            None: nobody has given it to this caller, in one of these sessions.
        """
        known, _, _ = text.rpartition(_BEFORE_MARK)
        within = ("",) if name == SESSION else ("", *sessions)
        return known if known and any(self._marked(known, name, each) == text for each in within) else None

    def _marked(self, name: str, kind: str, session: str = "") -> str:
        mark = self._digest(json.dumps(["mcp", kind, *self._of, session, name]))[:_MARK_CHARS]
        return f"{name}{_BEFORE_MARK}{mark.translate(_LETTERS)}"
