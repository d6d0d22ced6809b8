"""Patterns from a small grammar, texts that nearly match them, and a slow reading of both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import strategies as st

from checkstream.core.match.patterns import Pattern
from checkstream.core.match.syntax import parse
from checkstream.core.match.tree import Alternation, Assertion, Atom, Concat, Node, Repeat, width

ALPHABET = "aab1- @"
"""Few characters, so that partial matches are many."""

_ATOMS = st.sampled_from(["a", "b", "1", "-", "[ab]", "[^a]", "\\d", "\\w", ".", "@", "(?i:B)", "\\s"])
_ASSERTIONS = st.sampled_from(["\\b", "\\B", "(?m:^)", "\\A"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    repeat = st.sampled_from(["?", "{2}", "{1,3}", "{0,2}", "{1,2}?", "??"])
    return st.one_of(
        st.lists(inner, min_size=2, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda options: f"(?:{'|'.join(options)})"),
        st.tuples(inner, repeat).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        st.tuples(_ASSERTIONS, inner).map("".join),
        st.tuples(inner, _ASSERTIONS).map("".join),
    )


bounded_regexes = st.recursive(_ATOMS, _grown, max_leaves=7).filter(lambda regex: width(parse(regex))[0] > 0)
open_regexes = st.tuples(
    bounded_regexes, _ATOMS, st.sampled_from(["+", "*", "+?"]), st.sampled_from(["", "@", "a"])
).map("".join)


def refine_even(text: str, start: int, end: int) -> Sequence[tuple[int, int]]:
    """Take only candidates of an even number of characters that no `-` precedes."""
    if (end - start) % 2 or text[start - 1 : start] == "-":
        return ()
    return ((start, end),)


def refine_parts(text: str, start: int, end: int) -> Sequence[tuple[int, int]]:
    """Take every `a` in a candidate."""
    return [(place, place + 1) for place in range(start, end) if text[place] == "a"]


_refines = st.sampled_from([None, None, refine_even, refine_parts])


def pattern_lists(views: frozenset[str]) -> st.SearchStrategy[list[Pattern]]:
    """One to four patterns, bounded and capped, with and without a refinement."""
    bounded = st.tuples(bounded_regexes, st.none(), _refines)
    capped = st.tuples(open_regexes, st.integers(3, 9), _refines)
    return st.lists(st.one_of(bounded, bounded, capped), min_size=1, max_size=4).map(
        lambda drawn: [
            Pattern(signal=number, name=f"p{number}", regex=regex, max_chars=cap, refine=refine, views=views)
            for number, (regex, cap, refine) in enumerate(drawn)
        ]
    )


texts = st.text(alphabet=ALPHABET, max_size=40)
cuts = st.lists(st.integers(0, 400), max_size=8)


def pieces(text: str, at: Sequence[int]) -> list[str]:
    """Cut `text` at these places (modulo its length)."""
    places = sorted({place % (len(text) + 1) for place in at} | {0, len(text)})
    return [text[a:b] for a, b in pairwise(places)]


def _ends(node: Node, text: str, starts: set[int]) -> tuple[set[int], bool]:
    """Return where a match of `node` from any of `starts` may end, and whether the text ended within one."""
    match node:
        case Atom(source, fold):
            live = len(text) in starts
            flags = re.ASCII | (re.IGNORECASE if fold else re.NOFLAG)
            return {at + 1 for at in starts if at < len(text) and re.fullmatch(source, text[at], flags)}, live
        case Assertion(source):
            held = re.compile(source.replace("\\z", "\\Z"), re.ASCII)
            return {at for at in starts if at < len(text) and held.match(text, at)}, len(text) in starts
        case Concat(parts):
            live = False
            for part in parts:
                starts, some = _ends(part, text, starts)
                live |= some
            return starts, live
        case Alternation(options):
            both = [_ends(option, text, starts) for option in options]
            return set().union(*(ends for ends, _ in both)), any(live for _, live in both)
        case Repeat(part, low, high):
            reached = set(starts) if low == 0 else set()
            live, count, seen = False, 0, set(starts)
            while starts and (high is None or count < high) and count < len(text) + 2:
                starts, some = _ends(part, text, starts)
                live |= some
                count += 1
                if count >= low:
                    reached |= starts
                if count > low and starts <= seen:
                    break
                seen |= starts
            return reached, live


def is_live(node: Node, text: str, start: int) -> bool:
    """Whether `text[start:]` is the beginning of a match, or a whole one that ends with the text."""
    ends, live = _ends(node, text, {start})
    return live or len(text) in ends


def oracle(patterns: Sequence[Pattern], text: str, *, ended: bool) -> tuple[list[tuple[int, int, int, bool]], int]:
    """Return what a scan of the raw view must have found of `text`, and its `live`."""
    found: list[tuple[int, int, int, bool]] = []
    oldest = len(text)
    chains: list[tuple[int, list[tuple[int, int, int, bool]]]] = []
    for pattern in patterns:
        chain: list[tuple[int, int, int, bool]] = []
        live = _chain(pattern, text, chain, ended=ended)
        chains.append((live, chain))
        oldest = min(oldest, live)
    for _, chain in chains:
        found += [each for each in chain if each[0] < oldest]
    return sorted(set(found)), oldest


def _chain(pattern: Pattern, text: str, out: list[tuple[int, int, int, bool]], *, ended: bool) -> int:
    """Follow one pattern through the text, start by start; return where it is still live."""
    tree = parse(pattern.regex)
    regex = re.compile(pattern.regex, re.ASCII)
    cap = pattern.max_chars
    start = 0
    while start < len(text):
        if cap is not None and start + cap <= len(text) and is_live(tree, text[: start + cap], start):
            out.append((start, start + cap, pattern.signal, True))
            start += cap
            continue
        if not ended and is_live(tree, text, start):
            return start
        hit = regex.match(text, start)
        spans: Sequence[tuple[int, int]] = () if hit is None else (hit.span(),)
        if hit is not None and pattern.refine is not None:
            left = max(0, start - 64)
            window = text[left : hit.end() + 1]
            spans = [(left + a, left + b) for a, b in pattern.refine(window, start - left, hit.end() - left)]
        if spans:
            out.extend((a, b, pattern.signal, False) for a, b in spans)
            start = spans[-1][1]
        else:
            start += 1
    return len(text)
