r"""Patterns and sets of them, compiled once and shared by all streams.

A set costs two searches of clean text: one *gate* (the alternation of all patterns) and one
*companion* (all prefixes of all patterns, see `tree`). A pattern alone is searched only after its
set's gate has hit. Phrases, of which there may be thousands, are left to `phrases`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import msgspec

from checkstream.core.match.engine import Behind, Regex, compile_regex, union
from checkstream.core.match.fingerprints import Fingerprints
from checkstream.core.match.phrases import Phrase, PhraseIndex, phrase_refine, phrase_regex
from checkstream.core.match.shapes import GAP_CHARS
from checkstream.core.match.syntax import parse
from checkstream.core.match.tree import Node, companion, counts, opening, render, repeated, uncounted, width
from checkstream.core.match.words import Words
from checkstream.errors import PatternError

LEFT_CONTEXT_CHARS: Final = 64
"""What a `Refine` may look at before a candidate."""
MAX_CAP_CHARS: Final = 16384
VIEWS: Final = ("raw", "unescaped", "folded", "unmarked", "spaced", "leet", "encoded", "hidden")
"""Every view, in the order in which equal findings are told apart."""
ALL_VIEWS: Final = frozenset(VIEWS)
_CHAINED: Final = VIEWS[1:6]
"""Those that read one another."""
_IMPLIED_BY: Final = MappingProxyType(
    {
        "raw": ALL_VIEWS,
        "unescaped": frozenset({"unescaped", "folded", "unmarked", "spaced", "leet"}),
        "folded": frozenset({"folded", "unmarked", "spaced", "leet"}),
        "unmarked": frozenset({"unmarked", "spaced", "leet"}),
        "spaced": frozenset({"spaced", "leet"}),
        "leet": frozenset({"leet"}),
        "encoded": frozenset({"encoded"}),
        "hidden": frozenset({"hidden"}),
    }
)
"""A view of a view implies the one that it reads."""
_MOST_EXPRESSIONS: Final = 1024
"""Compiled expressions that are remembered, and so shared: those of two large policies."""
_WORDS: Final = ("boundaries ", "log ", "aa ", " is ")
_MOST_SHARES: Final = 64
"""Parts in which the patterns of a set are asked apart."""
_VIEW_STRETCH: Final = 12
"""Most original characters for one of a view (`\\uD83D\\uDE00` is one emoji)."""
_LEAST_VIEW_CAP: Final = 1024
"""A view's cap of a bounded pattern is at least this, so that long text isn't cut into small pieces for it."""

_MOST_PUT_OFF: Final = 512
"""Characters that are decided in one step, however dear they are: 11 units of work each at most."""
_MOST_UNREAD: Final = 768
_LEAST_UNREAD: Final = 64
"""Of the original, for which a view may wait for what follows: nothing but what shows nothing takes so much. It is less
than the caps of patterns, which else fall due at each character that comes while a view may still read up to them."""
_NO_CAP: Final = 1 << 62

Refine = Callable[[str, int, int], Sequence[tuple[int, int]]]
"""`refine(text, start, end)`: text is a window in which the candidate `text[start:end]` stands, with
`LEFT_CONTEXT_CHARS` before it (fewer at the channel's start) and one character after it (none at the
channel's end). Returns the sub-spans, sorted and disjoint, that truly are the thing; empty: no hit."""

Skip = Callable[[str, int, int], int]
"""`skip(text, start, end)`: the same candidate, now that `Refine` has found nothing in it. Returns how far on no other
candidate may begin that it would take, whatever text follows; each that does begin is found and asked about by itself,
which is dear where candidates overlap."""


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to look for."""

    signal: int
    """What a finding carries."""
    name: str
    """For messages, e.g. `EMAIL`."""
    regex: str = ""
    """RE2 syntax; of a recital nothing."""
    texts: Fingerprints | None = None
    """What must not be recited; the pattern is a recital of it (see `recital`), in the text as it comes, without its
    escapes, and in what stands encoded in it."""
    words: int = 0
    """Of the shortest recital that counts."""
    max_chars: int | None = None
    """Characters of the original text after which a match in progress is taken as one; needed when unbounded."""
    refine: Refine | None = None
    skip: Skip | None = None
    """None: the next candidate may begin right behind the start of one that was refused."""
    lead: str | None = None
    """RE2 syntax. What this matches begins at most `LEFT_CONTEXT_CHARS` before each candidate that `refine` would take,
    or with it: where there is none of it, all candidates are refused at once."""
    views: frozenset[str] = ALL_VIEWS
    """Views that it is searched in; always `raw` too, and every view that one of them reads."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern, compiled."""

    index: int
    """Position in its set."""
    pattern: Pattern
    regex: Regex
    gate: Regex
    """Tells where the expression matches from, and nothing of where it ends."""
    companion: Regex
    lead: Regex | None = None
    """Begins before or with whatever counts."""
    cap: int | None
    """Cap in the raw text; None: its own bound suffices."""
    view_cap: int
    """Cap in a derived view, where ignored or escaped characters may stretch a match without bound."""


class Table(msgspec.Struct, frozen=True):
    """The patterns of one view, with what is searched first. Several gates only when one would be too large."""

    members: tuple[Member, ...]
    gates: tuple[Regex, ...]
    companions: tuple[Regex, ...]
    phrases: PhraseIndex | None = None
    """What is left to it: the same in every view."""
    numbers: frozenset[int] = frozenset()
    """Position in the set of each member and phrase."""
    apart: tuple[tuple[Regex, ...], tuple[Regex, ...]] = ((), ())
    """Gates and companions again, of few members each: for text in which the union has too many states."""
    shares: tuple[tuple[Member, ...], ...] = ()
    """The members that each of `apart` stands for."""


class PatternSet:
    """Patterns compiled for every view. Immutable, but that what is known of words grows."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        """Compile `patterns`.

        Raises:
            PatternError: not RE2 syntax, matches the empty string, no bound on its length and no
                `max_chars`, `max_chars` out of range, or an unknown view.
        """
        self.patterns = tuple(patterns)
        self.recited = tuple(pattern for pattern in patterns if pattern.texts is not None)
        """Those that are recitals."""
        phrases = [phrase for number, pattern in enumerate(patterns) if (phrase := _phrase(number, pattern))]
        index = PhraseIndex(phrases) if phrases else None
        literal = index.numbers if index is not None else frozenset()
        literal |= {number for number, pattern in enumerate(patterns) if pattern.texts is not None}
        made = [_member(number, each) for number, each in enumerate(patterns) if number not in literal]
        tables: dict[tuple[int, ...], Table] = {}
        self.tables: dict[str, Table] = {}
        for view in VIEWS:
            chosen = [each for each in made if _IMPLIED_BY[view] & each[0].pattern.views or view == "raw"]
            key = tuple(member.index for member, _ in chosen)
            if key not in tables:
                tables[key] = _table(chosen, index)
            self.tables[view] = tables[key]
        members = self.tables["raw"].members
        self.min_cap = min((member.cap for member in members if member.cap is not None), default=None)
        self.min_view_cap = min([each.view_cap for each in members] + [each.view_cap for each in phrases], default=None)
        cap = self.min_view_cap or _MOST_UNREAD
        self.most_unread = max(min(_MOST_UNREAD, cap - cap // 4), _LEAST_UNREAD)
        """Characters for which a view may wait for what follows."""
        self.least_long = min(self.min_cap or _NO_CAP, cap, self.most_unread, _MOST_PUT_OFF)
        """Characters of the shortest text in which a cap may fall due, a view wait too long, or too much be put off."""

        used = [number for number, view in enumerate(_CHAINED, 1) if self.tables[view].numbers]
        self.chained = _CHAINED[: max(used, default=0)]
        """Views that read one another; those at the end that no pattern is searched in are left out."""
        self.chained_tables = tuple(self.tables[view] for view in self.chained)
        self.asleep = _asleep(self.tables["raw"], self.chained_tables)
        """Tables that are asked what could still become a match while every view but the raw one sleeps, each with the
        number of the view up to whose end it is asked: 0 raw, else that in the chain, from 1 on."""
        self.asked = tuple((companion, number) for table, number in self.asleep for companion in table.companions)
        """The same, companion by companion."""
        self.embeds = bool(self.tables["encoded"].numbers or self.recited)
        """Something is searched in what stands encoded."""
        kept = [pattern for pattern in self.patterns if "encoded" in pattern.views]
        self.inner: PatternSet = self if len(kept) == len(self.patterns) else PatternSet(kept)
        """What is searched in texts that stand encoded, and in their views."""
        self.words: Words | None = None
        """What scans have found out about words, once one has asked."""

    def __len__(self) -> int:
        """Return the number of patterns."""
        return len(self.patterns)


def check_pattern(pattern: Pattern) -> None:
    """Hold one pattern to the rules, before there is a set of it.

    Raises:
        PatternError: see `PatternSet`.
    """
    if _phrase(0, pattern) is None:
        _member(0, pattern)


class _Expression(msgspec.Struct, frozen=True):
    """What is searched for an expression, whichever patterns and sets have it."""

    source: str
    """In canonical form."""
    beginnings: str
    """Its companion, without the end of the text."""
    first: str
    """What its companion stands behind, without the end of the text; empty: nothing."""
    opening: str
    """What matches from the same places (see `tree.opening`), in canonical form."""
    regex: Regex
    gate: Regex
    companion: Regex


@lru_cache(maxsize=_MOST_EXPRESSIONS)
def _read(regex: str) -> tuple[Node, int, int | None]:
    """Return an expression as a tree, with the fewest and the most characters that it matches.

    Raises:
        PatternSyntaxError: see `parse`.
    """
    tree = parse(regex)
    return tree, *width(tree)


@lru_cache(maxsize=_MOST_EXPRESSIONS)
def _expression(regex: str) -> _Expression:
    """Compile an expression that has been checked; many sets ask for it, and the next version of the policies again.

    Raises:
        PatternError: too large for RE2.
    """
    tree, _, _ = _read(regex)
    source, beginnings, begun = render(tree), companion(tree), render(opening(tree))
    whole = compile_regex(source)
    gate = whole if begun == source else compile_regex(begun)
    dear = any(counts(each) and _is_prose(each.part) for each in repeated(tree))
    first = companion(uncounted(tree)) if dear else ""
    exact = compile_regex(f"(?:{beginnings})\\z")
    asked = Behind(compile_regex(f"(?:{first})\\z"), exact) if dear else exact
    return _Expression(source, beginnings, first, begun, whole, gate, asked)


def _is_prose(atom: Node) -> bool:
    """Tell whether a character may be a letter and a space."""
    one = compile_regex(render(atom))
    return one.search("a") is not None and one.search(" ") is not None


def _check(pattern: Pattern) -> int | None:
    """Read one pattern and hold it to the rules; return the most characters that it matches.

    Raises:
        PatternError: see `PatternSet`.
    """
    name = pattern.name
    try:
        _, least, greatest = _read(pattern.regex)
    except PatternError as error:
        raise PatternError(f"`{name}`: {error}") from error
    unknown = pattern.views - ALL_VIEWS
    if unknown:
        raise PatternError(f"`{name}`: unknown view `{min(unknown)}`; views are {', '.join(VIEWS)}")
    if least == 0:
        raise PatternError(f"`{name}` matches the empty string; make a part of `{pattern.regex[:80]}` required")
    if pattern.max_chars is None:
        if greatest is None:
            raise PatternError(f"`{name}` has no bound on its length; give it `max_chars` or use `{{n,m}}`")
        if greatest > MAX_CAP_CHARS:
            raise PatternError(f"`{name}` may match {greatest} characters; give it `max_chars`")
    elif not 1 <= pattern.max_chars <= MAX_CAP_CHARS:
        raise PatternError(f"`{name}`: `max_chars` is {pattern.max_chars}; it must be from 1 to {MAX_CAP_CHARS}")
    return greatest


def _member(index: int, pattern: Pattern) -> tuple[Member, _Expression]:
    greatest, cap = _check(pattern), pattern.max_chars
    if greatest is not None and (cap is None or cap >= greatest):
        cap, view_cap = None, _view_cap(greatest)
    else:
        view_cap = cap or MAX_CAP_CHARS
    try:
        made = _expression(pattern.regex)
    except PatternError as error:
        raise PatternError(f"`{pattern.name}`: {error}") from error
    member = Member(
        index=index,
        pattern=pattern,
        regex=made.regex,
        gate=made.gate,
        companion=made.companion,
        lead=None if pattern.lead is None else _lead(pattern.lead),
        cap=cap,
        view_cap=view_cap,
    )
    return member, made


@lru_cache(maxsize=_MOST_EXPRESSIONS)
def _lead(source: str) -> Regex:
    return compile_regex(source)


def _view_cap(greatest: int) -> int:
    """Return the cap, in a derived view, of what matches at most `greatest` characters."""
    return max(greatest * _VIEW_STRETCH, _LEAST_VIEW_CAP)


def _phrase(number: int, pattern: Pattern) -> Phrase | None:
    """Return the phrase that a pattern is, if its expression says nothing but its name (see `phrase_regex`)."""
    if pattern.refine is not phrase_refine or pattern.views != ALL_VIEWS or pattern.max_chars is not None:
        return None
    try:
        same = phrase_regex(pattern.name) == pattern.regex
    except PatternError:
        return None
    if not same:
        return None
    words = " ".join(pattern.name.split())
    greatest = len(words) + words.count(" ") * (GAP_CHARS - 1)
    return Phrase(number, pattern.signal, words, _view_cap(greatest))


def _table(chosen: Sequence[tuple[Member, _Expression]], phrases: PhraseIndex | None) -> Table:
    members = tuple(member for member, _ in chosen)
    literal = phrases.numbers if phrases is not None else frozenset()
    openings = tuple(made.opening for _, made in chosen)
    # What reaches over spaces is asked about nearly every word: all of that in one expression.
    cheap = [each for each in chosen if not each[1].first]
    beginnings = tuple(
        made.beginnings for _, made in sorted(cheap, key=lambda each: not _reaches_on(each[1].companion))
    )
    dear = {made.beginnings: made.first for _, made in chosen if made.first}
    shares, apart = _apart(chosen)
    return Table(
        members=members,
        gates=union(tuple(dict.fromkeys(openings)), ""),
        companions=(
            *union(tuple(dict.fromkeys(beginnings)), "\\z"),
            *union(tuple(dear), "\\z", tuple(dear.values())),
        ),
        phrases=phrases,
        numbers=literal.union(member.index for member in members),
        apart=apart,
        shares=shares,
    )


def _asleep(raw: Table, chained: Sequence[Table]) -> tuple[tuple[Table, int], ...]:
    """Return the tables to ask while all views sleep; one whose members another answers for is left out."""
    if not raw.members:
        return ()
    ends = {id(raw): (raw, 0)}
    for number, table in enumerate(chained, 1):
        ends[id(table)] = table, number
    last = ends[id(raw)][1]  # the raw table has every member
    return tuple(each for each in ends.values() if each[0] is raw or each[1] > last)


def _reaches_on(companion: Regex) -> bool:
    """Tell whether a match may reach over a space behind a word."""
    hits = ((words, companion.search(words)) for words in _WORDS)
    return any(hit is not None and hit.start() < len(words) - 1 for words, hit in hits)


def _apart(
    chosen: Sequence[tuple[Member, _Expression]],
) -> tuple[tuple[tuple[Member, ...], ...], tuple[tuple[Regex, ...], tuple[Regex, ...]]]:
    """Return the members in shares of as few as there may be, and the gate and the companion of each share."""
    size = -(-len(chosen) // _MOST_SHARES)
    shares = [chosen[at : at + size] for at in range(0, len(chosen), size)] if size else []
    if size <= 1:
        gates = tuple(made.gate for _, made in chosen)
        companions = tuple(made.companion for _, made in chosen)
    else:
        gates = tuple(compile_regex("|".join(f"(?:{made.opening})" for _, made in share)) for share in shares)
        joined = ("|".join(f"(?:{made.beginnings})" for _, made in share) for share in shares)
        companions = tuple(compile_regex(f"(?:{each})\\z") for each in joined)
    return tuple(tuple(member for member, _ in share) for share in shares), (gates, companions)


NOTHING: Final = PatternSet(())
"""Finds nothing."""
