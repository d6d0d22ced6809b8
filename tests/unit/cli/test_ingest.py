"""`checkstream ingest` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from checkstream.cli import main


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Refunds\n\nRefunds are paid within 30 days.")
    return tmp_path / "docs"


def test_documents_are_brought_in_and_counted(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", "docs", "--store", "sqlite:e.db"]) == 0
    assert capsys.readouterr().out.startswith("1 added\n1 chunk, snapshot ")
    assert main(["ingest", "docs", "--store", "sqlite:e.db", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["unchanged"], found["added"], found["chunks"]) == (1, 0, 1)
    assert docs.is_dir()


def test_a_document_that_can_not_be_read_is_named_and_the_answer_is_no(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (docs / "b.md").write_bytes(b"\x00")
    assert main(["ingest", "docs"]) == 1
    shown = capsys.readouterr()
    assert "1 added, 1 failed" in shown.out
    assert "docs/b.md: it holds bytes" in shown.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "no sources are given"),
        (["nowhere"], "there is no `nowhere`"),
        (["https://evil.example/x"], "nothing is fetched from `evil.example`"),
        (["docs", "--store", "mysql://x"], "`mysql://x` is no store"),
        (["docs", "--allow-host", "a b"], "`a b` is no name of a host"),
        (["docs", "--store", "sqlite:docs"], "can't be used"),
    ],
)
def test_wrong_use_is_told(docs: Path, arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert docs.is_dir()
    assert main(["ingest", *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_sources_and_store_come_from_the_configuration(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (docs.parent / "c.yaml").write_text(
        "upstreams: {local: {url: http://127.0.0.1:8000}}\n"
        'routes: [{name: r, match: {path: /v1/chat/completions}, upstream: local, policies: ["builtin:default"]}]\n'
        "evidence: {store: sqlite:own/e.db, sources: [docs]}\n"
    )
    assert main(["ingest", "--config", "c.yaml"]) == 0
    assert capsys.readouterr().out.startswith("1 added")
    assert (docs.parent / "own" / "e.db").exists()
