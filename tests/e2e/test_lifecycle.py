"""The process itself: drain, reload, kill -9, restart."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from tests.e2e.conftest import POLICY
from tests.e2e.harness import Llm, Proxy, RawCaller, config, http, running, until, verify_audit

ASK: Any = [{"role": "user", "content": "hello there"}]
SLOW = {"choices": [{"content": "word " * 40 + "mail joe@example.com now"}], "timing": {"token_ms": 25}}
CHAT = "/v1/chat/completions"


class _Reader(threading.Thread):
    """Reads a stream to its end beside the test."""

    def __init__(self, proxy: Proxy, model: str) -> None:
        super().__init__()
        self.text = ""
        self.begun = threading.Event()
        self.finish: str | None = None
        self.headers: dict[str, str] = {}
        self.error: Exception | None = None
        self._proxy, self._model = proxy, model
        self.start()
        assert self.begun.wait(20), "the stream has not begun"

    def run(self) -> None:
        try:
            with (
                OpenAI(base_url=f"{self._proxy.url}/v1", api_key="k", max_retries=0) as client,
                client.chat.completions.create(model=self._model, messages=ASK, stream=True) as stream,
            ):
                self.headers = dict(stream.response.headers)
                for chunk in stream:
                    self.text += chunk.choices[0].delta.content or ""
                    self.finish = chunk.choices[0].finish_reason or self.finish
                    if self.text:
                        self.begun.set()
        except Exception as error:  # noqa: BLE001 - the test that joins this thread looks at it
            self.error = error
        finally:
            self.begun.set()

    def joined(self) -> _Reader:
        self.join(30)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        return self


def test_sigterm_lets_running_streams_end_and_takes_no_new_ones(llm: Llm, start: Callable[..., Proxy]) -> None:
    proxy = start()
    reader = _Reader(proxy, llm.put("drain", SLOW))
    proxy.popen.send_signal(signal.SIGTERM)
    until(lambda: _refuses(proxy), what="the end of new requests", timeout_s=2)
    reader.joined()
    assert reader.text.endswith("mail [EMAIL] now")
    assert reader.finish == "stop"
    assert proxy.popen.wait(20) == 0
    assert verify_audit(proxy.audit_dir).returncode == 0


def _refuses(proxy: Proxy) -> bool:
    try:
        return http("POST", proxy.url + CHAT, {"model": "clean", "messages": ASK})[0] == 503
    except OSError:
        return True


def test_a_stream_that_outlives_the_drain_is_told(llm: Llm, start: Callable[..., Proxy]) -> None:
    proxy = start(server={"drain_ms": 300})
    model = llm.put("outlive", {"choices": [{"content": "word " * 2000}], "timing": {"token_ms": 20}})
    caller = RawCaller(proxy.url, {"model": model, "stream": True, "messages": ASK})
    caller.read_until(b"word")
    proxy.popen.send_signal(signal.SIGTERM)
    caller.read_until(b'"error"')
    caller.leave()
    assert proxy.popen.wait(20) == 0
    assert llm.ended(model)["state"] == "closed_by_client"
    assert "drained" in json.dumps(proxy.records())


@pytest.mark.parametrize("how", ["sighup", "admin", "file"])
def test_g25_a_reload_never_changes_a_running_stream(llm: Llm, start: Callable[..., Proxy], how: str) -> None:
    proxy = start()
    model = llm.put(
        "reload", {**SLOW, "timing": {"token_ms": 75 if how == "file" else 25}}
    )  # files are looked at once a second
    reader = _Reader(proxy, model)
    newer = POLICY.replace("version: 1.0.0", "version: 2.0.0").replace(
        "entities: [EMAIL, CREDIT_CARD]", "phrases: [mail]"
    )
    (proxy.folder / "policy.yaml").write_text(newer)
    if how == "sighup":
        proxy.popen.send_signal(signal.SIGHUP)
    elif how == "admin":
        assert http("POST", f"{proxy.admin_url}/admin/reload", b"")[0] == 200
    until(lambda: _policy(proxy) == "e2e@2.0.0", what="the new policy")
    assert reader.is_alive(), "the stream ended before the reload; it proves nothing"
    reader.joined()
    assert reader.headers["x-checkstream-policy"] == "e2e@1.0.0"
    assert reader.text.endswith("mail [EMAIL] now")
    assert _Reader(proxy, model).joined().text.endswith("[REDACTED] joe@example.com now")


def _policy(proxy: Proxy) -> str:
    _, headers, _ = http("POST", proxy.url + CHAT, {"model": "clean", "messages": ASK, "max_tokens": 1})
    return headers["x-checkstream-policy"]


def test_g25_a_bad_policy_never_replaces_a_good_one(start: Callable[..., Proxy]) -> None:
    proxy = start()
    (proxy.folder / "policy.yaml").write_text(
        "pack: {name: e2e, version: 3.0.0}\npolicies: [{name: x, id: X, stages: 3}]"
    )
    status, _, body = http("POST", f"{proxy.admin_url}/admin/reload", b"")
    assert status == 400
    faults = json.loads(body)["faults"]
    assert {(Path(fault["file"]).name, fault["line"]) for fault in faults} == {("policy.yaml", 2)}
    assert any("`stages`" in fault["reason"] for fault in faults)
    assert _policy(proxy) == "e2e@1.0.0"
    proxy.popen.send_signal(signal.SIGHUP)
    time.sleep(0.3)  # nothing is to be seen of a reload that is refused
    assert _policy(proxy) == "e2e@1.0.0"


def test_g26_the_audit_chain_survives_kill_9(llm: Llm, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    settings = config(llm.url, tmp_path, ["policy.yaml"])
    settings["audit"]["fsync_ms"] = 20
    model = llm.put("killed", {"choices": [{"content": "mail joe@example.com"}], "timing": {"token_ms": 1}})
    ids = set()
    for _ in range(3):
        proxy = Proxy(settings, tmp_path)
        for _ in range(5):
            headers = http("POST", proxy.url + CHAT, {"model": model, "messages": ASK, "stream": True})[1]
            ids.add(headers["x-checkstream-stream"])
        time.sleep(0.3)  # longer than the loss window of `fsync_ms`
        caller = RawCaller(proxy.url, {"model": llm.put("slow", SLOW), "stream": True, "messages": ASK})
        caller.read_until(b"word")
        proxy.kill()
        caller.leave()
        done = verify_audit(tmp_path / "audit")
        assert done.returncode == 0, done.stdout + done.stderr
    with running(Proxy(settings, tmp_path)) as proxy:
        assert ids <= {row["body"].get("stream") for row in proxy.records()}
    assert verify_audit(tmp_path / "audit").returncode == 0


def test_the_command_line_alone_is_enough(llm: Llm, tmp_path: Path) -> None:
    """`checkstream serve --upstream URL/v1` from any folder."""
    with running(Proxy.of_upstream(f"{llm.url}/v1", tmp_path)) as proxy:
        status, _, body = http("POST", proxy.url + CHAT, {"model": "pii", "messages": ASK})
        assert status == 200
        assert "maria.lind" not in body.decode()
        assert "4242" not in body.decode()
        assert http("GET", f"{proxy.url}/v1/models")[0] == 200
        assert http("POST", f"{proxy.url}/v1/embeddings", {})[0] == 400  # guarded: it has no `input`
        status, _, body = http("POST", f"{proxy.url}/v1/files", {})
        assert (status, b"pass: true" in body) == (404, True)


def test_health_and_metrics(proxy: Proxy) -> None:
    assert http("POST", proxy.url + CHAT, {"model": "pii", "messages": ASK})[0] == 200
    assert http("GET", f"{proxy.admin_url}/livez")[0] == 200
    assert http("GET", f"{proxy.admin_url}/readyz")[0] == 200
    metrics = http("GET", f"{proxy.admin_url}/metrics")[2].decode()
    labels = 'action="redact",mode="enforce",policy="e2e",rule_id="PII-001",stage="midstream"'
    assert f"checkstream_verdicts_total{{{labels}}}" in metrics
    assert http("GET", f"{proxy.url}/metrics")[0] == 404  # only the admin listener tells


def test_calm_streams_end_as_complete_and_nothing_warns_of_them(
    start: Callable[..., Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APP_KEY", "k-app")
    proxy = start(server={"callers": [{"name": "app", "key": {"env": "APP_KEY"}}]})
    url, known = proxy.url + CHAT, {"authorization": "Bearer k-app"}
    quiet = [row for row in map(_row, proxy.output) if row.get("level") != "info"]
    for _ in range(5):
        for streaming in (True, False):
            assert http("POST", url, {"model": "clean", "stream": streaming, "messages": ASK}, headers=known)[0] == 200
    assert http("POST", url, {"model": "clean", "messages": ASK})[0] == 401
    until(lambda: len(proxy.logs("request.ended")) >= 10, what="the end of all")
    assert {row["outcome"] for row in proxy.logs("request.ended")} == {"complete"}
    assert [row for row in map(_row, proxy.output) if row.get("level") != "info"] == quiet
    metrics = http("GET", f"{proxy.admin_url}/metrics")[2].decode()
    for counted in (
        'checkstream_exchanges_total{outcome="complete",route="chat"} 10.0',
        'checkstream_requests_total{route="chat",status="200"} 10.0',
        'checkstream_requests_total{route="chat",status="401"} 1.0',
    ):
        assert counted in metrics, [line for line in metrics.splitlines() if line.startswith(counted.partition("{")[0])]
    assert "downstream_closed" not in metrics


def _row(line: str) -> dict[str, Any]:
    row = json.loads(line) if line.startswith("{") else {}
    assert isinstance(row, dict)
    return row
