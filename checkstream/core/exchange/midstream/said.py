"""What the arguments of a call say: the strings in them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


def strings_of(text: str) -> Iterator[str]:
    """Yield the strings of a call's arguments, in order; of what is no JSON, all."""
    try:
        value: object = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        yield text
        return
    open_ = [value]
    while open_:
        found = open_.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, dict):
            open_ += reversed(found.values())
        elif isinstance(found, list):
            open_ += reversed(found)
