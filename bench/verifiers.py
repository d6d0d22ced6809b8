"""How well verifiers tell what evidence says, on public labelled sets; one-fact flips; irrelevant passages.

    python -m bench.verifiers DATA_FOLDER [--only NAME] [--rows N] [--out FILE]

DATA_FOLDER holds gzip JSON lines `{premise, claim, label}`, one file a set. No part of a verifier was fitted on any of
them: what its constants rest on stands beside them. Thresholds are chosen on the other sets.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import random
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from bench.flips import KINDS, flips
from checkstream.app.verifiers import open_reader
from checkstream.evaluation.claims import ClaimAssessment, ClaimSet, assess_claims, balanced_accuracy
from checkstream.evaluation.figures import Interval, auc
from checkstream.evaluation.rows import PairRow, read_pairs
from checkstream.grounding.coverage import RagStatus
from checkstream.grounding.embedded import EmbeddedVerifier
from checkstream.grounding.evidence_check import check
from checkstream.grounding.risk import analyze
from checkstream.grounding.terms import Claim, Passage, Verifier


class Labelled(NamedTuple):
    """What the labels of a set mean."""

    supported: frozenset[str]
    left_out: frozenset[str] = frozenset()
    """Says nothing that could be checked."""
    split: str = ""
    """The part that people labelled, where the rest was made by rule."""


_GENERIC = frozenset({"Generic", "generic", "Uncooperative"})
SETS: Mapping[str, Labelled] = MappingProxyType(
    {
        "ground_begin": Labelled(frozenset({"Fully attributable"}), _GENERIC),
        "ground_bump": Labelled(frozenset({"consistent"})),
        "ground_dialfact_small": Labelled(frozenset({"SUPPORTS"})),
        "ground_faithdial_audit": Labelled(frozenset({"Entailment"}), _GENERIC),
        "ground_frank_valid": Labelled(frozenset({"consistent"})),
        "ground_halueval_qa": Labelled(frozenset({"grounded"})),
        "ground_q2": Labelled(frozenset({"consistent"})),
        "ground_trustllm_external": Labelled(frozenset({"SUPPORT"})),
        "nli_cad": Labelled(frozenset({"entailment"})),
        "nli_conjnli": Labelled(frozenset({"entailment"}), split="dev"),
        "nli_paws_en": Labelled(frozenset({"paraphrase"})),
        "nli_scifact_rte": Labelled(frozenset({"entailment"})),
    }
)
_IRRELEVANT = 10
"""Passages of other sets that are put beside a claim's own."""
_FAR = 0.05
"""Further than that they should move no score."""
_FLIPPED = ("ground_bump", "ground_frank_valid", "nli_scifact_rte", "ground_halueval_qa", "ground_begin")

Score = Callable[[str, Sequence[str]], Awaitable[Sequence[float]]]
"""Premise, claims -> a score for each claim."""


def scoring(verifier: Verifier) -> Score:
    """Return the scores of a verifier's judgements."""

    async def score(premise: str, claims: Sequence[str]) -> Sequence[float]:
        asked = [Claim(text=claim, start=0, end=len(claim)) for claim in claims]
        return [each.score for each in await verifier.judge(asked, [Passage(id="0", text=premise)])]

    return score


async def watchdog(premise: str, claims: Sequence[str]) -> Sequence[float]:
    """Return 1 for what the risk engine calls supported by its own rule of shared words, else 0."""
    documents = [{"content": premise, "metadata": {}}]
    found = [analyze("", claim, documents).claims for claim in claims]
    return [float(bool(said) and all(each.rag_status is RagStatus.SUPPORTED for each in said)) for said in found]


def budget(verifier: Verifier) -> Score:
    """Return the share of claims that the evidence budget calls grounded, each citing its evidence."""

    async def score(premise: str, claims: Sequence[str]) -> Sequence[float]:
        documents = [Passage(id="S0", text=premise)]
        found = [await check(f"{claim.rstrip('.')} [S0].", documents, verifier) for claim in claims]
        return [each.grounding_ratio or 0.0 for each in found]

    return score


def read_set(folder: Path, name: str, most: int) -> list[PairRow]:
    """Return rows of a set, chosen by a fixed seed."""
    labelled = SETS[name]
    rows = [row for row in read_pairs(folder / f"{name}.jsonl.gz", "premise", "claim", "label") if row.label]
    rows = [row for row in rows if row.label not in labelled.left_out and row.premise.strip() and row.claim.strip()]
    rows = [row for row in rows if labelled.split in ("", row.split)]
    return random.Random(0).sample(rows, min(most, len(rows)))


async def scored(name: str, rows: Sequence[PairRow], score: Score) -> ClaimSet:
    """Score a set, the claims of one premise together."""
    of_premise: dict[str, list[PairRow]] = {}
    for row in rows:
        of_premise.setdefault(row.premise, []).append(row)
    found: dict[bool, list[float]] = {True: [], False: []}
    for premise, own in of_premise.items():
        told = await score(premise, [row.claim for row in own])
        for row, value in zip(own, told, strict=True):
            found[row.label in SETS[name].supported].append(value)
    return ClaimSet(name, np.array(found[True]), np.array(found[False]))


async def _told(name: str, rows: Sequence[PairRow], score: Score) -> ClaimSet:
    """Score a set and tell that it is done."""
    found = await scored(name, rows, score)
    sys.stderr.write(f"{name}: AUC {auc(found.supported, found.other):.3f}\n")
    return found


