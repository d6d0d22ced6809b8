"""Reads the messages of a chat request into ingress channels: every role, part, file, tool call and name."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from checkstream.core.steps import Steps
from checkstream.core.wire import openai_fields as fields
from checkstream.core.wire.json_spans import Path
from checkstream.core.wire.openai_prompt import Prompt
from checkstream.core.wire.text_files import is_data_url
from checkstream.errors import RequestInvalid

_ADDRESSES = ("http:", "https:", "gs:", "s3:")


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
            yield from _media(prompt, kind, position, value, at)
        elif name in fields.SPOKEN_FIELDS:
            yield from prompt.all("system" if name == "tools" else kind, position, value, at)
        else:
            yield from _other(prompt, kind, position, value, at, strange=name in strange or name == "parsed")


def _other(prompt: Prompt, kind: str, position: int, value: object, path: Path, *, strange: bool) -> Steps:
    """Read a member that is not there to be read; of one that nobody knows its name as well."""
    if strange:
        prompt.name(kind, position, path)
    yield from prompt.settings(kind, position, value, path, words=strange)


def _content(prompt: Prompt, kind: str, position: int, content: object) -> Steps:
    path: Path = ("messages", position, "content")
    if content is None:
        return
    if isinstance(content, str):
        prompt.add(kind, position, content, path)
    elif isinstance(content, list):
        rest: list[tuple[str, object, Path, bool]] = []
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


def _beside(prompt: Prompt, kind: str, position: int, rest: Sequence[tuple[str, object, Path, bool]]) -> Steps:
    """Read what else the parts of a message carry, numbered after them."""
    for name, value, at, strange in rest:
        if prompt.spends():
            yield
        if name in fields.MEDIA or name in fields.PAYLOADS or name == "file_id":
            yield from _media(prompt, kind, position, value, at)
        elif name in fields.SPOKEN_PART_FIELDS:
            yield from prompt.all(kind, position, value, at)
        else:
            yield from _other(prompt, kind, position, value, at, strange=strange)


def _part(
    prompt: Prompt, kind: str, position: int, part: dict[str, object], path: Path
) -> Generator[None, None, list[tuple[str, object, Path, bool]]]:
    """Read the text of one content part; return what it carries besides: name, value, path, and whether it is known."""
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
    rest: list[tuple[str, object, Path, bool]] = []
    for name, value in part.items():
        at = (*path, name)
        if name == "text" and isinstance(value, str):
            prompt.add(kind, position, value, at)
        elif name != "type":
            rest.append((name, value, at, name in strange))
    if not known:
        rest.append(("type", form, (*path, "type"), False))
    return rest


def _media(prompt: Prompt, kind: str, position: int, value: object, path: Path) -> Steps:
    """Read what may carry a file: its text as a document, what is said of it as words of the message.

    What is only named (an address, an id) nobody has read.
    """
    name = str(path[-1])
    members = value if isinstance(value, dict) else {"url": value}
    carried = False
    for inner, given in members.items():
        at = (*path, inner) if isinstance(value, dict) else path
        if inner in fields.PAYLOADS and isinstance(given, str | list | dict):
            carried = True
            yield from _payload(prompt, kind, position, given, at, name=name)
        elif inner != "file_id":
            yield from _other(prompt, kind, position, given, at, strange=inner not in fields.MEDIA_FIELDS)
    if not carried and value is not None:
        prompt.unscanned[name] = None


def _payload(prompt: Prompt, kind: str, position: int, value: object, path: Path, *, name: str) -> Steps:
    """Read a member that holds a file or several, or an address."""
    found = [(each, (*path, i)) for i, each in enumerate(value)] if isinstance(value, list) else [(value, path)]
    for given, at in found:
        if prompt.spends():
            yield
        if not isinstance(given, str):
            yield from prompt.settings(kind, position, given, at, words=True)
        elif not is_data_url(given) and given.casefold().startswith(_ADDRESSES):
            prompt.unscanned[name] = None
        else:
            yield from prompt.file(position, given, at, name)


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
                yield from _other(prompt, kind, position, value, (*path, name), strange=name in strange)


def _function(prompt: Prompt, kind: str, position: int, value: object, path: Path) -> Steps:
    if not isinstance(value, dict):
        raise RequestInvalid(f"`messages[{position}].{path[2]}` must hold a function with name and arguments")
    strange = yield from prompt.names("messages[].tool_calls[].function.", value, fields.FUNCTION_FIELDS)
    for name, inner in value.items():
        if name in strange:
            prompt.name(kind, position, (*path, name))
        yield from prompt.all(kind, position, inner, (*path, name))
