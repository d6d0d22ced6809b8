"""One event of a stream, whatever the bytes between two programs look like."""

from __future__ import annotations

import msgspec


class Frame(msgspec.Struct, frozen=True):
    """One event, in the form of a server-sent one (WHATWG HTML 9.2)."""

    raw: bytes
    """What a caller may get of it: the event in the one form that all clients read alike (`sse`), our own comment in
    place of an event of comments, nothing of any other event without data."""
    data: bytes | None
    """The joined `data:` lines, on one line; None when the event has none."""
    event: str = ""
    """The `event:` field, or the empty string."""
    complete: bool = True
    """False: the stream ended before the event's blank line."""
    strange: bool = False
    """It has fields that the standard doesn't know, which are in neither `raw` nor `data`."""
