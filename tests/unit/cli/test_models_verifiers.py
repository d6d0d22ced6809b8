"""`models predict` and `models eval` with a verifier: claims and their evidence in, what it says of them out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from checkstream.cli import main
from checkstream.scoring.pairs import PairSession
from checkstream.scoring.provenance import installed_models
from tests import tiny_models

Ran = Callable[..., tuple[int, str, str]]
EVIDENCE = "The refund takes 30 days. Shipping is free for orders over $50."


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Run a command with lines on standard input; return its exit code and what it said."""

    def ran(*arguments: str | Path, stdin: str = "") -> tuple[int, str, str]:
        data = stdin.encode("utf-8", "surrogatepass")
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        try:
            code = main(["models", *map(str, arguments)])
        except SystemExit as stopped:
            code = int(str(stopped.code))
        said = capsys.readouterr()
        return code, said.out, said.err

    return ran


def jsonl(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_each_line_is_answered_with_its_id_score_verdict_and_reason(run: Ran) -> None:
    lines = [
        {"id": "a", "premise": EVIDENCE, "claim": "The refund takes 30 days."},
        {"id": 7, "evidence": ["Penguins eat fish.", EVIDENCE], "claim": "The refund takes 3 days."},
        {"claim": "The refund takes 30 days."},
        {"id": "\ud800", "premise": "\ud800", "claim": "\ud800"},
    ]
    code, out, _ = run("predict", "verifier:embedded", stdin="".join(json.dumps(line) + "\n" for line in lines))
    told = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [each["id"] for each in told] == ["a", 7, None, "\ud800"]
    assert [each["verdict"] for each in told[:3]] == ["supported", "contradicted", "unsupported"]
    assert told[0]["scores"] == {"supported": 1.0}
    assert "`3 days`" in told[1]["reason"]
    assert told[1]["excerpts"][0]["passage_id"] == "1"


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        '{"claim": 1}',
        '{"claim": "a", "premise": 1}',
        '{"claim": "a", "evidence": [1]}',
        '{"claim": "a", "premise": null}',
        "[]",
        "x",
    ],
)
def test_a_line_of_another_form_ends_it_with_2_and_its_number(run: Ran, line: str) -> None:
    code, out, err = run("predict", "verifier:embedded", stdin=f"\n{line}\n")
    assert (code, out) == (2, "")
    assert "standard input:2" in err


@pytest.mark.parametrize("command", ["predict", "eval"])
def test_an_unknown_verifier_is_answered_with_the_known_ones(run: Ran, tmp_path: Path, command: str) -> None:
    files = [jsonl(tmp_path / "a.jsonl", {"premise": "a", "claim": "a", "label": 1})] if command == "eval" else []
    code, out, err = run(command, "verifier:safety", *files)
    assert (code, out) == (2, "")
    assert "`verifier:embedded`" in err


def test_a_model_of_pairs_is_pulled_listed_and_judges(run: Ran, tmp_path: Path) -> None:
    file = tiny_models.own_pairs(tmp_path)
    assert run("pull", "--models", file)[0] == 0
    listed = {each["name"]: each for each in json.loads(run("list", "--models", file, "--json")[1])}
    assert listed["nli"]["labels"] == ["contradiction", "entailment", "neutral"]
    line = json.dumps({"id": 1, "premise": EVIDENCE, "claim": "The model will answer."})
    code, out, _ = run("predict", "verifier:nli", "--models", file, stdin=line)
    (model,) = installed_models(file, ("nli",))
    best = max(each.scores["entailment"] for each in PairSession(model).read(EVIDENCE, "The model will answer."))
    assert (code, json.loads(out)["scores"]["supported"]) == (0, pytest.approx(best))
    code, _, err = run("predict", "nli", "--models", file, stdin='{"text": "a"}')
    assert (code, "compares two texts" in err) == (2, True)


def test_a_model_that_gives_vectors_predicts_nothing(run: Ran) -> None:
    code, _, err = run("predict", "embedding", stdin='{"text": "a"}')
    assert (code, "gives vectors" in err) == (2, True)


def test_files_of_claims_are_measured_by_themselves_and_on_average(run: Ran, tmp_path: Path) -> None:
    rows = [
        {"premise": EVIDENCE, "claim": "The refund takes 30 days.", "label": "SUPPORTS"},
        {"premise": EVIDENCE, "claim": "Shipping is free for orders over $50.", "label": "SUPPORTS"},
        {"premise": EVIDENCE, "claim": "The refund takes 60 days.", "label": "REFUTES"},
        {"premise": EVIDENCE, "claim": "Penguins live in the south.", "label": "REFUTES"},
        {"premise": EVIDENCE, "claim": "Hello.", "label": "Generic"},
    ]
    files = [jsonl(tmp_path / name, *rows) for name in ("a.jsonl", "b.jsonl")]
    code, out, _ = run("eval", "verifier:embedded", *files, "--leave-out", "generic", "--json")
    found = json.loads(out)
    assert (code, found["auc"], found["at_half"], found["at_threshold"]) == (0, 1.0, 1.0, 1.0)
    assert [(each["name"], each["supported"], each["other"]) for each in found["sets"]] == [
        ("a.jsonl", 2, 2),
        ("b.jsonl", 2, 2),
    ]
    assert "mean: AUC 1.000; 1.000, 1.000" in run("eval", "verifier:embedded", *files, "--leave-out", "Generic")[1]
    code, out, _ = run("eval", "verifier:embedded", files[0], "--positive", "REFUTES", "--json")
    assert (code, json.loads(out)["sets"][0]["supported"], json.loads(out)["at_threshold"]) == (0, 2, None)


def test_claims_of_one_class_alone_are_no_measure(run: Ran, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", {"premise": "a", "claim": "a", "label": "yes\x1b[2J"})
    code, out, err = run("eval", "verifier:embedded", file)
    assert (code, out) == (2, "")
    assert "--positive" in err
    assert "\x1b" not in err
    assert run("eval", "verifier:embedded", jsonl(tmp_path / "b.jsonl", {"text": "a"}))[0] == 2
    assert run("eval", "verifier:embedded", file, "--html", tmp_path / "r.html")[0] == 2
    assert run("eval", "verifier:embedded", tmp_path / "none.jsonl")[0] == 2
