from __future__ import annotations

import msgspec
import pytest

from checkstream.demo.conversations import CONVERSATIONS, Conversation, faults
from checkstream.demo.heard import Heard
from checkstream.demo.scenario import built_in, read_folder

PII = next(conversation for conversation in CONVERSATIONS if conversation.model == "pii")
CLEAN = next(conversation for conversation in CONVERSATIONS if conversation.model == "clean")
INJECTION = next(conversation for conversation in CONVERSATIONS if conversation.refused)
RAW = "her address is maria.lindstrom@example.com, and the card on file is 4242 4242 4242 4242, valid until then"
GUARDED = "her address is [EMAIL], and the card on file is [CREDIT_CARD], valid until then"


def _heard(text: str, *, status: int = 200, finish: str = "stop", rule: str = "") -> Heard:
    events = ({"choices": [{"index": 0, "delta": {"content": text}}]},)
    return Heard(status=status, headers={}, choices=(text,), finishes=(finish,), events=events, rule=rule)


def test_every_conversation_has_its_scenario() -> None:
    known = read_folder(built_in())
    assert {conversation.model for conversation in CONVERSATIONS} <= set(known)


def test_every_scenario_of_a_conversation_says_what_is_to_be_hidden() -> None:
    known = read_folder(built_in())
    for conversation in CONVERSATIONS:
        choices = known[conversation.model].script.choices
        told = [choice.content for choice in choices] + [call.arguments for c in choices for call in c.tool_calls]
        said = "\n".join("".join(text) for text in told if text is not None)
        assert all(secret in said for secret in conversation.hidden), conversation.title


def test_nothing_is_wrong_when_all_came_as_it_must() -> None:
    assert faults(PII, _heard(RAW), _heard(GUARDED), ["PII-001", "PII-002"]) == []
    assert faults(CLEAN, _heard("x"), _heard("x"), []) == []
    refused = msgspec.structs.replace(_heard("", status=400, rule="INJ-001"), choices=(), finishes=(), events=())
    assert faults(INJECTION, _heard("Northwind rate table"), refused, ["INJ-001"]) == []


@pytest.mark.parametrize(
    ("guarded", "fired", "fault"),
    [
        (RAW, ("PII-001", "PII-002"), "`maria.lindstrom@example.com` came through the proxy"),
        (GUARDED + " maria.", ("PII-001", "PII-002"), "`maria.` came through the proxy"),
        (GUARDED, ("PII-001",), "the rule PII-002 did not fire"),
        ("nothing", ("PII-001", "PII-002"), "did not come"),
    ],
)
def test_a_leak_or_a_silent_rule_is_named(guarded: str, fired: tuple[str, ...], fault: str) -> None:
    assert fault in "\n".join(faults(PII, _heard(RAW), _heard(guarded), fired))


def test_a_changed_clean_answer_a_wrong_end_and_a_failure_are_named() -> None:
    assert faults(CLEAN, _heard("x"), _heard("y"), []) == ["the events are not those that the model sent"]
    assert "ended with ('length',)" in faults(CLEAN, _heard("x"), _heard("x", finish="length"), [])[0]
    assert "did not come: status 502" in faults(CLEAN, _heard("x"), _heard("x", status=502), [])[0]
    passed = _heard("Northwind rate table")
    assert "the prompt was not refused: status 200" in faults(INJECTION, passed, passed, [])


def test_what_the_model_must_not_get_is_named_where_it_got_it() -> None:
    named = next(conversation for conversation in CONVERSATIONS if conversation.unseen)
    raw, guarded = _heard("<PERSON_1> <email_1> Person 1"), _heard("\n".join(named.shown))
    assert faults(named, raw, guarded, named.fires, saw="Write to <PERSON_1>.") == []
    assert faults(named, raw, guarded, named.fires, saw=named.prompt) == [
        f"the model got `{each}`" for each in named.unseen
    ]
    assert faults(named, raw, guarded, named.fires) == ["the model got nothing"]


def test_a_wrong_claim_must_be_told_with_its_evidence() -> None:
    treaty = next(conversation for conversation in CONVERSATIONS if conversation.contradicted)
    raw = _heard("signed in 1683")
    claim = {"text": "signed in 1683", "verdict": "contradicted", "reason": "r", "evidence": [{"text": "1679"}]}

    def told(*claims: object) -> list[str]:
        events = (*raw.events, {"choices": [], "risk": {}, "checkstream": {"claims": claims}})
        return faults(treaty, raw, msgspec.structs.replace(raw, events=events), [])

    assert told(claim) == []
    for wrong in (claim | {"verdict": "supported"}, claim | {"evidence": []}, claim | {"text": "signed in Lund"}):
        assert told(wrong) == ["that `in 1683` is contradicted was not told"]
    assert faults(treaty, raw, raw, []) == ["that `in 1683` is contradicted was not told"]


def test_a_body_asks_for_several_choices_only_when_they_are_wanted() -> None:
    assert "n" not in CLEAN.body()
    assert Conversation(title="", model="m", prompt="p", choices=2).body()["n"] == 2
