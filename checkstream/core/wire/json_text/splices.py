"""Puts values into JSON by splicing: what is not replaced stays byte for byte."""

from __future__ import annotations

from collections.abc import Container, Generator, Iterable, Mapping

import msgspec

from checkstream.core.terms import Unit
from checkstream.core.wire import sse
from checkstream.core.wire.json_text.spans import NAME, JsonText, Path, Splice
from checkstream.core.wire.json_text.strings import quote, quote_like
from checkstream.errors import WireError

_LONG_BYTES = 16_384


EDITS_A_STEP = 32


def putting(unit: Unit, values: Mapping[Path, str | None]) -> Generator[None, None, Unit]:
    """Return, in steps, an event or a whole answer with these texts, or null, at these places; elsewhere as it came.

    Raises:
        WireError: the JSON has two members of one name on the way to one.
    """
    framed = not is_object(unit.raw)
    data = sse.parse(unit.raw).data if framed else unit.raw
    if data is None or not is_object(data):
        return unit
    document = yield from places(data, ways(values))
    splices: list[Splice] = []
    for count, (path, value) in enumerate(values.items(), 1):
        span = document.span(path)
        if span is not None:
            splices.append(Splice(*span, "null" if value is None else quote(value)))
        if count % EDITS_A_STEP == 0:
            yield
    written = yield from document.applying(splices)
    return msgspec.structs.replace(unit, raw=sse.reframe(unit.raw, written) if framed else written)


def changed(unit: Unit, texts: Mapping[int, str]) -> dict[int, str]:
    """Return the texts that differ from what stands there."""
    return {i: text for i, text in texts.items() if text != unit.deltas[i].text}


def is_object(data: bytes) -> bool:
    """Tell whether a text begins as a JSON object does."""
    return data.startswith(b"{") or data.lstrip().startswith(b"{")


def ways(paths: Iterable[Path]) -> set[Path]:
    """Return the paths of all containers in which something stands at one of these."""
    found = set[Path]()
    for path in paths:
        way = path[:-1] if path[-1] != NAME else path[:-2]
        while way and way not in found:
            found.add(way)
            way = way[:-1]
    return found


def places(data: bytes, wanted: Container[Path] | None) -> Generator[None, None, JsonText]:
    """Return a body's JSON; of a long one the places of what stands in the wanted containers are known, in steps.

    Args:
        data: The body.
        wanted: Paths; None: all containers.

    Raises:
        WireError: it is no JSON.
    """
    document = JsonText.of_bytes(data)
    if len(data) > _LONG_BYTES:
        yield
        yield from document.listing(wanted)
    return document


class Names:
    """Names of the members of one object: each new one differs from all others, in more than letter case."""

    def __init__(self, given: Iterable[str | int]) -> None:
        """Begin with the names that the object has."""
        self._taken = {str(name).casefold() for name in given}
        self._numbers: dict[str, int] = {}

    def new(self, name: str) -> str:
        """Return the name, or one made of it that is still free, and take it."""
        made = name
        while made.casefold() in self._taken:
            self._numbers[name] = number = self._numbers.get(name, 1) + 1
            made = f"{name} {number}"
        self._taken.add(made.casefold())
        return made


def putting_members(body: bytes, members: Mapping[str, msgspec.Raw]) -> Generator[None, None, bytes]:
    """Return, in steps, the JSON object `body` with these members, in place of those of the same names.

    Raises:
        WireError: it is no JSON object, or has two members of one name.
    """
    document = yield from places(body, ())
    there = document.entries(())
    start = document.span(())
    if start is None or not document.text.startswith("{", start[0]):
        raise WireError("nothing can be added to an answer that is no JSON object")
    added = ",".join(f"{quote(name)}:{bytes(value).decode()}" for name, value in members.items())
    comma = "," if added and there.keys() - members.keys() else ""
    splices = [Splice(start[0] + 1, start[0] + 1, added + comma), *document.cut((), frozenset[str | int](members))]
    return (yield from document.applying(splices))


def null(document: JsonText, paths: Iterable[Path]) -> list[Splice]:
    """Return the splices that put null in place of the values at these paths, where there are any."""
    spans = [document.span(path) for path in paths]
    return [Splice(span[0], span[1], "null") for span in spans if span is not None]


def replace(document: JsonText, path: Path, text: str) -> Splice:
    """Return the splice that puts a string in place of the value, or the name, at a path.

    Raises:
        WireError: nothing stands there.
    """
    span = document.span(path)
    if span is None:
        raise WireError(f"`{path[-1]}` can't be edited: it is not where it was read")
    return Splice(*span, quote_like(text, document.text[slice(*span)]))


def put(
    document: JsonText, path: Path, name: str, text: str, *, doomed: frozenset[str | int], grown: set[Path]
) -> Splice:
    """Replace the member `name` of the object at `path`, or add it.

    `doomed` members are being taken out; `grown` are the objects that have got a member before.

    Raises:
        WireError: there is no such object.
    """
    span = document.span((*path, name))
    if span is not None:
        return Splice(*span, quote_like(text, document.text[slice(*span)]))
    start = document.span(path)
    if start is None:
        raise WireError(f"`{name}` can't be added: the object that it belongs to is not there")
    if document.entries(path).keys() - doomed:
        before, after = "", ","
    else:  # alone in its object, or behind the first that was added
        before, after = "," if path in grown else "", ""
    grown.add(path)
    return Splice(start[0] + 1, start[0] + 1, f"{before}{quote(name)}:{quote(text)}{after}")
