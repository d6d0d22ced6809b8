"""`checkstream worker` as its own process: what the proxy's feeder put is scored, and a high risk is told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import urlopen

import pytest

from checkstream.config import load_config
from checkstream.errors import StoreFailed
from checkstream.jobs import Exchange, Feeder, FeederSettings, Message, conversation_key, open_queue
from checkstream.jobs.feeder import Dropped
from checkstream.jobs.terms import Job
from tests.e2e.harness import until

CONFIG = """
upstreams: {{a: {{url: http://x}}}}
routes:
  - name: chat
    match: {{path: /v1/chat/completions}}
    upstream: a
    policies: ["builtin:default"]
    grounding:
      high: 35
      on_high: [metric, log, webhook, marker]
      webhook: {{url: "http://127.0.0.1:{port}/hook", secret: {{env: HOOK_SECRET}}}}
jobs: {{store: "sqlite:jobs.db"}}
"""
SECRET = "words that nobody outside may read"


class Told:
    def accepted(self, jobs: Sequence[Job]) -> None:
        pass

    def dropped(self, why: Dropped, jobs: int) -> None:
        raise AssertionError(why, jobs)

    def evicted(self, jobs: int) -> None:
        raise AssertionError(jobs)

    def store_failed(self, error: StoreFailed) -> None:
        raise error


def test_answers_are_scored_and_a_high_risk_is_told_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", "whsec_c2VjcmV0")
    calls: list[bytes] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            calls.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as hook:
        Thread(target=hook.serve_forever, daemon=True).start()
        try:
            check(tmp_path, hook.server_address[1], calls)
        finally:
            hook.shutdown()


def check(folder: Path, port: int, calls: list[bytes]) -> None:
    file = folder / "checkstream.yaml"
    file.write_text(CONFIG.format(port=port))
    command = [sys.executable, "-m", "checkstream", "worker", "--config", str(file), "--metrics", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines: list[dict[str, object]] = []
        working = json.loads(process.stderr.readline())
        reader = Thread(target=lambda: lines.extend(map(json.loads, process.stderr or ())))
        reader.start()
        try:
            assert working["event"] == "working"
            score_two(file, folder, calls)
            with urlopen(f"http://{working['metrics']}/metrics") as answer:
                metrics = answer.read().decode()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            reader.join()
        assert process.returncode == 0
    assert 'checkstream_grounding_high_total{profile="watchdog",route="chat"} 1.0' in metrics
    assert 'checkstream_grounding_risk_count{profile="watchdog",route="chat"} 2.0' in metrics
    high = [line for line in lines if line["event"] == "grounding.high"]
    assert [line["stream"] for line in high] == ["risky"]
    assert SECRET not in json.dumps(lines)


def score_two(file: Path, folder: Path, calls: list[bytes]) -> None:
    """Have one sound and one risky answer scored, and look at what follows."""
    jobs = load_config(file).jobs
    feeder = Feeder(open_queue(jobs), FeederSettings(markers_s=0.01), Told())
    key = conversation_key("app1", "c1")
    feeder.put(exchange("sound", "The moon may be far away.", ""), ("watchdog",))
    feeder.put(
        exchange("risky", f"SSN College definitely closed in 2026 and merged with SNU. {SECRET}", key), ("watchdog",)
    )
    queue = open_queue(jobs)
    until(lambda: bool(queue.results("risky") and queue.results("sound")), what="two results", timeout_s=60)
    (risky,) = queue.results("risky")
    assert risky.risk >= 35
    assert json.loads(risky.report)["risk"]["risk_score"] == risky.risk
    until(lambda: bool(calls), what="a call of the webhook", timeout_s=60)
    assert json.loads(calls[0])["stream"] == "risky"
    marker = None

    def marked() -> bool:
        nonlocal marker
        feeder.put(exchange("again", "Thanks.", ""), ())
        marker = feeder.take_marker(key)
        return marker is not None

    until(marked, what="the conversation's marker", timeout_s=60)
    assert feeder.take_marker(key) is None
    feeder.close(60)
    queue.close()
    assert SECRET.encode() not in b"".join(calls)
    assert (folder / "jobs.db").stat().st_mode & 0o777 == 0o600


def exchange(stream: str, answer: str, conversation: str) -> Exchange:
    return Exchange(
        stream=stream,
        route="chat",
        surface="openai_chat",
        messages=(Message("user", "What happened?"),),
        answer=answer,
        conversation=conversation,
    )
