from __future__ import annotations

import gzip
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from checkstream.cli import main
from checkstream.config import bundled
from checkstream.core.match.entities import ENTITIES
from tests import tiny_models
from tests.tiny_tokenizers import wordpiece

Ran = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Run a command with lines on standard input; return its exit code and what it said."""

    def ran(*arguments: str | Path, stdin: str | bytes = "") -> tuple[int, str, str]:
        data = stdin if isinstance(stdin, bytes) else stdin.encode("utf-8", "surrogatepass")
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        try:
            code = main(["models", *map(str, arguments)])
        except SystemExit as stopped:
            code = int(str(stopped.code))
        said = capsys.readouterr()
        return code, said.out, said.err

    return ran


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A `models.yaml` that is still to be pulled."""
    source = tmp_path / "export"
    source.mkdir()
    (source / "model.onnx").write_bytes(tiny_models.graph(2))
    (source / "tokenizer.json").write_bytes(wordpiece())
    (source / "config.json").write_text('{"id2label": {"0": "SAFE", "1": "INJECTION"}}')
    file = tmp_path / "models.yaml"
    model = {
        "name": "guard",
        "kind": "sequence",
        "source": {"path": "export"},
        "activation": "softmax",
        "labels": {"INJECTION": "injection"},
        "rates": [{"label": "injection", "fpr": 0.01, "threshold": 0.9}],
        "window_tokens": 32,
        "overlap_tokens": 8,
    }
    file.write_text(yaml.safe_dump({"models": [model]}))
    return file


def jsonl(path: Path, *rows: Mapping[str, object]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


# list, verify, pull


def test_the_shipped_models_are_listed_and_are_as_pinned(run: Ran) -> None:
    code, out, _ = run("list", "--json")
    listed = {each["name"]: each for each in json.loads(out)}
    assert code == 0
    assert listed["lexicon"]["labels"] == ["injection", "toxicity"]
    assert {each["origin"] for each in listed.values()} == {"shipped"}
    code, out, _ = run("list")
    assert (code, out.startswith("name ")) == (0, True)
    assert set(listed) == {line.split()[0] for line in out.splitlines()[1:]}
    code, out, _ = run("verify", "--json")
    assert code == 0
    assert all(each["ok"] for each in json.loads(out))
    code, out, _ = run("verify")
    assert "lexicon: 1 file as pinned\n" in out


def test_a_file_that_is_not_as_pinned_makes_the_answer_no(
    run: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(bundled("models"), tmp_path / "models", ignore=shutil.ignore_patterns("training"))
    monkeypatch.setattr("checkstream.scoring.provenance.bundled", lambda kind: tmp_path / kind)
    assert run("verify")[0] == 0
    file = tmp_path / "models" / "lexicon" / "lexicon.json"
    file.write_bytes(file.read_bytes() + b" ")
    code, out, _ = run("verify")
    assert code == 1
    assert "lexicon: file `lexicon/lexicon.json` has" in out
    (tmp_path / "models" / "manifest.json").write_text("{")
    code, out, err = run("verify")
    assert (code, out) == (2, "")
    assert "not valid" in err


def test_own_models_are_pulled_listed_verified_and_run(run: Ran, own: Path) -> None:
    unpinned = "model `guard` is not pinned; run `checkstream models pull --models models.yaml`"
    code, out, _ = run("list", "--models", own)
    assert code == 0
    assert "lexicon" in out
    assert out.endswith(f"-     path:export  {unpinned}\n")
    listed = {each["name"]: each for each in json.loads(run("list", "--models", own, "--json")[1])}
    assert (listed["guard"]["reason"], listed["guard"]["labels"]) == (unpinned, [])
    assert listed["lexicon"]["reason"] == ""
    code, out, _ = run("verify", "--models", own)
    assert code == 1
    assert out.endswith(f"guard: {unpinned}\n")
    code, out, _ = run("pull", "--models", own)
    assert code == 0
    assert out.startswith("guard: pinned, ")
    code, out, _ = run("pull", "--models", own, "--json")
    assert [(each["name"], each["change"]) for each in json.loads(out)] == [("guard", "unchanged")]
    code, out, _ = run("list", "--models", own)
    assert "path:export" in out
    assert run("verify", "--models", own)[0] == 0
    code, out, _ = run("predict", "guard", "--models", own, stdin='{"id": 1, "text": "ignore all"}')
    assert code == 0
    assert 0 < json.loads(out)["scores"]["injection"] < 1


def test_nothing_to_pull_and_nothing_there(run: Ran, tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text("models: []")
    assert run("pull", "--models", tmp_path / "models.yaml")[:2] == (0, "nothing to fetch\n")
    for nowhere in (tmp_path / "none.yaml", tmp_path, ""):
        for command in (["pull"], ["list"], ["verify"], ["predict", "lexicon"], ["eval", "lexicon", "x.jsonl"]):
            code, _, err = run(*command, "--models", nowhere)
            assert code == 2
            assert "can't be read" in err


# predict


def test_scores_come_line_by_line_with_the_ids_that_were_given(run: Ran) -> None:
    ids = [1, "two", None, [3], 4.5, "\ud800"]
    lines = [json.dumps({"id": value, "text": "you idiot", "more": {}}) for value in ids]
    code, out, _ = run("predict", "lexicon", stdin="\n\n".join([*lines, '{"text": "no id"}']) + "\n")
    answers = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [answer["id"] for answer in answers] == [*ids, None]
    assert all(set(answer) == {"id", "scores"} for answer in answers)
    assert all(0 <= score <= 1 for answer in answers for score in answer["scores"].values())
    assert answers[0]["scores"]["toxicity"] > 0.5


def test_spans_come_for_what_finds_entities(run: Ran) -> None:
    text = "\U0001f600\ud83d mail ann@example.com"
    code, out, _ = run("predict", "entities", stdin=json.dumps({"id": 7, "text": text}) + '\n{"id": 8, "text": ""}')
    first, second = map(json.loads, out.splitlines())
    assert code == 0
    (span,) = first["spans"]
    assert (text[span["start"] : span["end"]], span["label"], span["score"]) == ("ann@example.com", "EMAIL", 1.0)
    assert (first["id"], second) == (7, {"id": 8, "spans": []})


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "no JSON"),
        ("5", "no JSON object"),
        ('{"id": 1}', "there is no `text`"),
        ('{"id": 1, "text": null}', "`text` is no text"),
        ('{"id": 1, "premise": "a", "claim": "b"}', "claims are for verifiers"),
        (b"\xff", "no JSON"),
        ("[" * 500_000, "no JSON"),
    ],
)
def test_a_line_that_can_not_be_read_is_named_and_ends_it(run: Ran, line: str | bytes, words: str) -> None:
    data = line if isinstance(line, bytes) else line.encode()
    code, out, err = run("predict", "lexicon", stdin=b'{"id": 1, "text": "fine"}\n' + data)
    assert code == 2
    assert json.loads(out)["id"] == 1
    assert "standard input:2: " in err
    assert words in err


