"""Whether texts are JSON: arguments of calls, and what tools have said; of a long one that is told in steps."""

from __future__ import annotations

from collections.abc import Generator

from checkstream.core.channel.json_leaves import is_json
from checkstream.core.wire.json_text.objects import looking_whether_json

_MOST_CHARS = 65_536
"""That are looked at in one step."""


def whether_json(text: str) -> Generator[None, None, bool]:
    """Tell, in steps, whether a text is one whole JSON value, as `is_json` does.

    Of a long one nothing is let through that readers could take for two things, or can't take at all: two members of
    one name, and more levels or members than anybody writes.
    """
    return is_json(text) if len(text) <= _MOST_CHARS else (yield from looking_whether_json(text))
