from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from checkstream.core.commands import AnyCommand, Assess, Record, Score, SendDownstream
from checkstream.core.events import (
    AnyEvent,
    Assessed,
    RequestReceived,
    Scored,
    ToolsKept,
    ToolsKnown,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.core.exchange.guard import Guard, Plan
from checkstream.core.exchange.machine import machine_for
from checkstream.core.exchange.plan import Assessing
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.transcript import Transcript, decode, digest_of
from checkstream.core.wire.mcp.surface import MCP
from checkstream.proxy import recorder as module
from checkstream.proxy.recorder import Outcome, Recorder, RecorderSettings, sampled
from checkstream.trial.installed import InstalledModels
from checkstream.trial.replay import replay
from tests import mcp
from tests.recordings import CHAT, answer_of, body_of, delta, request, say, streamed

POLICY = b"""pack: {name: t, version: 1.0.0}
policies:
  - {name: mail, id: MAIL, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}
  - {name: tox, id: TOX, stage: [midstream], channels: [content],
     classifiers: [{name: toy.alpha, threshold: 0.5}], actions: [{type: stop, message: Enough.}]}
"""
PLAN = Plan(program=compile_sources([("t", POLICY)], (ClassifierLabel("toy.alpha"),)))
NOW = dt.datetime(2026, 11, 22, 5, 0, tzinfo=dt.UTC)
MAIL = "joe@example.com"


class Told:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.errors: list[BaseException | None] = []

    def recording(self, outcome: Outcome, stream: str, error: BaseException | None = None) -> None:
        self.heard.append((outcome, stream))
        self.errors.append(error)


def exchange(recorder: Recorder, stream: str, *events: AnyEvent, assessed: bool = False) -> list[AnyCommand]:
    """Run an exchange that is followed by the recorder; every check is calm."""
    plan = msgspec.structs.replace(PLAN, assessing=Assessing(always=True)) if assessed else PLAN
    guard = Guard(surface=CHAT, plan=plan, digest=str)
    machine = recorder.follow(guard, CHAT, plan, stream=stream, route="chat")
    commands: list[AnyCommand] = []
    pending = list(events)
    at = 100.0
    while pending:
        at += 0.01
        said = machine.receive(pending.pop(0), at)
        commands += said
        pending[:0] = [Scored(score.ticket, {"toy.alpha": 0.1}) for score in said if isinstance(score, Score)]
        pending += [FOUND for command in said if isinstance(command, Assess)]
    return commands


FOUND = Assessed({"risk": msgspec.Raw(b'{"claims": ["Write to bob@example.org"]}')}, {"watchdog": 35.0})


def run(
    folder: Path, *events: AnyEvent, masked: bool = True, sample: float = 1.0, streams: tuple[str, ...] = ("aa",)
) -> tuple[Told, list[Transcript]]:
    """Record exchanges; return what was told, and the files."""
    told = Told()
    recorder = Recorder(RecorderSettings(directory=folder, sample=sample, masked=masked), told, now=lambda: NOW)
    for stream in streams:
        exchange(recorder, stream, *events)
    recorder.close()
    files = sorted(folder.glob("*.jsonl")) if folder.is_dir() else []
    return told, [decode(path.read_bytes()) for path in files]


@pytest.mark.parametrize("masked", [True, False])
def test_what_evidence_said_is_recorded_without_its_words(tmp_path: Path, masked: bool) -> None:
    told = Told()
    recorder = Recorder(RecorderSettings(directory=tmp_path, sample=1.0, masked=masked), told, now=lambda: NOW)
    commands = exchange(recorder, "aa", request("hi"), *ANSWER, assessed=True)
    recorder.close()
    assert told.heard == [("written", "aa")]
    assert any(b"bob@" in command.data for command in commands if isinstance(command, SendDownstream))
    content = next(tmp_path.glob("*.jsonl")).read_bytes()
    assert b"bob@" not in content
    kept = [line.event for line in decode(content).lines if isinstance(line.event, Assessed)]
    assert kept == ([] if masked else [Assessed(risks={"watchdog": 35.0})])


ANSWER = streamed(say(["All is well. ", "Write to joe@", "example.com today."]))


def test_an_exchange_is_recorded_masked_with_what_came_of_it(tmp_path: Path) -> None:
    told, (kept,) = run(tmp_path, request(f"I am {MAIL}"), *ANSWER)
    assert told.heard == [("written", "aa")]
    assert "mask@example.invalid" in answer_of(kept)
    assert body_of(kept)["messages"][0]["content"] == "I am mask@example.invalid"
    header = kept.header
    assert (header.masked, header.route, header.stream, header.policies) == (True, "chat", "aa", ("t@1.0.0",))
    assert (header.action, header.outcome, header.fired) == ("redact", "complete", {"MAIL": 1})
    assert kept.lines[0].at == 0
    assert MAIL.encode() not in next(tmp_path.glob("*.jsonl")).read_bytes()


def test_a_plain_recording_is_the_exchange_as_it_was(tmp_path: Path) -> None:
    received = request(f"I am {MAIL}")
    told, (kept,) = run(tmp_path, received, *ANSWER, masked=False)
    assert told.heard == [("written", "aa")]
    events = [line.event for line in kept.lines]
    *answer, _ = ANSWER  # a rule has fired: the exchange ends at the answer's last word, not where the upstream closes
    assert [event for event in events if not isinstance(event, Scored)] == [received, *answer]
    assert all(line.asked for line in kept.lines if isinstance(line.event, Scored))
    assert not kept.header.masked


def test_answers_of_classifiers_are_recorded_with_what_was_asked(tmp_path: Path) -> None:
    _, (kept,) = run(tmp_path, request(), *streamed(say(["All is well."])))
    asked = [line.asked for line in kept.lines if isinstance(line.event, Scored)]
    assert digest_of(Score(0, ("toy",), "All is well.", 50.0)) in asked


def test_the_caller_gets_the_same_with_and_without_a_recorder(tmp_path: Path) -> None:
    recorder = Recorder(RecorderSettings(directory=tmp_path, sample=1.0), Told(), now=lambda: NOW)
    with_it = exchange(recorder, "aa", request(), *ANSWER)
    none = Recorder(RecorderSettings(directory=tmp_path, sample=0.0), Told(), now=lambda: NOW)
    without = exchange(none, "aa", request(), *ANSWER)
    assert with_it == without
    assert any(isinstance(command, SendDownstream) for command in with_it)
    recorder.close()
    none.close()


def test_the_sample_depends_on_the_stream_alone_and_has_its_share() -> None:
    streams = [f"{number:024x}" for number in range(4000)]
    chosen = [stream for stream in streams if sampled(stream, 0.1)]
    assert chosen == [stream for stream in streams if sampled(stream, 0.1)]
    assert 320 < len(chosen) < 480
    assert set(chosen) <= {stream for stream in streams if sampled(stream, 0.2)}
    assert not any(sampled(stream, 0.0) for stream in streams)
    assert all(sampled(stream, 1.0) for stream in streams)


def test_only_the_sample_is_recorded(tmp_path: Path) -> None:
    streams = tuple(f"{number:04x}" for number in range(40))
    _, kept = run(tmp_path, request(), *ANSWER, sample=0.3, streams=streams)
    assert {transcript.header.stream for transcript in kept} == {s for s in streams if sampled(s, 0.3)}


def test_what_cannot_be_masked_is_counted_and_never_written(tmp_path: Path) -> None:
    told, kept = run(tmp_path, request(f"I am {MAIL}"), *streamed(b"data: not json\n\n"))
    assert told.heard == [("unmaskable", "aa")]
    assert kept == []
    assert list(tmp_path.glob("[!.]*")) == []


def test_an_exchange_that_is_too_large_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_EXCHANGE_BYTES", 100)
    told, kept = run(tmp_path, request(), UpstreamBytes(b"x"), *ANSWER)
    assert told.heard == [("too_large", "aa")]
    assert kept == []


def test_more_than_can_be_written_in_time_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PENDING_BYTES", 10)
    told, kept = run(tmp_path, request(), *ANSWER)
    assert told.heard == [("overload", "aa")]
    assert kept == []


@pytest.mark.parametrize("masked", [True, False])
def test_a_directory_that_cannot_be_written_never_reaches_the_exchange(tmp_path: Path, masked: bool) -> None:
    (tmp_path / "record").write_text("a file stands in the way")
    told = Told()
    recorder = Recorder(
        RecorderSettings(directory=tmp_path / "record", sample=1.0, masked=masked), told, now=lambda: NOW
    )
    commands = exchange(recorder, "aa", request(), *ANSWER)
    recorder.close()
    assert isinstance(next(command for command in commands if isinstance(command, Record)), Record)
    assert told.heard == [("unwritable", ""), ("unwritable", "aa")]
    assert all(isinstance(error, OSError) for error in told.errors)


def test_a_bug_in_masking_is_never_an_exchanges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("checkstream.proxy.masking.Masker.mask", broken)
    told, kept = run(tmp_path, request(), *ANSWER, streams=("aa", "bb"))
    assert told.heard == [("crashed", "aa"), ("crashed", "bb")]
    assert kept == []


def test_what_is_old_is_removed_at_the_start_and_hourly(tmp_path: Path) -> None:
    old = tmp_path / "20261101T000000000000Z-aa.jsonl"
    old.write_text("x")
    clock = [NOW]
    recorder = Recorder(RecorderSettings(directory=tmp_path, sample=1.0), Told(), now=lambda: clock[0])
    exchange(recorder, "aa", request(), *ANSWER)
    until(lambda: len(list(tmp_path.glob("*-aa.jsonl"))) == 1 and not old.exists())
    clock[0] = NOW + dt.timedelta(days=8)
    exchange(recorder, "bb", request(), *ANSWER)
    recorder.close()
    assert [path.name[-8:] for path in tmp_path.glob("[!.]*")] == ["bb.jsonl"]


def until(holds: Callable[[], bool]) -> None:
    """Wait for the recorder's thread."""
    for _ in range(100_000_000):
        if holds():
            return
    raise AssertionError("it never came")


def test_an_exchange_that_goes_on_after_its_record_is_not_kept_twice(tmp_path: Path) -> None:
    told, kept = run(tmp_path, request(), *ANSWER, UpstreamClosed(), RequestReceived(b"{}"))
    assert told.heard == [("written", "aa")]
    assert len(kept) == 1


def test_a_stop_is_recorded_up_to_where_it_cut_the_upstream_off(tmp_path: Path) -> None:
    told = Told()
    recorder = Recorder(RecorderSettings(directory=tmp_path, sample=1.0), told, now=lambda: NOW)
    guard = Guard(surface=CHAT, plan=PLAN, digest=str)
    machine = recorder.follow(guard, CHAT, PLAN, stream="aa", route="chat")
    data = b"".join(delta({"content": f"word {number} "}) for number in range(40))
    pending: list[AnyEvent] = [request(), *streamed(data)]
    while pending:
        said = machine.receive(pending.pop(0), 1.0)
        pending[:0] = [Scored(score.ticket, {"toy.alpha": 0.9}) for score in said if isinstance(score, Score)]
    recorder.close()
    assert told.heard == [("written", "aa")]
    kept = decode(next(tmp_path.glob("*.jsonl")).read_bytes())
    assert (kept.header.outcome, kept.header.fired) == ("stopped", {"TOX": 1})


@pytest.mark.parametrize("masked", [False, True])
def test_messages_of_tools_are_recorded_as_they_are_or_not_at_all_and_run_again(tmp_path: Path, masked: bool) -> None:
    told = Told()
    recorder = Recorder(RecorderSettings(directory=tmp_path, sample=1.0, masked=masked), told, now=lambda: NOW)
    plan = msgspec.structs.replace(mcp.PLAN, keeps_tools=True)
    guard = machine_for(MCP, plan, str)
    machine = recorder.follow(guard, MCP, plan, stream="aa", route="tools")
    assert (machine is guard) == masked
    tools = mcp.result(1, tools=[{"name": "look", "inputSchema": {}, "description": f"Uses {mcp.SECRET}."}])
    events: list[AnyEvent] = [
        RequestReceived(mcp.request("tools/list"), "app"),
        UpstreamOpened(200, streaming=True),
        UpstreamBytes(mcp.event(tools)),
        ToolsKnown(),
        ToolsKept(),
        UpstreamClosed(),
    ]
    sent = [command for at, event in enumerate(events) for command in machine.receive(event, float(at))]
    recorder.close()
    released = b"".join(command.data for command in sent if isinstance(command, SendDownstream))
    assert b"Uses [AWS_ACCESS_KEY]." in released
    files = [decode(path.read_bytes()) for path in tmp_path.glob("*.jsonl")]
    if masked:
        assert (files, told.heard) == ([], [])
        return
    [transcript] = files
    assert not any(isinstance(line.event, ToolsKnown | ToolsKept) for line in transcript.lines)
    again = replay(transcript, mcp.PLAN.program, InstalledModels())
    assert again.downstream == released
    assert again.fired == {"SEC-1": 1}
    assert mcp.SECRET.encode() in replay(transcript, PLAN.program, InstalledModels()).downstream
