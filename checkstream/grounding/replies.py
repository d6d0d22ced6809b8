"""What a judge said, as JSON: taken from prose and fences, and saved when it broke off. Nothing of it is ever run.

What a model thought aloud before it spoke is not what it said.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any, NoReturn

from checkstream.core.match.regex import TextRegex

MAX_CHARS = 200_000
"""Of a longer reply only the beginning is read."""
_MOST_TRIES = 16
"""Opening braces that are tried; a reply with more before its object is garbage."""
_MOST_DEPTH = 64
_THOUGHTS, _THOUGHTS_END = "<think>", "</think>"
_STRING_OR_COMMA = TextRegex(r'"(?:[^"\\]|\\.)*"|,\s*[}\]]')
"""Commas inside strings are found as part of these."""


def first_object(reply: str) -> dict[str, Any] | None:
    """Return the first JSON object of `reply`, or nothing.

    An object that broke off is closed behind its last whole member; a comma too many is left out. NaN and infinities
    make it unreadable.
    """
    reply = _spoken(reply)[:MAX_CHARS]
    at = reply.find("{")
    for _ in range(_MOST_TRIES):
        if at < 0:
            return None
        end, broken = _object_end(reply, at)
        found = _read(_plain(reply[at:end] + broken))
        if found is not None:
            return found
        at = reply.find("{", at + 1 if broken or end <= at else end)
    return None


def number(value: object) -> float | None:
    """Return a finite number, also one written as text, or nothing; true and false are no numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _read(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _spoken(reply: str) -> str:
    """Return a reply without the thoughts that it begins with; what was only thought says nothing."""
    bare = reply.lstrip()
    return bare.partition(_THOUGHTS_END)[2] if bare.startswith(_THOUGHTS) else reply


def _plain(text: str) -> str:
    """Return JSON without the commas that stand before a closing bracket."""
    edges = [-1, *(place.start for place in _STRING_OR_COMMA.spans(text) if text[place.start] == ","), len(text)]
    return "".join(text[left + 1 : right] for left, right in pairwise(edges))


def _object_end(reply: str, start: int) -> tuple[int, str]:
    """Return where the object that begins at `start` ends, and what closes it there if it broke off."""
    closers: list[str] = []
    safe, safe_closers = start, ""
    in_string = escaped = False
    for at in range(start, len(reply)):
        char = reply[at]
        if in_string:
            escaped, in_string = char == "\\" and not escaped, escaped or char != '"'
        elif char == '"':
            in_string = True
        elif char in "{[":
            closers.append("}" if char == "{" else "]")
            if len(closers) > _MOST_DEPTH:
                break
        elif char in "}]":
            if not closers or closers.pop() != char:
                break
            if not closers:
                return at + 1, ""
            safe, safe_closers = at + 1, "".join(reversed(closers))
        elif char == ",":
            safe, safe_closers = at, "".join(reversed(closers))
    return safe, safe_closers
