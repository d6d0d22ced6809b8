"""G33: the work for a text is linear in it, with a constant for each entity that is pinned here.

Work is counted in candidates that validators are asked about and in questions to the regex engine, never in time. The
texts are made from each entity's own expression (`tests.hostile`), so one that comes to be is held to this as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.policies import with_classifiers
from checkstream.core.match.engine import Hit, Regex
from checkstream.core.match.entities import ENTITIES, Entity
from checkstream.core.match.entities.labels import _WORDS
from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.match.scan import Scan
from checkstream.core.match.syntax import parse
from checkstream.core.match.tree import opening, render
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.link import pattern_of as found_by
from checkstream.core.policy.signals import entity_signal
from checkstream.core.terms import Finding, Stage
from tests.hostile import common, hostile, near_misses
from tests.hostile_answers import LEFT_OUT
from tests.property.match_strategies import bounded_regexes, texts

SIZE = 1200
USUAL = 200
"""Candidates of an entity in a thousand characters, on the dearest of its texts."""
MOST: Mapping[str, int] = {
    "DRIVER_LICENSE": 300, "EMAIL": 260, "HIDDEN_TEXT": 520, "MEDICAL_RECORD_NUMBER": 260, "PHONE": 300,
    "PHONE_LOOSE": 300,
}  # fmt: skip
"""Of those that cheap validators refuse one by one."""
MOST_WORK = 18
"""For a character of any text, with the default policies; a unit is about a microsecond."""
QUESTIONS = 3
"""To the engine for each candidate; besides, some for each piece of text that is read."""


class Asked:
    """Counts what is asked of a validator and of the engine."""

    def __init__(self) -> None:
        self.candidates = 0
        self.questions = 0


class CountedRegex:
    def __init__(self, regex: Regex, asked: Asked) -> None:
        self.regex, self.asked = regex, asked

    def search(self, text: str, pos: int = 0, endpos: int = -1) -> Hit | None:
        self.asked.questions += 1
        return self.regex.search(text, pos) if endpos < 0 else self.regex.search(text, pos, endpos)

    def match(self, text: str, pos: int = 0, endpos: int = -1) -> Hit | None:
        self.asked.questions += 1
        return self.regex.match(text, pos) if endpos < 0 else self.regex.match(text, pos, endpos)


def raw_set(entity: Entity, *, skip: bool = True, lead: bool = True) -> PatternSet:
    return PatternSet([pattern_of(entity, entity.refine, skip=skip, lead=lead)])


def pattern_of(
    entity: Entity, refine: Callable[[str, int, int], Sequence[tuple[int, int]]], *, skip: bool, lead: bool = True
) -> Pattern:
    return Pattern(
        signal=0,
        name=entity.name,
        regex=entity.regex,
        max_chars=entity.max_chars,
        refine=refine,
        skip=entity.skip if skip else None,
        lead=entity.lead if lead else None,
        views=frozenset({"raw"}),
    )


def counted_set(entity: Entity, asked: Asked) -> PatternSet:
    def refine(text: str, start: int, end: int) -> Sequence[tuple[int, int]]:
        asked.candidates += 1
        return entity.refine(text, start, end)

    patterns = PatternSet([pattern_of(entity, refine, skip=True)])
    table = patterns.tables["raw"]
    regex, gate = (CountedRegex(each, asked) for each in (table.members[0].regex, table.members[0].gate))
    member = msgspec.structs.replace(table.members[0], regex=regex, gate=gate)
    patterns.tables["raw"] = msgspec.structs.replace(table, members=(member,), shares=((member,),))
    return patterns


def scanned(patterns: PatternSet, text: str, step: int = SIZE) -> list[Finding]:
    state = Scan(patterns)
    found = [each for at in range(0, len(text), step) for each in state.feed(text[at : at + step])]
    return found + state.end()


@lru_cache(maxsize=1)
def shared_texts(size: int = SIZE) -> Mapping[str, str]:
    return {**common(size), **near_misses(size)}


@pytest.mark.parametrize("name", sorted(ENTITIES))
def test_g33_an_entity_asks_about_few_candidates_whatever_the_text(name: str) -> None:
    entity, asked = ENTITIES[name], Asked()
    patterns = counted_set(entity, asked)
    most = MOST.get(name, USUAL)
    texts = {**hostile(entity.regex, SIZE), **shared_texts()}
    for kind, text in (*texts.items(), *((f"announced {kind}", announced(text)) for kind, text in texts.items())):
        asked.candidates = asked.questions = 0
        found = len(scanned(patterns, text))
        assert asked.candidates * 1000 <= most * SIZE + 2000, kind
        assert asked.questions <= QUESTIONS * (asked.candidates + found) + 20, kind


def announced(text: str) -> str:
    """Return as much of a text with words before each piece of it that announce all there is."""
    words = " dl no. mrn dob passport blz acct: "
    return "".join(words + text[at : at + 30] for at in range(0, len(text), 30))[: len(text)]


@cache
def shipped() -> PatternSet:
    program = compile_sources([("default.yaml", with_classifiers())])
    return program.scope(Stage.MIDSTREAM, "content").hold


@pytest.mark.parametrize("kind", sorted({**common(10), **near_misses(10)}))
def test_g33_a_character_costs_little_with_the_default_policies_whatever_the_text(kind: str) -> None:
    text = {**common(4 * SIZE), **near_misses(4 * SIZE)}[kind]
    for each in (text, announced(text)):
        state = Scan(shipped())
        for at in range(0, len(each), 256):
            state.feed(each[at : at + 256])
        state.end()
        assert state.work.done <= MOST_WORK * len(each)


@pytest.mark.parametrize("name", sorted(ENTITIES))
def test_g33_three_times_the_text_is_three_times_the_candidates(name: str) -> None:
    entity, asked = ENTITIES[name], Asked()
    patterns = counted_set(entity, asked)
    for kind, once in hostile(entity.regex, SIZE, seed=1).items():
        counts = []
        for text in (once, once * 3):
            asked.candidates = asked.questions = 0
            scanned(patterns, text, 3 * SIZE)
            counts.append(asked.candidates + asked.questions)
        assert counts[1] <= 3.6 * counts[0] + 300, kind


@pytest.mark.parametrize("name", LEFT_OUT)
@pytest.mark.parametrize("step", [10, 1 << 20])
def test_g33_three_times_the_characters_that_no_view_shows_are_three_times_the_work(name: str, step: int) -> None:
    """Behind a letter of which it is not known yet what it becomes; all runs are longer than any view's cap allows."""
    counts = []
    for size in (2 * SIZE, 6 * SIZE):
        state, text = Scan(everything()), "a" + (LEFT_OUT[name] * size)[:size]
        for at in range(0, len(text), step):
            state.feed(text[at : at + step])
        counts.append(state.work.done)
        assert state.work.done >= size // 4
    assert counts[1] <= 3.6 * counts[0]


