"""How well the reader tells what evidence says: alone, and beside the embedded verifier as the product asks both."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import msgspec
import numpy as np
from numpy.typing import NDArray

from checkstream.evaluation.claims import balanced_accuracy
from checkstream.evaluation.figures import Interval, auc, bootstrap
from checkstream.grounding.embedded.verifier import compared, said, sources, whole
from checkstream.grounding.reader import SUPPORTED, denies, held_down, logit, reading, together
from checkstream.grounding.terms import Passage, Verdict
from checkstream.scoring.pairs import PairSession
from models.training.reader.data import LEFT_OUT, MEASURED, Pair, pool, restricted

CHOOSING = (
    "ground_alexa_dialog", "ground_begin", "ground_bump", "ground_faithdial_audit", "ground_halueval_qa",
    "ground_summac_parts", "ground_summedits", "ground_summeval",
    "nli_fever", "nli_foolmetwice", "nli_scifact_rte", "nli_scitail",
)  # fmt: skip
"""Sets whose held-out premises say how the two are put together: evidence, not riddles."""
MOST = 300
"""Pairs of a set that choose, and ..."""
MOST_LEFT_OUT = 1000
"""... that measure."""

MISSED = 0.2
"""Share of true claims of a set that may fall below the threshold."""
_ENOUGH = 25
"""True claims without which a share of them says nothing."""

Floats = NDArray[np.float64]


class Told(msgspec.Struct, frozen=True):
    """What both say of a set."""

    name: str
    gold: tuple[bool, ...]
    surface: tuple[float, ...]
    """The embedded verifier's scores."""
    vetoed: tuple[bool, ...]
    supported: tuple[float, ...]
    """What the model says for each claim ..."""
    denied: tuple[float, ...]
    """... and against it."""
    seconds: float = 0.0
    """That the model took."""
    windows: int = 0


class Weights(msgspec.Struct, frozen=True):
    """How the logits are put together."""

    read: float
    denied: float
    surface: float
    bias: float


def sets(folder: Path, taught: Path, seed: int) -> dict[str, list[Pair]]:
    """Return what chooses (part `dev` of open sets) and what only measures, by name; the same for the same seed."""
    found: dict[str, list[Pair]] = {name: [] for name in (*CHOOSING, *LEFT_OUT)}
    for pair in pool(folder, taught):
        if pair.source in found and not np.isnan(pair.gold) and (pair.source in LEFT_OUT or pair.part == "dev"):
            found[pair.source].append(pair)
    found |= {name: restricted(folder, name) for name in MEASURED}
    for name, own in found.items():
        Random(f"{seed} {name}").shuffle(own)
        del own[MOST if name in CHOOSING else MOST_LEFT_OUT :]
    return found


def told(name: str, pairs: Sequence[Pair], session: PairSession) -> Told:
    """Ask both about the pairs of a set, as the product asks them."""
    rows = []
    took, windows = 0.0, 0
    for pair in pairs:
        asked, read = said(whole(pair.claim)), sources([Passage(id="", text=pair.premise)])
        surface = compared(asked, read)
        begun = time.perf_counter()
        best = reading(asked, read, session)
        took += time.perf_counter() - begun
        windows += 0 if best is None else best.windows
        unread = best is None or surface.judgement.verdict is Verdict.NOT_CHECKABLE
        rows.append(
            (
                pair.gold > 0.5,
                surface.judgement.score,
                surface.changed,
                0.0 if unread or best is None else best.supported,
                0.0 if unread or best is None else best.denied,
            )
        )
    gold, surfaces, vetoes, supported, denied = zip(*rows, strict=True)
    return Told(name, gold, surfaces, vetoes, supported, denied, took, windows)


def full_window_ms(session: PairSession, rounds: int = 30) -> float:
    """Return what a full window takes: median of the time that this thread computed, milliseconds."""
    took = []
    for _ in range(rounds):
        begun = time.thread_time()
        next(iter(session.read("the river runs to the sea and back " * 40, "the sea runs to the river")))
        took.append(1000 * (time.thread_time() - begun))
    return float(np.median(took))


def scores(own: Told, weights: Weights | None = None) -> Floats:
    """Return the verifier's score of each claim, with the weights that ship where none are given."""
    found = []
    for surface, veto, supported, denied in zip(own.surface, own.vetoed, own.supported, own.denied, strict=True):
        if weights is None:
            score = together(supported, denied, surface)
        else:
            total = weights.read * logit(supported) + weights.denied * logit(denied) + weights.surface * logit(surface)
            score = float(1 / (1 + np.exp(-(total + weights.bias))))
        found.append(held_down(score) if veto or denies(denied, surface) else score)
    return np.array(found)


