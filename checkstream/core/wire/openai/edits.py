"""Carries edits into the JSON of OpenAI's older surfaces by splicing: what is not edited stays byte for byte."""

from __future__ import annotations

from collections.abc import Container, Generator, Iterable, Mapping

import msgspec

from checkstream.core.terms import COMMON, Delta, Unit
from checkstream.core.wire import sse
from checkstream.core.wire.answers.answer import CALLS
from checkstream.core.wire.answers.join import going_on, summing
from checkstream.core.wire.answers.logprobs import SHADOWS
from checkstream.core.wire.answers.splices import replacing
from checkstream.core.wire.json_text.spans import JsonText, Path, Splice, string_end, value_start
from checkstream.core.wire.json_text.splices import EDITS_A_STEP, changed, null, places, put, ways
from checkstream.core.wire.json_text.strings import quote
from checkstream.core.wire.surface import Edit

_LISTED = frozenset[Path]({(), ("content",), ("tool_calls",)})
"""Of a message: what may be cut out of it stands in these."""

_STREAMED = "delta"
"""The member of a choice of an event that holds its texts, of chats."""
_KEPT_OF_STOPPED = frozenset({"role", "content", "refusal"})


def editing_event(unit: Unit, edit: Edit) -> Generator[None, None, bytes]:
    """Return, in steps, the event with the edit applied, `b""` when nothing of it remains.

    Raises:
        WireError: the event's JSON has two members of one name where it is edited.
    """
    texts = changed(unit, edit.texts)
    dropped = edit.drop_choices.intersection(unit.choices)
    alone = not dropped and not edit.drop_calls and not edit.finish
    if not texts and alone:
        return unit.raw
    data = sse.parse(unit.raw).data
    if data is None:
        return unit.raw
    if len(texts) == len(unit.deltas) == len(unit.choices) == 1 and alone:
        quick = _quick_splice(data.decode(), unit.deltas[0], texts[0])
        if quick is not None:
            return sse.reframe(unit.raw, quick)
    wanted = ways(unit.deltas[i].path for i in (*texts, *edit.drop_calls))
    document = yield from places(data, _Wanted(wanted, _STREAMED))
    numbers = _numbers(document)
    calls = doomed_calls(document, {unit.deltas[i].path for i in edit.drop_calls})
    silent = {int(path[1]) for path, names in calls.items() if not document.entries(path).keys() - names}
    doomed = frozenset[str | int](
        position
        for position, number in numbers.items()
        if number in dropped or (position in silent and number not in unit.finished)
    )
    if doomed and len(doomed) == len(numbers) and not _outlives_choices(document):
        return b""
    altered = {unit.deltas[i].channel.choice for i in (*texts, *edit.drop_calls)}
    splices = document.cut(("choices",), doomed)
    splices += [splice for path, names in calls.items() for splice in document.cut(path, frozenset(names))]
    for position, number in numbers.items():
        if number in edit.finish and position not in doomed:
            splices += _finish(document, ("choices", position, "finish_reason"), edit.finish[number])
        if number in altered and position not in doomed:
            splices += null(document, (("choices", position, name) for name in SHADOWS))
    splices += null(document, ((name,) for name in SHADOWS))
    splices += yield from replacing(document, unit, texts, dropped)
    return sse.reframe(unit.raw, (yield from document.applying(splices)))


def doomed_calls(document: JsonText, paths: Iterable[Path]) -> dict[Path, set[str | int]]:
    """Return what takes out the tool calls that the texts at these paths belong to: container -> entries of it.

    A list of calls that loses all of them goes as well.
    """
    doomed: dict[Path, set[str | int]] = {}
    for path in paths:
        place = next(i for i, name in enumerate(path) if name in CALLS)
        if path[place] == "tool_calls":
            doomed.setdefault(path[: place + 1], set()).add(path[place + 1])
        else:
            doomed.setdefault(path[:place], set()).add(path[place])
    for container, entries in list(doomed.items()):
        if container[-1] == "tool_calls" and not document.entries(container).keys() - entries:
            del doomed[container]
            doomed.setdefault(container[:-1], set()).add(container[-1])
    return doomed


