"""What is known of an answer's tokens and risk is forgotten behind the text that is kept: no decision shows it."""

from __future__ import annotations

import math
from collections import deque
from unittest.mock import patch

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from checkstream.core.channel.actions import Firing
from checkstream.core.channel.brief import Brief
from checkstream.core.channel.checks import Check, HoldSettings
from checkstream.core.channel.decider import Decider
from checkstream.core.channel.judge import Judge
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Entry
from checkstream.core.policy.vm import exchange_facts
from checkstream.core.terms import Channel, Recited, Span, Stage, Verdict
from tests.playbook import digest

MORE = " and then more of the same text follows, and more of it, until it has come to quite a length"
RULES = """
pack: {name: law, version: 1.0.0}
policies:
  - name: held
    id: HELD
    stage: midstream
    phrases: [zero risk]
    conditions: ["stream.risk > 0.4 && stream.tokens > 150"]
    actions: [{type: redact}]
  - name: waiting
    id: CHECKED
    stage: midstream
    entities: [EMAIL]
    conditions: ["scores.alpha > 0.5 && stream.tokens > 90"]
    actions: [{type: redact}]
  - {name: acts, id: ACTS, stage: midstream, classifiers: [{name: alpha, threshold: 0.97}], actions: [{type: redact}]}
  - name: recorded
    id: RECORDED
    stage: [midstream, egress]
    phrases: [zero risk]
    conditions: ["stream.risk > 0.3 || stream.trend < -0.1", "stream.tokens > 40"]
    actions: [{type: log_event}]
  - name: recorded-longer
    id: LONGER
    stage: [midstream, egress]
    patterns: [{name: longer, max_chars: 1000, regex: "zero risk(MORE){0,3}"}]
    conditions: ["stream.risk > 0.3 || stream.trend < -0.1", "stream.tokens > 40"]
    actions: [{type: log_event}]
  - name: recorded-later
    id: LATER
    stage: [midstream, egress]
    triggers: {all: [{phrases: [zero risk]}, {not: {phrases: [no such words]}}]}
    conditions: ["stream.risk < 0.5 && stream.tokens < 200 || stream.language == 'de'"]
    actions: [{type: log_event}]
""".replace("MORE", MORE)
PROGRAM = compile_sources([("law.yaml", RULES)], (ClassifierLabel("toy.alpha"),))
EXCHANGE, _ = exchange_facts(PROGRAM, {}, {"model": "m"}, who=("c", "u"), fail_mode="closed")
PIECES = st.sampled_from(
    ["zero risk ", "zero", " risk", "a@b.io ", "the words of an answer. ", "und das ist nicht ", "x" * 90,
     "これは日本語",
     f"{MORE}. " * 4, f"zero risk{MORE * 2} and then more"]
)  # fmt: skip


def made(prelude: str) -> Judge:
    brief = Brief(
        program=PROGRAM,
        settings=HoldSettings(window=24),
        fail_mode="closed",
        exchange=EXCHANGE,
        digest=digest,
        degrade=lambda _: None,
    )
    judge = Judge(Channel("content"), Stage.MIDSTREAM, brief, prelude=prelude)
    judge.follow(Stage.MIDSTREAM, said=prelude)
    judge.follow(Stage.EGRESS, said=prelude)
    assert len(judge.followers) == 2
    return judge


def decided(pieces: list[str], late: list[int], scores: list[float], prelude: str) -> tuple[list[Verdict], Judge]:
    """Return what is decided of a text whose checks are answered some pieces late."""
    judge = made(prelude)
    verdicts: list[Verdict] = []
    asked: deque[tuple[float, Judge, Check]] = deque()

    def advance(*, now: float) -> None:
        while True:
            for ruling in judge.advance():
                verdicts.extend(ruling.outcome.verdicts)
                ask(ruling.judge, ruling.checks, now)
            judge.holdback.release(judge.holdback.releasable)
            if not asked or asked[0][0] > now:
                return
            _, _, check = asked.popleft()
            check.scores = {"toy.alpha": scores[check.position % len(scores)]}

    def ask(whose: Judge, checks: tuple[Check, ...] | list[Check], now: float) -> None:
        asked.extend((now + late[check.position % len(late)], whose, check) for check in checks)

    for number, piece in enumerate(pieces):
        ask(judge, judge.feed(piece), number)
        advance(now=number)
    ask(judge, judge.holdback.end(), len(pieces))
    advance(now=math.inf)
    assert judge.complete
    return verdicts, judge


@given(
    st.lists(PIECES, min_size=8, max_size=40),
    st.lists(st.integers(0, 4), min_size=1, max_size=7),
    st.lists(st.floats(0, 1), min_size=1, max_size=7),
    st.sampled_from(["", "what was said before, at zero risk. " * 3]),
)
def test_nothing_is_decided_otherwise_than_if_nothing_were_forgotten(
    pieces: list[str], late: list[int], scores: list[float], prelude: str
) -> None:
    known: list[tuple[object, ...]] = []
    decide = Decider._decide

    def noted(
        self: Decider, entry: Entry, span: Span, confidence: float = 1.0, recited: Recited | None = None
    ) -> Firing | None:
        stream = self._facts.stream
        known.append((entry.rule, span, stream.tokens, stream.risk, stream.trend, stream.language))
        return decide(self, entry, span, confidence, recited)

    with patch.object(Decider, "_decide", noted):
        found, _ = decided(pieces, late, scores, prelude)
        event(f"{min(len(known) // 10, 5)}0 decisions or more")
        forgetful, known = known, []
        with patch.object(Decider, "forget", lambda *_: None):
            assert decided(pieces, late, scores, prelude)[0] == found
    assert forgetful == known


@pytest.mark.parametrize("score", [0.1, 0.9])
def test_what_is_known_of_a_long_answer_does_not_grow_with_it(score: float) -> None:
    words = 10_000
    verdicts, judge = decided(["word "] * words + ["zero risk "], [2], [score], "")
    assert {verdict.rule_id for verdict in verdicts} == ({"RECORDED", "LONGER", "HELD"} if score > 0.3 else set())
    deciders = [judge.decider, *(follower.decider for follower in judge.followers)]
    readings = [each._reading for each in deciders if each._reading is not None]
    assert [reading.tokens(judge.holdback.received) for reading in readings] == [words + 2] * 3
    assert max(len(reading._starts) for reading in readings) < 300
    assert max(len(each.risks._positions) for each in deciders) < 300
