"""Joins two whole answers of OpenAI's shape into one: what was begun in the first and continued in the second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from checkstream.core.terms import Unit
from checkstream.core.wire.json_spans import JsonText, Path, Splice
from checkstream.core.wire.openai_edits import edit_whole
from checkstream.core.wire.openai_json import read_object
from checkstream.core.wire.surface import Edit
from checkstream.errors import WireError

_MOST_TOKENS = 2**53
"""A larger number is no count."""


def join_whole(first: Unit, texts: Mapping[int, str], second: Unit, message: str | None) -> bytes:
    """Return the second body with the released content of the first before its own, and with the usage of both.

    Args:
        first: The answer that was cut off.
        texts: Index in `first.deltas` -> what was released of it; what is not there was released as it is.
        second: The answer that went on.
        message: The member of a choice that holds its texts, None where the choice itself does.

    Raises:
        WireError: the second has no content, or its JSON has two members of one name where it is edited.
    """
    begun = "".join(texts.get(i, delta.text) for i, delta in enumerate(first.deltas) if delta.channel.kind == "content")
    place = next((i for i, delta in enumerate(second.deltas) if delta.channel.kind == "content"), None)
    if place is None:
        raise WireError("the answer that goes on has no content; check the upstream")
    return summed(first.raw, edit_whole(second, Edit({place: begun + second.deltas[place].text}), {}, message))


def summed(first: bytes, joined: bytes) -> bytes:
    """Return the whole answer `joined` with the usage of both where it has its own.

    Raises:
        WireError: its JSON has two members of one name there.
    """
    usages = [read_object(body).get("usage") for body in (first, joined)]
    if not all(isinstance(usage, dict) for usage in usages):
        return joined
    spent, more = (dict(_counts(usage, ("usage",), 2)) for usage in usages)
    document = JsonText(joined.decode(), shares=True)
    spans = {path: document.span(path) for path in spent.keys() & more.keys()}
    splices = [Splice(*span, str(spent[path] + more[path])) for path, span in spans.items() if span is not None]
    return document.apply(splices).encode()


def _counts(usage: object, path: Path, levels: int) -> Iterator[tuple[Path, int]]:
    """Yield the whole numbers of a usage object and of the groups in it."""
    for name, value in usage.items() if isinstance(usage, dict) else ():
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS:
            yield (*path, name), value
        elif levels > 1:
            yield from _counts(value, (*path, name), levels - 1)
