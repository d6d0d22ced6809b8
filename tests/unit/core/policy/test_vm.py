from __future__ import annotations

import pytest

from checkstream.core.policy import vm
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.terms import Facts, Stage

TEXT = """pack: {name: p, version: 1.0.0}
policies:
  - name: a
    id: ANY
    stage: midstream
    phrases: [zero risk]
    classifiers: [{name: toy.alpha, threshold: 0.5}]
    actions: [{type: redact}]
  - name: b
    id: ALL
    stage: midstream
    match: all
    phrases: [zero risk]
    classifiers: [{name: toy.alpha, threshold: 0.8}]
    actions: [{type: stop}]
  - {name: c, id: ELSEWHERE, stage: ingress, phrases: [zero risk], actions: [{type: redact}]}
"""
PROGRAM = compile_sources([("p.yaml", TEXT)], [ClassifierLabel("toy.alpha")])
SCOPE = PROGRAM.scope(Stage.MIDSTREAM, "content")
PHRASE, SCORE = 0, 1


def fired(signal: int, *, seen: bool, score: float | None) -> list[str]:
    facts = Facts(stage=Stage.MIDSTREAM, channel="content", seen={PHRASE} if seen else set())
    if score is not None:
        facts.scores[SCORE] = score
    return [PROGRAM.rules[index].id for index in vm.run(PROGRAM, SCOPE, facts, signal)]


@pytest.mark.parametrize(
    ("signal", "seen", "score", "rules"),
    [
        (PHRASE, True, None, ["ANY"]),
        (PHRASE, True, 0.9, ["ANY", "ALL"]),
        (SCORE, True, 0.9, ["ANY", "ALL"]),
        (SCORE, True, 0.8, ["ANY", "ALL"]),
        (SCORE, True, 0.5, ["ANY"]),
        (SCORE, False, 0.9, ["ANY"]),
        (SCORE, True, 0.1, []),  # the phrase fired the rule when it came: a low score is no second firing
        (SCORE, True, None, []),  # absent is not zero, and not enough
        (PHRASE, False, 0.9, []),
    ],
)
def test_what_fires(signal: int, seen: bool, score: float | None, rules: list[str]) -> None:
    assert fired(signal, seen=seen, score=score) == rules


def test_a_signal_of_no_rule_fires_nothing() -> None:
    facts = Facts(stage=Stage.MIDSTREAM, channel="content", seen={99})
    assert vm.run(PROGRAM, SCOPE, facts, 99) == ()


def test_facts_are_not_changed() -> None:
    facts = Facts(stage=Stage.MIDSTREAM, channel="content", seen={PHRASE}, scores={SCORE: 0.9})
    vm.run(PROGRAM, SCOPE, facts, PHRASE)
    assert (facts.seen, facts.scores) == ({PHRASE}, {SCORE: 0.9})


def test_garbage_scores_fire_nothing() -> None:
    assert fired(SCORE, seen=True, score=float("nan")) == []
