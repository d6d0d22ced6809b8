"""Reads the requests of OpenAI's older surfaces: strict JSON, every text as a delta, nothing smuggled (G31)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn

from checkstream.core.terms import Channel, Delta, Unit
from checkstream.core.wire import openai_fields as fields
from checkstream.core.wire.json_spans import NAME, Path
from checkstream.core.wire.openai_json import leaves
from checkstream.core.wire.surface import Extension, Request
from checkstream.errors import RequestInvalid

MAX_CHOICES = 128
_MAX_DIGITS = 19  # of a 64-bit number
_MAX_PLAIN_NAME = 32
_MAX_PLAIN_ID = 64
_ID_MARKS = str.maketrans("-.:", "___")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build an object, refusing names that two parsers could take for one or the other."""
    found = dict(pairs)
    if len(found) != len(pairs) or len({name.casefold() for name in found}) != len(pairs):
        seen: dict[str, str] = {}
        for name, _ in pairs:
            first = seen.get(name.casefold())
            if first is not None:
                both = f"`{_shown(first)}` and `{_shown(name)}`"
                raise RequestInvalid(f"the body has an object with both {both}; send one")
            seen[name.casefold()] = name
    return found


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise RequestInvalid(f"the body has the number `{_shown(digits)}`, which is too large; send at most 64 bits")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise RequestInvalid(f"the body has the number `{_shown(digits)}`, which is too large; send a finite one")
    return value


def _constant(name: str) -> NoReturn:
    raise RequestInvalid(f"the body has `{name}`, which is not JSON; send a number or null")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_real, parse_constant=_constant, strict=True
)


def read_body(body: bytes) -> dict[str, object]:
    """Read a caller's body strictly.

    Raises:
        RequestInvalid: not UTF-8, not one JSON object, nested too deeply, duplicate or case-variant names,
            or numbers that don't fit 64 bits.
    """
    try:
        value = _DECODER.decode(body.decode())
    except UnicodeDecodeError as error:
        raise RequestInvalid(f"the body is not UTF-8 at byte `{error.start}`; send UTF-8") from error
    except json.JSONDecodeError as error:
        raise RequestInvalid(f"the body is not JSON at character `{error.pos}`: {error.msg.lower()}") from error
    except RecursionError as error:
        raise RequestInvalid("the body is nested too deeply; send a flatter one") from error
    if not isinstance(value, dict):
        raise RequestInvalid("the body is not a JSON object; send one")
    return value


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
                raise RequestInvalid(f"`{where}{_shown(name)}` must be written `{name.casefold()}`")
            self.unknown[f"{where}{_shown(name)}"] = None
        return strange


def start_request(body: bytes, known: frozenset[str]) -> tuple[dict[str, object], Prompt]:
    """Read a body strictly and sort its fields; `known` are the surface's plain ones.

    Raises:
        RequestInvalid: as `read_body`, or a field that differs from a known one in case only.
    """
    found, prompt = read_body(body), Prompt()
    prompt.names("", found, known | fields.TEXT_FIELDS.keys() | {fields.EXTENSION})
    return found, prompt


def finish_request(
    prompt: Prompt, body: bytes, found: dict[str, object], position: int, *, prompts: int = 1
) -> Request:
    """Read what chat and completion requests have in common; `position` is the first that is free.

    Each of the `prompts` gets `n` choices.

    Raises:
        RequestInvalid: a field has the wrong type or is out of range.
    """
    for name, kind in fields.TEXT_FIELDS.items():
        if found.get(name) is not None:
            prompt.all(kind, position, found[name], (name,))
            position += 1
    for name in sorted(fields.MODE_FIELDS & found.keys()):
        prompt.identifiers("system", position, found[name], (name,))
    position += 1
    extension = _extension(prompt, position, found.get(fields.EXTENSION)) if fields.EXTENSION in found else None
    for name in ("n", "best_of"):
        _check_count(name, found.get(name))
    streaming = found.get("stream")
    if streaming is not None and not isinstance(streaming, bool):
        raise RequestInvalid("`stream` must be true or false")
    model = found.get("model")
    if model is not None and not isinstance(model, str):
        raise RequestInvalid("`model` must be a string")
    options = found.get("stream_options")
    if options is not None and not isinstance(options, dict):
        raise RequestInvalid("`stream_options` must be an object")
    unit = Unit(raw=body, deltas=tuple(prompt.deltas), unscanned=tuple(prompt.unscanned))
    return Request(
        unit=unit,
        streaming=bool(streaming),
        usage_wanted=bool(options and options.get("include_usage") is True),
        model=model or "",
        choices=prompts * (n if isinstance(n := found.get("n"), int) else 1),
        unknown_fields=tuple(prompt.unknown),
        extension=extension,
    )


def _check_count(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_CHOICES):
        raise RequestInvalid(f"`{name}` must be a number from 1 to {MAX_CHOICES}")


def _extension(prompt: Prompt, position: int, value: object) -> Extension:
    """Read the `checkstream` field; its documents are scanned."""
    if not isinstance(value, dict):
        raise RequestInvalid(f"`{fields.EXTENSION}` must be an object with context, documents or conversation")
    for name in value:
        if name not in ("context", "documents", "conversation"):
            raise RequestInvalid(
                f"`{fields.EXTENSION}.{_shown(name)}` is not known; use context, documents, conversation"
            )
    context = value.get("context")
    documents = value.get("documents")
    conversation = value.get("conversation")
    if context is not None and not isinstance(context, dict):
        raise RequestInvalid(f"`{fields.EXTENSION}.context` must be an object")
    if documents is not None and not isinstance(documents, list):
        raise RequestInvalid(f"`{fields.EXTENSION}.documents` must be an array")
    if conversation is not None and not isinstance(conversation, str):
        raise RequestInvalid(f"`{fields.EXTENSION}.conversation` must be a string")
    texts: list[str] = []
    for i, document in enumerate(documents or []):
        if not isinstance(document, str | dict):
            raise RequestInvalid(f"`{fields.EXTENSION}.documents[{i}]` must be a string or an object")
        at = (fields.EXTENSION, "documents", i)
        prompt.all("document", position, document, at)
        texts.append("\n".join(text for text, _ in leaves(document, at)))
    return Extension(context=context or {}, documents=tuple(texts), conversation=conversation)


def _place(path: Path) -> str:
    """Return a path as users write it: `messages[0].content`."""
    written = "".join(f"[{key}]" if isinstance(key, int) else f".{_shown(key)}" for key in path if key != NAME)
    return written.removeprefix(".")


def _shown(name: str) -> str:
    """Return user input fit for a message: short and printable."""
    cut = name if len(name) <= 64 else name[:64] + "..."
    return cut.encode("ascii", "backslashreplace").decode() if not cut.isprintable() else cut
