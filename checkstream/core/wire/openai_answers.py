"""Reads the answers of OpenAI's older surfaces: which text stands where, which choices end, what is not known.

INVARIANT: a string of an answer is either a delta, named in `unscanned`, or in a field that the tables
below call plain.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from checkstream.core.terms import Channel, Delta, Unit
from checkstream.core.wire.json_spans import Path
from checkstream.core.wire.openai_edits import SHADOWS, without_shadows
from checkstream.core.wire.openai_json import clean, failure_of, leaves, read_object
from checkstream.core.wire.surface import Frame
from checkstream.errors import WireError

MAX_INDEX = 4096
"""Choices and tool calls are numbered below this: a bound on what an upstream can make the guard keep."""

PLAIN_FIELDS = frozenset({
    "id", "object", "created", "model", "system_fingerprint", "service_tier", "choices", "usage", "error",
    "obfuscation", "prompt_filter_results", "prompt_annotations", "timings", "provider", "kv_transfer_params",
    "prompt_logprobs", "prompt_token_ids", "stats",
})  # fmt: skip
PLAIN_CHOICE_FIELDS = frozenset({
    "index", "finish_reason", "native_finish_reason", "stop_reason", "matched_stop", "logprobs", "token_ids",
    "content_filter_results", "content_filter_result", "content_filter_offsets", "prompt_logprobs", "prompt_token_ids",
})  # fmt: skip
_PLAIN_MESSAGE_FIELDS = frozenset({"role", "tool_call_id"})
_PLAIN_TOOL_FIELDS = frozenset({"index", "id", "type", "function", "custom"})
# Servers name the same thing differently; each name is its own text, since clients join each for itself.
_REASONING = {"reasoning_content": 0, "reasoning": 1, "thinking": 2, "reasoning_text": 3}
_REASONING_DETAILS = 4


class Answer:
    """Collects what one event or one body says, then makes a `Unit` of it."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.deltas: list[Delta] = []
        self.choices: list[int] = []
        self.finished: list[int] = []
        self.unscanned: dict[str, None] = {}

    def text(self, kind: str, choice: int, index: int, value: object, path: Path) -> None:
        """Take a string as text of a channel.

        Raises:
            WireError: `value` is not a string.
        """
        if not isinstance(value, str):
            raise WireError(f"`{path[-1]}` in an answer is not a string; check the upstream")
        if value:
            self.deltas.append(Delta(Channel(kind, choice, index), clean(value), path))

    def all_text(self, kind: str, choice: int, index: int, value: object, path: Path) -> None:
        """Take every string within `value` as text of a channel."""
        for text, at in leaves(value, path):
            self.text(kind, choice, index, text, at)

    def unknown(self, where: str, fields: dict[str, object], known: frozenset[str]) -> None:
        """Name each field outside `known` that could carry text."""
        for name, value in fields.items():
            if name not in known and value and isinstance(value, str | list | dict):
                self.unscanned[f"{where}{name}"] = None

    def unit(self, raw: bytes, *, usage: bool = False, failure: str | None = None, opaque: bool = False) -> Unit:
        """Return what was collected, with the bytes that it stands in."""
        return Unit(
            raw=raw,
            deltas=tuple(self.deltas),
            choices=tuple(dict.fromkeys(self.choices)),
            finished=tuple(dict.fromkeys(self.finished)),
            unscanned=tuple(self.unscanned),
            usage=usage,
            failure=failure,
            opaque=opaque,
        )


ReadChoice = Callable[[Answer, int, dict[str, object], Path], None]
"""Read the texts of one choice: collector, number of the choice, its fields, its path."""


def read_bare(frame: Frame) -> Unit | None:
    """Return the unit of an event that carries no object (a comment, `[DONE]`), None for any other."""
    data = frame.data
    if data is None or not data.strip():
        return Unit(raw=frame.raw, opaque=frame.strange)
    return Unit(raw=frame.raw, terminator=True) if data.strip() == b"[DONE]" else None


def read_object_event(frame: Frame, read: ReadChoice, own: frozenset[str]) -> Unit:
    """Read an event that carries an object: a piece of the answer, or an error in one of its forms.

    Raises:
        WireError: not an object, or a value has the wrong type.
    """
    body = read_object(frame.data or b"")
    unit = read_answer(frame.raw, body, read, own, whole=False)
    if frame.event != "error" or unit.failure is not None:
        return unit
    message = body.get("message")
    failure = message if isinstance(message, str) else "the upstream reported an error"
    return msgspec.structs.replace(unit, failure=failure, opaque=False)


def read_answer(raw: bytes, body: dict[str, object], read: ReadChoice, own: frozenset[str], *, whole: bool) -> Unit:
    """Read an event's or a whole answer's object; `own` are the choice fields that `read` takes care of.

    Raises:
        WireError: a value has the wrong type; a whole body has neither choices nor an error.
    """
    answer = Answer()
    failure = failure_of(body)
    choices = body.get("choices")
    if choices is None:
        if whole and failure is None:
            raise WireError("the answer has neither `choices` nor `error`; check the upstream")
        choices = []
        opaque = "choices" not in body and failure is None and body.get("usage") is None
    else:
        opaque = False
    if not isinstance(choices, list):
        raise WireError("`choices` is not an array; check the upstream")
    known = PLAIN_CHOICE_FIELDS | own
    ahead: list[int] = []
    for position, choice in enumerate(choices):
        if not isinstance(choice, dict):
            raise WireError("a choice is not an object; check the upstream")
        number = index_of(choice, position)
        answer.choices.append(number)
        reason = choice.get("finish_reason")
        if reason is not None and not isinstance(reason, str):
            raise WireError("`finish_reason` is not a string; check the upstream")
        if whole or reason:
            answer.finished.append(number)
        before = len(answer.deltas)
        read(answer, number, choice, ("choices", position))
        if len(answer.deltas) == before and not whole and any(_spells(choice.get(name)) for name in SHADOWS):
            ahead.append(position)
        answer.unknown("choice.", choice, known)
    answer.unknown("", body, PLAIN_FIELDS)
    if ahead:
        # They spell text that comes later, and that a rule may still condemn (G4, G15).
        answer.unscanned["choice.logprobs"] = None
        raw = without_shadows(raw, ahead)
    return answer.unit(raw, usage=body.get("usage") is not None, failure=failure, opaque=opaque)


