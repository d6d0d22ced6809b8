"""Reads what a request of the Responses API says: a string, or items of every kind, into ingress channels."""

from __future__ import annotations

from collections.abc import Generator

from checkstream.core.steps import Steps
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.requests.media import read_media, read_other
from checkstream.core.wire.requests.prompt import Prompt
from checkstream.core.wire.responses import fields
from checkstream.core.wire.responses.events import ITEMS
from checkstream.errors import RequestInvalid

_INPUT = "input"


class Reader:
    """Reads one request's input; an item's place is the `choice` of its channels."""

    def __init__(self, prompt: Prompt) -> None:
        """Read into `prompt`."""
        self._prompt = prompt
        self.referred: str | None = None
        """Id of the last item that only refers to one of an earlier answer."""

    def reading(self, given: object) -> Generator[None, None, int]:
        """Read `input`, in steps; return the first position that is free.

        Raises:
            RequestInvalid: an item or part has the wrong type, or a name in the wrong case.
        """
        prompt = self._prompt
        if given is None:
            return 0
        if isinstance(given, str):
            prompt.add("user", 0, given, (_INPUT,))
            return 1
        if not isinstance(given, list):
            raise RequestInvalid("`input` must be a string or an array of items")
        for position, item in enumerate(given):
            if not isinstance(item, dict):
                raise RequestInvalid(f"`input[{position}]` must be an object")
            yield from self._item(position, item)
            if prompt.spends():
                yield
        return len(given)

    def _item(self, position: int, item: dict[str, object]) -> Steps:
        form, path = item.get("type", fields.MESSAGE if "role" in item else "item_reference"), (_INPUT, position)
        prompt = self._prompt
        if not isinstance(form, str):
            raise RequestInvalid(f"`input[{position}].type` must be a string")
        kind = yield from self._kind(position, item, form)
        strange = yield from prompt.names("input[].", item, fields.ITEM_FIELDS)
        if form not in ITEMS:
            if form.casefold() in ITEMS:
                raise RequestInvalid(f"the item type `{form}` must be written `{form.casefold()}`")
            prompt.unknown["input[].type"] = None
            yield from prompt.settings(kind, position, form, (*path, "type"), words=True)
        if form == "item_reference":
            prompt.unscanned["item_reference"] = None
            given = item.get("id")
            self.referred = given if isinstance(given, str) and given else self.referred
        for name, value in item.items():
            at = (*path, name)
            if value is None or name in ("type", "role"):
                continue
            if name in ("content", "summary", "output") and isinstance(value, str | list):
                yield from self._content(_kind_of(kind, name), position, value, at)
            elif name == "output" and isinstance(value, dict):
                yield from self._part("tool_result", position, value, at)
            elif name in fields.SPOKEN and name not in strange:
                yield from prompt.all(_kind_of("system" if name == "tools" else kind, name), position, value, at)
            else:
                yield from read_other(prompt, kind, position, value, at, strange=name in strange or name == "parsed")

    def _kind(self, position: int, item: dict[str, object], form: str) -> Generator[None, None, str]:
        """Return the channel of an item."""
        role = item.get("role")
        if role is not None and not isinstance(role, str):
            raise RequestInvalid(f"`input[{position}].role` must be a string, such as `user`")
        if form == fields.MESSAGE and role is None:
            raise RequestInvalid(f"`input[{position}].role` must be a string, such as `user`")
        if isinstance(role, str):
            kind = fields.ROLES.get(role, "user")
            if role not in fields.ROLES:
                self._prompt.unknown["input[].role"] = None
                yield from self._prompt.settings(kind, position, role, (_INPUT, position, "role"), words=True)
            return kind
        if form.endswith(fields.RESULT):
            return "tool_result"
        return "assistant" if form in ITEMS else "user"

    def _content(self, kind: str, position: int, content: str | list[object], path: Path) -> Steps:
        """Read what an item says: a string, or parts."""
        prompt = self._prompt
        if isinstance(content, str):
            prompt.add(kind, position, content, path)
            return
        for index, part in enumerate(content):
            if prompt.spends():
                yield
            if isinstance(part, str):
                prompt.add(kind, position, part, (*path, index))
            elif isinstance(part, dict):
                yield from self._part(kind, position, part, (*path, index))
            else:
                raise RequestInvalid(f"`input[{position}].{path[2]}[{index}]` must be an object with a type")

    def _part(self, kind: str, position: int, part: dict[str, object], path: Path) -> Steps:
        """Read one part: its text, the file that it carries, and what else there is."""
        prompt, form = self._prompt, part.get("type")
        where = f"input[{position}].{path[2]}"
        if form is not None and not isinstance(form, str):
            raise RequestInvalid(f"the `type` of a part of `{where}` must be a string")
        if form in ("input_text", "output_text", "text") and not isinstance(part.get("text"), str):
            raise RequestInvalid(f"the `text` of a part of `{where}` must be a string")
        known = form is None or form in fields.PART_TYPES
        strange = yield from prompt.names(f"input[].{path[2]}[].", part, fields.PART_FIELDS if known else frozenset())
        if form is not None and not known:
            if form.casefold() in fields.PART_TYPES:
                raise RequestInvalid(f"the part type `{form}` must be written `{form.casefold()}`")
            prompt.unknown[f"input[].{path[2]}[].type"] = None
            yield from prompt.settings(kind, position, form, (*path, "type"), words=True)
        for name, value in part.items():
            at = (*path, name)
            if value is None or name == "type":
                continue
            if name in fields.PAYLOADS:
                yield from self._payload(kind, position, value, at, form or "")
            elif name in fields.SPOKEN_OF_PART:
                yield from prompt.all(kind, position, value, at)
            else:
                yield from read_other(prompt, kind, position, value, at, strange=name in strange or name == "parsed")

    def _payload(self, kind: str, position: int, value: object, path: Path, form: str) -> Steps:
        """Read a file, or where it is; `form` is the type of its part."""
        prompt = self._prompt
        if path[-1] == "file_data" and isinstance(value, str):
            yield from prompt.file(position, value, path, form or "input_file", carries=form in fields.MEDIA)
        elif path[-1] == "input_audio":
            yield from read_media(prompt, kind, position, value, path)
        else:
            yield from read_media(prompt, kind, position, value, path, carries=form in fields.MEDIA)


def _kind_of(kind: str, name: str) -> str:
    """Return the channel of a member of an item: what came of a call is no word of the model's."""
    return "tool_result" if name in fields.RESULTS else kind
