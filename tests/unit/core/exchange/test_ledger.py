"""What the record keeps of an exchange that is made of findings: bounded, and nothing that counts is left out."""

from __future__ import annotations

import msgspec

from tests.guarded import CHAT, DONE, ends, plan, request, says
from tests.playbook import play

RULES = """\
  - {name: m, id: PII-1, stage: [ingress, midstream], entities: [EMAIL], actions: [{type: redact}]}
  - {name: a, id: EXC-1, stage: [midstream], phrases: [ada], priority: 5, actions: [{type: allow}]}
  - {name: s, id: STOP-1, stage: [midstream], phrases: [zero risk], actions: [{type: stop}]}
"""


def test_g37_a_record_is_bounded_and_still_says_how_often_each_rule_fired() -> None:
    mails = "a@b.co " * 300
    played = play(CHAT, plan(RULES), request(mails), [says(mails), says("zero risk"), ends(), DONE])
    record = played.record
    assert record is not None
    assert record.fired == {"PII-1": 600, "STOP-1": 1}
    assert {verdict.rule_id for verdict in record.verdicts} == {"PII-1", "STOP-1"}
    assert record.action == "stop"
    assert "verdicts_not_listed" in record.degradations
    assert "findings_not_listed" in record.degradations
    assert len(msgspec.json.encode(record)) < 32_000


def test_a_record_of_few_verdicts_lists_them_all() -> None:
    played = play(CHAT, plan(RULES), request(), [says("a@b.co and c@d.org"), ends(), DONE])
    assert played.record is not None
    assert len(played.record.verdicts) == 2
    assert played.record.fired == {}
