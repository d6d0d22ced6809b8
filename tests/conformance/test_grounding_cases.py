"""The worked cases of grounding: every one passes, and the runner says so and says when not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conformance.__main__ import main
from tests.conformance.case import Case, faults, read

CASES = [case for path in sorted((Path(__file__).parent / "cases").glob("*.jsonl")) for case in read(path)]
ONE = {
    "id": "one",
    "design": "reliability_gate",
    "fn": "score_risk",
    "input": {"labels": ["supported"]},
    "expected": {"decision": "deploy", "risk": 0.0},
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_case_passes(case: Case) -> None:
    assert faults(case) == []


def test_there_are_two_hundred_and_more_each_with_its_reason() -> None:
    assert len(CASES) >= 200
    assert len({case.id for case in CASES}) == len(CASES)
    assert all(case.note and case.basis in {"worked-example", "seed", "resolution"} for case in CASES)


def written(folder: Path, *cases: Mapping[str, object]) -> str:
    path = folder / "cases.jsonl"
    path.write_text("\n\n".join(json.dumps(case) for case in cases), encoding="utf-8")
    return str(path)


def test_what_passes_and_what_fails_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {**ONE, "id": "two", "expected": {"decision": "block", "risk": 0.2, "reason": None, "gone": 1}}
    assert main([written(tmp_path, ONE, wrong)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == ["passed one", "failed two"]
    assert [line.strip().split(":")[0] for line in out[2:5]] == [".decision", ".risk", ".gone"]
    assert out[-1] == "1 passed, 1 failed"


def test_all_passing_is_exit_code_0(tmp_path: Path) -> None:
    assert main([written(tmp_path, ONE)]) == 0


@pytest.mark.parametrize(
    "change",
    [{"fn": "nothing"}, {"design": "nothing"}, {"input": {}}, {"input": None}, {"expected": {"total_claims": True}}],
)
def test_what_can_not_be_run_or_has_another_type_fails(change: dict[str, object], tmp_path: Path) -> None:
    assert main([written(tmp_path, {**ONE, **change})]) == 1


@pytest.mark.parametrize("text", ["{", "5", '{"id": "x"}', "[]", "\udce9"])
def test_a_file_that_is_none_of_cases_is_exit_code_2(text: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert main([str(path)]) == 2
    assert main([str(tmp_path / "missing.jsonl")]) == 2
    assert main([]) == 2
