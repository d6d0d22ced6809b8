"""What a workflow of GitHub reads in our output: our annotations, and nothing that others wrote."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from checkstream.cli import main
from checkstream.cli.workflow import annotate
from checkstream.gate.ledger import Ledger
from checkstream.gate.terms import Run, Said

HOSTILE = "x\n::error::forged\r\n  ::set-output name=a::b\n##[add-mask]x%0A"


def commands(output: str) -> list[str]:
    """Return the commands that GitHub's runner would carry out."""
    found, stopped = [], ""
    for line in output.splitlines():
        plain = line.lstrip()
        if stopped:
            stopped = "" if plain == f"::{stopped}::" else stopped
        elif plain.startswith("::stop-commands::"):
            stopped = plain.removeprefix("::stop-commands::")
        elif plain.startswith("::") or "##[" in line:
            found.append(line)
    assert not stopped, "commands are not read again"
    return found


@pytest.fixture(autouse=True)
def workflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")


def test_an_annotation_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    annotate(sys.stderr, "error", "gate", HOSTILE)
    (line,) = commands(capsys.readouterr().err)
    assert line.startswith("::error title=gate::x%0A::error::forged%0D%0A")
    assert line.endswith("x%250A")


@pytest.mark.parametrize("arguments", [["gate", "--config", HOSTILE], ["worker", "--config", HOSTILE]])
def test_an_error_is_no_command(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert "##[add-mask]" in told
    assert commands(told) == []


@pytest.mark.parametrize("action", [["search", "refunds"], ["runs"], ["trend"]])
def test_what_runs_said_is_no_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], action: list[str]) -> None:
    ledger = Ledger(tmp_path / "gate.db")
    run = Run(run_id="r1", config_hash="c", target=HOSTILE, verifier="v", snapshot="s", begun=1.0)
    ledger.begin(run)
    said = Said(run_id="r1", kind="claim", item="p1", at=1.0, text=f"refunds {HOSTILE}")
    ledger.end(msgspec.structs.replace(run, ended=2.0, decision="deploy", risk=0.0, failure=HOSTILE), "{}", [said])
    assert main(["gate", *action, "--history", str(tmp_path / "gate.db")]) == 0
    out = capsys.readouterr().out
    assert "##[add-mask]" in out
    assert commands(out) == []


def test_elsewhere_nothing_is_added(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert main(["gate", "--config", "none.yaml"]) == 2
    told = "checkstream: `none.yaml` can't be read: no such file or directory; give `--config`\n"
    assert capsys.readouterr().err == told
