"""Names that a server gives to sessions and events, bound to the caller who has got them.

A server knows the proxy, and none of its callers: whoever has heard the name of a session, or of an event, could speak
in the one, end it, or have what came behind the other told again. So each leaves with a mark of its caller, and goes
on to the server only from that one. Nothing is remembered: a mark follows from the name, under a key of the proxy.

The name of an event is what the server likes to say, beside what is judged. It leaves as letters that follow from the
mark, so that no reader finds anything in it (G34), and becomes itself again on its way back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import count

from checkstream.core.wire.frame import Frame

SESSION, EVENT = "mcp-session-id", "last-event-id"
_BEFORE_MARK = "~"
_MARK_CHARS = 20
_LETTERS = str.maketrans("0123456789", "ghjkmnpqrs")
"""A mark has none but letters: by chance figures are a part of somebody's number."""
_FIGURES = {letter: figure for figure, letter in _LETTERS.items()}
_ID = b"id: "
_MOST_HEAD = 3
"""Lines before the data: the type, the id, the time to wait before a stream is resumed."""


class Bound:
    """The names of one server as one caller knows them."""

    def __init__(self, digest: Callable[[str], str], server: str, caller: str | None) -> None:
        """Bind what `server` names to `caller`.

        Args:
            digest: Keyed digest of a text, hex; the same in all processes that callers reach.
            server: Whose names they are.
            caller: Who calls; None: one of those without names, who are one, so that their sessions need no mark.
        """
        self._digest = digest
        self._named = caller is not None
        self._of = server, caller or ""

    def session(self, name: str) -> str:
        """Return the name of a session as its caller gets it."""
        return f"{name}{_BEFORE_MARK}{self._mark(name, SESSION)}" if self._named else name

    def event(self, frame: Frame, session: str) -> Frame:
        """Return an event of a session as its caller gets it; an empty name of a session: it has none yet."""
        lines = frame.raw.split(b"\n", _MOST_HEAD)  # the data is the rest
        for at, line in enumerate(lines[:-1]):
            if line.startswith(_ID) and len(line) > len(_ID):
                lines[at] = _ID + self._veiled(line[len(_ID) :], session).encode()
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
        if name == EVENT:
            return next(filter(None, (self._unveiled(text, each) for each in ("", *sessions))), None)
        if not self._named:
            return text
        known, _, _ = text.rpartition(_BEFORE_MARK)
        return known if known and self.session(known) == text else None

    def _veiled(self, name: bytes, session: str) -> str:
        mark = self._mark(name.decode("latin-1"), EVENT, session)
        return f"{self._mixed(name, mark).hex().translate(_LETTERS)}{_BEFORE_MARK}{mark}"

    def _unveiled(self, text: str, session: str) -> str | None:
        """Return the name that has become `text` in a session; None: none has."""
        said, _, mark = text.rpartition(_BEFORE_MARK)
        try:
            name = self._mixed(bytes.fromhex(said.translate(_FIGURES)), mark)
        except ValueError:
            return None
        return name.decode("latin-1") if name and self._veiled(name, session) == text else None

    def _mixed(self, name: bytes, mark: str) -> bytes:
        """Return the bytes of a name with as many that follow from its mark; the same again makes it what it was."""
        beside = b""
        for part in count():
            if len(beside) >= len(name):
                return bytes(one ^ other for one, other in zip(name, beside, strict=False))
            beside += bytes.fromhex(self._digest(json.dumps(["mcp", "veil", *self._of, mark, part])))
        raise AssertionError("counting ends nowhere")

    def _mark(self, name: str, kind: str, session: str = "") -> str:
        return self._digest(json.dumps(["mcp", kind, *self._of, session, name]))[:_MARK_CHARS].translate(_LETTERS)
