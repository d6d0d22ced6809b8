"""Strings of JSON: as text that can be scanned, and written again in the way that stood there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import msgspec

from checkstream.core.wire.json_text.spans import Path

_LONG = 4096
_HALF_CHARS = 6
"""Of half a character in an escape."""


def clean(text: str) -> str:
    """Return `text` with each lone surrogate replaced by U+FFFD; the number of code points stays."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        if len(text) > _LONG:
            return _mended(text)
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text


def halves_of(text: str) -> tuple[str, str]:
    """Return the second half of a character that a text begins with, and the first that it ends with; "": none."""
    return text[:1] if _is_second(text[:1]) else "", text[-1:] if _is_first(text[-1:]) else ""


def _is_first(char: str) -> bool:
    return "\ud800" <= char <= "\udbff"


def _is_second(char: str) -> bool:
    return "\udc00" <= char <= "\udfff"


def whole_of(first: str, second: str) -> str:
    """Return the character that two halves make."""
    return (first + second).encode("utf-16", "surrogatepass").decode("utf-16")


def _mended(text: str) -> str:
    """Replace lone surrogates of a long text without looking at each character: each is three bytes that are no UTF-8.

    What is there of U+FFFD already stands aside meanwhile as a character that the text does not have.
    """
    spare = next(char for char in map(chr, range(0xE000, 0x110000)) if char not in text) if "\ufffd" in text else ""
    parted = text.replace("\ufffd", spare) if spare else text
    mended = parted.encode("utf-8", "surrogatepass").decode("utf-8", "replace").replace("\ufffd" * 3, "\ufffd")
    return mended.replace(spare, "\ufffd") if spare else mended


class Quoted(str):
    """A long text that is known as JSON, too: it was written piece by piece."""

    __slots__ = ("json",)

    json: str

    @classmethod
    def of(cls, pieces: Iterable[tuple[str, str]]) -> Quoted:
        """Return a text of which the pieces are known, each with what `quote` says of it."""
        said, quoted = zip(*pieces, strict=True)
        text = cls("".join(said))
        text.json = '"' + "".join([each[1:-1] for each in quoted]) + '"'
        return text


def quote(text: str) -> str:
    """Return `text` as a JSON string."""
    if isinstance(text, Quoted):
        return text.json
    return msgspec.json.encode(clean(text)).decode()


def quote_like(text: str, original: str) -> str:
    """Return `text` as a JSON string that begins and ends with the halves of characters that `original` does.

    Args:
        text: In place of half a character that it begins with stands the whole, for that at its end U+FFFD.
        original: What stands there, as JSON.
    """
    quoted = quote(text)
    if not text or "\\" not in original or not original.startswith('"'):
        return quoted
    second, first = halves_of(json.loads(original) if len(original) <= _LONG else _ends_of(original))
    if second and text[0] > "\uffff" and text[0].encode("utf-16-be")[2:] == second.encode("utf-16-be", "surrogatepass"):
        quoted = f'"\\u{ord(second):04x}{quoted[2:]}'
    if first and text.endswith("\ufffd"):
        quoted = f'{quoted[:-2]}\\u{ord(first):04x}"'
    return quoted


def _ends_of(quoted: str) -> str:
    """Return what a long JSON string begins and ends with, as far as that is half a character, and a sign between."""
    before, last = quoted[: -_HALF_CHARS - 1], quoted[-_HALF_CHARS - 1 : -1]
    is_escape = (len(before) - len(before.rstrip("\\"))) % 2 == 0
    return f"{_half(quoted[1 : _HALF_CHARS + 1])}-{_half(last) if is_escape else ''}"


def _half(escape: str) -> str:
    """Return the half of a character that an escape spells; "": it is no such escape."""
    return chr(int(f"0x{escape[2:]}", base=0)) if escape.startswith(("\\ud", "\\uD")) else ""


def leaves(value: object, path: Path) -> Iterator[tuple[str, Path]]:
    """Yield every string in a JSON value with its path, in document order."""
    pending: list[tuple[object, Path]] = [(value, path)]
    while pending:
        found, at = pending.pop()
        if isinstance(found, str):
            yield found, at
        elif isinstance(found, list):
            pending += [(found[i], (*at, i)) for i in range(len(found) - 1, -1, -1)]
        elif isinstance(found, dict):
            pending += [(found[name], (*at, name)) for name in reversed(found)]
