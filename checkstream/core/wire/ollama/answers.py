"""Reads Ollama's answers: one choice, whose text stands in `message` or, of `generate`, in the object itself."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

from checkstream.core.steps import Steps, freeing
from checkstream.core.terms import COMMON, Unit
from checkstream.core.wire.answers.answer import MAX_INDEX, Answer
from checkstream.core.wire.answers.failure import failure_of
from checkstream.core.wire.answers.logprobs import SHADOWS
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.json_text.objects import read_object, reading_object
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.moments import MOMENT, is_moment
from checkstream.core.wire.ollama import fields
from checkstream.errors import WireError

_OWN = frozenset({"message", "response", "thinking", MOMENT, fields.CONTEXT, *SHADOWS})
_SAYS = frozenset({"message", "response", "thinking"})
_MESSAGE = frozenset({"content", "thinking", "tool_calls"})
_ROLE = frozenset({"role"})
_FUNCTION = frozenset({"function", "id"})
_NAMED = frozenset({"name", "arguments"})
_NUMBERED = _NAMED | {"index"}
_ORDERLY = frozenset({"load", "unload"})
"""Reasons of an answer that only loaded a model or let go of it."""
_NOTHING: frozenset[str] = frozenset()
_IDS_A_STEP = 16_384

Read = Callable[[Answer, dict[str, object]], None]
"""Read the texts of one object."""


def reading_event(frame: Frame, read: Read, *, steps: bool) -> Generator[None, None, Unit]:
    """Read one line of an answer; `steps`: it is long, and read in steps.

    Raises:
        WireError: not an object, or a value has the wrong type.
    """
    data = frame.data
    if data is None:
        return Unit(raw=frame.raw, opaque=frame.strange)
    answer = Answer(data, whole=False, steps=steps)
    return (yield from _reading(answer, frame.raw, read_object(data), read))


def reading_whole(data: bytes, read: Read) -> Generator[None, None, Unit]:
    """Read a whole answer; its JSON, which may be long, in steps.

    Raises:
        WireError: a value has the wrong type.
    """
    body = yield from reading_object(data)
    answer = Answer(data, whole=True)
    reading = _reading(answer, data, body, read, whole=True)
    return (yield from freeing([body, answer.extras.found], reading, len(data)))


def _reading(
    answer: Answer, raw: bytes, body: dict[str, object], read: Read, *, whole: bool = False
) -> Generator[None, None, Unit]:
    failure = failure_of(body)
    done = body.get("done") is True
    if failure is None or not _SAYS.isdisjoint(body):
        answer.begin(0)
        read(answer, body)
        if whole and all(delta.channel.kind != "content" for delta in answer.deltas):
            # A place for what a stop or a disclaimer has to say, though the model said nothing.
            path = ("message", "content") if "message" in body else ("response",)
            answer.begin_text(0, path)
        if done or whole:
            reason = body.get("done_reason")
            if reason is not None and not isinstance(reason, str):
                raise WireError("`done_reason` is not a string; check the upstream")
            answer.finish(0, None if reason in _ORDERLY else reason)
    yield from answer.looking_at_shadows(0, body, ())
    yield from _context(answer, body.get(fields.CONTEXT))
    _rest(answer, body)
    yield from answer.taking()
    yield from answer.filling()
    unit = answer.unit(raw, usage=any(name in body for name in fields.COUNTS), failure=failure)
    return unit if whole or not done else _last(unit)


def _last(unit: Unit) -> Unit:
    """Return the object that ends a stream: no other word comes behind it."""
    return Unit(**{name: getattr(unit, name) for name in unit.__struct_fields__} | {"terminator": True})


def _context(answer: Answer, value: object) -> Steps:
    """Take the ids of tokens, of a vocabulary that nobody here has; whatever else stands there is read."""
    if value is None or value == []:
        return
    ids = isinstance(value, list)
    for at in range(0, len(value) if isinstance(value, list) else 0, _IDS_A_STEP):
        if at:
            yield
        ids = ids and isinstance(value, list) and set(map(type, value[at : at + _IDS_A_STEP])) == {int}
    if ids:
        answer.shadows.append((fields.CONTEXT,))
    else:
        answer.extras.unknown(0, value, (fields.CONTEXT,))


def _rest(answer: Answer, body: dict[str, object]) -> None:
    figures = (name for name in fields.DURATIONS if _is_figure(body.get(name)))
    moment = body.get(MOMENT)
    if moment is not None and not is_moment(moment):
        answer.extras.known(COMMON, moment, (MOMENT,))
    answer.rest(COMMON, body, fields.KNOWN, _OWN.union(figures), ())


def _is_figure(value: object) -> bool:
    return type(value) is int and 0 <= value < fields.MOST_DURATION


def read_chat(answer: Answer, body: dict[str, object]) -> None:
    """Read the `message` of a chat's object.

    Raises:
        WireError: a value has the wrong type.
    """
    message = body.get("message")
    if message is None:
        return
    if not isinstance(message, dict):
        raise WireError("`message` is not an object; check the upstream")
    path: Path = ("message",)
    for name, kind in (("content", "content"), ("thinking", "reasoning")):
        if message.get(name) is not None:
            answer.text(kind, 0, 0, message[name], (*path, name))
    if message.get("tool_calls") is not None:
        _calls(answer, message["tool_calls"], (*path, "tool_calls"))
    answer.rest(0, message, _ROLE, _MESSAGE, path)


def read_generate(answer: Answer, body: dict[str, object]) -> None:
    """Read the texts of an object of `generate`, and a message where a server sends one.

    Raises:
        WireError: a value has the wrong type.
    """
    for name, kind in (("response", "content"), ("thinking", "reasoning")):
        if body.get(name) is not None:
            answer.text(kind, 0, 0, body[name], (name,))
    if body.get("message") is not None:
        answer.extras.unknown(0, body["message"], ("message",))


def read_chat_alone(answer: Answer, body: dict[str, object]) -> None:
    """Read a chat's object, in which `response` and `thinking` are nothing that clients know.

    Raises:
        WireError: a value has the wrong type.
    """
    read_chat(answer, body)
    for name in ("response", "thinking"):
        if body.get(name) is not None:
            answer.extras.unknown(0, body[name], (name,))


def _number_of(function: Mapping[str, object], place: int, told: set[int]) -> int:
    """Return the number of a call: its own, or its place, if no other of the same object has that."""
    index = function.get("index")
    number = index if type(index) is int and 0 <= index < MAX_INDEX else place
    while number in told:
        number += 1
    told.add(number)
    return number


def _calls(answer: Answer, value: object, path: Path) -> None:
    """Read the calls of tools, each of which is whole where it stands."""
    if not isinstance(value, list):
        raise WireError("`tool_calls` is not an array; check the upstream")
    told = set[int]()
    for i, call in enumerate(value):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(function, dict):
            raise WireError("a tool call has no `function`; check the upstream")
        number = _number_of(function, i, told)
        at, place = (*path, i, "function"), (*path, number)
        if not function.get("name") and not function.get("arguments"):
            answer.begin_call(0, number, at)
        for name in [each for each in function if each in _NAMED]:
            inner = function[name]
            if name == "name" and inner is not None:
                answer.text("tool_name", 0, number, inner, (*at, name))
            elif isinstance(inner, str):
                answer.text("tool_arguments", 0, number, inner, (*at, name))
            elif inner is not None:
                answer.source("tool_arguments", 0, number, (*at, name))
        own = _NUMBERED if type(function.get("index")) is int else _NAMED
        answer.rest(0, function, _NOTHING, own, at, place=(*place, "function"))
        answer.rest(0, call, frozenset({"type"}), _FUNCTION, (*path, i), place=place)
        answer.extras.known(0, call.get("id"), (*path, i, "id"), (*place, "id"), "never")
