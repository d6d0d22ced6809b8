"""Headers that name sessions of a server of tools and events of them: only who has got a name goes on with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from multidict import CIMultiDict

from checkstream.core.wire.mcp.bound import EVENT, SESSION, Bound
from checkstream.errors import SessionUnknown


class Sessions:
    """The headers of one caller and one server."""

    def __init__(self, digest: Callable[[str], str], server: str, caller: str | None) -> None:
        """See `Bound`."""
        self._bound = Bound(digest, server, caller)

    def opened(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return a caller's headers as its server knows them.

        Raises:
            SessionUnknown: one names what the caller was never given.
        """
        found = list(headers)
        sessions: list[str] = []
        for named in (SESSION, EVENT):  # which session it is tells which events are of it
            for at, (name, text) in enumerate(found):
                if name.lower().replace("_", "-") == named:
                    known = self._bound.opened(named, text, sessions)
                    if known is None:
                        raise SessionUnknown(f"`{named}` names nothing that this caller was given; begin a new session")
                    found[at] = name, known
                    if named == SESSION:
                        sessions.append(known)
        return found

    def bind(self, headers: CIMultiDict[str]) -> None:
        """Bind the session that an answer names to the caller who gets it."""
        if SESSION in headers:
            headers[SESSION] = self._bound.session(headers[SESSION])
