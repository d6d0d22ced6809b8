"""Carries edits into the events and whole answers of the Messages API by splicing: all else stays as it was."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping

from checkstream.core.terms import Unit
from checkstream.core.wire import sse
from checkstream.core.wire.answers.join import going_on, summing
from checkstream.core.wire.answers.splices import replacing
from checkstream.core.wire.json_text.spans import JsonText, Path, Splice
from checkstream.core.wire.json_text.splices import changed, places, ways
from checkstream.core.wire.json_text.strings import quote
from checkstream.core.wire.surface import Edit
from checkstream.errors import WireError

REFUSAL = "refusal"
"""What an answer that a rule has stopped says of its end."""
_REASONS = {"content_filter": REFUSAL, "stop": "end_turn"}
_NONE: frozenset[int] = frozenset()


def editing_event(unit: Unit, edit: Edit) -> Generator[None, None, bytes]:
    """Return, in steps, the event with its texts and its reason to stop replaced, as far as the edit says so.

    Raises:
        WireError: the event's JSON has two members of one name where it is edited.
    """
    texts = changed(unit, edit.texts)
    reason = edit.finish.get(0, "") if unit.finished else ""
    data = sse.parse(unit.raw).data
    if (not texts and reason == "") or data is None:
        return unit.raw
    document = yield from places(data, ways(unit.deltas[i].path for i in texts))
    splices = yield from replacing(document, unit, texts, _NONE)
    if reason != "":
        splices += _reason(document, ("delta",), reason)
    return sse.reframe(unit.raw, (yield from document.applying(splices)))


def renumbered(raw: bytes, number: int) -> bytes:
    """Return the event of a block under another number."""
    data = sse.parse(raw).data or b""
    document = JsonText(data.decode())
    span = document.span(("index",))
    if span is None or document.text[slice(*span)] == str(number):
        return raw
    return sse.reframe(raw, document.apply([Splice(*span, str(number))]))


def editing_whole(unit: Unit, edit: Edit, finish: Mapping[int, str]) -> Generator[None, None, bytes]:
    """Return, in steps, the body with the edit applied.

    A thinking block in which anything is edited goes as a whole: its signature would fit the text no more. A text block
    of which nothing is left goes as well: the API takes none back that is empty. What a tool of the provider's has said
    goes with the call that is taken out.

    Raises:
        WireError: the body's JSON has two members of one name where it is edited.
    """
    texts = changed(unit, edit.texts)
    dropped = 0 in edit.drop_choices and 0 in unit.choices
    finish = finish if 0 in unit.choices else {}
    if not texts and not dropped and not finish and not edit.drop_calls:
        return unit.raw
    document = yield from places(unit.raw, _wanted(unit))
    blocks = document.entries(("content",))
    added = "".join(text for i, text in texts.items() if unit.deltas[i].path == ("content", len(blocks), "text"))
    texts = {i: text for i, text in texts.items() if unit.deltas[i].path[:2] != ("content", len(blocks))}
    doomed = set(_doomed(unit, texts, edit))
    if dropped:
        kept = {unit.deltas[i].path[1] for i in edit.texts if unit.deltas[i].path[:1] == ("content",)}
        doomed |= blocks.keys() - kept
        texts |= {i: "" for i, delta in enumerate(unit.deltas) if delta.channel.choice == 0 and i not in edit.texts}
    doomed |= _results_of(document, doomed)
    texts = {i: text for i, text in texts.items() if not _is_within(unit.deltas[i].path, doomed, len(blocks))}
    splices = yield from replacing(document, unit, texts, _NONE)
    splices += document.cut(("content",), frozenset(doomed))
    if added:
        splices.append(_appended(document, doomed, added))
    if 0 in finish:
        splices += _reason(document, (), finish[0])
    return (yield from document.applying(splices))


def _wanted(unit: Unit) -> set[Path]:
    """Return the containers that are listed when a whole answer is edited: its blocks, and where its texts stand."""
    blocks = ((*delta.path[:2], "") for delta in unit.deltas if delta.path[:1] == ("content",))
    return ways((*blocks, *(delta.path for delta in unit.deltas), ("content", 0)))


def _doomed(unit: Unit, texts: Mapping[int, str], edit: Edit) -> Iterable[str | int]:
    """Yield the numbers of the blocks that an edit takes out."""
    for i in edit.drop_calls:
        yield unit.deltas[i].path[1]
    signed = {delta.path[:2] for delta in unit.deltas if delta.channel.kind == "reasoning"}
    for i, text in texts.items():
        delta = unit.deltas[i]
        if delta.path[:2] in signed or (delta.channel.kind == "content" and not text):
            yield delta.path[1]


def _results_of(document: JsonText, doomed: Iterable[str | int]) -> set[str | int]:
    """Return the blocks that tell what came of calls which are taken out."""
    text = document.text
    ids = {text[slice(*span)] for each in doomed if (span := document.span(("content", each, "id"))) is not None}
    found = set[str | int]()
    for number in document.entries(("content",)) if ids else ():
        span = document.span(("content", number, "tool_use_id"))
        if span is not None and text[slice(*span)] in ids:
            found.add(number)
    return found


def _is_within(path: Path, doomed: set[str | int], blocks: int) -> bool:
    """Tell whether a text stands in a block that is taken out, or in one that is not there."""
    return path[:1] == ("content",) and (path[1] in doomed or path[1] == blocks)


def _appended(document: JsonText, doomed: set[str | int], text: str) -> Splice:
    """Return what adds a text block behind all others that stay."""
    span = document.span(("content",))
    if span is None:
        raise WireError("nothing can be added to an answer without `content`")
    block = f'{{"type":"text","text":{quote(text)}}}'
    kept = [member for number, member in document.entries(("content",)).items() if number not in doomed]
    return Splice(kept[-1].end, kept[-1].end, f",{block}") if kept else Splice(span[0] + 1, span[0] + 1, block)


def _reason(document: JsonText, path: Path, reason: str | None) -> list[Splice]:
    """Return what puts another reason to stop in its place; which sequence stopped it is no reason any more."""
    found = {name: document.span((*path, name)) for name in ("stop_reason", "stop_sequence")}
    said = {"stop_reason": "null" if reason is None else quote(_REASONS.get(reason, reason)), "stop_sequence": "null"}
    return [Splice(*span, said[name]) for name, span in found.items() if span is not None]


def joining_whole(first: Unit, texts: Mapping[int, str], second: Unit) -> Generator[None, None, bytes]:
    """Return, in steps, the second body with what was released of the first before its own, and the usage of both.

    Raises:
        WireError: the second has no content, or its JSON has two members of one name where it is edited.
    """
    joined = yield from editing_whole(second, going_on(first, texts, second), {})
    return (yield from summing(first.raw, joined))
