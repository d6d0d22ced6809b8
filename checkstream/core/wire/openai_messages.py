"""Reads the messages of a chat request into ingress channels: every role, part, tool call and name."""

from __future__ import annotations

from checkstream.core.wire import openai_fields as fields
from checkstream.core.wire.json_spans import Path
from checkstream.core.wire.openai_prompt import Prompt
from checkstream.errors import RequestInvalid


def read_messages(prompt: Prompt, messages: object) -> int:
    """Read `messages` and return how many; a message's position is the `choice` of its channels.

    Raises:
        RequestInvalid: a message or part has the wrong type, or a name in the wrong case.
    """
    if not isinstance(messages, list) or not messages:
        raise RequestInvalid("`messages` must be an array with at least one message")
    for position, message in enumerate(messages):
        if not isinstance(message, dict):
            raise RequestInvalid(f"`messages[{position}]` must be an object")
        _message(prompt, position, message)
    return len(messages)


def _message(prompt: Prompt, position: int, message: dict[str, object]) -> None:
    role = message.get("role")
    if not isinstance(role, str):
        raise RequestInvalid(f"`messages[{position}].role` must be a string, such as `user`")
    kind = fields.ROLES.get(role, "user")
    path: Path = ("messages", position)
    if role not in fields.ROLES:  # a template may print the role itself into the prompt
        prompt.unknown["messages[].role"] = None
        prompt.identifiers(kind, position, role, (*path, "role"))
    _content(prompt, kind, position, message.get("content"))
    strange = prompt.names("messages[].", message, fields.MESSAGE_FIELDS)
    for name, value in message.items():
        at = (*path, name)
        if value is None or name == "content" or name in fields.PLAIN_MESSAGE_FIELDS:
            continue
        if name == "tool_calls":
            _tool_calls(prompt, kind, position, value)
        elif name == "function_call":
            _function(prompt, kind, position, value, at)
        elif name in ("tool_call_id", "id", "name"):
            prompt.identifiers(kind, position, value, at)
        elif name in fields.MEDIA:
            prompt.unscanned[name] = None
        elif name in strange or not isinstance(value, bool):
            prompt.all("system" if name == "tools" else kind, position, value, at)


def _content(prompt: Prompt, kind: str, position: int, content: object) -> None:
    path: Path = ("messages", position, "content")
    if content is None:
        return
    if isinstance(content, str):
        prompt.add(kind, position, content, path)
    elif isinstance(content, list):
        rest: list[tuple[object, Path]] = []
        for i, part in enumerate(content):
            prompt.skip_to(kind, position, i)
            if isinstance(part, str):
                prompt.add(kind, position, part, (*path, i))
            elif isinstance(part, dict):
                rest += _part(prompt, kind, position, part, (*path, i))
            else:
                raise RequestInvalid(f"`messages[{position}].content[{i}]` must be an object with a type")
        prompt.skip_to(kind, position, len(content))
        for value, at in rest:  # what else the parts carry, numbered after them
            prompt.all(kind, position, value, at)
    else:
        raise RequestInvalid(f"`messages[{position}].content` must be a string or an array of parts")


def _part(prompt: Prompt, kind: str, position: int, part: dict[str, object], path: Path) -> list[tuple[object, Path]]:
    """Read one content part; return what it carries beside its text."""
    form = part.get("type")
    if form is not None and not isinstance(form, str):
        raise RequestInvalid(f"`messages[{position}].content[{path[-1]}].type` must be a string")
    if form is not None and form not in fields.PART_TYPES:
        if form.casefold() in fields.PART_TYPES:
            raise RequestInvalid(f"the content part type `{form}` must be written `{form.casefold()}`")
        prompt.unknown["messages[].content[].type"] = None
    rest: list[tuple[object, Path]] = []
    if "text" in part and not isinstance(part["text"], str):
        raise RequestInvalid(f"`messages[{position}].content[{path[-1]}].text` must be a string")
    strange = prompt.names("messages[].content[].", part, fields.PART_FIELDS)
    for name, value in part.items():
        at = (*path, name)
        if name == "text" and isinstance(value, str):
            prompt.add(kind, position, value, at)
        elif name in fields.MEDIA:
            prompt.unscanned[name] = None
        elif name in strange or name not in fields.PLAIN_PART_FIELDS:
            rest.append((value, at))
    if form is not None and form not in fields.PART_TYPES:
        rest.append((form, (*path, "type")))
    return rest


def _tool_calls(prompt: Prompt, kind: str, position: int, calls: object) -> None:
    if not isinstance(calls, list):
        raise RequestInvalid(f"`messages[{position}].tool_calls` must be an array")
    for i, call in enumerate(calls):
        path: Path = ("messages", position, "tool_calls", i)
        if not isinstance(call, dict):
            raise RequestInvalid(f"`messages[{position}].tool_calls[{i}]` must be an object")
        prompt.names("messages[].tool_calls[].", call, fields.CALL_FIELDS)
        for name, value in call.items():
            if name in ("function", "custom") and value is not None:
                _function(prompt, kind, position, value, (*path, name))
            elif name in ("id", "type"):
                prompt.identifiers(kind, position, value, (*path, name))
            else:
                prompt.all(kind, position, value, (*path, name))


def _function(prompt: Prompt, kind: str, position: int, value: object, path: Path) -> None:
    if not isinstance(value, dict):
        raise RequestInvalid(f"`messages[{position}].{path[2]}` must hold a function with name and arguments")
    prompt.names("messages[].tool_calls[].function.", value, fields.FUNCTION_FIELDS)
    for name, inner in value.items():
        prompt.all(kind, position, inner, (*path, name))