def _quick_splice(data: str, delta: Delta, text: str) -> str | None:
    """Return the common event with its one text replaced; None when only a real parse finds the place.

    What proves the place: the event has a member of this name, since its text was read from it. A name in quotes
    can't stand within a JSON string, where quotes are escaped, and around the text none is spelled with escapes. So
    where the name in quotes stands only once, that is the member, whatever surrounds it.
    """
    if not isinstance(delta.path[-1], str) or delta.verbatim or delta.channel.kind == "extra":
        return None
    name = f'"{delta.path[-1]}"'
    if data.count(name) != 1:
        return None
    start = value_start(data, data.index(name) + len(name))
    end = string_end(data, start, delta.text)
    if end is None:
        return None
    around = data[:start] + data[end:]
    if "\\u00" in around:
        return None
    for shadow in SHADOWS:
        quoted = f'"{shadow}"'
        if quoted in around and (around.count(quoted) != 1 or not around.partition(quoted)[2].startswith(":null")):
            return None
    return f"{data[:start]}{quote(text)}{data[end:]}"


def editing_whole(
    unit: Unit, edit: Edit, finish: Mapping[int, str], message: str | None
) -> Generator[None, None, bytes]:
    """Return, in steps, the body with the edit applied; `message` is the member of a choice that holds its texts.

    Raises:
        WireError: the body's JSON has two members of one name where it is edited.
    """
    texts = changed(unit, edit.texts)
    dropped = edit.drop_choices.intersection(unit.choices)
    finish = {choice: reason for choice, reason in finish.items() if choice in unit.choices}
    if not texts and not dropped and not finish and not edit.drop_calls:
        return unit.raw
    wanted = ways(unit.deltas[i].path for i in (*texts, *edit.drop_calls))
    document = yield from places(unit.raw, _Wanted(wanted, message))
    altered = {unit.deltas[i].channel.choice for i in (*texts, *edit.drop_calls)} | dropped
    calls = doomed_calls(document, {unit.deltas[i].path for i in edit.drop_calls})
    splices = [splice for path, names in calls.items() for splice in document.cut(path, frozenset(names))]
    splices += null(document, ((name,) for name in SHADOWS)) if altered else []
    common = {i: text for i, text in texts.items() if _is_common(unit, i)}
    splices += yield from replacing(document, unit, common, dropped)
    placed: dict[Path, list[int]] = {}
    for i, delta in enumerate(unit.deltas):
        placed.setdefault(delta.path[:2], []).append(i)
    yield
    for position, number in _numbers(document).items():
        path: Path = ("choices", position)
        if position % EDITS_A_STEP == EDITS_A_STEP - 1:
            yield
        if number in altered:
            splices += null(document, ((*path, name) for name in SHADOWS))
        edited = _Choice(number, path, number in dropped, finish.get(number), message)
        splices += yield from _choice_splices(document, unit, edit, texts, edited, deltas=placed.get(path, ()))
    return (yield from document.applying(splices))


class _Wanted:
    """The containers of an answer that are listed when it is edited."""

    def __init__(self, ways: Container[Path], message: str | None) -> None:
        self._ways = ways
        self._message = message

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, tuple) or path[:1] != ("choices",):
            return path in self._ways
        if len(path) <= 2 or (path[2:3] == (self._message,) and path[3:] in _LISTED):
            return True
        return path in self._ways


class _Choice(msgspec.Struct, frozen=True):
    """A choice of a whole answer, as it is edited."""

    number: int
    path: Path
    dropped: bool
    finish: str | None
    """Replaces its finish reason."""
    message: str | None
    """The member of it that holds its texts."""