def chosen(choosing: Sequence[Told], missed: float) -> Weights:
    """Return how the two are put together.

    What the model says against a claim counts as far as that helps the model tell, by mean AUC. Then both have an equal
    say, by how far their logits spread: the model has learnt from other rows of these sets and is better on them than
    on those of strangers, so weights that are best here would believe it too much. The bias lets at most so many true
    claims of any set fall below the threshold.

    Args:
        choosing: of held-out premises; each set counts alike.
        missed: share of true claims of a set that may fall below it.
    """
    read = {denied: [_leaning(own, denied) for own in choosing] for denied in (0.0, -0.15, -0.3, -0.45)}
    best = max(
        read, key=lambda denied: np.mean([_auc(own, each) for own, each in zip(choosing, read[denied], strict=True)])
    )
    surfaces = [np.array([logit(score) for score in own.surface]) for own in choosing]
    say = _spread(read[best]) / _spread(surfaces)
    plain = Weights(1.0, best, round(say, 2), 0.0)
    return msgspec.structs.replace(plain, bias=round(_bias(choosing, plain, missed), 2))


def _leaning(own: Told, denied: float) -> Floats:
    pairs = zip(own.supported, own.denied, strict=True)
    return np.array([logit(yes) + denied * logit(no) for yes, no in pairs])


def _spread(found: Sequence[Floats]) -> float:
    return float(np.mean([each.std() for each in found]))


def _bias(choosing: Sequence[Told], weights: Weights, missed: float) -> float:
    """Return the lowest bias that no set with enough true claims misses too many of them with."""
    enough = [own for own in choosing if sum(own.gold) >= _ENOUGH]
    tried = np.arange(-5.0, 10.0, 0.05)
    for bias in tried:
        moved = msgspec.structs.replace(weights, bias=float(bias))
        if all(false_alarms(own, scores(own, moved)) <= missed for own in enough):
            return float(bias)
    return float(tried[-1])


def false_alarms(own: Told, found: Floats) -> float:
    """Return the share of true claims that are called unsupported."""
    return float((found[np.array(own.gold)] < SUPPORTED).mean())


def _auc(own: Told, found: Floats) -> float:
    gold = np.array(own.gold)
    return auc(found[gold], found[~gold])


class Line(msgspec.Struct, frozen=True):
    """Figures of one set."""

    name: str
    supported: int
    other: int
    auc: dict[str, Interval]
    """Who judges -> AUC."""
    balanced: dict[str, Interval]
    missed: dict[str, float]
    """Share of true claims that are called unsupported."""
    gained: Interval
    """AUC of both together less that of the embedded verifier alone, on the same draws."""


def lines(found: Sequence[Told]) -> Iterator[Line]:
    """Yield the figures of each set, with 95 % bootstrap intervals."""
    for own in found:
        gold = np.array(own.gold)
        judges = {
            "embedded": np.array(own.surface),
            "reader alone": np.array(own.supported),
            "both": scores(own),
        }
        yield Line(
            name=own.name,
            supported=int(gold.sum()),
            other=int((~gold).sum()),
            auc={name: bootstrap(auc, each[gold], each[~gold], rounds=500) for name, each in judges.items()},
            balanced={
                name: bootstrap(_at_threshold, each[gold], each[~gold], rounds=500) for name, each in judges.items()
            },
            missed={name: false_alarms(own, each) for name, each in judges.items()},
            gained=_gained(judges["embedded"], judges["both"], gold),
        )


def _at_threshold(supported: Floats, other: Floats) -> float:
    return balanced_accuracy(supported, other, SUPPORTED)


def _gained(one: Floats, other: Floats, gold: NDArray[np.bool_], rounds: int = 500) -> Interval:
    draw, drawn = np.random.default_rng(1), []
    yes, no = np.flatnonzero(gold), np.flatnonzero(~gold)
    for _ in range(rounds):
        a, b = draw.choice(yes, len(yes)), draw.choice(no, len(no))
        drawn.append(auc(other[a], other[b]) - auc(one[a], one[b]))
    value = auc(other[yes], other[no]) - auc(one[yes], one[no])
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Interval(value, float(low), float(high))
