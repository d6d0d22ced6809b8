"""A classifier that fails and is read by conditions alone: the rule is undecided where it was triggered (G23)."""

from __future__ import annotations

import json

import pytest

from checkstream.core.channel.brief import FailMode
from checkstream.core.events import ScoringFailed
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from tests.playbook import Played, play

RULES = """pack: {name: p, version: 1.0.0}
policies:
  - name: r
    id: R-1
    stage: midstream
    entities: [EMAIL]
    conditions: [scores.toy.risk > 0.5]
    actions: [{type: redact}]
"""


def played(fail_mode: FailMode, text: str) -> Played:
    program = compile_sources([("p.yaml", RULES)], [ClassifierLabel("toy.risk", 0.5)])
    message = {"role": "assistant", "content": text}
    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    request = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    return play(
        SURFACES["openai.chat"],
        Plan(program=program, fail_mode=fail_mode),
        request,
        [body],
        streaming=False,
        scorer=lambda score: ScoringFailed(score.ticket, "crash"),
    )


@pytest.mark.parametrize(
    ("fail_mode", "text", "expected"),
    [
        ("closed", "Nothing to see here.", "Nothing to see here."),
        ("closed", "Write to joe@example.com today.", "Write to [EMAIL] today."),
        ("open", "Write to joe@example.com today.", "Write to joe@example.com today."),
    ],
)
def test_g23_a_failed_score_that_only_a_condition_reads_meets_the_fail_mode_where_the_rule_was_triggered(
    fail_mode: FailMode, text: str, expected: str
) -> None:
    run = played(fail_mode, text)
    assert run.reply is not None
    assert run.record is not None
    assert json.loads(run.reply.body)["choices"][0]["message"]["content"] == expected
    assert "toy:crash" in run.record.degradations
    assert ("rule_undecided:R-1" in run.record.degradations) == ("@" in text)
