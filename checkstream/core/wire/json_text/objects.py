"""Reads the JSON objects of an upstream: strictly, at once or in steps."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import NoReturn

import msgspec

from checkstream.core.steps import dropping
from checkstream.core.wire.json_text.size import MOST_HALVES, MOST_VALUES_OF_WHOLE
from checkstream.core.wire.json_text.strict import Dialect, Reading, StrictJson
from checkstream.errors import RequestInvalid, WireError

_SHORT_BYTES = 65_536
_FEW = 4096
"""A body of so many bytes, with so many commas and brackets, is read at once: the dearest take about a millisecond."""
_NAME_BYTES = 1_048_576
"""Of the name of a member in a whole answer, as much as an event may have."""
_WHOLE = StrictJson(
    "the body",
    Dialect(values=MOST_VALUES_OF_WHOLE, halves=MOST_HALVES, variants=True, wide=True, name_bytes=_NAME_BYTES),
)


def _refuse_constant(constant: str) -> NoReturn:
    raise WireError(f"`{constant}` is not JSON; send a number or null")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build an object; of two members of one name readers differ in which they take, and only one is scanned."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise WireError("a JSON object has two members of one name; check the upstream")
    return found


_LENIENT = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_object)


def read_object(data: bytes) -> dict[str, object]:
    """Read an upstream's JSON object.

    Lone surrogates in escapes (an emoji cut in two by the server) are let through as they are;
    `clean` makes scannable text of them.

    Raises:
        WireError: not UTF-8, not JSON, nested too deeply, not an object, or an object with two members of one name.
    """
    try:
        value: object = _LENIENT.decode(data.decode())  # msgspec refuses lone surrogates and sees no duplicates
    except UnicodeDecodeError as error:
        raise WireError("the event or body is not valid UTF-8; the upstream must send UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise WireError("the event or body is not valid JSON; check the upstream") from error
    if not isinstance(value, dict):
        raise WireError("the event or body is not a JSON object; check the upstream")
    return value


def reading_object(data: bytes) -> Reading:
    """Read a whole answer's JSON object as `read_object` does, but a long one in steps, and within bounds.

    Raises:
        WireError: as `read_object`, or it is nested more deeply, or made of more values, than is read.
    """
    if _is_short(data):
        return read_object(data)
    try:
        return (yield from _WHOLE.reading(data))
    except RequestInvalid as error:
        raise WireError(f"{str(error).rpartition(';')[0] or error}; check the upstream") from error


def looking_whether_json(text: str) -> Generator[None, None, bool]:
    """Tell, in steps, whether a text is JSON: an object, or any other value."""
    data = text.encode("utf-8", "replace")
    try:
        if _is_short(data):
            msgspec.json.decode(data)
        else:
            yield from dropping([(yield from _WHOLE.reading_value(data))])
    except (ValueError, RecursionError, RequestInvalid):
        return False
    return True


def _is_short(data: bytes) -> bool:
    return len(data) <= _SHORT_BYTES and data.count(b",") + data.count(b"[") + data.count(b"{") <= _FEW