SEPARATE = st.sampled_from(["1 2 3 4 5 6", "99", "12-34-56", "a1b2", "x=", "%41", "..", "AAAA/+B", "(", "7" * 25, "é"])
NUMBERS = st.sampled_from([
    "4111 1111 1111 1111", "4111-1111-1111-1111", "4111111111111111", "030 1234567", "(555) 123-4567", "+49 30 1234567",
    "john.doe@example.com", "jane@example.org", "account 12345678", "AKIAIOSFODNN7TESTKEY",
])  # fmt: skip


@given(
    parts=st.lists(st.tuples(SEPARATE, NUMBERS), min_size=1, max_size=6), between=st.sampled_from([", ", "; ", "\n"])
)
def test_what_a_refused_candidate_skips_holds_nothing(parts: list[tuple[str, str]], between: str) -> None:
    """What is set apart from refused candidates is found as if each place had been asked about."""
    text = between.join(piece for pair in parts for piece in pair)
    for name in SKIPPING:
        one_by_one, skipping = (scanned(each, text) for each in both_ways(name))
        covered = [finding.span for finding in skipping]
        for finding in one_by_one:
            span = finding.span
            assert any(span.start < other.end and other.start < span.end for other in covered), (name, text)
        if name not in LOOSE_ENDS:
            assert [finding.span for finding in one_by_one] == covered


