"""Pairs of a premise and a claim: does the one support the other, does it contradict it?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np

from models.training.corpus import part_of, rows
from models.training.teacher.rows import Row, Task

LABELS = ("supported", "contradicted")

_SAID: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("entailment", "supported", "supports", "support", "consistent", "grounded"), (1.0, 0.0)),
    **dict.fromkeys(("fully attributable", "paraphrase"), (1.0, 0.0)),
    **dict.fromkeys(("contradiction", "refutes", "refute"), (0.0, 1.0)),
    **dict.fromkeys(("neutral", "not enough info"), (0.0, 0.0)),
    # Whether these contradict nobody said.
    **dict.fromkeys(("not_supported", "not_entailment", "inconsistent", "hallucinated"), (0.0, np.nan)),
    **dict.fromkeys(("hallucination", "partial hallucination"), (0.0, np.nan)),
    **dict.fromkeys(("not fully attributable", "not_paraphrase"), (0.0, np.nan)),
    **dict.fromkeys(("generic", "uncooperative"), (np.nan, np.nan)),
}
"""Label of a set, in lower case -> how far the claim is supported, and contradicted."""

_UNSURE: Mapping[str, frozenset[str]] = {
    "ground_tables": frozenset({"tabfact"}),
    "nli_cosmosqa": frozenset({"curriculum/cosmoqa"}),
    "nli_dnc": frozenset({"curriculum/ner"}),
    "nli_drop": frozenset({"curriculum/drop"}),
}
"""File -> sources in it whose licence nobody has read."""

_TEMPLATES = frozenset({"nli_dnc", "nli_hans", "nli_monotonicity", "nli_negation", "nli_spatial"})
"""Sets that templates made: they count little, or the teacher learns the templates."""

CAPS = {"nli_fever": 60_000, **dict.fromkeys(_TEMPLATES, 5000)}


def files(folder: Path) -> list[str]:
    """Return the names of the pair files of the pool."""
    return sorted(
        path.name.removesuffix(".jsonl.gz") for kind in ("ground", "nli") for path in folder.glob(f"{kind}_*.jsonl.gz")
    )


def pairs(folder: Path, name: str) -> Iterator[Row | None]:
    """Yield each row of a pair file in its order; None in place of one that nothing may learn from.

    Raises:
        ValueError: a row is broken; it says which.
    """
    for number, row in enumerate(rows(folder, name), 1):
        premise, claim, label = (row.get(field) for field in ("premise", "claim", "label"))
        if not isinstance(premise, str) or not isinstance(claim, str) or str(label).lower() not in _SAID:
            raise ValueError(
                f"row {number} of `{name}` has no premise, claim and label that are known: label `{label}`"
            )
        # Where the premise of FACTOR supports the claim, it is a copy of it.
        copied = name == "ground_factor" and label == "entailment"
        if row.get("source") in _UNSURE.get(name, ()) or copied or not premise.strip() or not claim.strip():
            yield None
            continue
        target = np.array(_SAID[str(label).lower()], np.float32)
        weight = 0.3 if name in _TEMPLATES else 1.0
        # All claims about one premise fall into one part.
        yield Row(text=premise, claim=claim, target=target, source=name, part=part_of(premise), weight=weight)


def _rows(folder: Path, _seed: int, _without: Collection[str]) -> Iterator[Row]:
    for name in files(folder):
        yield from (row for row in pairs(folder, name) if row is not None)


TASK = Task(name="claims", labels=LABELS, rows=_rows, caps=CAPS, cap=40_000)
