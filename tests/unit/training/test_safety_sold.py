"""Heads on the frozen encoder that tell promotions, and the sentences that they are held to."""

from random import Random

import numpy as np
import pytest

from checkstream.config import bundled
from models.training.corpus import normalised
from models.training.safety import promotions
from tests.train_packages import TRAIN

torch = pytest.importorskip("torch", reason=TRAIN)
pytest.importorskip("onnx", reason=TRAIN)


def test_what_measures_is_enough_and_of_no_bank() -> None:
    from models.training.safety.sold import held_out

    sells, balanced = held_out("promotions"), held_out("balanced")
    assert len(sells) >= 100
    assert len(balanced) >= 300
    assert len({kind for _, kind in sells}) >= 10
    texts = [normalised(text) for text, _ in (*sells, *balanced)]
    assert len({*texts}) == len(texts)
    random = Random(4)
    banks = [*promotions.claims(), *(line for lines in promotions.calm().values() for line in lines)]
    learnt = {normalised(promotions.filled(line.replace("<claim>", ""), random)) for line in banks}
    assert not learnt & {*texts}


def test_states_are_of_every_layer_and_a_head_reads_them() -> None:
    from models.training.safety.sold import Head, states

    read = states((bundled("models") / "safety" / "model.onnx").read_bytes())
    rows = read([[5, 6, 7], [9], list(range(20, 52))])
    assert rows.shape == (3, 2 * 3 * 384)
    np.testing.assert_array_equal(read([[5, 6, 7]])[0], rows[0])
    for of, hidden in (("last", 0), ("all", 8)):
        assert Head(of, rows.shape[1], hidden).logits(rows).shape == (3,)


@pytest.mark.parametrize("kind", ["logistic", "layers"])
def test_a_head_learns_what_a_state_says(kind: str) -> None:
    from models.training.safety.sold import taught

    random = np.random.default_rng(1)
    rows = random.normal(0, 1, (1500, 60)).astype(np.float16)
    truths = (rows[:, 41] > 0).astype(np.float32)  # column 40 to 49: the mean of the last of three layers
    logits = taught(rows, truths, kind, seed=1, epochs=15, rate=0.03).logits(rows)
    assert ((logits > 0) == (truths > 0.5)).mean() > 0.85


def test_a_choice_and_a_slot_are_filled() -> None:
    random = Random(2)
    found = {promotions.filled("[a [x|y]|b] {coin}", random) for _ in range(200)}
    assert {text.split()[0] for text in found} == {"A", "B"}
    assert not any(mark in text for text in found for mark in "[]{}|")


def test_what_sells_and_what_does_not_are_pairs() -> None:
    sells, calm = promotions.claims(), promotions.calm()
    assert len(promotions.claims()) > 300
    assert "There is no risk in {product}." in sells
    assert "There is some risk in {product}." in calm["pair"]
    assert not {*sells} & {line for lines in calm.values() for line in lines}
