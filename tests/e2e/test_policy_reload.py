"""Policies that change while answers stream: conditions come in force, and what a route can't carry out is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Llm, Proxy, RawCaller, http, until, verify_audit

PLAIN = """
pack: {name: live, version: 1.0.0}
policies:
  - {name: mail, id: PII-1, stage: midstream, entities: [EMAIL], actions: [{type: redact}]}
"""
CONDITIONAL = """
pack: {name: live, version: 2.0.0}
policies:
  - name: mail
    id: PII-1
    stage: midstream
    entities: [EMAIL]
    conditions: ['context.role != "staff"', 'findings.EMAIL > 1']
    actions: [{type: redact, style: text, text: "[hidden from {context.role}]"}]
"""
TURNING = """
pack: {name: live, version: 3.0.0}
policies:
  - name: turn
    id: SAFE-1
    stage: midstream
    channels: [content]
    phrases: [launder money]
    actions: [{type: safe_mode, bad_words: [launder]}]
"""
CHAT = "/v1/chat/completions"
ASK: Any = [{"role": "user", "content": "hello there"}]
GUEST = {"checkstream": {"context": {"role": "guest"}}}
TWO_MAILS = "Write to joe@example.com or to ann@example.com today."
SLOW = {"choices": [{"content": "word " * 40 + TWO_MAILS}], "timing": {"token_ms": 25}}


class _Stream(threading.Thread):
    """Reads one streamed answer to its end, beside the test."""

    def __init__(self, proxy: Proxy, model: str) -> None:
        super().__init__()
        self._caller = RawCaller(proxy.url, {"model": model, "stream": True, "messages": ASK, **GUEST})
        self._caller.read_until(b"word")
        self.start()

    def run(self) -> None:
        self._caller.read_until(b"[DONE]")

    @property
    def content(self) -> str:
        self.join(30)
        assert not self.is_alive()
        text = self._caller.received.split(b"\r\n\r\n", 1)[1].decode()
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        self._caller.leave()
        return "".join(event["choices"][0]["delta"].get("content") or "" for event in events)


def put_in_force(proxy: Proxy, policy: str) -> tuple[int, dict[str, Any]]:
    (proxy.folder / "policy.yaml").write_text(policy)
    status, _, body = http("POST", f"{proxy.admin_url}/admin/reload", b"")
    return status, json.loads(body)


def status_of(proxy: Proxy) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(http("GET", f"{proxy.admin_url}/admin/status")[2])
    return found


def test_g25_conditions_come_in_force_for_new_streams_only(llm: Llm, start: Callable[..., Proxy]) -> None:
    proxy = start(PLAIN)
    before = status_of(proxy)
    model = llm.put("live", SLOW)
    old = [_Stream(proxy, model) for _ in range(4)]
    assert put_in_force(proxy, CONDITIONAL)[0] == 200
    assert all(stream.is_alive() for stream in old), "the streams ended before the reload; it proves nothing"
    quick = llm.put("live-quick", {"choices": [{"content": TWO_MAILS}]})
    body = {"model": quick, "messages": ASK}
    answers = []
    for context in ({"role": "guest"}, {"role": "staff"}):
        sent = {**body, "checkstream": {"context": context}}
        status, headers, raw = http("POST", proxy.url + CHAT, sent)
        assert (status, headers["x-checkstream-policy"]) == (200, "live@2.0.0")
        answers.append(json.loads(raw)["choices"][0]["message"]["content"])
    assert answers == ["Write to joe@example.com or to [hidden from guest] today.", TWO_MAILS]
    assert {stream.content for stream in old} == {"word " * 40 + "Write to [EMAIL] or to [EMAIL] today."}
    after = status_of(proxy)
    assert after["generation"] == before["generation"] + 1
    assert after["routes"][0]["program"] != before["routes"][0]["program"]
    assert verify_audit(proxy.audit_dir).returncode == 0


def test_g25_a_policy_that_the_upstream_can_not_carry_out_is_refused_by_name(
    llm: Llm, start: Callable[..., Proxy]
) -> None:
    proxy = start(PLAIN, chat_only=True, upstream={"can": ["continue"]})
    model = llm.put("live-slow", SLOW)
    old = _Stream(proxy, model)
    in_force = status_of(proxy)
    status, body = put_in_force(proxy, TURNING)
    assert status == 400
    (fault,) = body["faults"]
    assert Path(fault["file"]).name == "policy.yaml"
    assert TURNING.splitlines()[fault["line"] - 1].strip().startswith("actions:")
    for named in ("`safe_mode`", "`SAFE-1`", "`bad_words`", "`llm`", "`chat`"):
        assert named in fault["reason"] + fault["advice"]
    assert "can: [bad_words]" in fault["advice"]

    shown = status_of(proxy)
    assert (shown["generation"], shown["ready"]) == (in_force["generation"], True)
    assert shown["routes"] == in_force["routes"]
    assert shown["reload"]["accepted"] is False
    assert "SAFE-1" in shown["reload"]["faults"][0]
    refused = [row["body"] for row in proxy.records() if row["kind"] == "reload"]
    assert [(row["accepted"], "SAFE-1" in row["reason"]) for row in refused] == [(False, True)]
    assert old.content.endswith("Write to [EMAIL] or to [EMAIL] today.")
    assert (
        http("POST", proxy.url + CHAT, {"model": "clean", "messages": ASK})[1]["x-checkstream-policy"] == "live@1.0.0"
    )

    # the same file with an upstream that can is taken
    settings = json.loads((proxy.folder / "checkstream.yaml").read_text())
    settings["upstreams"]["llm"]["can"] = ["continue", "bad_words"]
    (proxy.folder / "checkstream.yaml").write_text(json.dumps(settings))
    status, body = put_in_force(proxy, TURNING)
    assert status == 200, body
    until(lambda: status_of(proxy)["reload"]["accepted"], what="the accepted reload")
    llm.put("live-turn-2", {"choices": [{"content": "pay taxes."}]})
    turn = llm.put("live-turn", {"choices": [{"content": "You could launder money"}], "continued_by": "live-turn-2"})
    answer = json.loads(http("POST", proxy.url + CHAT, {"model": turn, "messages": ASK})[2])
    assert answer["choices"][0]["message"]["content"] == "You could pay taxes."


@pytest.mark.parametrize(
    ("conditions", "named"),
    [
        ("['context.role = \"staff\"']", "="),
        ("['scores.lexicon.toxicity > \"high\"']", "double and string"),
        ("['now() > 3']", "now"),
        ("['context.a.all(x, context.b.all(y, context.c.all(z, x + y + z > 0)))']", "steps"),
    ],
)
def test_g25_a_faulty_condition_is_refused_at_its_place(
    start: Callable[..., Proxy], conditions: str, named: str
) -> None:
    proxy = start(PLAIN)
    faulty = (
        CONDITIONAL.split("    conditions:", maxsplit=1)[0]
        + f"    conditions: {conditions}\n    actions: [{{type: redact}}]\n"
    )
    status, body = put_in_force(proxy, faulty)
    assert status == 400
    (fault,) = body["faults"]
    assert fault["line"] == faulty[: faulty.index("conditions: [")].count("\n") + 1
    assert named in fault["reason"]
    assert (
        http("POST", proxy.url + CHAT, {"model": "clean", "messages": ASK})[1]["x-checkstream-policy"] == "live@1.0.0"
    )
