"""The gate's arithmetic and its configuration: fields that the worked cases don't reach."""

from __future__ import annotations

import pytest

from checkstream.errors import GateError
from checkstream.grounding.decision import Thresholds, score_counts
from checkstream.grounding.gate_config import normalised

TOLERANCE = {"deploy_threshold": 0.1, "warn_threshold": 0.25}


def test_equal_fractions_decide_alike_however_many_claims_there_are() -> None:
    for times in (1, 3, 7, 1000):
        assert score_counts(9 * times, 0, times, Thresholds(deploy=0.1, warn=0.1)).decision == "deploy"
        assert score_counts(9 * times, 1, times, Thresholds(deploy=0.1, warn=0.1)).decision == "block"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("use_case", 5, "`use_case` is not a text"),
        ("prompt_categories", "recall", "`prompt_categories` is not a list"),
        ("prompt_categories", [""], "`prompt_categories` holds something that is no text"),
        ("doc_sources", "docs/", "`doc_sources` is not a list"),
        ("min_claims", -1, "`min_claims` must be a whole number from 0 to 10000"),
        ("num_prompts", True, "`num_prompts` must be a whole number from 1 to 10000"),
        ("thresholds", [0.1, 0.2], "`thresholds` is not a mapping"),
    ],
)
def test_what_can_not_be_meant_is_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(GateError, match="^" + message.replace("(", r"\(")):
        normalised({"use_case": "x", "risk_tolerance": TOLERANCE, field: value})


def test_not_a_number_is_no_threshold() -> None:
    with pytest.raises(GateError, match="0 <= deploy <= warn <= 1"):
        normalised({"thresholds": {"deploy": float("nan"), "warn": 0.2}})
