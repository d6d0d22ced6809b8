"""Reads the messages of a chat request into ingress channels: every role, part, file, tool call and name."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from checkstream.core.steps import Steps
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.requests import fields
from checkstream.core.wire.requests.media import read_media, read_other
from checkstream.core.wire.requests.prompt import Prompt
from checkstream.errors import RequestInvalid

_Beside = tuple[str, object, Path, bool, bool]
"""What a part carries besides its text: name, value, path, whether nobody knows the name, whether the part's type is
that of a file."""


def read_messages(prompt: Prompt, messages: object) -> Generator[None, None, int]:
    """Read `messages` and return how many; a message's position is the `choice` of its channels.

    Raises:
        RequestInvalid: a message or part has the wrong type, or a name in the wrong case.
    """
    if not isinstance(messages, list) or not messages:
        raise RequestInvalid("`messages` must be an array with at least one message")
    for position, message in enumerate(messages):
        if not isinstance(message, dict):
            raise RequestInvalid(f"`messages[{position}]` must be an object")
        yield from _message(prompt, position, message)
        if prompt.spends():
            yield
    return len(messages)


def _message(prompt: Prompt, position: int, message: dict[str, object]) -> Steps:
    role = message.get("role")
    if not isinstance(role, str):
        raise RequestInvalid(f"`messages[{position}].role` must be a string, such as `user`")
    kind = fields.ROLES.get(role, "user")
    path: Path = ("messages", position)
    if role not in fields.ROLES:  # a template may print the role itself into the prompt
        prompt.unknown["messages[].role"] = None
        yield from prompt.settings(kind, position, role, (*path, "role"), words=True)
    yield from _content(prompt, kind, position, message.get("content"))
    strange = yield from prompt.names("messages[].", message, fields.MESSAGE_FIELDS)
    for name, value in message.items():
        at = (*path, name)
        if value is None or name in ("role", "content"):
            continue
        if name == "tool_calls":
            yield from _tool_calls(prompt, kind, position, value)
        elif name == "function_call":
            yield from _function(prompt, kind, position, value, at)
        elif name in fields.MEDIA:
            yield from read_media(prompt, kind, position, value, at)
        elif name in fields.SPOKEN_FIELDS:
            yield from prompt.all("system" if name == "tools" else kind, position, value, at)
        else:
            yield from read_other(prompt, kind, position, value, at, strange=name in strange or name == "parsed")


def _content(prompt: Prompt, kind: str, position: int, content: object) -> Steps:
    path: Path = ("messages", position, "content")
    if content is None:
        return
    if isinstance(content, str):
        prompt.add(kind, position, content, path)
    elif isinstance(content, list):
        rest: list[_Beside] = []
        for i, part in enumerate(content):
            if prompt.spends():
                yield
            prompt.skip_to(kind, position, i)
            if isinstance(part, str):
                prompt.add(kind, position, part, (*path, i))
            elif isinstance(part, dict):
                rest += yield from _part(prompt, kind, position, part, (*path, i))
            else:
                raise RequestInvalid(f"`messages[{position}].content[{i}]` must be an object with a type")
        prompt.skip_to(kind, position, len(content))
        yield from _beside(prompt, kind, position, rest)
    else:
        raise RequestInvalid(f"`messages[{position}].content` must be a string or an array of parts")


def _beside(prompt: Prompt, kind: str, position: int, rest: Sequence[_Beside]) -> Steps:
    """Read what else the parts of a message carry, numbered after them."""
    for name, value, at, strange, carries in rest:
        if prompt.spends():
            yield
        if name in fields.MEDIA or name in fields.PAYLOADS or name == "file_id":
            yield from read_media(prompt, kind, position, value, at, carries=carries or name in fields.MEDIA)
        elif name in fields.SPOKEN_PART_FIELDS:
            yield from prompt.all(kind, position, value, at)
        else:
            yield from read_other(prompt, kind, position, value, at, strange=strange)


def _part(
    prompt: Prompt, kind: str, position: int, part: dict[str, object], path: Path
) -> Generator[None, None, list[_Beside]]:
    """Read the text of one content part; return what it carries besides."""
    form = part.get("type")
    if form is not None and not isinstance(form, str):
        raise RequestInvalid(f"`messages[{position}].content[{path[-1]}].type` must be a string")
    known = form is None or form in fields.PART_TYPES
    if form is not None and not known:
        if form.casefold() in fields.PART_TYPES:
            raise RequestInvalid(f"the content part type `{form}` must be written `{form.casefold()}`")
        prompt.unknown["messages[].content[].type"] = None
    if "text" in part and not isinstance(part["text"], str):
        raise RequestInvalid(f"`messages[{position}].content[{path[-1]}].text` must be a string")
    strange = yield from prompt.names("messages[].content[].", part, fields.PART_FIELDS)
    rest: list[_Beside] = []
    for name, value in part.items():
        at = (*path, name)
        if name == "text" and isinstance(value, str):
            prompt.add(kind, position, value, at)
        elif name != "type":
            rest.append((name, value, at, name in strange, form in fields.MEDIA))
    if not known:
        rest.append(("type", form, (*path, "type"), False, False))
    return rest


def _tool_calls(prompt: Prompt, kind: str, position: int, calls: object) -> Steps:
    if not isinstance(calls, list):
        raise RequestInvalid(f"`messages[{position}].tool_calls` must be an array")
    for i, call in enumerate(calls):
        if prompt.spends():
            yield
        path: Path = ("messages", position, "tool_calls", i)
        if not isinstance(call, dict):
            raise RequestInvalid(f"`messages[{position}].tool_calls[{i}]` must be an object")
        strange = yield from prompt.names("messages[].tool_calls[].", call, fields.CALL_FIELDS)
        for name, value in call.items():
            if name in ("function", "custom") and value is not None:
                yield from _function(prompt, kind, position, value, (*path, name))
            else:
                yield from read_other(prompt, kind, position, value, (*path, name), strange=name in strange)


def _function(prompt: Prompt, kind: str, position: int, value: object, path: Path) -> Steps:
    if not isinstance(value, dict):
        raise RequestInvalid(f"`messages[{position}].{path[2]}` must hold a function with name and arguments")
    strange = yield from prompt.names("messages[].tool_calls[].function.", value, fields.FUNCTION_FIELDS)
    for name, inner in value.items():
        if name in strange:
            prompt.name(kind, position, (*path, name))
        yield from prompt.all(kind, position, inner, (*path, name))
