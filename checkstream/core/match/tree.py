r"""The tree of a regular expression, and what is derived from it: width, canonical text, companion.

The *companion* of a pattern is an expression for every prefix of every string that the pattern
matches. Searched as `(?:companion)\z` it finds the leftmost place at which the text so far could still
become a match:

    pre(c)      = c?                       one code point
    pre(AB)     = pre(A) | A pre(B)        nested, so that a shared start is written once
    pre(c{n,m}B) = c{0,n-1} | c{n,m} pre(B)
                                           the same, with c{0,m} written once: the engine unrolls it
    pre(A|B)    = pre(A) | pre(B)
    pre(A{n,m}) = A{0,m-1} pre(A)          m may be infinite
    pre(\b)     = nothing                  at the text's end an assertion is undecided

INVARIANT: every companion also matches the empty string. Assertions inside stay in front of what
follows them, where both their neighbours are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

_FAR: Final = 16


class Atom(msgspec.Struct, frozen=True):
    """Exactly one code point: a literal, a class, or the dot."""

    source: str
    """Canonical text, e.g. `a`, `\\.`, `[a-z]`; never needs a group around it."""
    fold: bool | None = None
    """Letter case is ignored; None: it makes no difference."""


class Assertion(msgspec.Struct, frozen=True):
    r"""Matches the empty string at some places: `\b`, `\A`, `(?m:^)`, ..."""

    source: str


class Concat(msgspec.Struct, frozen=True):
    """One part after the other; no parts match the empty string."""

    parts: tuple[Node, ...] = ()


class Alternation(msgspec.Struct, frozen=True):
    """One of several; at one start the first that matches wins."""

    options: tuple[Node, ...]


class Repeat(msgspec.Struct, frozen=True):
    """A part repeated `low` to `high` times."""

    part: Node
    low: int
    high: int | None
    """None: without bound."""
    lazy: bool = False


Node = Atom | Assertion | Concat | Alternation | Repeat


def width(node: Node) -> tuple[int, int | None]:
    """Return the least and greatest number of code points that `node` matches; None: unbounded."""
    match node:
        case Atom():
            return 1, 1
        case Assertion():
            return 0, 0
        case Concat(parts):
            widths = [width(part) for part in parts]
            return sum(low for low, _ in widths), _sum([high for _, high in widths])
        case Alternation(options):
            widths = [width(option) for option in options]
            highs = [high for _, high in widths]
            bounded = [high for high in highs if high is not None]
            return min(low for low, _ in widths), max(bounded) if len(bounded) == len(highs) else None
        case Repeat(part, low, high):
            least, greatest = width(part)
            if greatest == 0:
                return 0, 0
            return least * low, None if high is None or greatest is None else greatest * high


def _sum(highs: Sequence[int | None]) -> int | None:
    total = 0
    for high in highs:
        if high is None:
            return None
        total += high
    return total


def render(node: Node) -> str:
    """Return the node as RE2 syntax without capturing groups, to be read case-sensitively."""
    fold = _fold_of(node)
    return _flagged(_render(node, fold=fold), fold=fold)


def companion(node: Node) -> str:
    """Return the expression for all prefixes of the strings that `node` matches, the empty one included."""
    fold = _fold_of(node)
    return _flagged(_prefixes(node, fold=fold), fold=fold)


def opening(node: Node) -> Node:
    """Return an expression that matches from the same places as `node`, as little as it can: its end is not needed.

    Whether a repetition of up to two hundred begins somewhere takes as many states as its least number has, not two
    hundred of each place at which it may have begun.
    """
    match node:
        case Concat(parts):
            kept = list(parts)
            while len(kept) > 1 and isinstance(kept[-1], Repeat) and kept[-1].low == 0:
                kept.pop()
            return Concat((*kept[:-1], opening(kept[-1]))) if kept else node
        case Alternation(options):
            return Alternation(tuple(map(opening, options)))
        case Repeat(part, low, high, _) if low > 0 and low != high:
            return opening(part) if low == 1 else Repeat(part, low, low)
        case _:
            return node


def uncounted(node: Node) -> Node:
    """Return an expression that matches all that `node` does, and more: one character repeated often is not counted.

    From the end of a text back the engine has a state for each count at which each of these may stand.
    """
    match node:
        case Atom() | Assertion():
            return node
        case Concat(parts):
            return Concat(tuple(map(uncounted, parts)))
        case Alternation(options):
            return Alternation(tuple(map(uncounted, options)))
        case Repeat(Atom() as atom, low, high, lazy):
            return Repeat(atom, min(low, 1), None, lazy) if counts(node) else node
        case Repeat(part, low, high, lazy):
            return Repeat(uncounted(part), low, high, lazy)


def counts(node: Repeat) -> bool:
    """Tell whether a repetition of one character counts far."""
    return (node.low if node.high is None else node.high) >= _FAR


def repeated(node: Node) -> Iterator[Repeat]:
    """Yield the repetitions of one character in an expression."""
    match node:
        case Atom() | Assertion():
            return
        case Concat(parts) | Alternation(parts):
            for part in parts:
                yield from repeated(part)
        case Repeat(Atom()):
            yield node
        case Repeat(part):
            yield from repeated(part)


def _fold_of(node: Node) -> bool:
    """Whether any atom ignores case: then the flag is set once around the whole companion."""
    match node:
        case Atom(_, fold):
            return bool(fold)
        case Assertion():
            return False
        case Concat(parts) | Alternation(parts):
            return any(_fold_of(part) for part in parts)
        case Repeat(part):
            return _fold_of(part)


def _flagged(source: str, *, fold: bool) -> str:
    return f"(?i:{source})" if fold else source


def _render(node: Node, *, fold: bool) -> str:
    """Render for a place where case is ignored (`fold`) or not."""
    match node:
        case Atom(source, own):
            if own is None or own == fold:
                return source
            return f"(?i:{source})" if own else f"(?-i:{source})"
        case Assertion(source):
            return source
        case Concat(parts):
            return "".join(
                f"(?:{_render(part, fold=fold)})" if isinstance(part, Alternation) else _render(part, fold=fold)
                for part in parts
            )
        case Alternation(options):
            return "|".join(_render(option, fold=fold) for option in options)
        case Repeat(part, low, high, lazy):
            return _repeated(_render_unit(part, fold=fold), low, high) + ("?" if lazy else "")


def _render_unit(node: Node, *, fold: bool) -> str:
    """Render what a repetition applies to."""
    source = _render(node, fold=fold)
    return source if isinstance(node, Atom) else f"(?:{source})"


def _repeated(unit: str, low: int, high: int | None) -> str:
    match low, high:
        case 0, None:
            return f"{unit}*"
        case 1, None:
            return f"{unit}+"
        case _, None:
            return f"{unit}{{{low},}}"
        case 0, 1:
            return f"{unit}?"
        case _:
            return f"{unit}{{{low}}}" if low == high else f"{unit}{{{low},{high}}}"


def _prefixes(node: Node, *, fold: bool) -> str:
    """Return the prefixes of `node`; the result matches the empty string and may be an alternation."""
    match node:
        case Atom():
            return f"{_render(node, fold=fold)}?"
        case Assertion():
            return ""
        case Concat(parts):
            return _sequence_prefixes(parts, fold=fold)
        case Alternation(options):
            return "|".join(_prefixes(option, fold=fold) for option in options)
        case Repeat(part, _, high):
            if high == 0:
                return ""
            if isinstance(part, Atom):
                return _repeated(_render(part, fold=fold), 0, high)
            last = _prefixes(part, fold=fold)
            if high == 1:
                return last
            before = _repeated(_render_unit(part, fold=fold), 0, None if high is None else high - 1)
            return f"{before}(?:{last})"


def _sequence_prefixes(parts: Sequence[Node], *, fold: bool) -> str:
    """Fold from the right, so that each part is written once in full and once as its prefixes."""
    rest = ""
    for part in reversed(parts):
        match part:
            case Atom():
                source = _render(part, fold=fold)
                rest = f"(?:{source}{rest})?" if rest else f"{source}?"
            case Assertion(source):
                rest = f"(?:{source}{rest})?" if rest else ""
            case Repeat(Atom() as atom, low, high) if rest and high != 0:
                unit = _render(atom, fold=fold)
                rest = f"{_repeated(unit, low, high)}{rest}"
                if low > 0:
                    rest = f"(?:{_repeated(unit, 0, low - 1)}|{rest})" if low > 1 else f"(?:{rest})?"
            case _:
                own = _prefixes(part, fold=fold)
                if not rest:
                    rest = f"(?:{own})"
                else:
                    whole = _render(part, fold=fold)
                    whole = f"(?:{whole})" if isinstance(part, Alternation) else whole
                    rest = f"(?:{own}|{whole}{rest})"
    return rest
