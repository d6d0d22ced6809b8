"""What the record keeps of an exchange that is made of findings: bounded, and nothing that counts is left out."""

from __future__ import annotations

import json

import msgspec
import pytest

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


SHAPED = """\
  - {name: c, id: COOL-1, stage: [ingress], phrases: [calm], actions: [{type: lower_temp, temperature: 0.1}]}
"""


def test_g37_what_nobody_knows_and_what_is_taken_out_of_a_request_is_named() -> None:
    for said, removed in (("calm", {"new_sampler", "mirostat"}), ("x", set())):
        body = request(said, new_sampler="x", mirostat=2)
        played = play(CHAT, plan(SHAPED), body, [says("a"), ends(), DONE])
        assert played.record is not None
        assert "ingress:new_sampler" in played.record.scanned
        assert set(played.record.removed) == removed


@pytest.mark.parametrize(
    "name",
    [
        "4111111111111111",
        "john@example.org",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "two words",
        "192.168.17.77",
    ],
)
def test_g37_a_member_whose_name_is_a_secret_is_recorded_without_it(name: str) -> None:
    messages = [{"role": "user", "content": "x", name: "y"}]
    body = json.dumps({"model": "m", "stream": True, "messages": messages, name: {"known_to_none": 1}}).encode()
    played = play(CHAT, plan(SHAPED), body, [says("a"), ends(), DONE])
    assert played.record is not None
    named = {place for place in played.record.scanned if "?" in place}
    assert any(place.startswith("ingress:?") for place in named)
    assert any(place.startswith("ingress:messages[].?") for place in named)
    assert name.encode() not in msgspec.json.encode(played.record)


@pytest.mark.parametrize("beside", ["b." * 300, "c" * 2000, "a b." * 60])
def test_g37_of_a_long_name_no_part_of_a_secret_is_recorded_wherever_it_is_cut(beside: str) -> None:
    for at in range(230, 260):
        name = f"{'x' * (at % 7)}.{beside}"[:at] + "sk0live16C7e42F292c6912E7710c838347Ae178B4a" * 40
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}], name: 1}).encode()
        played = play(CHAT, plan(SHAPED), body, [says("a"), ends(), DONE])
        assert played.record is not None
        assert b"sk0" not in msgspec.json.encode(played.record)
