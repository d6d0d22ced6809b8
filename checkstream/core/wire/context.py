"""Reads the caller's facts about a request, which conditions read as `context`, and its name for the conversation.

Both come with the body (`checkstream.context`, `checkstream.conversation`) or in headers of their own, not both: what
stands in two places could be read from either.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from checkstream.core.wire.json_text.strict import StrictJson, shown
from checkstream.core.wire.json_text.strings import clean
from checkstream.core.wire.surface import Extension
from checkstream.errors import RequestInvalid

MAX_BYTES = 16_384
"""As JSON without white space."""
MAX_DEPTH = 8
MAX_VALUES = 1_000
MAX_STRING_CHARS = 4_096
_INT64 = range(-(2**63), 2**63)
_HEADER = "the header `x-checkstream-context`"


def read_context(header: str | None, extension: Extension | None, *, called: str = _HEADER) -> dict[str, object]:
    """Return what the caller says of the request; empty when nothing is said.

    Args:
        header: The header as it came, None when there was none.
        extension: The body's `checkstream` field, None when there was none.
        called: What messages call the header.

    Raises:
        RequestInvalid: not a JSON object that two parsers read alike, above a bound, or given in both places.
    """
    context = extension.context if extension is not None else {}
    where = "`checkstream.context`"
    if header is not None:
        if context:
            raise RequestInvalid("the context comes in the body and in `x-checkstream-context`; send it in one place")
        context, where = StrictJson(called).read(header), called
    _require(context, where)
    return context


def with_known(context: dict[str, object], known: str) -> dict[str, object]:
    """Return what the caller says with what is surely known of them, which nobody says otherwise.

    Args:
        context: What the caller says.
        known: A JSON object, with null for what is not known and is not for the caller to say; empty: nothing is.

    Raises:
        RequestInvalid: they say what is known already, or what is known is above a bound.
    """
    if not known:
        return context
    sure: dict[str, object] = msgspec.json.decode(known)
    said = next((name for name in sure if name in context), None)
    if said is not None:
        raise RequestInvalid(f"`{shown(said)}` of the context is for tokens alone to say; leave it out")
    _require(sure, "the token")
    return {**context, **{name: value for name, value in sure.items() if value is not None}}


def _require(context: dict[str, object], where: str) -> None:
    for count, (value, depth) in enumerate(_values(context)):
        # Of a container that has too many, none is looked at: there may be tens of thousands (G33).
        if count > MAX_VALUES or (isinstance(value, dict | list) and len(value) > MAX_VALUES):
            raise RequestInvalid(f"{where} has more than {MAX_VALUES} values; send less")
        if depth > MAX_DEPTH:
            raise RequestInvalid(f"{where} is nested more than {MAX_DEPTH} levels deep; send a flatter one")
        _check(value, where)
    size = len(msgspec.json.encode(context))
    if size > MAX_BYTES:
        raise RequestInvalid(f"{where} has {size} bytes as JSON, the limit is {MAX_BYTES}; send less")


def named_in(header: str | None, extension: Extension | None) -> Extension | None:
    """Return the body's `checkstream` field with the conversation's name, wherever that stands.

    Args:
        header: `x-checkstream-conversation` as it came, None when there was none.
        extension: The body's `checkstream` field, None when there was none.

    Raises:
        RequestInvalid: it stands in both places.
    """
    if not header:
        return extension
    if extension is not None and extension.conversation:
        raise RequestInvalid(
            "the conversation is named in the body and in `x-checkstream-conversation`; name it in one place"
        )
    return msgspec.structs.replace(extension or Extension(), conversation=header)


def _values(context: dict[str, object]) -> Iterator[tuple[object, int]]:
    """Yield the object and every value in it, with how many containers each stands in."""
    pending: list[tuple[object, int]] = [(context, 0)]
    while pending:
        value, depth = pending.pop()
        yield value, depth
        if isinstance(value, dict):
            for name in value:
                _check(name, "the context")
            pending += [(inner, depth + 1) for inner in value.values()]
        elif isinstance(value, list):
            pending += [(inner, depth + 1) for inner in value]


def _check(value: object, where: str) -> None:
    if isinstance(value, str):
        if len(value) > MAX_STRING_CHARS:
            raise RequestInvalid(f"{where} has a string of {len(value)} characters; send at most {MAX_STRING_CHARS}")
        if clean(value) != value:
            raise RequestInvalid(f"{where} has a lone surrogate in `{shown(value)}`; send whole characters")
    elif isinstance(value, int) and value not in _INT64:
        raise RequestInvalid(f"{where} has the number `{value}`, which does not fit 64 bits; send it as a string")
