"""Reads what a choice of a chat answer says: a `delta` or a `message`, with its parts, thoughts and calls of tools."""

from __future__ import annotations

from checkstream.core.terms import REASONING_NAMES
from checkstream.core.wire.answers.answer import LEGACY_CALL, Answer, index_of
from checkstream.core.wire.json_text.spans import Path
from checkstream.errors import WireError

_KNOWN_MESSAGE_FIELDS = frozenset({"role", "tool_call_id"})
_KNOWN_TOOL_FIELDS = frozenset({"index", "type"})
# Servers name the same thing differently; each name is its own text, since clients join each for itself.
_REASONING = {"reasoning_content": 0, "reasoning": 1, "thinking": 2, "reasoning_text": 3}
_READ = frozenset({"content", "refusal", "reasoning_details", "tool_calls", "function_call", *_REASONING})
"""Members of a message that are read as texts and calls."""
_REASONING_DETAILS = REASONING_NAMES
_TYPE = frozenset({"type"})
_PARTS = {"text": "content", "refusal": "refusal", "thinking": "reasoning", "reasoning": "reasoning"}
_READ_OF_PARTS = frozenset(_PARTS)
_READ_OF_CALLS = frozenset({"name", "arguments", "input"})
_NOTHING: frozenset[str] = frozenset()
_FUNCTIONS_ID = frozenset({"function", "custom", "id"})
_DETAILS = frozenset({"index", "text", "summary"})


def read_message(answer: Answer, choice: int, message: dict[str, object], path: Path) -> None:
    """Read a chat `delta` or `message`.

    Raises:
        WireError: a value has the wrong type.
    """
    for name in [each for each in message if each in _READ]:
        at, value = (*path, name), message[name]
        if value is None:
            continue
        if name == "content":
            _content(answer, choice, value, at)
        elif name == "refusal":
            answer.text("refusal", choice, 0, value, at)
        elif name in _REASONING:
            if isinstance(value, str):
                answer.text("reasoning", choice, _REASONING[name], value, at)
            else:
                answer.extras.unknown(choice, value, at)
        elif name == "reasoning_details":
            _reasoning_details(answer, choice, value, at)
        elif name == "tool_calls":
            _tool_calls(answer, choice, value, at, whole=path[-1] == "message")
        elif name == "function_call":
            _function(answer, choice, LEGACY_CALL, value, at)
    answer.rest(choice, message, _KNOWN_MESSAGE_FIELDS, _READ, path)


def _content(answer: Answer, choice: int, value: object, path: Path) -> None:
    """Read `content`: a string, or a list of parts as Mistral and others send it."""
    if not isinstance(value, list):
        answer.text("content", choice, 0, value, path)
        return
    answer.look_at(value)
    for i, part in enumerate(value):
        at = (*path, i)
        if isinstance(part, str):
            answer.text("content", choice, 0, part, at)
        elif not isinstance(part, dict):
            raise WireError("a part of `content` is neither a string nor an object; check the upstream")
        else:
            for name in [each for each in _PARTS if part.get(each) is not None]:
                if isinstance(part[name], str):
                    answer.text(_PARTS[name], choice, 0, part[name], (*at, name))
                else:
                    _thoughts(answer, choice, _PARTS[name], part[name], (*at, name))
            answer.rest(choice, part, _TYPE, _READ_OF_PARTS, at)


def _thoughts(answer: Answer, choice: int, kind: str, value: object, path: Path) -> None:
    """Read the text of a part that has parts of its own, as Mistral's `thinking` has."""
    if not isinstance(value, list):
        answer.extras.unknown(choice, value, path)
        return
    answer.look_at(value)
    for i, inner in enumerate(value):
        at = (*path, i)
        if isinstance(inner, str):
            answer.text(kind, choice, 0, inner, at)
        elif isinstance(inner, dict) and isinstance(inner.get("text"), str):
            answer.text(kind, choice, 0, inner["text"], (*at, "text"))
            answer.rest(choice, inner, _TYPE, frozenset({"text"}), at)
        else:
            answer.extras.unknown(choice, inner, at)


def _reasoning_details(answer: Answer, choice: int, value: object, path: Path) -> None:
    """Read OpenRouter's `reasoning_details`: what repeats the reasoning must be scanned like it."""
    if not isinstance(value, list):
        raise WireError("`reasoning_details` is not an array; check the upstream")
    answer.look_at(value)
    for i, part in enumerate(value):
        if not isinstance(part, dict):
            raise WireError("a reasoning detail is not an object; check the upstream")
        number = _REASONING_DETAILS + index_of(part, i)
        for name in ("text", "summary"):
            if isinstance(part.get(name), str):
                answer.text("reasoning", choice, number, part[name], (*path, i, name))
            elif part.get(name) is not None:
                answer.extras.unknown(choice, part[name], (*path, i, name), (*path, number, name))
        answer.rest(choice, part, _TYPE, _DETAILS, (*path, i), place=(*path, number))


def _tool_calls(answer: Answer, choice: int, value: object, path: Path, *, whole: bool) -> None:
    """Read the calls of tools; clients join pieces of one index, and take those of a whole answer one by one."""
    if not isinstance(value, list):
        raise WireError("`tool_calls` is not an array; check the upstream")
    answer.look_at(value)
    for i, call in enumerate(value):
        if not isinstance(call, dict):
            raise WireError("a tool call is not an object; check the upstream")
        number = index_of(call, i)
        if whole:
            number = i
        for name in ("function", "custom"):
            if call.get(name) is not None:
                _function(answer, choice, number, call[name], (*path, i, name), place=(*path, number, name))
        if call.get("function") is None and call.get("custom") is None:
            answer.begin_call(choice, number, (*path, i))
        place = (*path, number)
        answer.rest(choice, call, _KNOWN_TOOL_FIELDS, _FUNCTIONS_ID, (*path, i), place=place)
        answer.extras.known(choice, call.get("id"), (*path, i, "id"), (*place, "id"), "never")


def _function(
    answer: Answer, choice: int, number: int, value: object, path: Path, *, place: Path | None = None
) -> None:
    """Read a function's or custom tool's name and arguments; an object is read as the JSON that it is."""
    if not isinstance(value, dict):
        raise WireError("the `function` of a tool call is not an object; check the upstream")
    if not value.get("name") and not value.get("arguments") and not value.get("input"):
        answer.begin_call(choice, number, path)
    for name in [each for each in value if each in _READ_OF_CALLS]:
        at, inner = (*path, name), value[name]
        if inner is None:
            continue
        if name == "name":
            answer.text("tool_name", choice, number, inner, at)
        elif isinstance(inner, str):
            answer.text("tool_arguments", choice, number, inner, at)
        else:
            answer.source("tool_arguments", choice, number, at)
    answer.rest(choice, value, _NOTHING, _READ_OF_CALLS, path, place=place)
