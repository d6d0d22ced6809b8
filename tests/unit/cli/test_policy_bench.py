from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from checkstream.cli import main

QUIET = """pack: {name: q, version: 1.0.0}
policies:
  - {name: r, id: R-1, stage: [ingress], phrases: [x], actions: [{type: reject}]}
"""


def test_the_cost_of_a_pack_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "bench", "builtin:default", "--runs", "1", "--json"]) == 0
    report = msgspec.json.decode(capsys.readouterr().out)
    names = {row["name"]: row for row in report["measures"]}
    assert all(row["value"] > 0 and row["runs"] >= 1 for row in names.values())
    assert names["quiet 64-character chunk, matcher"]["unit"] == "us"
    assert "rules over what a case finds and scores" in names
    assert names["rules"]["value"] >= 10


def test_a_table_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.yaml").write_text(QUIET)
    assert main(["policy", "bench", str(tmp_path / "q.yaml"), "--runs", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("q@1.0.0\n\n")
    assert "us     median of 2" in out
    assert "what a case finds" not in out  # no cases beside it


@pytest.mark.parametrize("runs", ["0", "-1", "x", "9999"])
def test_a_number_of_runs_that_is_none(runs: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["policy", "bench", "builtin:default", "--runs", runs])
    assert caught.value.code == 2


def test_a_faulty_policy_or_faulty_cases_are_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text(QUIET.replace("reject", "rejcet"))
    assert main(["policy", "bench", str(tmp_path)]) == 2
    (tmp_path / "policy.yaml").write_text(QUIET)
    (tmp_path / "tests.yaml").write_text("cases: 1")
    assert main(["policy", "bench", str(tmp_path)]) == 2
    assert "cases" in capsys.readouterr().err
