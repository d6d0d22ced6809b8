"""`checkstream bundle check`: faults at their places, cases, what differs, what would be; and what it won't read."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkstream.cli import main
from checkstream.control.drafts.found import Found
from tests.bundled import LOGS, STOPS

Check = Callable[..., tuple[int, Found]]
CASES = "cases:\n  - {name: stops, answer: There is zero risk in it., expect: {action: stop}}\n"
ANSWER = (
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    b'{"content":"There is zero risk in it."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


def write(folder: Path, *rules: str, cases: str = CASES, **files: str) -> Path:
    """Write sources of the bundle `retail` with the program `chat`."""
    text = "pack: {name: ours, version: 1.0.0}\npolicies:\n" + "".join(f"  - {rule}\n" for rule in rules)
    bundle = "bundle: retail\nversion: '1.0'\nprograms:\n  chat: {policies: [ours]}\n"
    written = {"bundle.yaml": bundle, "ours/policy.yaml": text, "ours/tests.yaml": cases, **files}
    for path, content in written.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, encoding="utf-8")
    return folder


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    def call(*words: object) -> tuple[int, Found]:
        code = main(["bundle", "check", *map(str, words), "--json"])
        return code, msgspec.json.decode(capsys.readouterr().out, type=Found)

    return call


def test_a_sound_folder(tmp_path: Path, check: Check) -> None:
    code, found = check(write(tmp_path, STOPS, LOGS))
    (program,) = found.programs
    assert (code, found.sound, program.name, program.policies) == (0, True, "retail/chat", ("ours/policy.yaml",))
    assert (program.cases, program.untested, program.without_cases) == (1, ("R-1", "R-2"), ())


def test_faults_stand_at_their_places_whoever_names_the_file_and_each_once(tmp_path: Path, check: Check) -> None:
    two = "bundle: retail\nversion: '1.0'\nprograms:\n  a: {policies: [ours]}\n  b: {policies: [ours]}\n  c: 7\n"
    write(tmp_path, STOPS.replace("type: stop", "type: stopp"), **{"bundle.yaml": two.replace("  c: 7\n", "")})
    write(tmp_path / "other", STOPS, cases="cases:\n  - {name: x, anser: y}\n")
    write(tmp_path / "third", STOPS, **{"bundle.yaml": two})
    code, found = check(tmp_path)
    places = [(fault.file, fault.line) for fault in found.faults]
    assert code == 2
    assert places[0] == ("ours/policy.yaml", 3)
    assert ("third/bundle.yaml", 6) in places
    assert {place for place in places if place[0].startswith("other")} == {("other/ours/tests.yaml", 2)}
    assert places.count(("ours/policy.yaml", 3)) == 1
    assert str(tmp_path) not in msgspec.json.encode(found).decode()


def test_a_case_that_is_not_as_it_says_is_told_with_what_came(tmp_path: Path, check: Check) -> None:
    code, found = check(write(tmp_path, LOGS))
    (failed,) = found.programs[0].failed
    assert (code, failed.file, failed.line, failed.name) == (1, "ours/tests.yaml", 2, "stops")
    assert any("stop" in line for line in failed.lines)


def test_what_differs_in_rules_and_in_texts(tmp_path: Path, check: Check) -> None:
    before = write(tmp_path / "before", STOPS, LOGS)
    after = write(tmp_path / "after", STOPS.replace("zero risk", "zero risk, sure"), LOGS, **{"new.md": "hello"})
    _, found = check(after, "--against", before)
    assert [(each.rule, each.change, each.needs_approval) for each in found.differences] == [("R-1", "changed", True)]
    assert [(text.path, text.change) for text in found.texts] == [("new.md", "added"), ("ours/policy.yaml", "changed")]
    assert [line[0] for line in found.texts[1].lines if line[0] in "+-"] == ["-", "+"]
    assert found.weighs
    _, found = check(write(tmp_path / "said", STOPS, LOGS.replace("trial", "trials")), "--against", before)
    assert (found.weighs, [each.needs_approval for each in found.differences]) == (False, [False])


def test_what_can_not_be_told_weighs(tmp_path: Path, check: Check) -> None:
    broken = write(tmp_path / "before", STOPS.replace("stop", "stopp"))
    _, found = check(write(tmp_path / "after", STOPS), "--against", broken)
    assert found.weighs
    assert "there is no action `stopp`" in found.before


def test_what_recorded_exchanges_would_have_come_to(tmp_path: Path, check: Check) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    request = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    events: list[dict[str, Any]] = [
        {"type": "RequestReceived", "body": base64.b64encode(json.dumps(request).encode()).decode()},
        {"type": "UpstreamOpened", "status": 200, "streaming": True},
        {"type": "UpstreamBytes", "data": base64.b64encode(ANSWER).decode()},
        {"type": "UpstreamClosed"},
    ]
    lines = ['{"surface": "openai.chat"}', *(json.dumps({"at": 0.1 * n, "event": e}) for n, e in enumerate(events))]
    (runs / "a.jsonl").write_text("\n".join(lines))
    (runs / "b.jsonl").write_text("no recording")
    before, after = write(tmp_path / "before", LOGS, cases="cases: []\n"), write(tmp_path / "after", STOPS)
    _, found = check(after, "--against", before, "--recordings", runs)
    (came,) = found.what_if
    assert (came.program, came.held_against, came.there, came.looked_at, came.unread) == (
        "retail/chat", "before", 2, 1, 1,
    )  # fmt: skip
    assert (came.changed, came.rules) == (1, {"R-1": (0, 1)})
    assert any(line.startswith("-  There is zero risk") for line in came.examples[0].lines)
    _, found = check(after, "--recordings", runs, "--seconds", 0)
    assert (found.what_if[0].held_against, found.what_if[0].looked_at) == ("recorded", 0)
    _, found = check(after, "--recordings", runs, "--program", "retail/none")
    assert found.what_if == ()


@pytest.mark.parametrize(
    ("bundle", "said"),
    [
        ("{a: {policies: [/etc/passwd]}}", "`/etc/passwd` lies outside of the folder"),
        ("{a: {policies: [../../../../../etc/passwd]}}", "lies outside of the folder"),
        ("{a: {policies: [ours], tests: /etc/shadow}}", "`/etc/shadow` lies outside of the folder"),
        ("{a: {policies: ['builtin:../../secrets']}}", "there is no policy `builtin:../../secrets`"),
        ("{a: {policies: [link.yaml]}}", "lies outside of the folder"),
        ("{a: {policies: [linked]}}", "lies outside of the folder"),
        ('{a: {policies: ["a\\0b"]}}', "bundle.yaml"),
        ("{a: {policies: [ours]}}\nmodels: m.yaml", "the `models` of a bundle are not read here"),
        ("{a: {policies: [nothing.yaml]}}", "there is no file `nothing.yaml`"),
        ("{a: {policies: [pipe]}}", "there is no file `pipe`"),
        ("{a: &a {policies: [ours]}, b: *a}", "bundle.yaml"),
    ],
)
def test_no_file_outside_of_the_folder_is_read(tmp_path: Path, check: Check, bundle: str, said: str) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text("password: hunter2")
    folder = write(tmp_path / "src", STOPS, **{"bundle.yaml": f"bundle: b\nversion: '1'\nprograms: {bundle}\n"})
    (folder / "link.yaml").symlink_to(secret)
    (folder / "linked").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    code, found = check(folder, "--against", folder)
    told = "\n".join(fault.render() for fault in found.faults)
    assert code == 2
    assert said in told
    assert "hunter2" not in told
    assert "root:" not in told


def test_a_folder_without_bundles_says_what_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bundle", "check", str(tmp_path)]) == 2
    assert "bundle.yaml: there is no such file; say in it" in capsys.readouterr().out
    assert main(["bundle", "check", str(tmp_path / "none")]) == 2
    assert "can't read the folder" in capsys.readouterr().err


def test_people_read_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = (
        write(tmp_path / "before", STOPS),
        write(tmp_path / "after", STOPS, LOGS, cases=CASES.replace("stop}", "allow}")),
    )
    assert main(["bundle", "check", str(after), "--against", str(before)]) == 1
    said = capsys.readouterr().out
    assert "FAIL ours/tests.yaml:2: stops" in said
    assert "added retail/chat/R-2\n" in said
    assert said.endswith("0 faults, 1 failed case\n")
