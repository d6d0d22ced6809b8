"""Carries edits into the events and whole answers of the Responses API by splicing: all else stays as it was."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping

import msgspec

from checkstream.core.terms import Unit
from checkstream.core.wire import sse
from checkstream.core.wire.answers.join import going_on, summing
from checkstream.core.wire.answers.splices import replacing
from checkstream.core.wire.json_text import splices as json_splices
from checkstream.core.wire.json_text.spans import JsonText, Path, Splice
from checkstream.core.wire.json_text.splices import Names, changed, places, ways
from checkstream.core.wire.json_text.strings import quote
from checkstream.core.wire.surface import Edit
from checkstream.errors import WireError

_NONE: frozenset[int] = frozenset()
_PROBABILITIES = "logprobs"
_TEXTS = frozenset({"content", "refusal"})
_TEXTS_A_STEP = 64
_FILTERED = '{"reason":"content_filter"}'
_OWN = "msg_checkstream"
_OUTPUT: Path = ("output",)
_JOINED = "output_text"
"""Some servers tell all text of an answer once more."""


def editing_event(unit: Unit, edit: Edit) -> Generator[None, None, bytes]:
    """Return, in steps, the event with its texts replaced.

    Raises:
        WireError: the event's JSON has two members of one name where it is edited.
    """
    texts = changed(unit, edit.texts)
    data = sse.parse(unit.raw).data
    if not texts or data is None:
        return unit.raw
    paths = [unit.deltas[i].path for i in texts]
    document = yield from places(data, ways(paths))
    left, beside, splices = list(texts.items()), dict[Path, Names](), list[Splice]()
    for at in range(0, len(left), _TEXTS_A_STEP):
        if at:
            yield
        splices += yield from _replacing(document, unit, dict(left[at : at + _TEXTS_A_STEP]), beside)
    return sse.reframe(unit.raw, (yield from document.applying(splices)))


def _replacing(
    document: JsonText, unit: Unit, texts: Mapping[int, str], beside: dict[Path, Names] | None = None
) -> Generator[None, None, list[Splice]]:
    """Return, in steps, what puts texts in their places; beside one that is another now no probabilities stay."""
    empty = {unit.deltas[i].path for i in texts if unit.deltas[i].path[-1] == _PROBABILITIES}
    rest = {i: text for i, text in texts.items() if unit.deltas[i].path not in empty}
    empty |= {(*unit.deltas[i].path[:-1], _PROBABILITIES) for i in rest if unit.deltas[i].channel.kind in _TEXTS}
    spans = (document.span(path) for path in empty)
    replaced = yield from replacing(document, unit, rest, _NONE, beside)
    return [
        *replaced,
        *(Splice(*span, "[]") for span in spans if span is not None),
    ]


def putting(unit: Unit, values: Mapping[Path, str | None]) -> Generator[None, None, Unit]:
    """Return, in steps, an event or a whole answer with these texts at these places; of log probabilities none.

    Raises:
        WireError: the JSON has two members of one name on the way to one.
    """
    written = yield from json_splices.putting(unit, values)
    empty = [path for path, value in values.items() if value is None and path[-1] == _PROBABILITIES]
    if not empty:
        return written
    framed = not json_splices.is_object(written.raw)
    data = sse.parse(written.raw).data if framed else written.raw
    document = yield from places(data or b"", ways(empty))
    splices = [Splice(*span, "[]") for path in empty if (span := document.span(path)) is not None]
    made = yield from document.applying(splices)
    return msgspec.structs.replace(written, raw=sse.reframe(written.raw, made) if framed else made)


def editing_whole(unit: Unit, edit: Edit, finish: Mapping[int, str]) -> Generator[None, None, bytes]:
    """Return, in steps, the body with the edit applied.

    A call that is taken out goes with what tells its result; of a stopped answer only items with texts that are kept
    stay. What is said at the end, and has no text to stand in, is a message of its own.

    Raises:
        WireError: the body's JSON has two members of one name where it is edited.
    """
    texts = changed(unit, edit.texts)
    stopped = 0 in edit.drop_choices and 0 in unit.choices
    finish = finish if 0 in unit.choices else {}
    if not texts and not stopped and not finish and not edit.drop_calls:
        return unit.raw
    document = yield from places(unit.raw, _wanted(unit))
    items = document.entries(_OUTPUT)
    own: Path = (*_OUTPUT, len(items), "content", 0, "text")
    added = "".join(text for i, text in texts.items() if unit.deltas[i].path == own)
    texts = {i: text for i, text in texts.items() if unit.deltas[i].path != own}
    doomed: set[str | int] = {unit.deltas[i].path[1] for i in edit.drop_calls}
    splices: list[Splice] = []
    if stopped:
        kept = {unit.deltas[i].path[:4] for i, text in edit.texts.items() if text}
        kept = {path for path in kept if path[:1] == _OUTPUT}
        doomed |= items.keys() - {path[1] for path in kept}
        texts |= {i: "" for i, delta in enumerate(unit.deltas) if delta.channel.choice == 0 and i not in edit.texts}
        splices += _cut_parts(document, items.keys() - doomed, kept)
    doomed |= _results_of(document, doomed)
    left, beside = list(texts.items()), dict[Path, Names]()
    for at in range(0, len(left), _TEXTS_A_STEP):
        some = {i: text for i, text in left[at : at + _TEXTS_A_STEP] if not _is_gone(document, unit, i, doomed)}
        splices += yield from _replacing(document, unit, some, beside)
        yield
    splices += document.cut(_OUTPUT, frozenset(doomed))
    splices += document.cut((), frozenset({_JOINED}))
    if added:
        splices.append(_appended(document, doomed, added, stopped=stopped))
    if finish.get(0) == "content_filter":
        splices += _ended(document, set(items) - doomed)
    return (yield from document.applying(splices))


def joining_whole(first: Unit, texts: Mapping[int, str], second: Unit) -> Generator[None, None, bytes]:
    """Return, in steps, the second answer with what was released of the content of the first before its own.

    Raises:
        WireError: the second has no content, or its JSON has two members of one name there.
    """
    joined = yield from editing_whole(second, going_on(first, texts, second), {})
    return (yield from summing(first.raw, joined))


def _wanted(unit: Unit) -> set[Path]:
    """Return the containers that are listed when a whole answer is edited: its items, and where its texts stand."""
    paths = [delta.path for delta in unit.deltas]
    more = [(*path[:at], "") for path in paths for at in (2, 3, 4) if path[:1] == _OUTPUT and len(path) >= at]
    return ways((*more, *paths, (*_OUTPUT, 0)))


def _cut_parts(document: JsonText, items: Iterable[str | int], kept: set[Path]) -> list[Splice]:
    """Return what takes out of the items that stay the parts of which nothing is kept."""
    splices: list[Splice] = []
    for number in items:
        for name in ("content", "summary"):
            at: Path = (*_OUTPUT, number, name)
            doomed = frozenset(index for index in document.entries(at) if (*at, index) not in kept)
            splices += document.cut(at, doomed)
    return splices


def _results_of(document: JsonText, doomed: Iterable[str | int]) -> set[str | int]:
    """Return the items that tell what came of calls which are taken out."""
    text = document.text
    ids = {text[slice(*s)] for each in doomed if (s := document.span((*_OUTPUT, each, "call_id"))) is not None}
    found = set[str | int]()
    for number in document.entries(_OUTPUT) if ids else ():
        span = document.span((*_OUTPUT, number, "call_id"))
        if span is not None and text[slice(*span)] in ids:
            found.add(number)
    return found


def _is_gone(document: JsonText, unit: Unit, place: int, doomed: set[str | int]) -> bool:
    """Tell whether a text stands in an item that is taken out, or nowhere."""
    path = unit.deltas[place].path
    return (path[:1] == _OUTPUT and path[1] in doomed) or document.span(path) is None


def _appended(document: JsonText, doomed: set[str | int], text: str, *, stopped: bool) -> Splice:
    """Return what adds a message behind all items that stay."""
    span = document.span(_OUTPUT)
    if span is None:
        raise WireError("nothing can be added to an answer without `output`")
    status = "incomplete" if stopped else "completed"
    part = f'{{"type":"output_text","annotations":[],"logprobs":[],"text":{quote(text)}}}'
    item = f'{{"id":"{_OWN}","type":"message","status":"{status}","role":"assistant","content":[{part}]}}'
    kept = [member for number, member in document.entries(_OUTPUT).items() if number not in doomed]
    return Splice(kept[-1].end, kept[-1].end, f",{item}") if kept else Splice(span[0] + 1, span[0] + 1, item)


def _ended(document: JsonText, items: Iterable[str | int]) -> list[Splice]:
    """Return what says that the answer, and its last item, were ended by a filter."""
    last = max((number for number in items if isinstance(number, int)), default=None)
    said: dict[Path, str] = {("status",): '"incomplete"', ("incomplete_details",): _FILTERED}
    if last is not None:
        said[*_OUTPUT, last, "status"] = '"incomplete"'
    splices: list[Splice] = []
    for path, value in said.items():
        span = document.span(path)
        if span is not None:
            splices.append(Splice(*span, value))
        elif len(path) == 1:
            start = document.span(()) or (0, 0)
            splices.append(Splice(start[0] + 1, start[0] + 1, f"{quote(str(path[0]))}:{value},"))
    return splices
