from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from checkstream.cli import policy
from checkstream.cli.parser import Parser
from checkstream.config import bundled
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.errors import ModelError

GOOD = """pack: {name: good, version: 1.0.0}
policies:
  - {name: mail, id: M-1, entities: [EMAIL], actions: [{type: redact}]}
  - name: tox
    id: T-1
    stage: [midstream]
    classifiers: [{name: toy.alpha, threshold: 0.5}]
    actions: [{type: stop}]
"""
NOTHING: dict[str, list[object]] = {"exempt": [], "degraded": []}


@pytest.fixture(autouse=True)
def _labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "installed_labels", lambda _: (ClassifierLabel("toy.alpha"),))


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD, encoding="utf-8")
    return str(path)


def call(*arguments: str) -> int:
    return policy.run(Parser(prog="checkstream policy", later=policy.add_arguments).parse_args([*arguments]))


def test_check_a_sound_file(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("check", good) == 0
    assert capsys.readouterr().out.startswith("good@1.0.0: 2 rules, 2 detectors, program ")
    assert call("check", good, "--json") == 0
    report = msgspec.json.decode(capsys.readouterr().out)
    assert (report["ok"], report["packs"], report["rules"]) == (True, ["good@1.0.0"], 2)


def test_check_a_faulty_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(GOOD.replace("EMAIL", "EMIAL").replace("stop", "stpo"), encoding="utf-8")
    assert call("check", str(path)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{path}:3:38: there is no entity `EMIAL`; did you mean `EMAIL`?" in said.err
    assert said.err.endswith("2 faults\n")
    assert call("check", str(path), "--json") == 2
    report = msgspec.json.decode(capsys.readouterr().out)
    assert [fault["line"] for fault in report["faults"]] == [3, 8]


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("check", str(tmp_path / "gone.yaml")) == 2
    assert "gone.yaml`: no such file" in capsys.readouterr().err
    assert call("check", "builtin:nothing") == 2
    assert "builtin:nothing" in capsys.readouterr().err


def test_explain(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("explain", good, "--text", "joe@example.com", "--score", "toy.alpha=0.7") == 0
    assert capsys.readouterr().out.splitlines() == [
        "FIRED  M-1 -> redact: entity:EMAIL found at 0..15",
        "FIRED  T-1 -> stop: classifier:toy.alpha score 0.7 >= threshold 0.5",
        "result: stop; the caller gets",
        "  content: ",
    ]


SPARING = """pack: {name: sparing, version: 1.0.0}
policies:
  - name: contacts
    id: C-1
    stage: [midstream]
    entities: [EMAIL, PHONE]
    unless: in_request
    allow: {domains: [ours.example]}
    actions: [{type: redact}]
  - {name: cards, id: C-2, entities: [CREDIT_CARD], actions: [{type: reject, message: No cards.}]}
  - {name: ours, id: C-3, phrases: [reference], priority: 9, actions: [{type: allow}]}
  - {name: words, id: C-4, stage: [midstream], phrases: [reference], actions: [{type: redact}]}
"""


def test_explain_says_what_was_spared_and_what_comes_of_the_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sparing.yaml"
    path.write_text(SPARING)
    text = "Ask joe@example.com,\nhelp@ours.example or ann@example.org (reference 1)\x1b"
    assert call("explain", str(path), "--text", text, "--prompt", "I am Joe@Example.com") == 0
    fired, _, exempting, exempted, *rest = capsys.readouterr().out.splitlines()
    assert fired == (
        "FIRED  C-1 -> redact: entity:EMAIL found at 42..57, "
        "4..19 spared (`unless: in_request`: channel `user` has it), 21..38 spared (`allow` has its domain)"
    )
    assert exempting.startswith("FIRED  C-3 -> allow")
    assert exempted.startswith("FIRED  C-4 -> redact")
    assert rest == [
        "excepted C-4 by C-3 at 59..68",
        "result: redact; the caller gets",
        "  content: Ask joe@example.com,",
        "    help@ours.example or [EMAIL] (reference 1)\\x1b",
    ]
    assert call("explain", str(path), "--text", "help@ours.example", "--json") == 0
    first, *_, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["outcome"] == "not_fired"
    assert first["reason"] == "entity:EMAIL 0..17 spared (`allow` has its domain)"
    assert first["triggers"][0]["spared"] == [{"span": {"start": 0, "end": 17}, "why": "`allow` has its domain"}]
    assert last["result"]["texts"] == {"content": "help@ours.example"}


def test_explain_a_prompt_says_what_the_model_gets_or_the_caller_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sparing.yaml"
    path.write_text(SPARING)
    ingress = ("explain", str(path), "--stage", "ingress", "--text")
    assert call(*ingress, "card 4111 1111 1111 1111") == 0
    assert (
        capsys.readouterr().out.splitlines()[-1].startswith("result: reject; the caller is told: No cards. (rule C-2")
    )
    assert call(*ingress, "joe@example.com") == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["result: allow; the model gets", "  user: joe@example.com"]
    assert call(*ingress, "joe@example.com", "--channel", "document") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "result: allow; documents are read and not forwarded"
    assert call(*ingress, "x", "--prompt", "y") == 2
    assert "`--prompt` goes with answers" in capsys.readouterr().err


def test_explain_a_prompt_from_standard_input(
    good: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"nothing here")))
    assert call("explain", good, "--text", "-", "--stage", "ingress", "--json") == 0
    *reports, result = map(msgspec.json.decode, capsys.readouterr().out.splitlines())
    assert result == {"result": {"action": "allow", "texts": {"user": "nothing here"}, "error": "", **NOTHING}}
    assert [(report["rule_id"], report["outcome"]) for report in reports] == [
        ("M-1", "not_fired"),
        ("T-1", "out_of_scope"),
    ]


def test_explain_says_where_standard_input_is_not_utf_8(
    good: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x\xff")))
    assert call("explain", good, "--text", "-") == 2
    assert "not UTF-8 at byte `1`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--score", "toy.alpha=7"], "is not a score"),
        (["--score", "toy.alpha"], "is not a score"),
        (["--score", "toy.beta=0.5"], "no rule reads the score `toy.beta`"),
        (["--channel", "user"], "has no channel `user`"),
    ],
)
def test_explain_used_wrongly(good: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("explain", good, "--text", "x", *arguments) == 2
    assert said in capsys.readouterr().err


def test_disassemble(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("disassemble", good) == 0
    assert "rule M-1 enforce" in capsys.readouterr().out


def test_models_that_cannot_be_read(
    good: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> tuple[ClassifierLabel, ...]:
        raise ModelError("the manifest is broken")

    monkeypatch.setattr(policy, "installed_labels", broken)
    assert call("check", good) == 2
    assert "the manifest is broken" in capsys.readouterr().err


def test_explain_asks_the_models_that_are_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the labels of the package itself
    assert call("explain", "builtin:default", "--text", "You are a worthless idiot, kill yourself") == 0
    assert "FIRED  TOX-001" in capsys.readouterr().out
    assert call("explain", "builtin:default", "--text", "Good morning", "--score", "safety.toxicity=0.95") == 0
    assert "safety.toxicity score 0.95" in capsys.readouterr().out


@pytest.mark.parametrize("pack", [*sorted(each.parent.name for each in bundled("policies").glob("*/policy.yaml"))])
def test_explain_says_of_no_rule_that_it_refuses_what_goes_on(
    pack: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    for more in (("--stage", "ingress"), ("--stage", "ingress", "--channel", "document"), ("--prompt", "Good morning")):
        assert call("explain", f"builtin:{pack}", "--text", "Good morning, will it rain?", "--json", *more) == 0
        *reports, result = map(msgspec.json.decode, capsys.readouterr().out.splitlines())
        assert result["result"]["error"] == ""
        refusing = {"reject", "require_confirmation", "remove_message", "stop"}
        assert [each for each in reports if each["outcome"] == "fired" and refusing & set(each["actions"])] == []


def test_explain_says_which_names_were_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the models of the package itself
    path = tmp_path / "names.yaml"
    rule = "{name: n, id: N-1, stage: [midstream], entities: [PERSON], unless: in_request, actions: [{type: redact}]}"
    path.write_text(f"pack: {{name: names, version: 1.0.0}}\npolicies:\n  - {rule}\n")
    text = "Anna's doctor is Peter Jones."
    assert call("explain", str(path), "--text", text, "--prompt", "I am Anna Schmidt") == 0
    fired, *rest = capsys.readouterr().out.splitlines()
    spared = "0..4 spared (`unless: in_request`: channel `user` has it)"
    assert fired == f"FIRED  N-1 -> redact: entity:PERSON found at 17..28, {spared}"
    assert rest == ["result: redact; the caller gets", "  content: Anna's doctor is [PERSON]."]


RICH = """pack: {name: rich, version: 1.0.0}
policies:
  - name: young
    id: AGE
    stage: [midstream]
    entities: [EMAIL]
    conditions: [context.user.age < 18, 'request.model == "big"', 'request.caller == "app"']
    actions: [{type: redact}]
  - {name: long, id: LONG, stage: [egress], conditions: [stream.tokens > 3], actions: [{type: log_event}]}
"""


def test_explain_under_a_context(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rich.yaml"
    path.write_text(RICH)
    common = [
        "explain",
        str(path),
        "--text",
        "mail joe@example.com today my friend",
        "--model",
        "big",
        "--caller",
        "app",
    ]
    assert call(*common, "--context", '{"user": {"age": 9}}') == 0
    assert capsys.readouterr().out.startswith(
        "FIRED  AGE -> redact: entity:EMAIL found at 5..20; `context.user.age < 18`"
    )
    assert call(*common, "--context", '{"user": {"age": 40}}') == 0
    assert "-      AGE: `context.user.age < 18` is false" in capsys.readouterr().out
    assert call(*common, "--fail-mode", "open") == 0
    assert "the fail mode lets it pass" in capsys.readouterr().out
    assert call(*common, "--stage", "egress") == 0
    assert "FIRED  LONG -> log_event: `stream.tokens > 3` is true" in capsys.readouterr().out


@pytest.mark.parametrize("context", ["", "[1]", "{", '{"a": 1, "a": 2}', '{"a": ' + "[" * 99 + "]" * 99 + "}"])
def test_explain_under_a_context_that_is_none(good: str, context: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("explain", good, "--text", "x", "--context", context) == 2
    said = capsys.readouterr().err
    assert said.startswith("checkstream policy: the argument `--context` ")
    assert "header" not in said


def test_a_program_is_kept_under_its_hash_and_read_back(
    good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("check", good, "--write", str(tmp_path / "programs"), "--json") == 0
    name = json.loads(capsys.readouterr().out)["program"]
    kept = tmp_path / "programs" / f"{name}.json"
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    assert call("disassemble", good) == 0
    written = capsys.readouterr().out
    assert call("disassemble", str(kept)) == 0
    assert capsys.readouterr().out == written


@pytest.mark.parametrize(
    ("change", "said"),
    [(lambda data: data[:-1], "hash"), (lambda data: data.replace(b"enforce", b"shadow!"), "hash")],
)
def test_a_stored_program_that_is_not_what_its_name_says_is_refused(
    good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[bytes], bytes], said: str
) -> None:
    call("check", good, "--write", str(tmp_path), "--json")
    kept = tmp_path / f"{json.loads(capsys.readouterr().out)['program']}.json"
    kept.write_bytes(change(kept.read_bytes()))
    assert call("disassemble", str(kept)) == 2
    assert said in capsys.readouterr().err


def test_a_program_that_can_not_be_written_is_said_to_be(
    good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert call("check", good, "--write", str(tmp_path / "file")) == 2
    assert "can't write to" in capsys.readouterr().err
