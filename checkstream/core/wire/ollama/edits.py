"""Carries edits into Ollama's answers by splicing: what is not edited stays byte for byte."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import msgspec

from checkstream.core.steps import dropping
from checkstream.core.terms import Unit
from checkstream.core.wire import sse
from checkstream.core.wire.answers.join import going_on
from checkstream.core.wire.answers.logprobs import SHADOWS
from checkstream.core.wire.answers.splices import replacing
from checkstream.core.wire.json_text.objects import reading_object
from checkstream.core.wire.json_text.spans import JsonText, Path, Splice
from checkstream.core.wire.json_text.splices import changed, places, ways
from checkstream.core.wire.json_text.strings import quote
from checkstream.core.wire.ollama import fields
from checkstream.core.wire.openai.edits import doomed_calls
from checkstream.core.wire.surface import Edit
from checkstream.errors import WireError

_STOPPED = "content_filter"
_SUMS = fields.DURATIONS


def editing_event(unit: Unit, edit: Edit) -> Generator[None, None, bytes]:
    """Return, in steps, the line's event with the edit applied, `b""` when nothing of it remains.

    Raises:
        WireError: its JSON has two members of one name where it is edited.
    """
    texts = changed(unit, edit.texts)
    dropped = bool(edit.drop_choices.intersection(unit.choices))
    if not texts and not dropped and not edit.drop_calls and not edit.finish:
        return unit.raw
    if dropped and not unit.terminator:
        return b""
    data = sse.parse(unit.raw).data or b"{}"
    finish = _STOPPED if dropped else edit.finish.get(0)
    written = yield from _editing(data, unit, edit, finish, kept={}, dropped=dropped)
    return sse.reframe(unit.raw, written)


def editing_answer(unit: Unit, edit: Edit, finish: Mapping[int, str]) -> Generator[None, None, bytes]:
    """Return, in steps, a whole answer with the edit applied; of a stopped one only what the edit keeps stays.

    Raises:
        WireError: its JSON has two members of one name where it is edited.
    """
    dropped = bool(edit.drop_choices.intersection(unit.choices))
    if not changed(unit, edit.texts) and not dropped and not edit.drop_calls and not finish.get(0):
        return unit.raw
    return (yield from _editing(unit.raw, unit, edit, finish.get(0), kept=edit.texts, dropped=dropped))


def _editing(
    data: bytes, unit: Unit, edit: Edit, finish: str | None, *, kept: Mapping[int, str], dropped: bool
) -> Generator[None, None, bytes]:
    document = yield from places(data, ways(delta.path for delta in unit.deltas))
    texts = changed(unit, edit.texts)
    calls = {unit.deltas[i].path for i in edit.drop_calls}
    members: dict[Path, set[str | int]] = {}
    for i, delta in enumerate(unit.deltas):
        if not dropped or i in kept or delta.channel.choice != 0:
            continue
        texts.pop(i, None)
        if delta.path[-1] in ("content", "response"):
            texts[i] = ""
        elif "tool_calls" in delta.path:
            calls.add(delta.path)
        else:
            members.setdefault(delta.path[:-1], set()).add(delta.path[-1])
    doomed = doomed_calls(document, calls)
    for path, names in members.items():
        doomed.setdefault(path, set()).update(names)
    splices = [splice for path, names in doomed.items() for splice in document.cut(path, frozenset(names))]
    missing = {i: text for i, text in texts.items() if document.span(unit.deltas[i].path) is None}
    texts = {i: text for i, text in texts.items() if i not in missing and not _goes(unit.deltas[i].path, doomed)}
    splices += yield from replacing(document, unit, texts, frozenset())
    for i, text in missing.items():
        splices.append(_added(document, unit.deltas[i].path, text))
    if finish is not None:
        splices.append(_put(document, "done_reason", quote(finish)))
    for name in (*SHADOWS, fields.CONTEXT):
        span = document.span((name,))
        if span is not None:
            splices.append(Splice(*span, "null"))
    return (yield from document.applying(splices))


def _goes(path: Path, doomed: Mapping[Path, set[str | int]]) -> bool:
    return any(path[:at] in doomed and path[at] in doomed[path[:at]] for at in range(len(path)))


def _added(document: JsonText, path: Path, text: str) -> Splice:
    """Add a text where there was none: the model has said nothing."""
    start = document.span(path[:-1])
    if start is None or document.text[start[0]] != "{":
        raise WireError(f"`{path[-1]}` can't be added: the object that it belongs to is not there")
    comma = "," if document.entries(path[:-1]) else ""
    return Splice(start[0] + 1, start[0] + 1, f"{quote(str(path[-1]))}:{quote(text)}{comma}")


def _put(document: JsonText, name: str, value: str) -> Splice:
    span = document.span((name,))
    if span is not None:
        return Splice(*span, value)
    start = document.span(())
    at = 1 if start is None else start[0] + 1
    return Splice(at, at, f"{quote(name)}:{value}" + ("," if document.entries(()) else ""))


def joining_whole(first: Unit, texts: Mapping[int, str], second: Unit) -> Generator[None, None, bytes]:
    """Return, in steps, the second answer with what was released of the first before its own, and the sums of both.

    Raises:
        WireError: the second has no content, or its JSON has two members of one name there.
    """
    joined = yield from editing_answer(second, going_on(first, texts, second), {})
    spent, more = (yield from reading_object(first.raw)), (yield from reading_object(joined))
    document = yield from places(joined, ())
    splices = []
    for name in _SUMS:
        one, other, span = spent.get(name), more.get(name), document.span((name,))
        if isinstance(one, int) and isinstance(other, int) and span is not None:
            splices.append(Splice(*span, str(one + other)))
    yield from dropping(spent)
    yield from dropping(more)
    return (yield from document.applying(splices))


def members_of(like: Unit) -> dict[str, object]:
    """Return what every object of one answer repeats: model and moment."""
    data = like.raw if like.raw.lstrip().startswith(b"{") else sse.parse(like.raw).data
    try:
        found = msgspec.json.decode(data or b"{}", type=dict[str, object])
    except (ValueError, RecursionError):
        return {}
    return {name: found[name] for name in ("model", "created_at") if isinstance(found.get(name), str)}