SKIPPING = tuple(name for name, entity in ENTITIES.items() if entity.skip is not None)
LOOSE_ENDS = frozenset({"PHONE", "PHONE_LOOSE"})
"""Which groups a number takes depends on how many digits its candidate has behind them."""


@cache
def both_ways(name: str) -> tuple[PatternSet, PatternSet]:
    return raw_set(ENTITIES[name], skip=False), raw_set(ENTITIES[name])


LED = tuple(name for name, entity in ENTITIES.items() if entity.lead is not None)
WORDS = sorted({word.strip() for words in _WORDS.values() for word in words.split("|")})


def respelled(word: str, way: int) -> str:
    """Return a label as somebody may write it: labels are compared in folded case, with any of three joiners."""
    ways: Sequence[Callable[[str], str]] = (
        str, str.upper, str.title, lambda each: each.replace(" ", "_"), lambda each: each.replace(" ", "-"),
        lambda each: each.replace("ss", "\u00df"), lambda each: each.replace("s", "\u017f").replace("k", "\u212a"),
        lambda each: each.replace("fi", "\ufb01").replace("st", "\ufb06"), lambda each: each + "Number",
    )  # fmt: skip
    return ways[way](word)


LABELS = st.builds(respelled, st.sampled_from(WORDS), st.integers(0, 8))
CODES = st.sampled_from([
    "X1234567", "12345678", "12-34-56", "021000021", "D1234-56789", "1980-02-03", "3 March 1977", "mrn-12345",
    "MRN12345", "_dl-123456", "DL-1234567", "ab12cd34", "12 34 56 78", "99",
])  # fmt: skip
BETWEEN = st.sampled_from([" ", ": ", " is ", " no. ", "-", "\n", ", " * 31, "x" * 60, ". "])


@given(parts=st.lists(st.tuples(LABELS, BETWEEN, CODES, BETWEEN), min_size=1, max_size=6), step=st.integers(1, 80))
def test_what_is_refused_for_want_of_a_lead_would_have_been_refused(
    parts: list[tuple[str, str, str, str]], step: int
) -> None:
    text = "".join(piece for part in parts for piece in part)
    for name in LED:
        asked, led = (scanned(each, text, step) for each in led_or_not(name))
        assert asked == led, (name, text)


@cache
def led_or_not(name: str) -> tuple[PatternSet, PatternSet]:
    return raw_set(ENTITIES[name], lead=False), raw_set(ENTITIES[name])


def test_entities_that_a_word_announces_have_leads() -> None:
    assert {"BANK_ACCOUNT", "SORT_CODE", "PASSPORT", "DRIVER_LICENSE", "DATE_OF_BIRTH"} <= set(LED)


def test_some_entities_skip() -> None:
    assert {"AWS_ACCESS_KEY", "CREDIT_CARD", "PHONE", "EMAIL"} <= set(SKIPPING)


@given(regex=bounded_regexes, text=texts)
def test_an_opening_matches_from_the_same_places(regex: str, text: str) -> None:
    tree = parse(regex)
    patterns = PatternSet([Pattern(signal=0, name="it", regex=regex)])
    member = patterns.tables["raw"].members[0]
    for at in range(len(text)):
        assert (member.regex.match(text, at) is None) == (member.gate.match(text, at) is None), render(opening(tree))


@pytest.mark.parametrize("kind", sorted(common(10)))
@pytest.mark.parametrize("step", [1, 7, 400])
def test_g33_all_patterns_at_once_find_the_same_however_the_text_is_cut(kind: str, step: int) -> None:
    text = common(800)[kind] + " and 4111 1111 1111 1111 or jane@example.org."
    assert scanned(everything(), text, step) == scanned(everything(), text, len(text))


@lru_cache(maxsize=1)
def everything() -> PatternSet:
    return PatternSet([found_by(number, entity_signal(name)) for number, name in enumerate(ENTITIES)])
