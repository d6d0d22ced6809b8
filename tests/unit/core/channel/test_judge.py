"""One channel under the policy, without the wire: what is decided where, what waits, what failures mean."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from checkstream.core.channel.brief import Brief, FailMode
from checkstream.core.channel.checks import EVERYTHING, Check, HoldSettings
from checkstream.core.channel.judge import Judge, Ruling
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.vm import exchange_facts
from checkstream.core.terms import Channel, Span, Stage, Verdict
from tests.playbook import digest

LABELS = (ClassifierLabel("toy.alpha"), ClassifierLabel("other.beta"))
HEAD = "pack: {name: p, version: 1.0.0}\npolicies:\n"
SETTINGS = HoldSettings(tokens=0, calm_tokens=0, check_every=2, window=4)
Scores = Callable[[str], dict[str, float] | None]


def quiet(_: str) -> dict[str, float] | None:
    return {"toy.alpha": 0.1, "other.beta": 0.1}


def loud(_: str) -> dict[str, float] | None:
    return {"toy.alpha": 0.9, "other.beta": 0.9}


class Bench:
    """A judge of `content` with all its followers, and what it came to."""

    def __init__(self, *rules: str, scores: Scores = quiet, fail_mode: FailMode = "closed") -> None:
        written = "".join(f"  - {{name: r, id: R-{number}, {rule}}}\n" for number, rule in enumerate(rules))
        program = compile_sources([("p.yaml", HEAD + written)], LABELS)
        self.degraded: list[str] = []
        exchange, _ = exchange_facts(program, {}, {"model": "m"}, who=("c", "u"), fail_mode=fail_mode)
        self.judge = Judge(
            Channel("content"),
            Stage.MIDSTREAM,
            Brief(
                program=program,
                settings=SETTINGS,
                fail_mode=fail_mode,
                exchange=exchange,
                digest=digest,
                degrade=self.degraded.append,
            ),
        )
        self.judge.follow(Stage.MIDSTREAM)
        self.judge.follow(Stage.EGRESS)
        self.scores = scores
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
            scores = self.scores(judge.holdback.text(check.window))
            asked = {name: score for name, score in (scores or {}).items() if name.partition(".")[0] in judge.asked}
            check.scores, check.failed = (asked, None) if scores is not None else (None, "deadline")

    @property
    def verdicts(self) -> list[tuple[str, tuple[Span, ...]]]:
        return [(v.rule_id, v.spans) for v in self.all_verdicts]

    @property
    def all_verdicts(self) -> list[Verdict]:
        return [verdict for ruling in self.rulings for verdict in ruling.outcome.verdicts]

    @property
    def releasable(self) -> int:
        return self.judge.holdback.releasable


PHRASE = "stage: midstream, phrases: [zero risk], "
CHECKED = PHRASE + "conditions: ['scores.alpha > 0.5'], actions: [{type: redact}]"


def test_a_finding_without_conditions_is_decided_where_it_stands() -> None:
    bench = Bench(PHRASE + "actions: [{type: redact}]").feed("It has zero risk. ")
    assert bench.verdicts == [("R-0", (Span(7, 16),))]
    assert bench.releasable == 18


def test_g04_what_waits_for_scores_is_kept_until_a_check_covers_it() -> None:
    bench = Bench(CHECKED, scores=loud)
    checks = bench.judge.feed("It has zero risk for all of us today ")
    covered = [check for check in checks if check.position < 16]
    bench.score(bench.judge, covered)
    bench.rulings += bench.judge.advance()
    assert bench.releasable <= 7
    assert bench.verdicts == []
    bench.answer([check for check in checks if check not in covered])
    assert bench.verdicts == [("R-0", (Span(7, 16),))]
    assert bench.judge.holdback.render(0, 37) == "It has [REDACTED] for all of us today "


def test_scores_that_say_no_let_the_text_go() -> None:
    bench = Bench(CHECKED, scores=quiet).feed("It has zero risk for all of us today ").end()
    assert bench.verdicts == []
    assert bench.judge.complete
    assert bench.judge.holdback.fence == EVERYTHING


@pytest.mark.parametrize(("own", "fires"), [("closed", True), ("open", False)])
def test_a_score_that_never_comes_leaves_the_fail_mode_to_decide(own: str, *, fires: bool) -> None:
    # The label is there, but a failed check has no score of it.
    rule = PHRASE + f"fail_mode: {own}, conditions: ['scores.alpha > 0.5'], actions: [{{type: redact}}]"
    bench = Bench(rule, scores=lambda _: None).feed("It has zero risk now ").end()
    assert all(ruling.halt is None for ruling in bench.rulings)
    assert bench.verdicts == ([("R-0", (Span(7, 16),))] if fires else [])
    assert bench.judge.holdback.fence == EVERYTHING


def test_an_undecided_rule_is_noted_and_its_verdict_says_so() -> None:
    bench = Bench(PHRASE + "conditions: ['context.age > 3'], actions: [{type: redact}]").feed("zero risk ").end()
    (verdict,) = bench.all_verdicts
    assert verdict.undecided
    assert bench.degraded == ["rule_undecided:R-0"]


def test_an_undecided_exception_excepts_nothing() -> None:
    bench = Bench(
        PHRASE + "actions: [{type: redact}]",
        PHRASE + "priority: 9, conditions: ['context.age > 3'], actions: [{type: allow}]",
    ).feed("zero risk ")
    assert bench.verdicts == [("R-0", (Span(0, 9),))]
    assert bench.all_verdicts[0].excepted_by is None


def test_counts_are_those_of_what_was_found_so_far() -> None:
    rule = "stage: midstream, entities: [EMAIL], conditions: ['findings.EMAIL >= 2'], actions: [{type: redact}]"
    bench = Bench(rule).feed("a@b.io, c@d.io, e@f.io. ").end()
    assert bench.verdicts == [("R-0", (Span(8, 14),)), ("R-0", (Span(16, 22),))]


ABSENT = "triggers: {all: [{phrases: [zero risk]}, {not: {entities: [EMAIL]}}]}"


@pytest.mark.parametrize(("text", "fires"), [("zero risk. ", True), ("zero risk, a@b.io ", False), ("a@b.io ", False)])
def test_what_asks_for_absence_is_decided_at_the_end(text: str, *, fires: bool) -> None:
    bench = Bench(f"stage: egress, {ABSENT}, actions: [{{type: log_event}}]").feed(text)
    assert bench.verdicts == []
    bench.end()
    assert [rule for rule, _ in bench.verdicts] == (["R-0"] if fires else [])


def test_a_rule_without_triggers_is_decided_once_at_the_end() -> None:
    bench = Bench(
        "stage: egress, conditions: ['findings.EMAIL == 1 && stream.tokens > 2'], actions: [{type: log_event}]",
        "stage: egress, entities: [EMAIL], actions: [{type: log_event}]",
    ).feed("Write to a@b.io today. ")
    assert bench.verdicts == []
    bench.end()
    assert sorted(bench.verdicts) == [("R-0", ()), ("R-1", (Span(9, 15),))]


def test_a_rule_that_only_records_fires_where_its_score_rises() -> None:
    rule = "stage: midstream, classifiers: [{name: alpha, threshold: 0.5}], actions: [{type: log_event}]"

    def by_word(text: str) -> dict[str, float] | None:
        return loud(text) if "idiot" in text else quiet(text)

    bench = Bench(rule, scores=by_word).feed("a b c idiot d e f g h i j k l m n idiot o p ").end()
    assert [rule for rule, _ in bench.verdicts] == ["R-0", "R-0"]


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
def test_g09_a_score_that_is_none_is_a_failure(value: float) -> None:
    rule = "stage: midstream, classifiers: [{name: alpha, threshold: 0.5}], actions: [{type: redact}]"
    bench = Bench(rule, scores=lambda _: {"toy.alpha": value}).feed("one two three ").end()
    assert any(ruling.failed is not None for ruling in bench.rulings)
    assert bench.releasable == 0


def test_a_rule_that_is_shadowed_here_is_recorded_and_changes_nothing() -> None:
    bench = Bench(PHRASE + "enforce_share: 0, actions: [{type: stop}]").feed("It has zero risk now ").end()
    assert [verdict.mode for verdict in bench.all_verdicts] == ["shadow"]
    assert bench.judge.holdback.render(0, 21) == "It has zero risk now "


def test_many_things_that_wait_are_all_decided() -> None:
    bench = Bench(CHECKED, scores=loud)
    bench.feed("zero risk " * 1000).end()
    assert len(bench.verdicts) == 1000
    assert bench.judge.holdback.fence == EVERYTHING
