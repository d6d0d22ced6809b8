"""What an entity is: a tight regex for candidates and a validator that decides.

Invariants of every validator (`refine`): it is a function of the candidate, the `LEFT_CHARS` characters before
it and the one character after it, and of nothing else. That is all the text a stream has at hand when the
candidate is decided, so looking further would make the answer depend on how the text was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

SpanPair = tuple[int, int]
"""Half-open range of characters in the text given to a validator."""

Refine = Callable[[str, int, int], Sequence[SpanPair]]
"""(text, start, end) -> the sub-spans of the candidate that truly are the thing; sorted, disjoint, maybe none."""

Skip = Callable[[str, int, int], int]
"""The same, for a candidate in which nothing was found -> how far on no other candidate can hold anything.

Whatever follows: the text behind the candidate is not there yet, and must not be able to prove it wrong.
"""

LEFT_CHARS = 64
"""How far before a candidate a validator may look."""

PLAIN_VIEWS = frozenset({"raw", "unescaped", "folded", "unmarked", "spaced", "encoded", "hidden"})
"""Views in which digits and letters keep their meaning (leetspeak would turn digits into letters)."""


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of personal data or secret that policies can name."""

    name: str
    regex: str
    """RE2 syntax; finds candidates. Bounded, or `max_chars` is given."""
    refine: Refine
    group: Literal["pii", "secret"] | None
    """The group that it is named with; None: policies ask for it by its own name alone."""
    skip: Skip | None = None
    """None: the next candidate may begin with the next character. Needed where candidates overlap: else each place of a
    long text is a candidate, and each is asked about by itself."""
    lead: str | None = None
    """RE2 syntax for what begins at most `LEFT_CHARS` before each value, or with it: the words that announce one.

    Candidates without any of it are refused in bulk. None: all are asked about.
    """
    max_chars: int | None = None
    """Cap in characters for a regex without a bound."""
    views: frozenset[str] = PLAIN_VIEWS
    """Views of the text in which it is searched."""


def is_glued(char: str) -> bool:
    """Say whether `char` (one character, or none at the text's edge) would make one word with a neighbour.

    Letters of scripts that write no spaces, or that hang particles on a number (Thai, Han, Kana, Hangul), don't:
    a card number right after them is still a card number.
    """
    if not char:
        return False
    return char == "_" or (char.isalnum() and (char < "\u0e00" or "\u1e00" <= char < "\u2000"))


WORD = r"(?:\b|_)"
"""Where a candidate may begin: at a word's start, or at a mark of emphasis before it, which `past_mark` leaves out."""

GAP = "[ \\t.\\-/_'*\u00b7]"
"""A sign that people and models set between the groups of a number. Kinds of spaces and dashes are folded to ASCII."""

MARKS = "[*~`_]{0,4}"
"""Emphasis that models set within a value: around what stands behind the prefix of a key, as `ghp_**...**`."""


def without_marks(text: str) -> str:
    """Return a token without the emphasis in it; of underscores side by side one is its own."""
    plain = text.translate(_NO_MARKS)
    while "__" in plain:
        plain = plain.replace("__", "_")
    return plain


_NO_MARKS = str.maketrans("", "", "*~`")
_MOST_MARKS = 3
"""Underscores that set emphasis (`___both___`)."""


def past_mark(refine: Refine) -> Refine:
    """Return a validator for candidates that begin with `WORD`."""

    def refined(text: str, start: int, end: int) -> Sequence[SpanPair]:
        return refine(text, start + (text[start] == "_"), end)

    return refined


def glued_before(text: str, start: int) -> bool:
    """Say whether what begins at `start` goes on a word before it.

    Underscores end a name (`user_AB123456C`, `x2_10`), or are marks of emphasis; within a number they part its groups.
    """
    at = start
    while at and start - at < _MOST_MARKS and text[at - 1] == "_":
        at -= 1
    if at == start or before(text, at) == "_":
        return is_glued(before(text, at))
    end = at
    while at and start - at < LEFT_CHARS and "0" <= text[at - 1] <= "9":
        at -= 1
    return at < end and "0" <= text[start : start + 1] <= "9" and not before(text, at).isalpha()


def glued_behind(text: str, end: int) -> bool:
    """Say whether a word goes on behind `end`; an underscore there may be a mark of emphasis, and tells nothing."""
    return text[end : end + 1] != "_" and is_glued(text[end : end + 1])


def before(text: str, start: int) -> str:
    """Return the character before `start`, or none at the text's edge."""
    return text[start - 1 : start] if start else ""


def stands_alone(text: str, start: int, end: int) -> bool:
    """Say whether no letter or digit of a word touches `text[start:end]`, and no underscore of a longer number."""
    return not (glued_before(text, start) or glued_behind(text, end))


def continues_number(text: str, start: int) -> bool:
    """Say whether `start` stands inside a longer number or a code of digits (`3.14`, `1-800`).

    A comma sets values apart (rows of a CSV file) far more often than it marks a decimal.
    """
    return start >= 2 and text[start - 1] in ".-/:" and "0" <= text[start - 2] <= "9"


def only_digits(text: str) -> str:
    """Return the ASCII digits of `text`, in order."""
    return "".join(char for char in text if "0" <= char <= "9")


def digit_groups(text: str, start: int, end: int) -> list[SpanPair]:
    """Return the runs of ASCII digits in `text[start:end]`."""
    groups: list[SpanPair] = []
    begin = -1
    for at in range(start, end):
        if "0" <= text[at] <= "9":
            begin = at if begin < 0 else begin
        elif begin >= 0:
            groups.append((begin, at))
            begin = -1
    return [*groups, (begin, end)] if begin >= 0 else groups


def parts_of(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return what stands between quotes and brackets of a value with words in it: each is edited by itself.

    So the names of members between its parts stay, and so does the form of JSON.
    """
    if not any(char in _FORM for char in text[start:end]):
        return ((start, end),)
    spans: list[SpanPair] = []
    for at in range(start, end):
        if "0" <= text[at] <= "9" or "A" <= text[at] <= "Z":
            joined = spans and not any(char in _FORM for char in text[spans[-1][1] : at])
            spans[-1:] = [(spans[-1][0], at + 1)] if joined else [*spans[-1:], (at, at + 1)]
    return spans


_FORM = frozenset("\"'{}[]")


def whole_if(verdict: bool, start: int, end: int) -> Sequence[SpanPair]:
    """Return the whole candidate as the one span when `verdict` holds, else none."""
    return ((start, end),) if verdict else ()
