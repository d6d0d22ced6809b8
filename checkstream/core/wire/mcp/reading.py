"""Reads what a JSON-RPC message says into ingress channels: every string, number and member name of it (G13).

Whatever comes from a server is the words of a stranger that a model, or a person, will read: `tool_result`, and
`document` where it is the text of a resource or a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping

from checkstream.core.steps import Steps
from checkstream.core.wire.addresses import unsigned
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.json_text.strings import clean
from checkstream.core.wire.mcp import fields
from checkstream.core.wire.requests.fields import SCHEMA_TYPES
from checkstream.core.wire.requests.prompt import LEAST_DIGITS, Prompt, is_plain, pieces
from checkstream.core.wire.text_files import is_data_url


class Reader:
    """Reads the parts of one message; parts that are judged apart have places of their own."""

    def __init__(self, prompt: Prompt, kind: str) -> None:
        """Read into `prompt`.

        Args:
            prompt: Collects the texts.
            kind: Channel of what has no other.
        """
        self._prompt = prompt
        self._kind = kind
        self.position = 0
        """The next place that is free."""

    def part(self, value: object, path: Path, kind: str | None = None) -> Steps:
        """Read a part that is judged by itself."""
        yield from self._value(kind or self._kind, self._next(), value, path)

    def _next(self) -> int:
        self.position += 1
        return self.position - 1

    def result(self, result: Mapping[str, object], path: Path) -> Steps:
        """Read a result of whatever method: which one was asked for changes nothing about whose words it is."""
        shared = self._next()
        for name, value in result.items():
            at = (*path, name)
            if name in fields.ENTRIES | fields.TEXTS and isinstance(value, list):
                kind = "document" if name in fields.TEXTS else self._kind
                for i, each in enumerate(value):
                    yield from self.part(each, (*at, i), kind)
            else:
                position = self._next() if name in fields.APART else shared
                if name not in fields.KNOWN:
                    self._prompt.name(self._kind, position, at)
                yield from self._value(self._kind, position, value, at)

    def member(self, value: object, path: Path) -> Steps:
        """Read a member that no message has, with its name."""
        self._prompt.name(self._kind, self.position, path)
        yield from self._data(self._kind, self._next(), value, path)

    def anything(self, found: Mapping[str, object]) -> Steps:
        """Read an object that is no message."""
        for name, value in found.items():
            yield from self.member(value, (name,))

    def _value(self, kind: str, position: int, value: object, path: Path) -> Steps:
        """Read a value that the protocol describes: what a member is called says what it holds."""
        name = path[-1]
        if isinstance(value, str) and name in fields.SETTINGS:
            self._say(kind, position, value, path, quiet=is_plain(value))
        elif name in fields.FREE or not isinstance(value, dict | list):
            yield from self._data(kind, position, value, path)
        elif isinstance(value, list):
            for i, each in enumerate(value):
                yield from self._value(kind, position, each, (*path, i))
        else:
            yield from self._members(kind, position, value, path)

    def _members(self, kind: str, position: int, found: Mapping[str, object], path: Path) -> Steps:
        prompt = self._prompt
        form = found.get("type") if isinstance(found.get("type"), str) else None
        for name, value in found.items():
            at = (*path, name)
            if prompt.spends():
                yield
            if name not in fields.KNOWN:
                prompt.name(kind, position, at)
            if isinstance(value, str) and (name == "blob" or (name == "data" and form in fields.MEDIA)):
                yield from prompt.file(position, clean(value), at, str(form or name), carries=True)
            elif name == "resource" and isinstance(value, dict):
                yield from self._value("document", self._next(), value, at)
            else:
                yield from self._value(kind, position, value, at)

    def _data(self, kind: str, position: int, value: object, path: Path) -> Steps:
        """Read a value in which members are called as its author likes."""
        prompt = self._prompt
        for form, text, at in pieces(value, path):
            if prompt.spends(chars=len(text)):
                yield
            if form == "text" and is_data_url(text):
                yield from prompt.file(position, clean(text), at, str(at[-1]))
            elif form == "text" and not (at[-1] == "type" and text in SCHEMA_TYPES):
                if text:
                    prompt.note_run(kind, position, at[:-1])
                self._say(kind, position, text, at)
            elif form == "name":
                self._say(kind, position, text, at, quiet=is_plain(text))
            elif form in ("number", "bytes") and len(text) >= LEAST_DIGITS:
                self._say(kind, position, text, at, quiet=True)

    def _say(self, kind: str, position: int, text: str, path: Path, *, quiet: bool = False) -> None:
        said = unsigned(text) if path[-1] in fields.ADDRESSES else text
        self._prompt.add(kind, position, clean(said), path, quiet=quiet)
