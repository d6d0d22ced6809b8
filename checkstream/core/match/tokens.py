"""The one rule by which text is cut into tokens, and a grid of positions counted in them.

A token is a run of word characters (letters, digits, marks, `_`) or a run of anything else that is not
white space; in scripts that put no spaces between words, two code points. It depends on the text alone,
never on how the network or the model cut it, so windows and checks stand at the same places however the
text arrives. It is not a model's subword.
"""

from __future__ import annotations

import unicodedata

import re2

_ASCII_RUN = re2.compile(r"[A-Za-z0-9_]+|[^\x09-\x0d\x1c-\x20A-Za-z0-9_]+")  # white space as `str.isspace` has it

MAX_TOKEN_CHARS = 64
"""A longer run is cut here, so that an endless word can't make the unfinished tail grow with the text."""

# Thai, Lao, Myanmar, Khmer; kana; CJK ideographs with their extensions.
_UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x3400, 0x9FFF),
    (0x20000, 0x3FFFF),
)

_SPACE, _WORD, _UNSPACED_WORD, _OTHER = range(4)


def _kind(char: str) -> int:
    if char.isspace():
        return _SPACE
    code = ord(char)
    if code >= _UNSPACED[0][0] and any(low <= code <= high for low, high in _UNSPACED):
        return _UNSPACED_WORD
    if char.isalnum() or char == "_" or unicodedata.category(char)[0] == "M":
        return _WORD
    return _OTHER


def _runs(text: str) -> list[tuple[int, int]]:
    """Return the spans of the tokens of `text`, the last of which may be unfinished."""
    if text.isascii():
        spans = [match.span() for match in _ASCII_RUN.finditer(text)]
        limits = [MAX_TOKEN_CHARS] * len(spans)
    else:
        spans, limits = [], []
        last = _SPACE
        for at, char in enumerate(text):
            kind = _kind(char)
            if kind != _SPACE:
                if kind == last:
                    spans[-1] = (spans[-1][0], at + 1)
                else:
                    spans.append((at, at + 1))
                    limits.append(2 if kind == _UNSPACED_WORD else MAX_TOKEN_CHARS)
            last = kind
    if all(end - start <= limit for (start, end), limit in zip(spans, limits, strict=True)):
        return spans
    return [
        (at, min(at + limit, end))
        for (start, end), limit in zip(spans, limits, strict=True)
        for at in range(start, end, limit)
    ]


class TokenGrid:
    """Counts the tokens of one channel and tells where the complete ones stand.

    A token is complete when the text after it shows that it can't grow.
    """

    __slots__ = ("_offset", "_tail", "count")

    def __init__(self) -> None:
        """Start before the first character."""
        self.count = 0
        """Complete tokens so far."""
        self._tail = ""
        self._offset = 0

    @property
    def begun(self) -> int | None:
        """Where the token starts that may still grow; None when there is none."""
        return self._offset if self._tail.strip() else None

    def feed(self, text: str) -> list[tuple[int, int]]:
        """Return `(start, end)` of each token that `text` completes, in code points of the channel."""
        if text.startswith(" ") and text.isascii() and text[1:].isalnum() and len(text) <= MAX_TOKEN_CHARS:
            return self._next_word(text[1:])
        buffer = self._tail + text
        end = len(buffer)
        spans = _runs(buffer)
        # The last token may still grow, unless white space stands behind it.
        rest = end
        if spans and spans[-1][1] == end:
            rest = spans.pop()[0]
        complete = [(self._offset + start, self._offset + stop) for start, stop in spans]
        self._tail = buffer[rest:]
        self._offset += rest
        self.count += len(complete)
        return complete

    def _next_word(self, word: str) -> list[tuple[int, int]]:
        """Take a blank and a word, which is what models send: the token before it is complete, and one has begun."""
        start, size = self._offset, len(self._tail)
        self._tail = word
        self._offset += size + 1
        if not size:
            return []
        self.count += 1
        return [(start, start + size)]

    def end(self) -> list[tuple[int, int]]:
        """Return the last token, which the end of the channel completes, if there is one."""
        if not self._tail:
            return []
        span = (self._offset, self._offset + len(self._tail))
        self.count += 1
        self._offset += len(self._tail)
        self._tail = ""
        return [span]
