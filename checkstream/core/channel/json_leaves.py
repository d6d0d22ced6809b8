"""Where text may be edited that is JSON, such as the arguments of a tool call, so that it stays JSON.

An edit changes leaves only: the inside of a string, never through an escape, or a number or word as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable

import msgspec

from checkstream.core.channel.replacements import Replacement
from checkstream.core.match.ranges import Ranges
from checkstream.core.terms import Span


class Piece(msgspec.Struct, frozen=True):
    """A part of one leaf."""

    span: Span
    bare: bool
    """A whole number or word outside of strings."""


class JsonLeaves:
    """The strings, numbers and words of a JSON text that arrives in pieces.

    A text that begins with neither `{` nor `[` is no such text: all of it may be edited.
    """

    __slots__ = (
        "_bare", "_bare_start", "_blanks", "_escape_start", "_escapes", "_position", "_string_start", "_strings",
        "json",
    )  # fmt: skip

    def __init__(self) -> None:
        """Start before the text."""
        self.json: bool | None = None
        """The text is JSON, as its beginning says; None while that has not come."""
        self._strings = Ranges()
        """Insides of the complete strings."""
        self._escapes = Ranges()
        """Escape sequences inside strings."""
        self._blanks = Ranges()
        """Those of them that spell white space: no value begins with it, though it may seem to with its letter."""
        self._bare = Ranges()
        """Complete numbers and words outside of strings."""
        self._position = 0
        self._string_start: int | None = None
        self._escape_start: int | None = None
        self._bare_start: int | None = None

    def feed(self, text: str) -> None:
        """Take the next piece of the text."""
        if self.json is None:
            begin = text.lstrip()[:1]
            self.json = begin in "{[" if begin else None
        if self.json:
            self._read(text)
        self._position += len(text)

    def _read(self, text: str) -> None:
        at, quote, base = 0, -1, self._position
        while at < len(text):
            if self._escape_start is not None:
                # `\u0041` has five characters after the backslash, any other escape has one.
                size = base + at - self._escape_start
                if not (size == 1 and text[at] == "u") and size in (1, _UNICODE_ESCAPE_CHARS - 1):
                    self._escapes.add(self._escape_start, base + at + 1)
                    if size == 1 and text[at] in _BLANKS:
                        self._blanks.add(self._escape_start, base + at + 1)
                    self._escape_start = None
                at += 1
            elif self._string_start is None:
                self._read_outside(text[at], base + at)
                at += 1
            else:
                quote = text.find('"', at) if quote < at else quote
                stop = len(text) if quote < 0 else quote
                escape = text.find("\\", at, stop)
                if escape >= 0:
                    self._escape_start = base + escape
                    at = escape + 1
                else:
                    at = stop + 1
                    if quote >= 0:
                        self._strings.add(self._string_start, base + quote)
                        self._string_start = None
                    else:
                        quote = len(text)

    def _read_outside(self, char: str, offset: int) -> None:
        """Read a character that stands in no string."""
        if char not in _STRUCTURE:
            if self._bare_start is None:
                self._bare_start = offset
            return
        if self._bare_start is not None:
            self._bare.add(self._bare_start, offset)
            self._bare_start = None
        if char == '"':
            self._string_start = offset + 1

    def whole(self, position: int) -> int:
        """Return `position`, or where the escape, number or word starts that it stands in: none of them is parted."""
        for start, known in ((self._escape_start, self._escapes), (self._bare_start, self._bare)):
            if start is not None and position > start:
                return start
            leaf = known.around(position)
            if leaf is not None and position < leaf.end:
                return leaf.start
        return position

    def open(self, position: int) -> bool:
        """Tell whether `position` stands in an escape, number or word that is not complete yet."""
        starts = (self._escape_start, self._bare_start)
        return any(start is not None and position > start for start in starts)

    def pieces(self, span: Span) -> list[Piece]:
        """Return what of a span stands in leaves, in order: parts of strings with whole escapes, whole bare leaves."""
        if not self.json:
            return [Piece(span, bare=False)]
        found = [Piece(leaf, bare=True) for leaf in self._over(self._bare, self._bare_start, span)]
        for leaf in self._over(self._strings, self._string_start, span):
            low, high = self._begun(max(leaf.start, span.start)), min(leaf.end, span.end)
            escape = self._escapes.around(high)
            if escape is not None and escape.start < high < escape.end:
                high = escape.end
            if low < high or span.start == span.end:
                found.append(Piece(Span(low, high), bare=False))
        return sorted(found, key=lambda piece: piece.span)

    def _begun(self, position: int) -> int:
        """Return where an edit begins that is to begin at `position`: white space before a value stays as it came."""
        blank = self._blanks.around(position)
        return blank.end if blank is not None and blank.start < position < blank.end else self.whole(position)

    def _over(self, known: Ranges, begun: int | None, span: Span) -> list[Span]:
        """Return the leaves that a span touches, with the one that has not ended yet."""
        return known.over(span) + ([Span(begun, self._position)] if begun is not None and begun < span.end else [])

    def clip(self, whole: Span, span: Span) -> Span:
        """Return what of `whole` stands in the same leaf as `span`, which lies in one; else `span` itself."""
        if not self.json:
            return whole
        for known, begun in ((self._strings, self._string_start), (self._bare, self._bare_start)):
            leaf = known.around(span.start)
            if leaf is not None and span.end <= leaf.end:
                return Span(max(whole.start, leaf.start), min(whole.end, leaf.end))
            if begun is not None and begun <= span.start:
                return Span(max(whole.start, begun), whole.end)
        return span

    def written(self, edit: Replacement) -> list[Replacement]:
        """Return an edit as it is made here: its text stands in the first leaf, and nothing is left of the others.

        Empty where the edit touches no leaf: between leaves nothing can be changed.
        """
        found: list[Replacement] = []
        for piece in self.pieces(Span(edit.start, edit.end)):
            first, span = not found, piece.span
            text = self._as_leaf(edit.text if first else "", piece, bare=edit.bare if first else "null")
            hidden = (
                None
                if edit.hidden is None
                else self._as_leaf(edit.hidden if first else "", piece, bare="" if first else "null")
            )
            found.append(msgspec.structs.replace(edit, start=span.start, end=span.end, text=text, hidden=hidden))
        return found

    def _as_leaf(self, text: str, piece: Piece, *, bare: str) -> str:
        """Return a text as it stands in a leaf."""
        if not self.json:
            return text
        inside = inside_json_string(text)
        return inside if not piece.bare else bare or f'"{inside}"'

    def forget(self, position: int) -> None:
        """Drop what ends before `position`."""
        for known in (self._strings, self._escapes, self._blanks, self._bare):
            known.forget(position)


_UNICODE_ESCAPE_CHARS = 6
_BLANKS = frozenset("fnrt")
"""Letters of escapes that spell white space."""
_CHARS_A_STEP = 2048
_EDITS_A_STEP = 64
"""Of a text that is there as a whole."""
_JSON = msgspec.json.Decoder(msgspec.Raw)
"""Reads through JSON and makes nothing of it: a megabyte takes it less than a millisecond."""
_MOST_LENIENT_CHARS = 65_536
_STRUCTURE = frozenset('{}[],:" \t\n\r')


def inside_json_string(text: str) -> str:
    """Return `text` as it stands between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def inside_json(text: str, edits: Iterable[Replacement]) -> Generator[None, None, list[Replacement] | None]:
    """Return, in steps, edits as they are made in a JSON text, so that it stays JSON; None: one touches no leaf."""
    leaves = JsonLeaves()
    for at in range(0, len(text), _CHARS_A_STEP):
        leaves.feed(text[at : at + _CHARS_A_STEP])
        yield
    made: list[Replacement] = []
    for count, edit in enumerate(edits, 1):
        written = leaves.written(edit)
        if not written:
            return None
        made += written
        if count % _EDITS_A_STEP == 0:
            yield
    return made


def is_json(text: str) -> bool:
    """Tell whether a text is one whole JSON value; what most readers let through that the standard does not is, too.

    Those are line ends in strings, halves of surrogate pairs and `NaN`. They are looked for in short texts alone.
    """
    try:
        _JSON.decode(text)
    except (ValueError, RecursionError):
        return len(text) <= _MOST_LENIENT_CHARS and _is_lenient_json(text)
    return True


def _is_lenient_json(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def outside_json_string(text: str) -> str:
    """Return what a piece of the inside of a JSON string says; `text` itself where it is no whole piece of one.

    Half of a surrogate pair, which is no character, becomes U+FFFD.
    """
    if "\\" not in text:
        return text
    try:
        said = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return text
    return str(said).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
