"""Reads the answers of the Messages API: which text stands where, where the message ends, what is not known.

The one choice is 0. All text blocks of a message are its content, all thinking is its reasoning; of a call of a tool
the block's number is the number.

INVARIANT: a string, number or member name of an answer is a delta, an extra, or a word of the protocol; bytes spelled
as text are named in `unscanned`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

import msgspec

from checkstream.core.steps import freeing
from checkstream.core.terms import COMMON, Channel, Delta, Unit
from checkstream.core.wire.answers.answer import MAX_INDEX, Answer
from checkstream.core.wire.answers.failure import failure_of
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.json_text.objects import read_object, reading_object
from checkstream.core.wire.json_text.spans import Path
from checkstream.errors import WireError

EVENTS = frozenset({
    "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
    "message_stop", "ping", "error",
})  # fmt: skip
CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
"""Types of blocks that call a tool."""
_CHANNELS = {"text": ("content", "text"), "thinking": ("reasoning", "thinking")}
"""Type of a block -> channel of its text, and the member that has it."""
_PIECES = {"text": "content", "thinking": "reasoning", "partial_json": "tool_arguments"}
"""Member of a delta -> channel."""
_MESSAGE = frozenset({
    "id", "type", "role", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container",
    "context_management", "diagnostics", "error", "request_id",
})  # fmt: skip
_BLOCK = frozenset({"type", "tool_use_id", "caller", "citations", "is_error", "toolset_name", "server_name"})
_DELTA = frozenset({"type", "stop_reason", "stop_sequence", "stop_details", "container"})
_EVENT = frozenset({"type", "index", "usage", "error", "request_id", "context_management"})
_NOTHING: frozenset[str] = frozenset()
_BLOCKS_A_STEP = 64
_TYPE = frozenset({"type"})
_WORDS = {"type": "message", "role": "assistant"}
_BROKEN = {
    "max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter",
    "pause_turn": "other",
}  # fmt: skip
"""Reasons to stop by which something is missing -> why."""


def reading_event(frame: Frame, *, steps: bool) -> Generator[None, None, Unit]:
    """Read one event of a stream; `steps`: it is long, and read in steps.

    Raises:
        WireError: it is not what the API allows.
    """
    data = frame.data
    if data is None or not data.strip():
        return Unit(raw=frame.raw, opaque=frame.strange)
    if data.strip() == b"[DONE]":
        return Unit(raw=b"")  # OpenAI's last word, which some servers send besides their own
    body = read_object(data)
    kind = body.get("type", frame.event)
    if not isinstance(kind, str) or (frame.event and frame.event != kind):
        raise WireError("the event's name is not its `type`; check the upstream")
    answer = Answer(data, whole=False, steps=steps)
    if kind in _READERS:
        answer.choices.append(0)
        _READERS[kind](answer, body)
    elif kind in EVENTS:
        _rest(answer, body, _EVENT, _TYPE, (), choice=COMMON)
    else:
        answer.choices.append(0)
        _rest(answer, body, _NOTHING, _NOTHING, (), choice=COMMON)
    yield from answer.taking()
    if kind not in EVENTS:
        return answer.unit(frame.raw, opaque=True)
    if kind == "error":
        return answer.unit(frame.raw, failure=failure_of(body) or "the upstream reported an error")
    unit = answer.unit(frame.raw, usage=kind == "message_delta" and body.get("usage") is not None)
    return msgspec.structs.replace(unit, terminator=True) if kind == "message_stop" else unit


def _read_start(answer: Answer, body: dict[str, object]) -> None:
    message = _object(body, "message")
    if message.get("content"):
        raise WireError("the message has content before its first block; check the upstream")
    _rest(answer, message, _MESSAGE, _read_words(message), ("message",))
    _rest(answer, body, _EVENT, frozenset({"type", "message"}), ())


def _read_block_start(answer: Answer, body: dict[str, object]) -> None:
    answer.block = number = number_of(body)
    _read_block(answer, number, _object(body, "content_block"), ("content_block",))
    _rest(answer, body, _EVENT, frozenset({"type", "index", "content_block"}), (), place=_event_of(number))


def _read_delta(answer: Answer, body: dict[str, object]) -> None:
    answer.block = number = number_of(body)
    delta = _object(body, "delta")
    if len(delta) != 2 or len(body) != 3 or not _read_piece(answer, number, delta):
        _read_pieces(answer, number, delta)
        _rest(answer, body, _EVENT, frozenset({"type", "index", "delta"}), (), place=_event_of(number))


def _read_piece(answer: Answer, number: int, delta: dict[str, object]) -> bool:
    """Read the common delta, which has a type and a text; tell whether it is one."""
    (first, kind), (name, text) = delta.items()
    channel = _PIECES.get(name)
    if first != "type" or not _is_one_of(kind, _DELTA_TYPES) or channel is None or not isinstance(text, str):
        return False
    _add(answer, channel, number, text, ("delta", name))
    return True


def _read_pieces(answer: Answer, number: int, delta: dict[str, object]) -> None:
    """Read any delta; callers put what it says into the block, under a name of the delta's own or of the block's."""
    place = ("content", number, "delta")
    for name, value in delta.items():
        channel = _PIECES.get(name)
        if channel is not None and isinstance(value, str):
            _add(answer, channel, number, value, ("delta", name))
        elif name != "type" or not _is_one_of(value, _DELTA_TYPES):
            _rest(answer, {name: value}, _DELTA, _NOTHING, ("delta",), place=place)


def _add(answer: Answer, kind: str, number: int, text: str, path: Path) -> None:
    call = kind == "tool_arguments"
    if text:
        answer.text(kind, 0, number if call else 0, text, path)
    elif call:  # it must not leave without its call
        answer.deltas.append(Delta(Channel(kind, 0, number), "", path))


def _event_of(number: int) -> Path:
    """Return the place of what the events of a block say besides."""
    return "content", number, "event"


def _read_block_stop(answer: Answer, body: dict[str, object]) -> None:
    answer.block = number = number_of(body)
    answer.over.append(number)
    _rest(answer, body, _EVENT, frozenset({"type", "index"}), (), place=_event_of(number))


def _read_message_delta(answer: Answer, body: dict[str, object]) -> None:
    delta = _object(body, "delta")
    _finish(answer, delta.get("stop_reason"), whole=False)
    _rest(answer, delta, _DELTA, _NOTHING, ("delta",), place=("message",))
    _rest(answer, body, _EVENT, frozenset({"type", "delta"}), ())


def _read_ping(answer: Answer, body: dict[str, object]) -> None:
    _rest(answer, body, _EVENT, _TYPE, ())


_READERS = {
    "message_start": _read_start,
    "content_block_start": _read_block_start,
    "content_block_delta": _read_delta,
    "content_block_stop": _read_block_stop,
    "message_delta": _read_message_delta,
    "ping": _read_ping,
}
_DELTA_TYPES = frozenset({"text_delta", "thinking_delta", "input_json_delta", "signature_delta", "citations_delta"})


def reading_whole(data: bytes) -> Generator[None, None, Unit]:
    """Read a whole answer, in steps; its last delta is a place for what a stop or a disclaimer has to say.

    Raises:
        WireError: a value has the wrong type; it has neither content nor an error.
    """
    body = yield from reading_object(data)
    answer = Answer(data, whole=True)
    return (yield from freeing([body, answer.extras.found], _whole(answer, data, body), len(data)))


def _whole(answer: Answer, data: bytes, body: dict[str, object]) -> Generator[None, None, Unit]:
    failure = failure_of(body)
    content = body.get("content")
    if failure is not None:
        _rest(answer, body, _MESSAGE, _NOTHING, (), choice=COMMON)
        yield from answer.taking()
        return answer.unit(data, failure=failure)
    if not isinstance(content, list):
        raise WireError("the answer has neither `content` nor `error`; check the upstream")
    answer.begin(0)
    _finish(answer, body.get("stop_reason"), whole=True)
    for i, block in enumerate(content):
        if not isinstance(block, dict):
            raise WireError("a content block is not an object; check the upstream")
        _read_block(answer, i, block, ("content", i))
        if i % _BLOCKS_A_STEP == _BLOCKS_A_STEP - 1:
            yield from answer.taking()
            yield
    _rest(answer, body, _MESSAGE, _read_words(body), ())
    if all(delta.channel.kind != "content" for delta in answer.deltas):
        answer.begin_text(0, ("content", len(content), "text"))
    yield from answer.taking()
    yield from answer.filling()
    return answer.unit(data, usage=body.get("usage") is not None)


def _read_words(message: Mapping[str, object]) -> frozenset[str]:
    """Return the members of a message that need no more reading: its content, and words of the protocol."""
    return frozenset({"content"}).union(name for name, word in _WORDS.items() if message.get(name) == word)


def _rest(
    answer: Answer,
    body: Mapping[str, object],
    known: frozenset[str],
    own: frozenset[str],
    at: Path,
    *,
    place: Path | None = None,
    choice: int = 0,
) -> None:
    """Take the members of an object that are not `own`; the arguments are those of `Answer.rest`."""
    if len(body) > len(own) or not own.issuperset(body):
        answer.rest(choice, body, known, own, at, place=place)


def _read_block(answer: Answer, number: int, block: dict[str, object], path: Path) -> None:
    """Read a content block: of a stream as it begins, or whole."""
    given = block.get("type")
    form = given if isinstance(given, str) else ""
    place = ("content", number)
    own = set[str]()
    if form in _CHANNELS:
        kind, name = _CHANNELS[form]
        text = block.get(name)
        if text:
            answer.text(kind, 0, 0, text, (*path, name))
        else:  # a new part of the text begins
            answer.deltas.append(Delta(Channel(kind), "", (*path, name)))
        own.add(name)
    elif form in CALLS:
        _read_call(answer, number, block, path)
        if form != "tool_use":
            answer.served.append(number)
        own |= {"name", "input", "id"}
        answer.extras.known(0, block.get("id"), (*path, "id"), (*place, "id"), "never")
    _rest(answer, block, _BLOCK, frozenset(own), path, place=place)


def _read_call(answer: Answer, number: int, block: dict[str, object], path: Path) -> None:
    name, given = block.get("name"), block.get("input")
    if name:
        answer.text("tool_name", 0, number, name, (*path, "name"))
    else:
        answer.begin_call(0, number, (*path, "name"))
    if given is not None and given != {}:
        if isinstance(given, str):
            answer.text("tool_arguments", 0, number, given, (*path, "input"))
        else:
            answer.source("tool_arguments", 0, number, (*path, "input"))


def _finish(answer: Answer, reason: object, *, whole: bool) -> None:
    if reason is not None and not isinstance(reason, str):
        raise WireError("`stop_reason` is not a string; check the upstream")
    if reason or whole:
        answer.finish(0, reason)
        if reason in _BROKEN:
            answer.broken[0] = _BROKEN[str(reason)]


def number_of(body: Mapping[str, object]) -> int:
    """Return the number of the block that an event speaks of.

    Raises:
        WireError: not a number from 0 to `MAX_INDEX`.
    """
    index = body.get("index")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < MAX_INDEX:
        raise WireError(f"`index` is not a number from 0 to {MAX_INDEX - 1}; check the upstream")
    return index


def _is_one_of(value: object, words: frozenset[str]) -> bool:
    return isinstance(value, str) and value in words


def _object(body: Mapping[str, object], name: str) -> dict[str, object]:
    found = body.get(name)
    if not isinstance(found, dict):
        raise WireError(f"`{name}` is not an object; check the upstream")
    return found
