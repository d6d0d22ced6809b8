"""Collects the texts of one request of OpenAI's older surfaces, each in a channel of its own (G13, G31)."""

from __future__ import annotations

from collections.abc import Mapping

from checkstream.core.terms import Channel, Delta
from checkstream.core.wire import openai_fields as fields
from checkstream.core.wire.json_spans import NAME, Path
from checkstream.core.wire.openai_json import leaves
from checkstream.core.wire.strict_json import shown
from checkstream.errors import RequestInvalid

_MAX_PLAIN_NAME = 32
_MAX_PLAIN_ID = 64
_ID_MARKS = str.maketrans("-.:", "___")


class Prompt:
    """Collects the texts of one request, each in a channel of its own."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.deltas: list[Delta] = []
        self.unscanned: dict[str, None] = {}
        self.unknown: dict[str, None] = {}
        self._next: dict[tuple[str, int], int] = {}

    def add(self, kind: str, position: int, text: str, path: Path) -> None:
        """Take `text` as the next part of the message (or field) at `position`.

        Raises:
            RequestInvalid: the text has a lone surrogate.
        """
        if not text:
            return
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise RequestInvalid(f"`{_place(path)}` has a lone surrogate; send whole characters") from error
        index = self._next.get((kind, position), 0)
        self._next[kind, position] = index + 1
        self.deltas.append(Delta(Channel(kind, position, index), text, path))

    def skip_to(self, kind: str, position: int, index: int) -> None:
        """Number the next part `index`, unless later numbers were given already."""
        self._next[kind, position] = max(index, self._next.get((kind, position), 0))

    def all(self, kind: str, position: int, value: object, path: Path) -> None:
        """Take every string within a value; of member names those that are not plain identifiers."""
        for text, at in leaves(value, path, names=True):
            if at[-1] == NAME:
                if not (len(text) <= _MAX_PLAIN_NAME and text.isascii() and text.isidentifier()):
                    self.add(kind, position, text, at)
            elif not (at[-1] == "type" and text in fields.SCHEMA_TYPES):
                self.add(kind, position, text, at)

    def identifiers(self, kind: str, position: int, value: object, path: Path) -> None:
        """Take ids and mode words as text where they are not such: a template may print them into the prompt."""
        for text, at in leaves(value, path, names=True):
            bare = text.translate(_ID_MARKS)
            if len(text) > _MAX_PLAIN_ID or not text.isascii() or not f"_{bare}".isidentifier():
                self.add(kind, position, text, at)

    def names(self, where: str, found: Mapping[str, object], known: frozenset[str] | set[str]) -> list[str]:
        """Report the members outside `known`, and return them.

        Raises:
            RequestInvalid: a member differs from a known one in case only; some servers would read it as that.
        """
        strange = [name for name in found if name not in known]
        for name in strange:
            if name.casefold() in known:
                raise RequestInvalid(f"`{where}{shown(name)}` must be written `{name.casefold()}`")
            self.unknown[f"{where}{shown(name)}"] = None
        return strange


def _place(path: Path) -> str:
    """Return a path as users write it: `messages[0].content`."""
    written = "".join(f"[{key}]" if isinstance(key, int) else f".{shown(key)}" for key in path if key != NAME)
    return written.removeprefix(".")
