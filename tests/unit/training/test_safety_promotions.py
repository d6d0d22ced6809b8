"""Promotions and what looks like them, and what a student learns of pieces that a teacher has scored."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from models.training.safety import promotions
from models.training.safety.labels import ANY, HARMS, LABELS, OUTPUTS, PROMOTIONAL, Float, Text, harmful
from models.training.safety.windows import WINDOW
from models.training.teacher.scores import Taught
from tests.train_packages import TRAIN

torch = pytest.importorskip("torch", reason=TRAIN)
pytest.importorskip("onnx", reason=TRAIN)

SOLD = LABELS.index(PROMOTIONAL)


def test_a_promotion_marks_its_claims_and_is_of_no_other_known_harm() -> None:
    random = Random(1)
    for _ in range(200):
        text = promotions.promotion(random)
        assert text.target[SOLD] == pytest.approx(0.95)
        assert np.isnan(text.target[ANY])
        assert text.spans
        for start, end in text.spans:
            assert 0 <= start < end <= len(text.text)
        assert "{" not in text.text
        assert text.group in promotions.claims()


def test_what_looks_like_a_promotion_is_none() -> None:
    random = Random(2)
    found = [*(promotions.lookalike(random) for _ in range(300)), *(promotions.quoted(random) for _ in range(100))]
    for text in found:
        assert not text.target.any()
        assert not {"{", "<claim>"} & {*text.text.split()}
    told = " ".join(text.text.lower() for text in found)
    for word in ("guaranteed", "risk-free", "no risk", "act now", "can't lose"):
        assert word in told, "a word of promotions that nothing innocent has would decide alone"


def test_claims_of_one_text_are_of_one_part() -> None:
    from models.training.corpus import part_of

    random = Random(3)
    fixed = {part_of(claim) for claim in promotions.claims()}
    assert fixed == {"train", "dev", "test"}
    for _ in range(50):
        text = promotions.promotion(random)
        starts = [claim for claim in promotions.claims() if "{" not in claim and claim.lower() in text.text.lower()]
        assert {part_of(claim) for claim in starts} <= {part_of(text.group)}


def test_a_fraud_may_be_a_promotion_and_a_threat_is_none() -> None:
    assert np.isnan(harmful("financial_crime")[SOLD])
    assert harmful("violence")[SOLD] == 0


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    words = ["[PAD]", "[UNK]", "bad", *(f"w{number}" for number in range(100))]
    found = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    found.pre_tokenizer = Whitespace()
    return found


def piece(text: str, any_harm: float, source: str = "x") -> Taught:
    scores = np.zeros(len(HARMS) + 1, np.float32)
    scores[0] = scores[-1] = any_harm
    return Taught(text, None, source, scores)


def alarm(windows: Sequence[Sequence[int]]) -> Float:
    return np.array([[0.8 if 2 in window else 0.1] * len(OUTPUTS) for window in windows], np.float32)


def test_only_the_windows_that_show_the_harm_do_it(tokenizer: Tokenizer) -> None:
    from models.training.safety.taught import windows

    text = " ".join("bad" if at == 44 else f"w{at}" for at in range(90))
    told = 0
    for seed in range(20):
        found = windows([piece(text, 0.8)], tokenizer, alarm, Random(seed))
        assert all(len(each.ids) <= WINDOW for each in found)
        if any(2 in each.ids for each in found):
            told += 1
            for each in found:
                assert float(each.target[ANY]) == pytest.approx(0.8 if 2 in each.ids else 0.1)
    assert told > 5


def test_a_calm_piece_is_calm_in_every_window(tokenizer: Tokenizer) -> None:
    from models.training.safety.taught import windows

    found = windows([piece(" ".join(["w1"] * 90), 0.02)] * 30, tokenizer, alarm, Random(1))
    assert len(found) == 30
    assert {round(float(each.target[ANY]), 3) for each in found} == {0.02}


def test_an_empty_piece_has_no_window(tokenizer: Tokenizer) -> None:
    from models.training.safety.taught import windows

    assert windows([piece("", 0.5)], tokenizer, alarm, Random(1)) == []
    assert windows([], tokenizer, alarm, Random(1)) == []


def test_whether_a_piece_sells_is_known_only_where_it_does_not_speak_of_investing() -> None:
    from models.training.safety.taught import target_of

    assert target_of(piece("the cat sat", 0.1))[SOLD] == 0
    assert np.isnan(target_of(piece("profits are certain", 0.1))[SOLD])
    assert target_of(piece("the cat sat", 0.7))[ANY] == pytest.approx(0.7)


def test_the_loss_is_of_what_is_known() -> None:
    from models.training.safety.taught import taught_loss

    target = torch.full((1, len(OUTPUTS)), float("nan"))
    assert float(taught_loss(torch.zeros(1, len(OUTPUTS)), target)) == 0
    target[0, ANY] = 1.0
    low, high = taught_loss(torch.full((2, len(OUTPUTS)), 3.0), torch.cat([target, 1 - target]))
    assert low < high


def test_pieces_like_what_is_withheld_are_left_out_and_sources_have_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from models.training.corpus import shingles
    from models.training.safety import taught

    (tmp_path / "teacher").mkdir()
    kept = [f"text number {number} is unlike any other text of them {number * 7}" for number in range(8)]
    lines = [{"text": text, "source": "x", "scores": [0] * 10} for text in kept]
    lines += [{"text": "some medicine", "source": "MedQuAD 1", "scores": [0] * 10}]
    with gzip.open(tmp_path / taught.PIECES, "wt") as file:
        file.write("\n".join(json.dumps(line) for line in lines))
    withheld = set(shingles(kept[3])) - {run for text in kept[:3] + kept[4:] for run in shingles(text)}

    def read(without: frozenset[str] = frozenset()) -> set[str]:
        return {found.text for found in taught.pieces(tmp_path, Random(1), withheld, without)}

    assert kept[3] not in read()
    assert "some medicine" in read()
    assert "some medicine" not in read(taught.named({"medquad"}))
    monkeypatch.setattr(taught, "MOST_OF_ONE", 2)
    assert len(read()) == 3


def test_a_student_is_widened_by_what_it_knew() -> None:
    from models.training.graph import Shape
    from models.training.safety.student import new_student
    from models.training.safety.taught import probabilities, widened

    shape = Shape(vocab=30, layers=1, hidden=8, heads=2, feed=16, positions=48)
    before = new_student(shape, {}, ())
    after = widened(before.weights(), shape)
    assert after.head.weight.shape == (len(OUTPUTS), 8)
    assert (after.head.weight[: len(HARMS)] == before.head.weight[: len(HARMS)]).all()
    assert probabilities(after, [[1, 2, 3]]).shape == (1, len(OUTPUTS))


def test_what_sells_is_cut_so_that_a_window_without_a_claim_sells_nothing(tokenizer: Tokenizer) -> None:
    from models.training.safety.taught import sold

    calm = " ".join(f"w{at}" for at in range(80))
    target = np.zeros(len(OUTPUTS), np.float32)
    target[SOLD] = 0.95
    text = Text(f"{calm} bad bad bad bad", target, promotions.SOURCE, spans=[(len(calm) + 1, len(calm) + 16)])
    found = sold([text, Text("other", target, "elsewhere")], tokenizer, Random(4))
    assert found
    for each in found:
        assert (each.target[SOLD] > 0.5) == (2 in each.ids)


def test_no_kind_of_innocent_text_pays_for_another() -> None:
    from models.training.safety.ship import strictest

    def row(label: str, fpr: float, threshold: float) -> dict[str, object]:
        return {"label": label, "fpr": fpr, "threshold": threshold}

    found = strictest([[row("any", 0.01, 0.2), row("hate", 0.01, 0.5)], [row("any", 0.01, 0.3), row("any", 0.05, 0.1)]])
    assert found == [row("any", 0.01, 0.3), row("hate", 0.01, 0.5), row("any", 0.05, 0.1)]
