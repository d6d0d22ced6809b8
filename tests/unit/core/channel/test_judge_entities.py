"""What models find in one channel: what is decided when, what waits, what others have found over the same text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.channel.brief import Brief, FailMode
from checkstream.core.channel.checks import Check, HoldSettings
from checkstream.core.channel.judge import Judge, Ruling
from checkstream.core.events import EntityFound
from checkstream.core.policy.classifiers import ClassifierLabel, ModelEntity
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.vm import exchange_facts
from checkstream.core.terms import Channel, Span, Stage, Verdict
from tests.playbook import digest

KNOWN = (
    ClassifierLabel("toy.alpha"),
    ModelEntity("PERSON", "ner", 0.5),
    ModelEntity("LOCATION", "ner", 0.5),
    ModelEntity("DATE_OF_BIRTH", "ner", 0.5),
)
HEAD = "pack: {name: p, version: 1.0.0}\npolicies:\n"
SETTINGS = HoldSettings(tokens=2, calm_tokens=2, check_every=2, window=12)
WIDE = HoldSettings(tokens=8, calm_tokens=8, check_every=2, window=40)
MIDSTREAM = "stage: midstream, "
REDACT = MIDSTREAM + "entities: [PERSON], actions: [{type: redact}]"
EMAILS = MIDSTREAM + "entities: [EMAIL], actions: [{type: redact}]"
Finder = Callable[[str], Sequence[tuple[str, int, int]] | None]


def names(text: str) -> list[tuple[str, int, int]]:
    """Runs of capitalised words."""
    return [("PERSON", *found.span()) for found in re.finditer(r"[A-Z][a-z]+(?: [A-Z][a-z]+)*", text)]


def literally(**known: str) -> Finder:
    """Find these texts, by entity."""

    def find(text: str) -> list[tuple[str, int, int]]:
        return [
            (name, found.start(), found.end())
            for name, literal in known.items()
            for found in re.finditer(re.escape(literal), text)
        ]

    return find


class Bench:
    """A judge of `content`, the answers that it gets, and what it came to."""

    def __init__(
        self,
        *rules: str,
        find: Finder = names,
        score: float = 0.1,
        sure: float = 0.9,
        settings: HoldSettings = SETTINGS,
        fail_mode: FailMode = "closed",
    ) -> None:
        written = "".join(f"  - {{name: r, id: R-{number}, {rule}}}\n" for number, rule in enumerate(rules))
        program = compile_sources([("p.yaml", HEAD + written)], KNOWN)
        exchange, _ = exchange_facts(program, {}, {"model": "m"}, who=("c", "u"), fail_mode=fail_mode)
        self.judge = Judge(
            Channel("content"),
            Stage.MIDSTREAM,
            Brief(
                program=program,
                settings=settings,
                fail_mode=fail_mode,
                exchange=exchange,
                digest=digest,
                degrade=lambda _: None,
            ),
        )
        self.judge.follow(Stage.MIDSTREAM)
        self.find, self.value, self.sure = find, score, sure
        self.rulings: list[Ruling] = []

    def feed(self, text: str) -> Bench:
        self.answer(self.judge.feed(text))
        return self

    def end(self) -> Bench:
        self.answer(self.judge.holdback.end())
        return self

    def answer(self, checks: list[Check]) -> None:
        """Answer checks and those that follow from them."""
        self.score(self.judge, checks)
        while rulings := self.judge.advance():
            self.rulings += rulings
            for ruling in rulings:
                self.score(ruling.judge, list(ruling.checks))

    def score(self, judge: Judge, checks: list[Check]) -> None:
        for check in checks:
            found = self.find(judge.holdback.text(check.window))
            if found is None:
                check.failed = "deadline"
                continue
            check.scores = {"toy.alpha": self.value}
            check.entities = tuple(EntityFound(name, start, end, self.sure) for name, start, end in found)

    @property
    def verdicts(self) -> list[Verdict]:
        return [verdict for ruling in self.rulings for verdict in ruling.outcome.verdicts]

    @property
    def spans(self) -> list[tuple[int, int]]:
        return [(span.start, span.end) for verdict in self.verdicts for span in verdict.spans]

    @property
    def sent(self) -> str:
        return self.judge.holdback.render(0, self.judge.holdback.releasable)


def test_what_a_model_finds_is_redacted_and_recorded_at_its_own_place() -> None:
    bench = Bench(REDACT).feed("so it was Mary Ann who had been there too ").end()
    assert bench.sent == "so it was [PERSON] who had been there too "
    (verdict,) = bench.verdicts
    assert (verdict.spans, verdict.triggers, verdict.confidence) == ((Span(10, 18),), ("entity:PERSON",), 0.9)
    (row,) = bench.judge.noted.digests
    assert (row.detector, row.span, row.digest) == ("entity:PERSON", Span(10, 18), digest("Mary Ann"))


def test_g10_a_span_that_many_windows_show_is_reported_once() -> None:
    bench = Bench(REDACT).feed("it was Mary Ann " + "who came and went " * 4).end()
    assert bench.spans == [(7, 15)]


def test_g04_a_span_at_the_end_of_what_was_read_waits_from_its_start() -> None:
    bench = Bench(REDACT).feed("one two three Mary Ann Evans ")
    assert bench.sent == "one two three "
    bench.feed("said so to ")
    assert bench.sent.startswith("one two three [PERSON]")
    bench.end()
    assert bench.spans == [(14, 28)]
    assert bench.sent == "one two three [PERSON] said so to "


def test_what_never_ends_waits_no_longer_than_the_cap() -> None:
    settings = HoldSettings(tokens=2, calm_tokens=2, check_every=2, window=8)
    bench = Bench(REDACT, settings=settings)
    for _ in range(30):
        bench.feed("Mary ")
    holdback = bench.judge.holdback
    assert holdback.received - holdback.cleared <= len("Mary ") * (settings.entity_tokens + 2 + 2 + 1)
    bench.end()
    assert bench.sent.replace("[PERSON]", "").strip() == ""


def test_a_span_changes_until_its_text_is_let_go_of() -> None:
    def find(text: str) -> list[tuple[str, int, int]]:
        found = re.search(r"Paris( Hilton)?", text)
        return [] if found is None else [("PERSON" if found[1] else "LOCATION", *found.span())]

    both = MIDSTREAM + "entities: [PERSON, LOCATION], actions: [{type: redact}]"
    bench = Bench(both, find=find).feed("then Paris Hilton came to see us there ").end()
    assert bench.sent == "then [PERSON] came to see us there "
    assert [verdict.triggers for verdict in bench.verdicts] == [("entity:PERSON",)]


def test_what_is_seen_too_late_is_redacted_as_far_as_it_is_held() -> None:
    def find(text: str) -> list[tuple[str, int, int]]:
        found = re.search(r"New York City Hall Park", text)
        return [] if found is None else [("LOCATION", *found.span())]

    bench = Bench(MIDSTREAM + "entities: [LOCATION], actions: [{type: redact}]", find=find)
    bench.feed("go to New York City Hall Park and then go home ").end()
    assert bench.sent == "go to New York [LOCATION] and then go home "


def test_a_weak_span_does_not_count() -> None:
    assert Bench(REDACT, sure=0.4).feed("it was Mary Ann who came here ").end().spans == []


def test_a_rule_can_stop_before_a_span() -> None:
    bench = Bench(MIDSTREAM + "entities: [PERSON], actions: [{type: stop, message: Stopped.}]")
    bench.feed("it was Mary Ann who came here today ").end()
    (halt,) = (ruling.halt for ruling in bench.rulings if ruling.halt is not None)
    assert (halt.position, halt.message) == (7, "Stopped.")
    assert bench.sent == "it was "


def test_a_log_follows_the_same_spans() -> None:
    bench = Bench(MIDSTREAM + "entities: [PERSON], actions: [{type: log_event}]")
    bench.feed("it was Mary Ann who came here today with Tom ").end()
    assert bench.sent == "it was Mary Ann who came here today with Tom "
    assert bench.spans == [(7, 15), (41, 44)]


def test_conditions_read_how_often_a_model_has_found_something() -> None:
    rule = MIDSTREAM + "entities: [EMAIL], conditions: ['findings.PERSON > 0'], actions: [{type: redact}]"
    assert Bench(rule).feed("write to a@b.io now or later or never ").end().spans == []
    assert Bench(rule).feed("Tom a@b.io now or later or never ").end().spans == [(4, 10)]
    assert Bench(rule).feed("write to a@b.io now or Tom later or never ").end().spans == []


def test_g23_a_model_that_fails_stops_the_text_where_a_rule_needs_it() -> None:
    closed = Bench(REDACT, find=lambda _: None).feed("it was Mary Ann who came ")
    assert closed.sent == ""
    assert any(ruling.failed is not None and ruling.failed.id == "R-0" for ruling in closed.rulings)
    opened = Bench(REDACT, find=lambda _: None, fail_mode="open").feed("it was Mary Ann who came ").end()
    assert opened.sent == "it was Mary Ann who came "


@pytest.mark.parametrize("found", [("PERSON", 0, 10_000), ("OTHER", 3, 10_000)])
def test_g23_a_span_outside_of_its_window_makes_the_answer_unusable(found: tuple[str, int, int]) -> None:
    bench = Bench(REDACT, find=lambda _: [found]).feed("it was Mary Ann who came ")
    assert "ner:garbage" in [reason for ruling in bench.rulings for reason in ruling.degraded]


def test_what_a_failed_check_has_let_go_is_not_edited_later() -> None:
    answers = iter((None, None))
    bench = Bench(REDACT, find=lambda text: next(answers, names(text)), fail_mode="open")
    bench.feed("Mary Ann Evans ").feed("Smith Jones Brown came ").end()
    assert bench.sent.endswith(" came ")
    assert bench.judge.holdback.replacements.within(Span(0, 4)) == [] or bench.sent.startswith("[PERSON]")


# --- beside what others find


def test_a_validated_entity_wins_over_what_a_model_says_of_its_text() -> None:
    rule = MIDSTREAM + "entities: [EMAIL, PERSON], actions: [{type: redact}]"
    text = "write to Tom tom@example.com or come by one day "
    bench = Bench(rule, find=literally(PERSON="Tom tom@example.com"), settings=WIDE).feed(text).end()
    assert bench.sent == "write to [PERSON] [EMAIL] or come by one day "
    inside = Bench(rule, find=literally(PERSON="tom@example")).feed(text).end()
    assert inside.sent == "write to Tom [EMAIL] or come by one day "


def test_the_same_entity_of_both_is_one() -> None:
    rule = MIDSTREAM + "entities: [DATE_OF_BIRTH, ner.DATE_OF_BIRTH], actions: [{type: redact}]"
    text = "she was born on 12 May 1981 in the north "
    exact = Bench(rule, find=literally()).feed(text).end()
    assert "[DATE_OF_BIRTH]" in exact.sent
    both = Bench(rule, find=literally(DATE_OF_BIRTH="on 12 May 1981"), settings=WIDE).feed(text).end()
    assert both.sent == "she was born [DATE_OF_BIRTH] in the north "


def test_of_two_models_spans_the_longer_stands() -> None:
    rule = MIDSTREAM + "entities: [PERSON, LOCATION], actions: [{type: redact}]"
    find = literally(PERSON="John F Kennedy", LOCATION="Kennedy Airport")
    bench = Bench(rule, find=find).feed("to John F Kennedy Airport we went all of us ").end()
    assert bench.sent == "to John F [LOCATION] we went all of us "


def test_a_phrase_over_the_same_text_counts_too() -> None:
    rules = (REDACT, MIDSTREAM + "phrases: [ann], actions: [{type: log_event}]")
    bench = Bench(*rules).feed("it was Mary Ann who came here today ").end()
    assert sorted(verdict.rule_id for verdict in bench.verdicts) == ["R-0", "R-1"]


def test_a_score_that_edits_its_window_decides_what_was_found_in_it() -> None:
    scored = MIDSTREAM + "classifiers: [{name: alpha, threshold: 0.8}], actions: [{type: redact, text: gone}]"
    bench = Bench(REDACT, scored, score=0.9).feed("Mary came ")
    assert {verdict.rule_id for verdict in bench.verdicts} == {"R-0", "R-1"}
    assert "Mary" not in bench.sent


# --- however it is cut

TEXTS = st.lists(
    st.sampled_from(["Mary ", "Ann", "tom ", "and ", ", ", "a@b.io ", "Mary@b.io", ". ", "\n", "x" * 70, "漢字"]),
    max_size=16,
).map("".join)


@given(TEXTS, st.lists(st.integers(0, 400), max_size=20))
def test_g03_g04_no_letter_of_a_name_leaves_and_cuts_change_nothing(text: str, points: list[int]) -> None:
    edges = [0, *sorted({point % (len(text) + 1) for point in points}), len(text)]
    rules = (REDACT, EMAILS)
    whole, many = Bench(*rules).feed(text).end(), Bench(*rules)
    for begin, end in pairwise(edges):
        many.feed(text[begin:end])
        assert not re.search(r"[A-Z][a-z]", many.sent)
    many.end()
    assert many.sent == whole.sent
    assert not re.search(r"[A-Z][a-z]", whole.sent)
    assert sorted(many.spans) == sorted(whole.spans)


@given(TEXTS, st.lists(st.integers(0, 400), max_size=20))
def test_g03_what_is_new_and_what_is_open_in_a_window_does_not_depend_on_the_cut(text: str, points: list[int]) -> None:
    edges = [0, *sorted({point % (len(text) + 1) for point in points}), len(text)]

    def asked(pieces: list[str]) -> list[tuple[int, Span, int, int]]:
        bench = Bench(REDACT)
        checks = [check for piece in pieces for check in bench.judge.feed(piece)]
        checks += bench.judge.holdback.end()
        return [(check.position, check.window, check.fresh, check.open) for check in checks]

    whole = asked([text])
    assert whole == asked([text[begin:end] for begin, end in pairwise(edges)])
    covered = 0
    for position, window, fresh, still_open in whole:
        assert window.start <= still_open <= fresh
        assert fresh == max(window.start, covered)
        covered = position


def test_where_no_model_is_asked_nothing_is_kept_for_one() -> None:
    rules = ("stage: midstream, mode: shadow, entities: [PERSON], actions: [{type: redact}]", EMAILS)
    bench = Bench(*rules)
    assert bench.judge.asked == ()
    assert bench.judge._answers.entities is None
    (follower,) = bench.judge.followers
    assert follower.asked == ("ner",)


@given(TEXTS, st.randoms(use_true_random=False), st.booleans())
def test_g03_when_and_in_which_order_answers_come_changes_nothing(text: str, dice: Random, edits: bool) -> None:
    scored = MIDSTREAM + "classifiers: [{name: alpha, threshold: 0.8}], actions: [{type: redact, text: gone}]"
    rules = (REDACT, EMAILS, scored)
    score = 0.9 if edits else 0.1
    prompt, late = Bench(*rules, score=score).feed(text).end(), Bench(*rules, score=score)
    owed = [(late.judge, check) for check in (*late.judge.feed(text), *late.judge.holdback.end())]
    while owed or late.judge.holdback.releasable < late.judge.holdback.received:
        if owed:
            judge, check = owed.pop(dice.randrange(len(owed)))
            late.score(judge, [check])
        rulings = late.judge.advance()
        assert owed or rulings or late.judge.holdback.settled
        late.rulings += rulings
        owed += [(ruling.judge, each) for ruling in rulings for each in ruling.checks]
        assert not re.search(r"[A-Z][a-z]", late.sent)
    assert (late.sent, sorted(late.spans)) == (prompt.sent, sorted(prompt.spans))


def test_g06_a_span_that_waits_for_its_end_waits_no_longer_than_the_upstream_is_silent() -> None:
    bench = Bench(REDACT).feed("one two three Mary Ann Evans")
    assert bench.sent == "one two "
    bench.answer(bench.judge.holdback.stall())
    assert bench.sent == "one two three [PERSON]"
    bench.feed("on said so and went ").end()
    assert bench.sent == "one two three [PERSON][PERSON] said so and went "
    assert bench.spans == [(14, 28), (28, 30)]
