from __future__ import annotations

import base64
import json
from pathlib import Path

import msgspec
import pytest

from checkstream.cli import main
from checkstream.cli.replay import replay
from checkstream.core.events import AnyEvent, RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.errors import WireError

REQUEST = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
ANSWER = (
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    b'{"content":"write to joe@example.com now"},"finish_reason":null}]}\n\n'
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},'
    b'"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
POLICY = (
    "pack: {name: t, version: 1.0.0}\npolicies: [{name: r, id: R-1, entities: [EMAIL], actions: [{type: redact}]}]\n"
)


def transcript(*events: AnyEvent) -> bytes:
    lines = [b'{"surface": "openai.chat"}']
    lines += [msgspec.json.encode({"at": number / 10, "event": event}) for number, event in enumerate(events)]
    return b"\n".join(lines)


RUN = transcript(RequestReceived(REQUEST), UpstreamOpened(200, streaming=True), UpstreamBytes(ANSWER), UpstreamClosed())


@pytest.fixture
def policy(tmp_path: Path) -> str:
    (tmp_path / "p.yaml").write_text(POLICY)
    return str(tmp_path / "p.yaml")


def test_a_transcript_is_what_another_policy_would_have_done(policy: str) -> None:
    outcome = replay(RUN, [policy])
    assert "joe@example.com" not in outcome.downstream
    assert outcome.closed
    assert outcome.record is not None
    assert [verdict.rule_id for verdict in outcome.record.verdicts] == ["R-1"]


def test_every_cut_replays_the_same(policy: str) -> None:
    bodies = [ANSWER[place : place + 7] for place in range(0, len(ANSWER), 7)]
    cut = transcript(
        RequestReceived(REQUEST),
        UpstreamOpened(200, streaming=True),
        *(UpstreamBytes(body) for body in bodies),
        UpstreamClosed(),
    )
    assert replay(cut, [policy]).downstream == replay(RUN, [policy]).downstream


def test_checks_that_the_recording_does_not_answer_fail() -> None:
    outcome = replay(RUN, ["builtin:default"])
    assert outcome.record is not None
    assert outcome.closed


def test_the_command_prints_text_and_verdicts(tmp_path: Path, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(RUN)
    assert main(["replay", str(file), "--policy", policy]) == 0
    shown = capsys.readouterr()
    assert "data: [DONE]" in shown.out
    assert "R-1 redact enforce midstream:content" in shown.err
    assert main(["replay", str(file), "--policy", policy, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["record"]["action"] == "redact"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "header"),
        (b"{}", "line 1"),
        (b'{"surface": "nope"}', "no surface `nope`"),
        (b'{"surface": "openai.chat"}\n{"at": 1}', "line 2"),
        (b'{"surface": "openai.chat"}\n\xff', "line 2"),
        (base64.b64encode(b"x" * 99), "line 1"),
    ],
)
def test_what_is_no_transcript_says_where(content: bytes, said: str, policy: str) -> None:
    with pytest.raises(WireError, match=said):
        replay(content, [policy])


def test_the_transcript_that_the_help_shows_is_one(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["replay", "--help"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  {")]
    outcome = replay("\n".join(lines).encode(), [policy])
    assert len(lines) == 5
    assert outcome.record is not None
