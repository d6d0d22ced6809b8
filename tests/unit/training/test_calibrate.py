"""Thresholds keep to the rates that they are named after, also as the manifest writes them."""

import numpy as np
import pytest

from models.training.calibrate import RATES, rates


@pytest.mark.parametrize("seed", range(5))
def test_no_more_benign_texts_reach_a_threshold_than_its_rate_allows(seed: int) -> None:
    benign = (np.random.default_rng(seed).random((4000, 2)) ** 3).astype(np.float32)
    found = rates(benign, ("one", "other"))
    told = [(rate["label"], rate["fpr"]) for rate in found]
    assert told == [(name, fpr) for name in ("one", "other") for fpr in RATES]
    for number, rate in enumerate(found):
        fires = int((benign[:, number // len(RATES)] >= float(str(rate["threshold"]))).sum())
        assert fires <= float(str(rate["fpr"])) * len(benign)


@pytest.mark.parametrize(("texts", "given"), [(1999, [0.05, 0.01]), (2000, [0.05, 0.01, 0.001]), (39, [])])
def test_a_rate_has_a_threshold_where_two_texts_may_reach_it(texts: int, given: list[float]) -> None:
    found = rates(np.linspace(0.1, 0.9, texts, dtype=np.float32)[:, None], ("one",))
    assert [rate["fpr"] for rate in found] == given
