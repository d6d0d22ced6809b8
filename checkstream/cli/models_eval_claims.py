"""`checkstream models eval verifier:NAME`: how well does a verifier tell what evidence says?"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from checkstream.cli.progress import progress
from checkstream.cli.results import safe, write_json
from checkstream.errors import FileUnreadable, ModelError
from checkstream.evaluation.claims import ClaimAssessment, ClaimSet, assess_claims
from checkstream.evaluation.report import interval
from checkstream.evaluation.rows import PairRow, read_pairs
from checkstream.evaluation.verifiers import PREFIX, open_verifier
from checkstream.grounding.terms import Claim, Passage, Verifier

_SUPPORTED = (
    *("1", "true", "supported", "supports", "support", "entailment", "entailed", "consistent", "grounded", "faithful"),
    *("attributable", "fully attributable", "paraphrase"),
)
"""Labels that say so in sets of the field, in small letters."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what only verifiers need."""
    parser.add_argument("--premise-key", metavar="KEY", default="premise", help="of a verifier: key of the evidence")
    parser.add_argument("--claim-key", metavar="KEY", default="claim", help="of a verifier: key of the claim")
    parser.add_argument(
        "--leave-out",
        metavar="LABEL",
        action="append",
        default=[],
        help="of a verifier: leave rows with this label out, those that say nothing, perhaps",
    )


def run(args: argparse.Namespace) -> int:
    """Measure and print.

    Returns:
        0: done.

    Raises:
        ConfigError: models.yaml holds faults.
        ModelError: there is no such verifier, or an argument is of models alone.
        FileUnreadable: a file can't be read, or does not hold claims of both classes.
    """
    if args.html is not None or args.against or args.label or args.rename:
        raise ModelError("a verifier has no labels and no page; leave --html, --against, --label and --rename out")
    verifier = open_verifier(args.name.removeprefix(PREFIX), args.models)
    positive = {label.casefold() for label in args.positive or _SUPPORTED}
    with asyncio.Runner() as runner:
        sets = [runner.run(_scored(file, _rows(args, file), verifier, positive)) for file in args.files]
    found = assess_claims(args.name, sets)
    if args.json:
        write_json(found)
    else:
        sys.stdout.write("\n".join(_lines(found)) + "\n")
    return 0


def _rows(args: argparse.Namespace, file: Path) -> list[PairRow]:
    out = {label.casefold() for label in args.leave_out}
    rows = [
        row
        for row in read_pairs(file, args.premise_key, args.claim_key, args.label_key)
        if row.label.casefold() not in out
    ]
    if args.sample is not None and len(rows) > args.sample:
        rows = random.Random(0).sample(rows, args.sample)  # noqa: S311 - a choice that can be repeated
    return rows


async def _scored(file: Path, rows: Sequence[PairRow], verifier: Verifier, positive: set[str]) -> ClaimSet:
    """Score a file, the claims of one premise together.

    Raises:
        FileUnreadable: its claims are all supported, or none is.
    """
    of_premise: dict[str, list[PairRow]] = {}
    for row in rows:
        of_premise.setdefault(row.premise, []).append(row)
    found: dict[bool, list[float]] = {True: [], False: []}
    for premise, own in progress(list(of_premise.items()), file.name):
        asked = [Claim(text=row.claim, start=0, end=len(row.claim)) for row in own]
        told = await verifier.judge(asked, [Passage(id="0", text=premise)])
        for row, judged in zip(own, told, strict=True):
            found[row.label.casefold() in positive].append(judged.score)
    if not found[True] or not found[False]:
        labels = ", ".join(sorted({f"`{safe(row.label)}`" for row in rows})[:12]) or "none"
        raise FileUnreadable(
            f"`{file.name}` needs supported and other claims; its labels are {labels}: name with --positive "
            "those that mean supported"
        )
    return ClaimSet(file.name, np.array(found[True]), np.array(found[False]))


def _lines(found: ClaimAssessment) -> list[str]:
    lines = [f"{found.verifier}: {len(found.sets)} sets, balanced accuracy at 0.5 and at the threshold of the others"]
    for each in found.sets:
        other = "" if each.at_threshold is None else f", {interval(each.at_threshold)} at {each.threshold:.2f}"
        texts = f"{each.supported} supported and {each.other} other claims"
        lines.append(f"  {safe(each.name)}  {texts}: AUC {interval(each.auc)}; {interval(each.at_half)}{other}")
    other = "" if found.at_threshold is None else f", {found.at_threshold:.3f}"
    return [*lines, f"mean: AUC {found.auc:.3f}; {found.at_half:.3f}{other}"]
