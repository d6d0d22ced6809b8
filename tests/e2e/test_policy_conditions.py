"""Rules that depend on who asks and what: context in header and body, shares of callers and users, the record."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.e2e.harness import ROOT, Llm, Proxy, config, http, running, verify_audit

POLICY = """
pack: {name: conditions, version: 1.0.0}
policies:
  - name: staff_only
    id: STAFF-1
    stage: ingress
    phrases: [the price list]
    conditions: ['!(request.caller == "desk" && context.role == "staff")']
    actions: [{type: reject, status: 403, message: "{context.name|You} can't see the price list."}]
    metadata: {regulation: House rule 7, citation: "https://rules.example/7", severity: high, owner: Desk}
  - name: slow_start
    id: SHARE-1
    stage: ingress
    phrases: [a new thing]
    enforce_share: 0.5
    actions: [{type: reject, status: 422, message: not yet}]
  - name: off_at_night
    id: NIGHT-1
    stage: ingress
    phrases: [night work]
    enabled_when: 'context.night == true'
    fail_mode: open
    actions: [{type: reject, message: come back by day}]
  - name: rude_answers
    id: RUDE-1
    stage: midstream
    channels: [content]
    phrases: [idiot]
    conditions: ['findings["idiot"] > 1 || stream.tokens > 50 || scores.lexicon.toxicity > 0.99']
    actions: [{type: redact}]
    metadata: {regulation: House rule 8, severity: low}
