r"""The placeholders that stand for values of a prompt: `<PERSON_1>`, and all the ways in which models write them back.

A placeholder is a kind and a number. Models change its letter case, its signs and its brackets (`Person 1`,
`PERSON\_1`, `**<person_1>**`, `%3CPERSON_1%3E`, `&lt;PERSON_1&gt;`); the views of the matcher undo what is escaped, set
or written in other forms of letters, and the expression allows for the rest. With its brackets a placeholder begins no
other (`<PERSON_1>` is no beginning of `<PERSON_10>`); without them it must stand alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from checkstream.core.match.entities.entity import SpanPair, glued_before, glued_behind
from checkstream.core.match.escapes import Unescaped
from checkstream.core.match.markup import Unmarked
from checkstream.core.match.normalise import Folded
from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.match.scan import Scan
from checkstream.core.match.surrogates import surrogate_key, surrogate_pattern
from checkstream.core.terms import Span

PLACEHOLDER: Final = -1
"""What a finding carries in place of the number of a signal: no rule asks for it."""
MAX_NUMBER: Final = 999_999
_SEPARATOR: Final = r"[\s_\-]"
_MARK: Final = r"[\s*_`~]{0,3}"
_TAIL: Final = frozenset("-.,:/")
_VIEWS: Final = frozenset({"raw", "unescaped", "folded", "unmarked"})
_BARE_CHARS: Final = 96
"""A kind is no longer than this."""


class Label(NamedTuple):
    """One placeholder."""

    kind: str
    number: int

    def __str__(self) -> str:
        """Return it as the model gets it."""
        return f"<{self.kind}_{self.number}>"

    @property
    def bare(self) -> str:
        """Return it without brackets, for places where only letters, digits and underscores may stand."""
        return f"{self.kind}_{self.number}"


def kind_of(name: str) -> str:
    """Return the kind of placeholder for what is called `name`: capitals, and digits that don't end it."""
    kept = "".join(char if char.isascii() and char.isalnum() else "_" for char in name.upper().removesuffix("_LOOSE"))
    words = "_".join(word for word in kept.split("_") if word)[:_BARE_CHARS]
    return words.rstrip("0123456789_") or "VALUE"


class Placeholders:
    """The kinds of placeholders that one program may put in, and how they are found. Immutable."""

    __slots__ = ("_kinds", "_surrogates", "patterns")

    def __init__(self, kinds: Iterable[str], *, surrogates: bool = False) -> None:
        """Take the kinds, one at least; with `surrogates` other values stand for some as well."""
        self._kinds = {_squeezed(kind): kind for kind in sorted(set(kinds))}
        self._surrogates = surrogates
        label = Pattern(
            signal=PLACEHOLDER, name="placeholder", regex=_regex(self._kinds.values()), refine=_refine, views=_VIEWS
        )
        self.patterns = (label, surrogate_pattern(PLACEHOLDER)) if surrogates else (label,)

    def read(self, text: str) -> Label | str | None:
        """Return the placeholder that a text which was found is, however it is written, or a surrogate's key."""
        plain = _plain(text)
        label = self._label(plain.strip("<>_*`~ \t\r\n"))
        return label or (surrogate_key(plain) if self._surrogates else None)

    def _label(self, plain: str) -> Label | None:
        end = len(plain)
        while end and plain[end - 1] in "0123456789":
            end -= 1
        kind = self._kinds.get(_squeezed(plain[:end]))
        return Label(kind, int(plain[end:])) if kind is not None and end < len(plain) else None

    def search(self) -> Search:
        """Return what reads a text for placeholders."""
        return Search(self)


class Search:
    """Reads one text for placeholders."""

    def __init__(self, placeholders: Placeholders) -> None:
        """Start before the first character."""
        self._scan = Scan(_alone(placeholders.patterns))

    @property
    def ahead(self) -> int:
        """How many characters can be read until each may be dear."""
        return self._scan.ahead

    def feed(self, text: str) -> list[Span]:
        """Read more; return where placeholders stand."""
        return [finding.span for finding in self._scan.feed(text)]

    def end(self) -> list[Span]:
        """Take the end of the text; return where placeholders stand that nothing can change any more."""
        return [finding.span for finding in self._scan.end()]

    def take_work(self) -> int:
        """Return what reading has cost since this was last asked (see `match.work`)."""
        return self._scan.work.take()


@lru_cache(maxsize=64)
def _alone(patterns: tuple[Pattern, ...]) -> PatternSet:
    return PatternSet(patterns)


def _regex(kinds: Iterable[str]) -> str:
    spelled = "|".join(f"{_SEPARATOR}{{0,2}}".join(kind.split("_")) for kind in kinds)
    label = rf"(?:{spelled}){_SEPARATOR}{{0,3}}#?[0-9]{{1,6}}"
    return rf"(?i)(?:<{_MARK}{label}{_MARK}>|(?:\b|_){label}(?:[\-.,:/][0-9])?)"


def _refine(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return what of a candidate is a placeholder: in brackets all of it, else only what stands alone."""
    if text[start] == "<":
        return ((start, end),)
    start += text[start] == "_"
    tail = text[end - 2] in _TAIL and "0" <= text[end - 3] <= "9"
    if tail:  # `Phone 1-800` is a number; `PHONE_1` is none, whatever stands behind it
        end -= 2
    strong = text[start:end].rstrip("0123456789").endswith("_")
    if (tail and not strong) or glued_before(text, start) or glued_behind(text, end):
        return ()
    return ((start, end),)


def _squeezed(kind: str) -> str:
    return "".join(char for char in kind.upper() if char.isalnum())


def _plain(text: str) -> str:
    """Return a short text as the views of the matcher read it."""
    for view in (Unescaped(), Folded(), Unmarked()):
        text = view.read(text, range(len(text)), range(1, len(text) + 1), ended=True).text
    return text
