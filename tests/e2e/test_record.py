"""A proxy that records: what a real exchange leaves on disk, and that it can be replayed under another policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkstream.cli import main
from checkstream.core.transcript import decode
from tests.e2e.conftest import POLICY
from tests.e2e.harness import Llm, Proxy, config, http, running, until

MAIL = "maria@firma.example"
SCRIPT = {"choices": [{"content": f"Please write to {MAIL} today."}], "split": {"by": "chars", "size": 3}}


def recorded(proxy: Proxy, folder: Path, record: str) -> Path:
    """Send one request and return the file that it leaves."""
    body = {"model": "recorded", "stream": True, "messages": [{"role": "user", "content": f"I am {MAIL}, hello"}]}
    status, headers, answer = http("POST", f"{proxy.url}/v1/chat/completions", body)
    assert (status, b"[EMAIL]" in answer) == (200, True)
    stream = headers["x-checkstream-stream"]
    return until(lambda: next((folder / record).glob(f"*-{stream}.jsonl"), None), what="the recording")


@pytest.fixture
def settings(llm: Llm, tmp_path: Path) -> dict[str, Any]:
    llm.put("recorded", SCRIPT)
    (tmp_path / "policy.yaml").write_text(POLICY)
    return config(llm.url, tmp_path, ["policy.yaml"])


def test_an_exchange_is_recorded_masked_and_replays_under_the_same_rules(
    settings: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(Proxy(settings | {"record": {"dir": "record", "sample": 1.0}}, tmp_path)) as proxy:
        file = recorded(proxy, tmp_path, "record")
        assert "checkstream_recordings_total" in http("GET", f"{proxy.admin_url}/metrics")[2].decode()
        assert proxy.stop() == 0
    content = file.read_bytes()
    transcript = decode(content)
    texts = json.dumps([repr(line.event) for line in transcript.lines])
    assert MAIL not in texts
    assert "maria" not in texts
    assert "mask@example.invalid" in texts
    assert transcript.header.fired == {"PII-001": 1}
    assert (
        main(["replay", str(tmp_path / "record"), "--policy", str(tmp_path / "policy.yaml"), "--fail-on-change"]) == 0
    )
    assert "PII-001      1 -> 1" in capsys.readouterr().out


def test_a_directory_that_cannot_be_written_costs_no_exchange(settings: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "record").write_text("a file stands in the way")
    with running(Proxy(settings | {"record": {"dir": "record", "sample": 1.0}}, tmp_path)) as proxy:
        body = {"model": "recorded", "messages": [{"role": "user", "content": "hello"}]}
        assert http("POST", f"{proxy.url}/v1/chat/completions", body)[0] == 200
        until(lambda: proxy.logs("recording.failed"), what="a log line")
        assert proxy.stop() == 0
