from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from checkstream.cli import main

POLICY = """pack: {name: good, version: 1.0.0}
policies:
  - {name: mail, id: M-1, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}
  - {name: word, id: W-1, stage: [ingress], phrases: [forbidden], actions: [{type: reject}]}
"""
CASES = """cases:
  - name: an address
    answer: Write to joe@example.com today.
    expect: {action: redact, rule_id: M-1, output: "Write to [EMAIL] today."}
  - name: a word
    prompt: forbidden
    expect: {action: reject, rule_id: W-1, status: 400}
"""


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "tests.yaml").write_text(CASES)
    return tmp_path


def test_the_cases_beside_a_policy_pass(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "test", str(pack)]) == 0  # a folder, as in a route's `policies`
    assert capsys.readouterr().out == "good@1.0.0: 2 of 2 cases passed\n"
    assert main(["policy", "test", str(pack / "policy.yaml"), "--splits", "0"]) == 0


def test_what_is_shipped_passes() -> None:
    assert main(["policy", "test", "builtin:default", "--splits", "1"]) == 0


def test_a_failed_case_says_what_was_expected_and_what_came(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pack / "tests.yaml").write_text(CASES.replace("[EMAIL]", "[MAIL]").replace("rule_id: W-1, ", ""))
    assert main(["policy", "test", str(pack)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"FAIL {pack / 'tests.yaml'}:2: an address"
    assert lines[1].endswith('expected "Write to [MAIL] today."')
    assert lines[2].endswith('got "Write to [EMAIL] today."')
    assert lines[3] == "  fired: M-1 redact midstream:content/0/0 9..24 (entity:EMAIL)"
    assert lines[4:] == ["good@1.0.0: 1 of 2 cases passed", "good@1.0.0: no case for W-1"]


def test_long_texts_are_shown_where_they_differ(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = "\\n".join(f"Line {number} is the same." for number in range(30))
    (pack / "tests.yaml").write_text(
        f'cases:\n  - {{name: long, answer: "{same}\\nend", expect: {{action: allow, output: "{same}\\nfin"}}}}\n'
    )
    assert main(["policy", "test", str(pack)]) == 1
    out = capsys.readouterr().out
    assert "    -fin\n    +end\n" in out
    assert "Line 1 is" not in out


def test_the_outcome_as_json(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pack / "tests.yaml").write_text(CASES.replace("status: 400", "status: 403"))
    assert main(["policy", "test", str(pack), "builtin:default", "--json"]) == 1
    first, second = (msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines())
    assert first["packs"] == ["good@1.0.0"]
    assert [result["name"] for result in first["results"] if result["mismatches"]] == ["a word"]
    assert [result["line"] for result in first["results"]] == [2, 5]
    mismatch = first["results"][1]["mismatches"][0]
    assert (mismatch["field"], mismatch["expected"], mismatch["got"]) == ("status", 403, 400)
    assert second["packs"][0].startswith("default@")


def test_several_files_under_one_file_of_cases(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["policy", "test", str(pack), "builtin:default", "--tests", str(pack / "tests.yaml"), "--json"]
    assert main(arguments) == 0
    report = msgspec.json.decode(capsys.readouterr().out)
    assert len(report["packs"]) == 2
    assert "INJ-001" in report["untested"]


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        (CASES.replace("answer:", "anwser:"), "did you mean `answer`?"),
        (CASES.replace("M-1", "M-2"), "there is no rule `M-2`"),
        ("", "cases: missing"),
        ("cases: [", "not valid YAML"),
    ],
)
def test_a_faulty_file_of_cases_runs_nothing(
    cases: str, said: str, pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pack / "tests.yaml").write_text(cases)
    assert main(["policy", "test", "builtin:default", str(pack)]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""
    assert main(["policy", "test", str(pack), "--json"]) == 2
    assert msgspec.json.decode(capsys.readouterr().out)["ok"] is False


def test_no_cases_beside_a_policy(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pack / "tests.yaml").unlink()
    assert main(["policy", "test", str(pack)]) == 2
    assert (
        "tests.yaml`: no such file or directory; cases stand in tests.yaml beside a policy" in capsys.readouterr().err
    )


@pytest.mark.parametrize("splits", ["-1", "x", "1e3", "99999", "\u0661"])
def test_a_number_of_cuts_that_is_none(splits: str, pack: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["policy", "test", str(pack), "--splits", splits])
    assert caught.value.code == 2
