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


OTHER = (
    POLICY.replace("id: R-1", "id: R-1, stage: [midstream]")
    .replace("redact", "stop, message: Halt")
    .replace("R-1", "S-1")
)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(RUN)
    (folder / "b.jsonl").write_bytes(RUN.replace(base64.b64encode(ANSWER), base64.b64encode(b"data: [DONE]\n\n")))
    (folder / "c.jsonl").write_bytes(RUN[:-20])
    (folder / "d.jsonl").write_bytes(b'{"surface": "nope"}')
    (folder / "notes.txt").write_text("not a transcript")
    (tmp_path / "o.yaml").write_text(OTHER)
    return folder


def test_many_are_compared_by_rule_and_broken_ones_are_named(
    runs: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = str(runs.parent / "o.yaml")
    assert main(["replay", str(runs), "--policy", other, "--against", policy, "--diff", "1"]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == "2 exchanges: t@1.0.0 -> t@1.0.0"
    assert lines[1:4] == ["  R-1      1 -> 0      -1", "  S-1      0 -> 1      +1", "1 changed"]
    assert lines[4] == f"  {runs / 'a.jsonl'}: action redact -> stop, R-1 1 -> 0, S-1 0 -> 1"
    assert "    -  write to [EMAIL] now" in lines
    assert "    +  write to Halt" in lines
    assert f"{runs / 'c.jsonl'}: line 5 is not of a transcript" in shown.err
    assert f"{runs / 'd.jsonl'}: line 1: there is no surface `nope`" in shown.err


def test_many_as_json(runs: Path, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(runs), "--policy", policy, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["against"] is None
    assert report["comparison"]["rules"] == {"R-1": {"before": 0, "after": 1}}
    assert [row["file"][-7:] for row in report["unread"]] == ["c.jsonl", "d.jsonl"]


def test_a_change_can_fail_the_command(runs: Path, policy: str) -> None:
    other = str(runs.parent / "o.yaml")
    run = str(runs / "a.jsonl")
    assert main(["replay", run, "--policy", other, "--against", policy, "--fail-on-change"]) == 1
    assert main(["replay", run, "--policy", policy, "--against", policy, "--fail-on-change"]) == 0


def test_nothing_that_can_be_replayed_is_wrong_use(
    runs: Path, tmp_path: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["replay", str(tmp_path / "empty"), "--policy", policy]) == 2
    assert "holds no transcript" in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "gone.jsonl"), "--policy", policy]) == 2
    assert "gone.jsonl`: no such file or directory" in capsys.readouterr().err
    assert main(["replay", str(runs / "a.jsonl"), str(tmp_path / "gone.jsonl"), "--policy", policy]) == 2
    assert "gone.jsonl`: no such file or directory" in capsys.readouterr().err
    assert main(["replay", "x" * 5000, "--policy", policy]) == 2
    assert "file name too long" in capsys.readouterr().err
    assert main(["replay", "/dev/zero", "--policy", policy]) == 2
    assert "is no file" in capsys.readouterr().err
    assert main(["replay", str(runs / "c.jsonl"), str(runs / "d.jsonl"), "--policy", policy]) == 2
    assert main(["replay", str(runs), "--policy", str(tmp_path / "gone.yaml")]) == 2


def test_a_recording_that_is_named_twice_counts_once(
    runs: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(runs), str(runs / "a.jsonl"), "--policy", policy, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["comparison"]["transcripts"] == 2


def test_recordings_that_do_not_say_what_came_of_them_are_counted(
    runs: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(runs), "--policy", policy, "--fail-on-change"]) == 0
    assert "2 don't say what had come of them; give --against" in capsys.readouterr().out
    assert main(["replay", str(runs), "--policy", policy, "--against", policy]) == 0
    assert "don't say" not in capsys.readouterr().out


@pytest.mark.parametrize("diffs", ["-1", "x", "", "1.5", "\u0663", "9" * 5000])
def test_a_number_of_diffs_that_is_none(diffs: str, runs: Path, policy: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(runs), "--policy", policy, "--diff", diffs])
    assert ended.value.code == 2


def test_texts_of_recordings_do_not_steer_the_terminal(
    runs: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = base64.b64encode(ANSWER.replace(b"write to", b"\\u001b[2J write to"))
    (runs / "a.jsonl").write_bytes(RUN.replace(base64.b64encode(ANSWER), hostile))
    other = str(runs.parent / "o.yaml")
    assert main(["replay", str(runs), "--policy", other, "--against", policy, "--diff", "9"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[2J write to" in out


def test_what_masking_makes_alike_is_said_where_a_rule_spares_values(
    policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sparing = tmp_path / "sparing.yaml"
    sparing.write_text(POLICY.replace("[EMAIL]", "[{name: EMAIL, unless: in_request}]"))
    run = tmp_path / "run.jsonl"
    said = "masked recordings under a policy with `unless: in_request` or `allow`: 1;"
    for header, used, told in (("true", sparing, True), ("true", policy, False), ("false", sparing, False)):
        run.write_bytes(RUN.replace(b'{"surface"', b'{"masked": ' + header.encode() + b', "surface"', 1))
        assert main(["replay", str(run), "--policy", str(used)]) == 0
        assert (said in capsys.readouterr().err) is told
        assert main(["replay", str(run), "--policy", str(used), "--against", str(policy)]) == 0
        assert (said in capsys.readouterr().out) is told