def _spells(shadow: object) -> bool:
    """Tell whether log probabilities or token ids spell any text."""
    if isinstance(shadow, dict):
        return any(_spells(value) for value in shadow.values())
    return bool(shadow) and isinstance(shadow, list | str)


def index_of(fields: dict[str, object], position: int) -> int:
    """Return the `index` of a choice or tool call; servers that leave it out mean its position.

    Raises:
        WireError: not a number from 0 to `MAX_INDEX`.
    """
    index = fields.get("index")
    if index is None:
        return position
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < MAX_INDEX:
        raise WireError(f"`index` is not a number from 0 to {MAX_INDEX - 1}; check the upstream")
    return index


def read_message(answer: Answer, choice: int, message: dict[str, object], path: Path) -> None:
    """Read a chat `delta` or `message`.

    Raises:
        WireError: a value has the wrong type.
    """
    for name, value in message.items():
        at = (*path, name)
        if value is None:
            continue
        if name == "content":
            _content(answer, choice, value, at)
        elif name == "refusal":
            answer.text("refusal", choice, 0, value, at)
        elif name in _REASONING:
            answer.all_text("reasoning", choice, _REASONING[name], value, at)
        elif name == "reasoning_details":
            _reasoning_details(answer, choice, value, at)
        elif name == "tool_calls":
            _tool_calls(answer, choice, value, at)
        elif name == "function_call":
            _function(answer, choice, 0, value, at)
        elif name not in _PLAIN_MESSAGE_FIELDS and value and isinstance(value, str | list | dict):
            answer.unscanned[f"{path[-1]}.{name}"] = None


def _content(answer: Answer, choice: int, value: object, path: Path) -> None:
    """Read `content`: a string, or a list of parts as Mistral and others send it."""
    if not isinstance(value, list):
        answer.text("content", choice, 0, value, path)
        return
    for i, part in enumerate(value):
        at = (*path, i)
        if isinstance(part, str):
            answer.text("content", choice, 0, part, at)
        elif not isinstance(part, dict):
            raise WireError("a part of `content` is neither a string nor an object; check the upstream")
        else:
            for name, inner in part.items():
                if name in ("text", "refusal", "thinking", "reasoning") and inner is not None:
                    kind = {"text": "content", "refusal": "refusal"}.get(name, "reasoning")
                    answer.all_text(kind, choice, 0, inner, (*at, name))
                elif name != "type" and inner and isinstance(inner, str | list | dict):
                    answer.unscanned[f"{path[-2]}.content.{clean(name)}"] = None


def _reasoning_details(answer: Answer, choice: int, value: object, path: Path) -> None:
    """Read OpenRouter's `reasoning_details`: what repeats the reasoning must be scanned like it."""
    if not isinstance(value, list):
        raise WireError("`reasoning_details` is not an array; check the upstream")
    for i, part in enumerate(value):
        if not isinstance(part, dict):
            raise WireError("a reasoning detail is not an object; check the upstream")
        number = _REASONING_DETAILS + index_of(part, i)
        for name in ("text", "summary"):
            if part.get(name) is not None:
                answer.all_text("reasoning", choice, number, part[name], (*path, i, name))
        if part.get("data"):
            answer.unscanned[f"{path[-2]}.reasoning_details.data"] = None


def _tool_calls(answer: Answer, choice: int, value: object, path: Path) -> None:
    if not isinstance(value, list):
        raise WireError("`tool_calls` is not an array; check the upstream")
    for i, call in enumerate(value):
        if not isinstance(call, dict):
            raise WireError("a tool call is not an object; check the upstream")
        number = index_of(call, i)
        for name in ("function", "custom"):
            if call.get(name) is not None:
                _function(answer, choice, number, call[name], (*path, i, name))
        if call.get("function") is None and call.get("custom") is None:
            answer.text("tool_name", choice, number, "", (*path, i))  # a call's beginning, which must not leave alone
        answer.unknown("tool_call.", call, _PLAIN_TOOL_FIELDS)


def _function(answer: Answer, choice: int, number: int, value: object, path: Path) -> None:
    """Read a function's or custom tool's name and arguments; arguments sent as an object are read leaf by leaf."""
    if not isinstance(value, dict):
        raise WireError("the `function` of a tool call is not an object; check the upstream")
    for name, inner in value.items():
        at = (*path, name)
        if inner is None:
            continue
        if name == "name":
            answer.text("tool_name", choice, number, inner, at)
        elif name in ("arguments", "input"):
            answer.all_text("tool_arguments", choice, number, inner, at)
        elif inner and isinstance(inner, str | list | dict):
            answer.unscanned[f"tool_call.function.{name}"] = None