async def flipped(passages: Sequence[str], verifier: Verifier) -> dict[str, tuple[int, float, float]]:
    """Return for each kind of change how many there were, the share that is caught, and of untouched ones kept."""
    score = scoring(verifier)
    counts: dict[str, list[tuple[bool, bool]]] = {kind: [] for kind in KINDS}
    for flip in flips(passages, 3):
        true, false = await score(flip.passage, [flip.true, flip.false])
        counts[flip.kind].append((false < 0.5, true >= 0.5))
    return {
        kind: (len(found), float(np.mean([one for one, _ in found])), float(np.mean([one for _, one in found])))
        for kind, found in counts.items()
        if found
    }


async def moved(sets: Mapping[str, Sequence[PairRow]], verifier: Verifier) -> list[float]:
    """Return how far the score of each claim moves when passages of other sets are put beside its own.

    Never of its own set: there, passages are about one film or one disease, and one that is not a claim's own may say
    it all the same.
    """
    draw = random.Random(5)
    found = []
    for name, rows in sets.items():
        elsewhere = list(dict.fromkeys(row.premise for other, own in sets.items() if other != name for row in own))
        for row in rows:
            asked = [Claim(text=row.claim, start=0, end=len(row.claim))]
            own = Passage(id="own", text=row.premise)
            others = [Passage(id=str(n), text=text) for n, text in enumerate(draw.sample(elsewhere, _IRRELEVANT))]
            (alone,) = await verifier.judge(asked, [own])
            (among,) = await verifier.judge(asked, [*others, own])
            found.append(abs(among.score - alone.score))
    return found


def table(found: ClaimAssessment) -> list[str]:
    """Return a verifier's figures as Markdown."""
    lines = [
        f"### {found.verifier}",
        "",
        "| set | supported + other | AUC | balanced accuracy at 0.5 | at the threshold of the other sets |",
        "|---|--:|---|---|---|",
    ]
    for each in found.sets:
        chosen = "-" if each.at_threshold is None else f"{_shown(each.at_threshold)} at {each.threshold:.2f}"
        texts = f"{each.supported} + {each.other}"
        lines.append(f"| `{each.name}` | {texts} | {_shown(each.auc)} | {_shown(each.at_half)} | {chosen} |")
    for label, prefix in (("evidence sets", "ground_"), ("inference sets", "nli_"), ("all", "")):
        own = [each for each in found.sets if each.name.startswith(prefix)]
        if own:
            area, half = np.mean([each.auc.value for each in own]), np.mean([each.at_half.value for each in own])
            others = np.mean([each.at_threshold.value for each in own if each.at_threshold is not None])
            lines.append(f"| **mean, {label}** | | **{area:.3f}** | **{half:.3f}** | **{others:.3f}** |")
    return [*lines, ""]


def _shown(interval: Interval) -> str:
    return f"{interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})"


async def run(folder: Path, rows: int, only: str | None, claims: int) -> list[str]:
    """Measure, and return the page."""
    embedded = EmbeddedVerifier()
    verifiers: dict[str, Verifier] = {"embedded": embedded, "reader": open_reader()}
    sets = {name: read_set(folder, name, rows) for name in SETS}
    lines = [f"At most {rows} rows of a set, chosen by a fixed seed. Python {platform.python_version()}.", ""]
    for name, verifier in verifiers.items():
        if only in (None, name):
            found = [await _told(each, sets[each], scoring(verifier)) for each in sets]
            lines += table(assess_claims(name, found))
    if only in (None, "designs"):
        lines += await _designs(
            sets, {"the risk engine's shared words": watchdog, "the evidence budget": budget(embedded)}
        )
    passages = [row.premise for name in _FLIPPED for row in sets[name][:150]]
    for name, verifier in verifiers.items():
        if only in (None, name):
            lines += _flips(name, await flipped(list(dict.fromkeys(passages)), verifier))
            steps = np.array(await moved({each: sets[each][:claims] for each in sets}, verifier))
            said = f"{len(steps)} claims by {steps.max():.3f} at most, of {np.sum(steps > _FAR)} by more than {_FAR}."
            lines += [f"{_IRRELEVANT} irrelevant passages move the score of {said}", ""]
    return lines


async def _designs(sets: Mapping[str, Sequence[PairRow]], designs: Mapping[str, Score]) -> list[str]:
    lines = ["### Decisions of the designs themselves", "", f"| set | {' | '.join(designs)} |"]
    lines += ["|---|" + "--:|" * len(designs)]
    found: list[list[float]] = []
    for name, rows in sets.items():
        told = [await scored(name, rows, score) for score in designs.values()]
        found.append([balanced_accuracy(each.supported, each.other, 0.7) for each in told])
        lines.append(f"| `{name}` | {' | '.join(f'{value:.3f}' for value in found[-1])} |")
    return [*lines, f"| **mean** | {' | '.join(f'**{value:.3f}**' for value in np.mean(found, axis=0))} |", ""]


def _flips(name: str, found: Mapping[str, tuple[int, float, float]]) -> list[str]:
    lines = [f"### One changed fact: {name}", "", "| changed | sentences | caught | untouched ones kept |"]
    lines += ["|---|--:|--:|--:|"]
    lines += [f"| {kind} | {count} | {caught:.3f} | {kept:.3f} |" for kind, (count, caught, kept) in found.items()]
    return [*lines, ""]


def main() -> int:
    """Do what the command line asks; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.verifiers", description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder of the labelled sets")
    parser.add_argument("--only", choices=["embedded", "reader", "designs"])
    parser.add_argument("--rows", type=int, default=600, help="most rows of a set")
    parser.add_argument("--claims", type=int, default=40, help="claims of a set that are judged among other passages")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    text = "\n".join(asyncio.run(run(asked.data, asked.rows, asked.only, asked.claims)))
    if asked.out is not None:
        asked.out.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