def _choice_splices(
    document: JsonText, unit: Unit, edit: Edit, texts: Mapping[int, str], choice: _Choice, *, deltas: Iterable[int]
) -> Generator[None, None, list[Splice]]:
    """Return, in steps, the splices that edit one choice of a whole answer, which has these deltas."""
    path, message = choice.path, choice.message
    splices: list[Splice] = []
    grown: set[Path] = set()
    if choice.finish is not None:
        splices.append(put(document, path, "finish_reason", choice.finish, doomed=frozenset(), grown=grown))
    doomed: frozenset[str | int] = frozenset()
    if message is not None and choice.dropped:
        kept = {unit.deltas[i].path for i in edit.texts}
        doomed = _empty(document, (*path, message), kept)
        splices += document.cut((*path, message), doomed)
        splices += _cut_parts(document, (*path, message), kept)
    for count, i in enumerate(deltas, 1):
        delta = unit.deltas[i]
        if delta.channel.choice != choice.number:
            continue
        if count % EDITS_A_STEP == 0:
            yield
        text = texts.get(i, "" if choice.dropped and i not in edit.texts else None)
        if text is None or (doomed and len(delta.path) > 3 and delta.path[3] in doomed):
            continue
        if delta.channel.kind != "extra" and not delta.verbatim and delta.path[:-1] in (path, (*path, message)):
            splices.append(put(document, delta.path[:-1], str(delta.path[-1]), text, doomed=doomed, grown=grown))
        else:
            splices += yield from replacing(document, unit, {i: text}, frozenset())
    return splices


def _numbers(document: JsonText) -> dict[int, int]:
    """Return the number of each choice by its position."""
    numbers: dict[int, int] = {}
    for position in range(len(document.entries(("choices",)))):
        span = document.span(("choices", position, "index"))
        value = "null" if span is None else document.text[span[0] : span[1]]
        numbers[position] = position if value == "null" else int(value)
    return numbers


def _outlives_choices(document: JsonText) -> bool:
    """Say whether an event still says something when all its choices are taken out."""
    for name in ("usage", "error"):
        span = document.span((name,))
        if span is not None and document.text[span[0] : span[1]] != "null":
            return True
    return False


def _finish(document: JsonText, path: Path, reason: str | None) -> list[Splice]:
    span = document.span(path)
    return [] if span is None else [Splice(*span, "null" if reason is None else quote(reason))]


def _is_common(unit: Unit, place: int) -> bool:
    return unit.deltas[place].channel.choice == COMMON


def _empty(document: JsonText, path: Path, kept: set[Path]) -> frozenset[str | int]:
    """Return the members that a stopped choice's message must lose: all that can carry text and is not kept."""
    depth = len(path) + 1
    keep = {at[depth - 1] for at in kept if at[: depth - 1] == path}
    members = document.entries(path)
    return frozenset(
        name
        for name, member in members.items()
        if name not in _KEPT_OF_STOPPED and name not in keep and document.text[member.start] in '"[{'
    )


def _cut_parts(document: JsonText, path: Path, kept: set[Path]) -> list[Splice]:
    """Take out of a stopped choice's lists of content parts and tool calls each one that no kept text stands in."""
    splices: list[Splice] = []
    for name in ("content", "tool_calls"):
        span = document.span((*path, name))
        if span is not None and document.text[span[0]] == "[":
            depth = len(path) + 1
            keep = {at[depth] for at in kept if len(at) > depth and at[:depth] == (*path, name)}
            splices += document.cut((*path, name), frozenset(document.entries((*path, name)).keys() - keep))
    return splices


def joining_whole(
    first: Unit, texts: Mapping[int, str], second: Unit, message: str | None
) -> Generator[None, None, bytes]:
    """Return, in steps, the second body with what was released of the first before its own content, and both's usage.

    Args:
        first: The answer that was cut off.
        texts: Index in `first.deltas` -> what was released of it; what is not there was released as it is.
        second: The answer that went on.
        message: The member of a choice that holds its texts, None where the choice itself does.

    Raises:
        WireError: the second has no content, or its JSON has two members of one name where it is edited.
    """
    joined = yield from editing_whole(second, going_on(first, texts, second), {}, message)
    return (yield from summing(first.raw, joined))
