"""`pseudonymise`: the model gets placeholders, and the caller its own values back (G38)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from tests import responses
from tests.guarded import CHAT, DONE, MAIL, ends, event, plan, says
from tests.playbook import Exchange, Played, capitalised, play

RULES = "  - {name: p, id: PSN-1, entities: [EMAIL, PHONE], actions: [{type: pseudonymise}]}\n"
NAMES = (
    "  - {name: p, id: PSN-1, entities: [EMAIL, PERSON], actions: [{type: pseudonymise}]}\n"
    "  - {name: o, id: PII-1, stage: midstream, entities: [EMAIL, PERSON], unless: in_request, "
    "actions: [{type: redact}]}\n"
)
PROMPT = "Write to Ann@x.io and bob@y.io, then to ann@x.io again."


def body(*messages: tuple[str, str], stream: bool = True, **more: Any) -> bytes:
    said = [{"role": role, "content": text} for role, text in messages]
    return json.dumps({"model": "m", "stream": stream, "messages": said, **more}).encode()


def ran(prompt: str | bytes, answer: str | list[bytes], rules: str = RULES, **more: Any) -> Played:
    asked = prompt if isinstance(prompt, bytes) else body(("user", prompt))
    pieces = [says(answer), ends(), DONE] if isinstance(answer, str) else answer
    return play(CHAT, plan(rules), asked, pieces, **more)


def sent(out: Played) -> list[str]:
    assert out.forwarded is not None, out.reply
    return [message["content"] for message in json.loads(out.forwarded)["messages"]]


def text(out: Played, key: str = "content") -> str:
    events = [json.loads(line[6:]) for line in out.joined.split(b"\n") if line.startswith(b"data: {")]
    return "".join(choice["delta"].get(key) or "" for one in events for choice in one["choices"])


def whole(prompt: str, answer: dict[str, Any], rules: str = RULES) -> dict[str, Any]:
    reply = {"id": "x", "choices": [{"index": 0, "message": answer, "finish_reason": "stop"}]}
    asked = body(("user", prompt), stream=False)
    out = play(CHAT, plan(rules), asked, [json.dumps(reply).encode()], streaming=False)
    assert out.reply is not None
    found = json.loads(out.reply.body)["choices"][0]["message"]
    assert isinstance(found, dict)
    return found


def test_g38_equal_values_have_one_placeholder_and_come_back() -> None:
    out = ran(PROMPT, "Sent to <EMAIL_1> and <EMAIL_2>.")
    assert sent(out) == ["Write to <EMAIL_1> and <EMAIL_2>, then to <EMAIL_1> again."]
    assert text(out) == "Sent to Ann@x.io and bob@y.io."
    assert out.record is not None
    assert out.record.action == "pseudonymise"


def test_g38_every_split_of_the_answer_comes_to_the_same() -> None:
    said = "So <EMAIL_1>, (email 2) and **<EMAIL_1>**; see <EMAIL_3>, <EMAIL_12> or a@b.io."
    want = "So Ann@x.io, (bob@y.io) and **Ann@x.io**; see <EMAIL_3>, <EMAIL_12> or [EMAIL]."
    rules = RULES + MAIL
    assert whole(PROMPT, {"role": "assistant", "content": said}, rules)["content"] == want
    for at in range(len(said) + 1):
        assert text(ran(PROMPT, [says(said[:at]), says(said[at:]), ends(), DONE], rules)) == want
    assert text(ran(PROMPT, [*(says(char) for char in said), ends(), DONE], rules)) == want


def test_g38_numbers_that_the_prompt_uses_are_given_to_nobody() -> None:
    out = ran("Email 1 is not <email_3>: ann@x.io, bob@y.io.", "Email 1, <EMAIL_2>, EMAIL_3, EMAIL_4")
    assert sent(out) == ["Email 1 is not <email_3>: <EMAIL_2>, <EMAIL_4>."]
    assert text(out) == "Email 1, ann@x.io, EMAIL_3, bob@y.io"


@pytest.mark.parametrize("role", ["system", "tool", "user"])
def test_g38_values_of_others_do_not_come_back_unless_the_policy_says_so(role: str) -> None:
    asked = body(("user", "Hi from me@x.io"), (role, "It was eve@evil.io"))
    said = "Known: <EMAIL_1>, <EMAIL_2>."
    shown = "eve@evil.io" if role != "tool" else "<EMAIL_2>"
    assert text(ran(asked, said)) == f"Known: me@x.io, {shown}."
    everybody = RULES.replace("pseudonymise}", "pseudonymise, restore: [user, system, tool_result]}")
    assert text(ran(asked, said, everybody)) == "Known: me@x.io, eve@evil.io."
    nobody = RULES.replace("pseudonymise}", "pseudonymise, restore: []}")
    assert text(ran(asked, said, nobody)) == said


def test_g38_models_names_come_back_and_what_models_find_in_placeholders_counts_for_nothing() -> None:
    out = ran("Greet Ann Lee (ann@x.io).", "Dear PERSON_1 <EMAIL_1>, Bob Ray says hi.", NAMES, scorer=capitalised)
    assert sent(out)[0].count("<PERSON_1>") == 1
    assert "Ann" not in sent(out)[0]
    assert "ann@x.io" in text(out)
    assert "Bob" not in text(out)
    assert "[PERSON]" in text(out)


def test_g38_reasoning_and_arguments_of_tools_get_them_back_and_stay_json() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "mail", "arguments": ""}}
    arguments = '{"to": "\\u003cEMAIL_1\\u003e", "cc": ["<email_2>"], "n": 1}'
    events = [
        event((0, {"reasoning_content": "ask EMAIL_"}, None)),
        event((0, {"reasoning_content": "2?"}, None)),
        event((0, {"tool_calls": [call]}, None)),
        *(event((0, {"tool_calls": [{"index": 0, "function": {"arguments": char}}]}, None)) for char in arguments),
        ends(reason="tool_calls"),
        DONE,
    ]
    out = ran(PROMPT, events)
    assert text(out, "reasoning_content") == "ask bob@y.io?"
    made = [json.loads(line[6:]) for line in out.joined.split(b"\n") if line.startswith(b"data: {")]
    calls = [call for one in made for choice in one["choices"] for call in choice["delta"].get("tool_calls", ())]
    given = "".join(call["function"]["arguments"] for call in calls)
    assert json.loads(given) == {"to": "Ann@x.io", "cc": ["bob@y.io"], "n": 1}


def test_g38_nothing_of_the_values_is_in_the_record() -> None:
    out = ran(PROMPT, "<EMAIL_1> <EMAIL_2>")
    assert out.record is not None
    assert "x.io" not in str(out.record)


def test_g22_what_comes_back_is_bounded_however_long_a_value_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkstream.core.pseudonyms.register.MOST_CHARS", 1000)
    out = ran(PROMPT, "<EMAIL_1> " * 200)
    assert text(out) == "Ann@x.io " * 125 + "<EMAIL_1> " * 75
    assert out.record is not None
    assert (out.record.restored, out.record.degradations) == (125, ("values_not_restored",))


def test_g37_placeholders_that_stand_for_nothing_are_counted() -> None:
    out = ran(PROMPT, "<EMAIL_1>, <email_9> and EMAIL_7, but email 8 is prose, and so is Email #12.")
    assert out.record is not None
    assert (out.record.pseudonyms, out.record.restored, out.record.not_given) == ({"EMAIL": 2}, 1, 2)
    calm = ran("Hi.", "Hello, <EMAIL_9>.").record
    assert calm is not None
    assert (calm.pseudonyms, calm.restored, calm.not_given) == (msgspec.UNSET,) * 3


@pytest.mark.parametrize(
    "kept", [{"previous_response_id": "resp_1"}, {"conversation": "c"}, {"conversation": {"id": "c"}}]
)
def test_g38_a_placeholder_of_a_history_that_the_provider_keeps_is_nobody_else(kept: dict[str, Any]) -> None:
    def asked(prompt: str, said: str, caller: str = "app") -> tuple[str, str]:
        received = RequestReceived(responses.request(prompt, **kept), caller)
        exchange = Exchange(responses.RESPONSES, plan(RULES))
        exchange.send(received)
        forwarded: str = json.loads(exchange.out.forwarded or b"{}")["input"]
        answer = responses.answer(responses.call("mail", json.dumps({"to": said or forwarded})))
        for came in (UpstreamOpened(200, streaming=True), UpstreamBytes(answer), UpstreamClosed()):
            exchange.send(came)
        return forwarded, json.loads(responses.read(exchange.out.joined)["output"][0]["arguments"])["to"]

    earlier = "<EMAIL_1> <EMAIL_2> EMAIL 3"
    assert asked("bob@y.io, eve@z.io", earlier)[1] == earlier
    both, back = asked("bob@y.io, eve@z.io, BOB@y.io", "")
    assert back == "bob@y.io, eve@z.io, bob@y.io"
    bob, eve, again = both.split(", ")
    assert bob == again != eve
    assert asked("eve@z.io", bob) == (eve, bob)  # of another request: what it stands for here is the same, or nothing
    assert asked("eve@z.io", "", "another")[0] != eve
