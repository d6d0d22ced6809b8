"""Joins two answers into one: what was begun in the first and continued in the second."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping

from checkstream.core.steps import dropping
from checkstream.core.terms import Unit
from checkstream.core.wire.json_text.objects import reading_object
from checkstream.core.wire.json_text.spans import Path, Splice
from checkstream.core.wire.json_text.splices import places, ways
from checkstream.core.wire.surface import Edit
from checkstream.errors import WireError

_MOST_TOKENS = 2**53
"""A larger number is no count."""


def going_on(first: Unit, texts: Mapping[int, str], second: Unit) -> Edit:
    """Return the edit that puts what was released of the content of a first answer before that of the second.

    Raises:
        WireError: the second has no content.
    """
    begun = "".join(texts.get(i, delta.text) for i, delta in enumerate(first.deltas) if delta.channel.kind == "content")
    place = next((i for i, delta in enumerate(second.deltas) if delta.channel.kind == "content"), None)
    if place is None:
        raise WireError("the answer that goes on has no content; check the upstream")
    return Edit({place: begun + second.deltas[place].text})


def summing(first: bytes, joined: bytes) -> Generator[None, None, bytes]:
    """Return, in steps, the whole answer `joined` with the usage of both where it has its own.

    Raises:
        WireError: its JSON has two members of one name there.
    """
    counts: list[dict[Path, int]] = []
    for body in (first, joined):
        read = yield from reading_object(body)
        counts.append(dict(_counts(read.get("usage"), ("usage",), 2)))
        yield from dropping(read)
    spent, more = counts
    if not spent or not more:
        return joined
    document = yield from places(joined, ways(spent))
    spans = {path: document.span(path) for path in spent.keys() & more.keys()}
    splices = [Splice(*span, str(spent[path] + more[path])) for path, span in spans.items() if span is not None]
    return (yield from document.applying(splices))


def _counts(usage: object, path: Path, levels: int) -> Iterator[tuple[Path, int]]:
    """Yield the whole numbers of a usage object and of the groups in it."""
    for name, value in usage.items() if isinstance(usage, dict) else ():
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS:
            yield (*path, name), value
        elif levels > 1:
            yield from _counts(value, (*path, name), levels - 1)
