"""The risk of an answer: what makes it out, how it fades, what it holds back, and how it ends an answer early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from checkstream.core.channel.brief import Brief
from checkstream.core.channel.checks import HoldSettings
from checkstream.core.channel.judge import Judge, Ruling
from checkstream.core.channel.reading import Risks
from checkstream.core.match.tokens import TokenGrid
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.vm import exchange_facts
from checkstream.core.terms import Channel, Stage
from tests.playbook import digest

LABELS = (ClassifierLabel("safety.toxicity"), ClassifierLabel("safety.hate"), ClassifierLabel("domain.medical"))
HEAD = "pack: {name: p, version: 1.0.0}\npolicies:\n"
PAGE = (Path(__file__).parents[4] / "policies" / "LANGUAGE.md").read_text(encoding="utf-8")
STOP = "classifiers: [{name: toxicity, threshold: 0.95}], actions: [{type: stop}]"
RISING = (
    "classifiers: [{name: toxicity, threshold: 0}], "
    "conditions: [stream.risk > 0.45 && stream.trend > 0.05 && stream.tokens > 16], actions: [{type: stop}]"
)
MEDICAL = "classifiers: [{name: medical, threshold: 0.5}], actions: [{type: require_disclaimer, text: See a doctor.}]"
FINNISH = "Talo ei ole suuri, mutta lapset ovat iloisia ja koira on myös siellä, vaikka kukaan ei tiennyt mitään. "
ENGLISH = "The house is not large, but the children are happy and the dog is there too, though nobody knew it. "


def judge(*rules: str, settings: HoldSettings | None = None) -> Judge:
    written = "".join(f"  - {{name: r, id: R-{at}, stage: midstream, {rule}}}\n" for at, rule in enumerate(rules))
    program = compile_sources([("p.yaml", HEAD + written)], LABELS)
    exchange, _ = exchange_facts(program, {}, {"model": "m"}, who=("c", "u"), fail_mode="closed")
    return Judge(
        Channel("content"),
        Stage.MIDSTREAM,
        Brief(
            program=program,
            settings=settings or HoldSettings(),
            fail_mode="closed",
            exchange=exchange,
            digest=digest,
            degrade=lambda _: None,
        ),
    )


def played(made: Judge, scores: Sequence[Mapping[str, float]], text: str = "word " * 8) -> list[Ruling]:
    """Feed a text for each of some scores, and answer its checks with them."""
    rulings: list[Ruling] = []
    for known in scores:
        for check in made.feed(text):
            check.scores = {"safety.toxicity": 0.0, "safety.hate": 0.0, "domain.medical": 0.0} | dict(known)
        rulings += made.advance()
    return rulings


def held(made: Judge) -> int:
    """Return how many words wait."""
    holdback = made.holdback
    return round((holdback.received - holdback.releasable) / len("word "))


def test_the_risk_is_the_highest_score_and_fades_by_a_fifth_with_eight_tokens() -> None:
    assert HoldSettings(check_every=8).left == pytest.approx(0.8)
    risks = Risks(HoldSettings(check_every=8).left)
    for position, scores in enumerate(([0.5, 0.2], [0.1], [0.9], []), 1):
        risks.take(position * 10, max(scores, default=0.0))
    assert risks.at(9) == (0.0, 0.0)
    assert risks.at(10) == (0.5, 0.5)
    assert risks.at(25) == pytest.approx((0.4, -0.1))
    assert risks.at(30) == pytest.approx((0.9, 0.5))
    assert risks.latest == pytest.approx((0.72, -0.18))


@pytest.mark.parametrize(("risk", "tokens"), [(0.0, 0), (0.3, 0), (0.5, 8), (0.7, 16), (1.0, 16)])
def test_the_hold_grows_with_the_risk(risk: float, tokens: int) -> None:
    assert HoldSettings().hold(risk) == pytest.approx(tokens, abs=1)


@pytest.mark.parametrize(("language", "most", "calm"), [("fi", 24, 0), ("tr", 1, 0), ("en", 16, 0), ("und", 16, 0)])
def test_each_language_has_its_hold(language: str, most: int, calm: int) -> None:
    settings = HoldSettings(by_language={"fi": 24, "tr": 1})
    assert (settings.hold(1.0, language), settings.hold(0.0, language)) == (most, calm)
    assert settings.most_tokens == 24
    assert settings.hold(0.0, language, entities=True) == min(3, most)


def test_what_waits_for_an_entity_fits_into_the_window() -> None:
    assert HoldSettings().entity_tokens == 16
    assert HoldSettings(window=30).entity_tokens == 8
    assert HoldSettings(window=16).entity_tokens == 0
    assert HoldSettings(by_language={"fi": 50}).entity_tokens == 8


def test_while_the_risk_is_high_more_text_waits() -> None:
    calm, risky = judge(STOP), judge(STOP)
    played(calm, [{}] * 3)
    played(risky, [{}, {"safety.toxicity": 0.9}, {"safety.toxicity": 0.9}])
    assert (held(calm), held(risky)) == (0, 16)
    played(risky, [{}] * 6)
    assert held(risky) == 0


def test_scores_that_no_rule_acts_against_are_no_risk() -> None:
    made = judge(STOP, MEDICAL)
    played(made, [{"domain.medical": 0.99, "safety.hate": 0.99}] * 3)
    assert held(made) == 0
    read = judge(STOP, "phrases: [word], conditions: [scores.hate > 2], actions: [{type: redact}]")
    played(read, [{"safety.hate": 0.99}] * 3)
    assert held(read) > 0


def test_rising_risk_ends_an_answer_early() -> None:
    assert RISING.partition("conditions: ")[2].partition(", actions")[0] in PAGE
    rising = [{"safety.toxicity": value} for value in (0.1, 0.2, 0.35, 0.5)]
    halts = [ruling.halt for ruling in played(judge(RISING), rising) if ruling.halt is not None]
    assert [halt.rule.id for halt in halts] == ["R-0"]
    steady = [{"safety.toxicity": 0.5}] * 6
    assert not [ruling for ruling in played(judge(RISING), steady) if ruling.halt is not None]
    calm = [{"safety.toxicity": value} for value in (0.1, 0.2, 0.3, 0.4)]
    assert not [ruling for ruling in played(judge(RISING), calm) if ruling.halt is not None]


@pytest.mark.parametrize(("text", "words"), [(FINNISH, 9), (ENGLISH, 3)])
def test_g03_the_hold_of_a_language_is_the_same_however_the_text_is_cut(text: str, words: int) -> None:
    settings = HoldSettings(tokens=3, calm_tokens=3, by_language={"fi": 9})

    def released(pieces: Sequence[str]) -> int:
        made = judge(STOP, settings=settings)
        checks = [check for piece in pieces for check in made.feed(piece)]
        for check in checks:
            check.scores = {"safety.toxicity": 0.9}
        made.advance()
        return made.holdback.releasable

    starts = [start for start, _ in TokenGrid().feed(text * 3)]
    checked = len(starts) // settings.check_every * settings.check_every
    assert released([text * 3]) == released(list(text * 3)) == starts[checked - words]