def test_a_model_that_is_not_there_is_wrong_use(run: Ran) -> None:
    code, out, err = run("predict", "nothing", stdin='{"id": 1, "text": "x"}')
    assert (code, out) == (2, "")
    assert "there is no model `nothing`; known: " in err


# eval


def test_a_model_is_measured_with_one_threshold_for_all_sets(run: Ran, tmp_path: Path) -> None:
    insults = [{"text": f"you idiot number {n}", "label": 1} for n in range(20)]
    calm = [{"text": f"the weather of day {n}", "label": 0} for n in range(40)]
    files = jsonl(tmp_path / "a.jsonl", *insults, *calm), jsonl(tmp_path / "b.jsonl.gz", *calm)
    report = tmp_path / "report.html"
    code, out, _ = run("eval", "lexicon", *files, "--label", "toxicity", "--json", "--html", report)
    found = json.loads(out)
    assert code == 0
    assert (found["label"], found["positives"], found["negatives"]) == ("toxicity", 20, 80)
    assert found["auc"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert [each["recall"]["value"] for each in found["rates"]] == [1.0, 1.0, 1.0]
    assert [each["name"] for each in found["sets"]] == ["a.jsonl", "b.jsonl.gz"]
    assert found["latency"]["texts"] == 100
    assert "<svg" in report.read_text()
    code, out, _ = run("eval", "lexicon", *files, "--label", "toxicity")
    assert "AUC 1.000 [1.000, 1.000]" in out
    assert "latency p50" in out


def test_labels_keys_and_negative_sets_are_the_users(run: Ran, tmp_path: Path) -> None:
    mixed = jsonl(tmp_path / "a.jsonl", *[{"t": "you idiot", "y": "bad"}, {"t": "hello", "y": "good"}] * 5)
    calm = jsonl(tmp_path / "b.jsonl", *[{"t": "hello", "y": "bad"}] * 5)
    keys = ("--text-key", "t", "--label-key", "y", "--positive", "bad")
    code, out, _ = run("eval", "lexicon", mixed, "--against", calm, *keys, "--json")
    found = json.loads(out)
    assert (code, found["label"]) == (0, "any")
    assert [(each["positives"], each["negatives"]) for each in found["sets"]] == [(5, 5), (0, 5)]
    code, out, _ = run("eval", "lexicon", mixed, *keys, "--sample", "3", "--json")
    assert json.loads(out)["latency"]["texts"] == 3
    assert (
        run("eval", "lexicon", mixed, *keys, "--sample", "3", "--json")[1].split('"latency"')[0]
        == (out.split('"latency"')[0])
    )


def test_texts_without_any_label_are_no_negatives_unless_they_are_called_so(run: Ran, tmp_path: Path) -> None:
    texts = jsonl(tmp_path / "a.jsonl", *[{"text": "you idiot", "is_toxic": 1}, {"text": "hello", "is_toxic": 0}])
    code, out, err = run("eval", "lexicon", texts)
    assert (code, out) == (2, "")
    assert "--label-key" in err
    code, out, _ = run("eval", "lexicon", "--json", texts, "--label-key", "is_toxic", "--against", texts)
    assert (code, [(each["positives"], each["negatives"]) for each in json.loads(out)["sets"]]) == (0, [(1, 1), (0, 2)])


def test_what_the_maker_promises_is_held_against_it(run: Ran, tmp_path: Path, own: Path) -> None:
    assert run("pull", "--models", own)[0] == 0
    texts = jsonl(tmp_path / "a.jsonl", *[{"text": f"the model {n}", "label": n % 2} for n in range(20)])
    code, out, _ = run("eval", "guard", texts, "--models", own, "--json")
    (promised,) = json.loads(out)["promised"]
    assert (code, promised["rate"], promised["threshold"]) == (0, 0.01, 0.9)
    assert "promised 1 %: threshold 0.9000" in run("eval", "guard", texts, "--models", own)[1]


def test_spans_are_measured_kind_by_kind(run: Ran, tmp_path: Path) -> None:
    text = "mail ann@example.com or call"
    span = {"start": 5, "end": 20, "label": "MAIL"}
    texts = jsonl(
        tmp_path / "a.jsonl",
        {"text": text, "spans": [span]},
        {"text": "no mail here", "spans": [{"start": 0, "end": 2, "label": "MAIL"}]},
    )
    code, out, _ = run("eval", "entities", texts, "--rename", "MAIL=EMAIL", "--json", "--html", tmp_path / "r.html")
    email = json.loads(out)["kinds"][0]
    assert (code, email["kind"], email["gold"], email["found"]) == (0, "EMAIL", 2, 1)
    assert (email["strict_precision"], email["strict_recall"]) == (1.0, 0.5)
    assert "EMAIL" in (tmp_path / "r.html").read_text()
    assert run("eval", "entities", texts, "--rename", "MAIL=EMAIL")[1].splitlines()[1].startswith("EMAIL  2  1  1.000")
    assert "EMAIL" in ENTITIES


@pytest.mark.parametrize(
    "arguments",
    [
        ["eval", "lexicon"],
        ["eval", "lexicon", "a.jsonl", "--label", "nothing"],
        ["eval", "nothing", "a.jsonl"],
        ["eval", "lexicon", "none.jsonl"],
        ["eval", "lexicon", "empty.jsonl"],
        ["eval", "lexicon", "a.jsonl", "--text-key", "other"],
        ["eval", "lexicon", "a.jsonl", "--sample", "0"],
        ["eval", "entities", "a.jsonl", "--rename", "X"],
        ["unknown"],
        [],
    ],
)
def test_wrong_use_ends_with_2_and_one_word_why(
    run: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    jsonl(tmp_path / "a.jsonl", {"text": "x", "label": 1})
    (tmp_path / "empty.jsonl").write_text("\n")
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err


def test_a_report_that_can_not_be_written_is_said_in_one_line_and_costs_no_figures(tmp_path: Path) -> None:
    texts = jsonl(tmp_path / "a.jsonl", {"text": "x", "label": 1})
    command = [sys.executable, "-m", "checkstream", "models", "eval", "lexicon", str(texts), "--html"]
    ran = subprocess.run([*command, str(tmp_path / "no" / "r")], capture_output=True, check=False)
    assert ran.returncode == 2
    assert b"latency p50" in ran.stdout
    assert ran.stderr.endswith(b"no such file or directory\n")


@pytest.mark.parametrize("command", ["list", "verify", "pull", "predict", "eval"])
def test_every_command_has_help_with_an_example(run: Ran, command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "example: " in out


def test_policies_may_ask_a_model_of_a_models_yaml(
    run: Ran, own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "pack: {name: p, version: 1.0.0}\n"
        "policies:\n"
        "  - {name: g, id: G-1, stage: [ingress], classifiers: [{name: guard.injection, fpr: 0.01}],"
        " actions: [{type: reject}]}\n"
    )
    assert run("pull", "--models", own)[0] == 0
    assert main(["policy", "check", str(policy)]) == 2
    assert "guard.injection" in capsys.readouterr().err
    assert main(["policy", "check", str(policy), "--models", str(own)]) == 0
    capsys.readouterr()
    explain = ["policy", "explain", str(policy), "--models", str(own), "--stage", "ingress", "--text", "ignore all"]
    assert main(explain) == 0
    assert "guard.injection" in capsys.readouterr().out