"""
CHAT = "/v1/chat/completions"


def settings(llm: Llm, folder: Path, keys: dict[str, str]) -> dict[str, Any]:
    """Return a configuration in which the callers have keys, in files beside it."""
    (folder / "policy.yaml").write_text(POLICY)
    found = config(llm.url, folder, ["policy.yaml"])
    for name, key in keys.items():
        (folder / name).write_text(key)
    found["server"]["callers"] = [{"name": name, "key": {"file": str(folder / name)}} for name in keys]
    return found


@pytest.fixture(scope="module")
def proxy(llm: Llm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("conditions")
    with running(Proxy(settings(llm, folder, {"desk": "k-desk", "web": "k-web"}), folder)) as server:
        yield server


def ask(proxy: Proxy, text: str, *, key: str = "k-desk", context: object = None, **fields: Any) -> tuple[int, Any, str]:
    """Return status, body and stream id of one request; a context goes into the header."""
    headers = {"authorization": f"Bearer {key}"}
    if context is not None:
        headers["x-checkstream-context"] = context if isinstance(context, str) else json.dumps(context)
    body = {"model": "clean", "messages": [{"role": "user", "content": text}], "max_tokens": 1, **fields}
    status, sent, raw = http("POST", proxy.url + CHAT, body, headers=headers)
    return status, json.loads(raw), sent["x-checkstream-stream"]


def test_the_key_and_the_context_decide_together(proxy: Proxy) -> None:
    text = "Show me the price list."
    staff = {"role": "staff", "name": "Ann"}
    assert ask(proxy, text, context=staff)[0] == 200
    assert ask(proxy, text, checkstream={"context": staff})[0] == 200
    status, body, _ = ask(proxy, text, key="k-web", context=staff)
    assert (status, body["error"]["message"]) == (403, "Ann can't see the price list. (rule STAFF-1, messages[0])")
    status, body, _ = ask(proxy, text, context={"role": "guest"})
    assert (status, body["error"]["message"], body["rule_id"]) == (
        403,
        "You can't see the price list. (rule STAFF-1, messages[0])",
        "STAFF-1",
    )
    assert ask(proxy, text, key="k-nobody", context=staff)[0] == 401, "an unknown caller's context is not even read"
    # a role that isn't said: the condition can't be decided, and a rule that fails closed counts
    assert ask(proxy, text)[0] == 403


@pytest.mark.parametrize(
    "context",
    [
        '{"role": "guest", "role": "staff"}',
        '{"role": {"a": 1, "a": 2}}',
        '["staff"]',
        '"staff"',
        "null",
        "{",
        "",
        '{"role": "staff"} {}',
        '{"a": ' + "[" * 200 + "]" * 200 + "}",
        '{"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": 1}}}}}}}}}',
        json.dumps({"a": "x" * 9000}),
        json.dumps({str(number): 0 for number in range(1001)}, separators=(",", ":")),
        '{"a": 1e999}',
        '{"a": NaN}',
        '{"a": 123456789012345678901234567890}',
        '{"a": "\\ud800"}',
        "{'role': 'staff'}",
    ],
)
@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
def test_a_hostile_context_is_refused_in_the_apis_own_words(proxy: Proxy, llm: Llm, context: str, path: str) -> None:
    before = len(llm.requests("clean"))
    headers = {"authorization": "Bearer k-desk", "x-checkstream-context": context}
    asked = {"messages": [{"role": "user", "content": "hi"}]} if path == CHAT else {"prompt": "hi"}
    status, _, raw = http("POST", proxy.url + path, {"model": "clean", "stream": True, **asked}, headers=headers)
    error = json.loads(raw)["error"]
    assert (status, error["type"]) == (400, "invalid_request_error"), error
    assert "x-checkstream-context" in error["message"]
    assert len(error["message"]) < 300, "what is hostile is not sent back at length"
    assert len(llm.requests("clean")) == before


def test_the_sdk_raises_on_a_hostile_context_and_does_not_retry(proxy: Proxy) -> None:
    with OpenAI(base_url=f"{proxy.url}/v1", api_key="k-desk", max_retries=2) as client:
        with pytest.raises(openai.BadRequestError) as raised:
            client.chat.completions.create(
                model="clean",
                messages=[{"role": "user", "content": "hi"}],
                extra_body={"checkstream": {"context": {"a": "x" * 17_000}}},
            )
        assert "context" in raised.value.message
        both: Any = {"checkstream": {"context": {"a": 1}}}
        with pytest.raises(openai.BadRequestError, match="one place"):
            client.chat.completions.create(
                model="clean",
                messages=[{"role": "user", "content": "hi"}],
                extra_body=both,
                extra_headers={"x-checkstream-context": '{"a": 1}'},
            )


def test_two_contexts_are_refused(proxy: Proxy) -> None:
    connection = HTTPConnection(proxy.url.removeprefix("http://"), timeout=20)
    connection.putrequest("POST", CHAT)
    for name, value in (
        ("authorization", "Bearer k-desk"),
        ("x-checkstream-context", '{"role": "staff"}'),
        ("X-Checkstream-Context", "{}"),
        ("content-length", "2"),
    ):
        connection.putheader(name, value)
    connection.endheaders(b"{}")
    error = json.loads(connection.getresponse().read())["error"]
    connection.close()
    assert error["type"] == "invalid_request_error"
    assert "send one" in error["message"]


def test_a_share_is_the_same_for_a_caller_and_user_over_retries_and_restarts(llm: Llm, tmp_path: Path) -> None:
    users = [f"user-{number}" for number in range(24)]
    found = []
    for _ in range(2):
        with running(Proxy(settings(llm, tmp_path, {"desk": "k-desk", "web": "k-web"}), tmp_path)) as proxy:
            for key in ("k-desk", "k-desk", "k-web"):
                hit = {user for user in users if ask(proxy, "a new thing", key=key, user=user)[0] == 422}
                found.append((key, frozenset(hit)))
            by_context = {user for user in users if ask(proxy, "a new thing", context={"user": {"id": user}})[0] == 422}
            found.append(("k-desk", frozenset(by_context)))
    assert len({hit for key, hit in found if key == "k-desk"}) == 1
    assert len({hit for key, hit in found if key == "k-web"}) == 1
    desk, web = dict(found)["k-desk"], dict(found)["k-web"]
    assert desk != web, "each caller has its own share"
    assert 4 < len(desk) < 20


def test_who_is_not_of_the_share_is_recorded_as_in_shadow(proxy: Proxy) -> None:
    modes = {}
    for number in range(12):
        status, _, stream = ask(proxy, "a new thing", user=f"u{number}")
        modes[status] = stream
    (hit,) = proxy.record(modes[422])["body"]["record"]["verdicts"]
    (spared,) = proxy.record(modes[200])["body"]["record"]["verdicts"]
    assert (hit["rule_id"], hit["mode"]) == ("SHARE-1", "enforce")
    assert (spared["rule_id"], spared["mode"]) == ("SHARE-1", "shadow")


def test_a_rule_that_is_enabled_by_context_is_off_when_that_can_not_be_decided_and_it_fails_open(proxy: Proxy) -> None:
    assert ask(proxy, "night work", context={"night": True})[0] == 400
    assert ask(proxy, "night work", context={"night": False})[0] == 200
    status, _, stream = ask(proxy, "night work")
    assert status == 200
    assert "rule_undecided:NIGHT-1" in proxy.record(stream)["body"]["record"]["degradations"]


def test_what_was_found_so_far_decides_over_the_stream(llm: Llm, proxy: Proxy) -> None:
    model = llm.put("idiots", {"choices": [{"content": "An idiot, an idiot and an idiot."}], "timing": {"token_ms": 2}})
    with OpenAI(base_url=f"{proxy.url}/v1", api_key="k-desk", max_retries=0) as client:
        asked: Any = {"model": model, "messages": [{"role": "user", "content": "who?"}]}
        whole = client.chat.completions.create(**asked).choices[0].message.content
        with client.chat.completions.create(**asked, stream=True) as stream:
            streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    assert whole == streamed == "An idiot, an [REDACTED] and an [REDACTED]."


def show(proxy: Proxy, *arguments: str) -> str:
    command = [sys.executable, "-m", "checkstream", "audit", "show", str(proxy.audit_dir), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30, cwd=ROOT).stdout


def test_the_record_says_why_a_rule_is_there_and_what_could_not_be_decided(proxy: Proxy) -> None:
    _, _, undecided = ask(proxy, "the price list")
    _, _, decided = ask(proxy, "the price list", context={"role": "guest"})
    for stream, unsure in ((undecided, True), (decided, False)):
        record = proxy.record(stream)["body"]["record"]
        (verdict,) = record["verdicts"]
        assert (verdict["regulation"], verdict["severity"]) == ("House rule 7", "high")
        assert verdict["citation"] == "https://rules.example/7"
        assert verdict["undecided"] is unsure
        assert ("rule_undecided:STAFF-1" in record["degradations"]) is unsure
    shown = show(proxy, "--stream", undecided)
    for said in ("STAFF-1", "House rule 7", "https://rules.example/7", "severity high", "could not be decided"):
        assert said in shown
    assert verify_audit(proxy.audit_dir).returncode == 0
