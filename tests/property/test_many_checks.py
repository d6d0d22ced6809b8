"""G33: no step is long where a text has many windows that classifiers are to be asked about, however it ends."""

from __future__ import annotations

import json
from functools import partial

import pytest

from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from tests.watchdog import Answer, answered, guard_of, long_steps, steps

LABELS = (ClassifierLabel("safety.toxicity", 0.5),)
RULES = """
pack: {name: many, version: 1.0.0}
policies:
  - name: harm
    id: MANY-001
    stage: [midstream]
    classifiers: [{name: safety.toxicity}]
    actions: [{type: stop}]
  - name: word
    id: MANY-002
    stage: [midstream]
    phrases: [bluebird]
    actions: [{type: stop}]
"""
WORDS = 150_000
"""Of an answer: a check for each six."""
_PLAN = Plan(program=compile_sources([("many.yaml", RULES)], LABELS))


def failing(asked: do.Score) -> on.ScoringFailed:
    return on.ScoringFailed(asked.ticket, "garbage")


def scoring(high: float, asked: do.Score) -> on.Scored:
    return on.Scored(asked.ticket, {"safety.toxicity": high})


@pytest.mark.parametrize(
    ("how", "text"),
    [
        (failing, "word " * WORDS),
        (partial(scoring, 0.9), "word " * WORDS),
        (partial(scoring, 0.0), "bluebird " + "word " * WORDS),
    ],
    ids=["garbage", "a stop by a score", "a stop by a phrase"],
)
def test_g33_no_step_is_long_where_an_answer_with_many_checks_ends(how: Answer, text: str) -> None:
    body = json.dumps({"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]}).encode()
    events = answered(b'{"model":"m","messages":[{"role":"user","content":"hi"}]}', body, streaming=False)
    assert long_steps(lambda: steps(guard_of(SURFACES["openai.chat"], _PLAN), events, how)) == []


OTHERS = """
pack: {name: others, version: 1.0.0}
policies:
  - name: care
    id: MANY-003
    stage: [egress]
    classifiers: [{name: safety.toxicity}]
    actions: [{type: inject_disclaimer, text: Beware., position: end}]
"""


def busy(asked: do.Score) -> on.ScoringFailed:
    return on.ScoringFailed(asked.ticket, "overload")


@pytest.mark.parametrize("rules", [RULES, OTHERS], ids=["a stop", "a disclaimer"])
def test_g33_no_step_is_long_where_a_stream_with_many_checks_has_waited_for_too_long(rules: str) -> None:
    body = {"choices": [{"index": 0, "delta": {"content": "word " * WORDS}}]}
    plan = Plan(program=compile_sources([("many.yaml", rules)], LABELS))
    asked = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
    events = answered(asked, b"data: " + json.dumps(body).encode() + b"\n\n", streaming=True)
    assert long_steps(lambda: steps(guard_of(SURFACES["openai.chat"], plan), events, busy)) == []
