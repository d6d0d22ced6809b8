"""Reads the system prompt and the messages of a request into ingress channels: every role, block, file and name."""

from __future__ import annotations

from collections.abc import Generator

from checkstream.core.steps import Steps
from checkstream.core.wire.anthropic import fields
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.requests.media import read_other
from checkstream.core.wire.requests.prompt import Prompt
from checkstream.errors import RequestInvalid

_CONTENT = len(("messages", 0, "content"))


class Reader:
    """Reads one request's messages; a message's place is the `choice` of its channels.

    What a tool has said and each document have places of their own, behind all messages: they are judged, and taken
    out, one by one.
    """

    def __init__(self, prompt: Prompt) -> None:
        """Read into `prompt`."""
        self._prompt = prompt
        self.position = 0
        """The next place that is free."""

    def reading(self, messages: object, system: object) -> Steps:
        """Read `messages` and `system`, in steps.

        Raises:
            RequestInvalid: a message or block has the wrong type, or a name in the wrong case.
        """
        if not isinstance(messages, list) or not messages:
            raise RequestInvalid("`messages` must be an array with at least one message")
        self.position = len(messages) + 1
        if system is not None:
            yield from self._content("system", len(messages), system, ("system",), "system")
        for position, message in enumerate(messages):
            if not isinstance(message, dict):
                raise RequestInvalid(f"`messages[{position}]` must be an object")
            yield from self._message(position, message)
            if self._prompt.spends():
                yield

    def _message(self, position: int, message: dict[str, object]) -> Steps:
        prompt, role, path = self._prompt, message.get("role"), ("messages", position)
        if not isinstance(role, str):
            raise RequestInvalid(f"`messages[{position}].role` must be a string, such as `user`")
        kind = fields.ROLES.get(role, "user")
        if role not in fields.ROLES:
            prompt.unknown["messages[].role"] = None
            yield from prompt.settings(kind, position, role, (*path, "role"), words=True)
        strange = yield from prompt.names("messages[].", message, fields.MESSAGE_FIELDS)
        yield from self._content(kind, position, message.get("content"), (*path, "content"), f"messages[{position}]")
        for name, value in message.items():
            if name not in ("role", "content"):
                yield from read_other(prompt, kind, position, value, (*path, name), strange=name in strange)

    def _content(self, kind: str, position: int, content: object, path: Path, where: str) -> Steps:
        """Read what a message or a block says: a string, or blocks."""
        prompt = self._prompt
        if content is None:
            return
        if isinstance(content, str):
            prompt.add(kind, position, content, path)
        elif isinstance(content, list):
            for i, block in enumerate(content):
                if prompt.spends():
                    yield
                begun = len(prompt.deltas)
                if isinstance(block, dict):
                    yield from self._block(kind, position, block, (*path, i))
                    if kind == "assistant" and block.get("type") in fields.THOUGHTS and len(path) == _CONTENT:
                        prompt.signed.update(range(begun, len(prompt.deltas)))
                elif isinstance(block, str):
                    prompt.add(kind, position, block, (*path, i))
                else:
                    raise RequestInvalid(f"`{where}.content[{i}]` must be an object with a type")
        elif isinstance(content, dict) and len(path) > 3:  # of a tool that the provider has run
            yield from self._block(kind, position, content, path)
        else:
            raise RequestInvalid(f"`{where}.content` must be a string or an array of blocks")

    def _block(self, kind: str, position: int, block: dict[str, object], path: Path) -> Steps:
        """Read one block; members that nobody knows with their names."""
        prompt, form = self._prompt, block.get("type")
        if form is not None and not isinstance(form, str):
            raise RequestInvalid(f"the `type` of a content block must be a string, not {type(form).__name__}")
        form = form or ""
        kind, position = self._place(kind, position, form, path)
        strange = yield from self._strange(kind, block, form, path)
        if form == "text" and not isinstance(block.get("text"), str):
            raise RequestInvalid("the `text` of a content block must be a string")
        for name, value in block.items():
            at = (*path, name)
            if prompt.spends():
                yield
            if name == "content" and isinstance(value, str | list | dict):
                yield from self._content(kind, position, value, at, "messages[].content[]")
            elif name == "source" and isinstance(value, dict):
                yield from self._source(kind, position, value, at, form)
            elif name == "type" and form not in fields.BLOCK_TYPES:
                yield from prompt.settings(kind, position, value, at, words=True)
            elif name != "type":
                yield from self._member(kind, position, value, at, strange=name in strange)
        if form in fields.MEDIA and "file_id" in block:
            prompt.unscanned[form] = None

    def _strange(
        self, kind: str, block: dict[str, object], form: str, path: Path
    ) -> Generator[None, None, frozenset[str]]:
        """Return the members of a block that nobody knows; within what a tool has said there are as many as tools."""
        if form not in fields.BLOCK_TYPES:
            if len(path) > 4 and kind == "tool_result":
                return frozenset(name for name in block if name not in fields.BLOCK_FIELDS)
            if form.casefold() in fields.BLOCK_TYPES:
                raise RequestInvalid(f"the content block type `{form}` must be written `{form.casefold()}`")
            self._prompt.unknown["messages[].content[].type"] = None
        return (yield from self._prompt.names("messages[].content[].", block, fields.BLOCK_FIELDS))

    def _member(self, kind: str, position: int, value: object, path: Path, *, strange: bool) -> Steps:
        """Read a member of a block, which is there to be read or not."""
        prompt, name = self._prompt, path[-1]
        if name in fields.SPOKEN or name == "source" or (strange and kind == "tool_result"):
            if strange:
                prompt.name(kind, position, path)
            yield from prompt.all(kind, position, value, path)
        else:
            yield from read_other(prompt, kind, position, value, path, strange=strange)

    def _place(self, kind: str, position: int, form: str, path: Path) -> tuple[str, int]:
        """Return the channel and place of a block's texts."""
        if kind == "tool_result":
            return kind, position  # whatever stands in it
        own = "tool_result" if form.endswith(fields.RESULT) else fields.BLOCK_KINDS.get(form)
        if own is None or path[0] != "messages":
            return kind, position
        self.position += 1
        return own, self.position - 1

    def _source(self, kind: str, position: int, source: dict[str, object], path: Path, form: str) -> Steps:
        """Read what a block shows: text, a file, or the address of one, which nobody has read."""
        prompt, carried = self._prompt, False
        strange = yield from prompt.names("messages[].content[].source.", source, fields.SOURCE_FIELDS)
        for name, value in source.items():
            at = (*path, name)
            if name == "data" and isinstance(value, str):
                carried = True
                if source.get("type") == "text":
                    prompt.add(kind, position, value, at)
                else:
                    yield from prompt.file(position, value, at, form or "source", carries=form in fields.MEDIA)
            elif name == "content" and isinstance(value, str | list):
                carried = True
                yield from self._content(kind, position, value, at, "messages[].content[].source")
            elif name != "type" or source.get("type") not in ("text", "base64", "url", "content", "file"):
                yield from read_other(prompt, kind, position, value, at, strange=name in strange)
        if not carried:
            prompt.unscanned[form or "source"] = None
