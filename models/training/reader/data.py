"""What `reader` learns from: pairs of the pool with what people and a teacher say of them, cut as the product cuts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np

from checkstream.grounding.embedded.windows import PassageReader
from checkstream.grounding.joined import joined, room_beside, text_of
from models.training.corpus import RESTRICTED, normalised, rows, shingles
from models.training.graph import Float
from models.training.teacher import claims, scores
from models.training.teacher.rows import Row

LEFT_OUT = ("ground_frank_valid", "ground_q2", "ground_trustllm_external")
"""Open sets that nothing is learnt from; the teacher had seen them. The last is made of sets that are restricted."""
MEASURED = (
    "ground_averitec_dev",
    "ground_citation_integrity",
    "ground_climatefever",
    "ground_covidfact",
    "ground_healthver",
    "ground_qags",
    "ground_summedits_nc",
)
"""Sets in the pool's folder `restricted`: they only measure."""

MOST: Mapping[str, int] = {
    "ground_factor": 1200,
    "ground_tables": 500,
    "nli_breaking": 2000,
    "nli_cad": 4000,
    "nli_conjnli": 3000,
    "nli_dnc": 500,
    "nli_fever": 18_000,
    "nli_folio": 300,
    "nli_hans": 800,
    "nli_mnli_snli_dev": 15_000,
    "nli_monotonicity": 800,
    "nli_negation": 1000,
    "nli_new_protocols": 9000,
    "nli_reasoning_small": 1500,
    "nli_spatial": 300,
}
"""Source -> pairs at most; of the others all."""
TWICE = (
    *("ground_alexa", "ground_begin", "ground_dial", "ground_faith", "ground_halu", "ground_summedits"),
    *("nli_fever_symmetric", "nli_foolmetwice", "nli_scifact"),
)
"""Sets that are read twice: evidence as the product has it. They begin so."""
WHOLE_ANSWERS = frozenset({"ground_bump", "ground_summac_parts", "ground_summedits", "ground_summeval"})
"""Long documents, of which the teacher saw a window: people count more."""
_GOLD, _GOLD_LONG = 0.5, 0.85
"""How far people count where both have spoken."""
_BESIDE, _STRAY = 0.12, 4000
"""Share of short evidence that gets a stranger beside it, and claims that get a stranger's evidence alone."""
_NEAR = 0.5


@dataclass(frozen=True, slots=True)
class Pair:
    """A claim and what it is read with."""

    premise: str
    claim: str
    target: Float
    """float32[supported, contradicted], NaN where nobody said."""
    gold: float
    """1 where people say that it is supported, 0 where not, NaN where they said nothing."""
    source: str
    part: str
    weight: float = 1.0


def pool(folder: Path, taught: Path) -> Iterator[Pair]:
    """Yield the pairs of the pool that may be learnt from, with the teacher's scores where it has any.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a row is broken, or scores don't fit their pairs.
    """
    kept = np.load(taught, allow_pickle=False)
    for name in claims.files(folder):
        found = list(claims.pairs(folder, name))
        said = kept[name] if name in kept.files else scores.not_scored(len(found))
        if len(said) != len(found):
            raise ValueError(f"`{taught}` has {len(said)} scores for the {len(found)} pairs of `{name}`")
        for row, own in zip(found, said, strict=True):
            if row is not None and row.claim is not None:
                yield _pair(row, row.claim, own.astype(np.float32) / 1000 if (own >= 0).all() else None)


def _pair(row: Row, claim: str, taught: Float | None) -> Pair:
    gold, target = row.target, row.target
    if taught is not None:
        share = _GOLD_LONG if row.source in WHOLE_ANSWERS else _GOLD
        target = np.where(np.isnan(gold), taught, share * gold + (1 - share) * taught).astype(np.float32)
    return Pair(row.text, claim, target, float(gold[0]), row.source, row.part, row.weight)


def restricted(folder: Path, name: str) -> list[Pair]:
    """Return the pairs of a set that only measures."""
    said = {"supports": 1.0, "supported": 1.0, "entailment": 1.0, "consistent": 1.0}
    return [
        Pair(
            str(row["premise"]), str(row["claim"]), np.zeros(2, np.float32), said.get(str(row["label"]).lower(), 0.0),
            name, "test",
        )
        for row in rows(folder / RESTRICTED, name, measuring=True)
    ]  # fmt: skip


def learnt(folder: Path, taught: Path, seed: int) -> list[Pair]:
    """Return what is learnt from, in the order of the draw: the part `train`, without what is like a set left out.

    The restricted sets are read to leave out what is like them, and for nothing else.
    """
    random = Random(seed)
    found = list(pool(folder, taught))
    apart = {run for pair in found if pair.source in LEFT_OUT for run in shingles(pair.premise)}
    apart |= {run for name in MEASURED for pair in restricted(folder, name) for run in shingles(pair.premise)}
    random.shuffle(found)
    counts: dict[str, int] = {}
    known: set[str] = set()
    chosen: list[Pair] = []
    for pair in found:
        key = normalised(f"{pair.claim}\n{pair.premise}")
        full = counts.get(pair.source, 0) >= MOST.get(pair.source, len(found))
        skipped = pair.part != "train" or pair.source in LEFT_OUT or full or key in known
        if skipped or np.isnan(pair.target).all() or _near(pair.premise, apart):
            continue
        known.add(key)
        counts[pair.source] = counts.get(pair.source, 0) + 1
        chosen += [pair] * (2 if pair.source.startswith(TWICE) else 1)
    return [*_beside(chosen, random), *_strangers(chosen, random)]


def _near(text: str, apart: Collection[int]) -> bool:
    runs = shingles(text)
    return sum(run in apart for run in runs) >= _NEAR * len(runs)


def _beside(pairs: Sequence[Pair], random: Random) -> Iterator[Pair]:
    """Yield the pairs, some with evidence of another one before or behind their own."""
    for pair in pairs:
        if len(pair.premise) > 250 or random.random() >= _BESIDE:
            yield pair
            continue
        other = pairs[random.randrange(len(pairs))].premise[:250]
        both = (pair.premise, other) if random.random() < 0.5 else (other, pair.premise)
        yield replace(pair, premise=" ".join(both))


def _strangers(pairs: Sequence[Pair], random: Random) -> Iterator[Pair]:
    """Yield claims with the evidence of others, which says nothing of them."""
    for _ in range(min(_STRAY, len(pairs))):
        one, other = random.choice(pairs), random.choice(pairs)
        if one.premise != other.premise:
            yield replace(one, premise=other.premise, target=np.zeros(2, np.float32), gold=0.0, weight=0.5)


def shown(pair: Pair) -> str:
    """Return the evidence that is read with a claim: what the product would choose of it."""
    reader = PassageReader(pair.premise)
    return text_of(reader, joined(reader, pair.claim, room_beside(pair.claim)))
