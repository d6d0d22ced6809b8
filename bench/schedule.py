"""How often an answer is checked and how much waits: what it stops, rightly and wrongly, and what has left by then.

    python -m bench.schedule HARMLESS.jsonl.gz ... --harmful HARMFUL.jsonl.gz ... [--texts N]

Files of lines `{"text", "label"}`: of a harmful file those with label 1 are read, of a harmless one those without it.
Each text is scored once at every token, by `safety` as it ships and at the thresholds of the default policies; what a
schedule comes to follows from that, with the product's own rule for what waits. Prints Markdown.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench.report import machine, table
from checkstream.config import bundled
from checkstream.core.channel.checks import HoldSettings
from checkstream.core.channel.reading import Risks
from checkstream.core.match.tokens import TokenGrid
from checkstream.scoring import Session, load_models, open_session
from checkstream.scoring.session import windows_of

SCHEDULES = ((8, 3), (8, 0), (6, 1), (6, 0), (5, 0), (4, 2), (4, 1), (2, 1))
"""Tokens between two checks, and tokens that wait while risk is low."""
_LABELS = ("toxicity", "hate", "harassment", "sexual", "self_harm", "violence", "illegal_advice", "financial_crime")
"""That end an answer under the default policies ..."""
_FPR = 0.001
"""... at this rate."""
_EARLY = frozenset({1, 2, 4})
_CHARS = 2_500
"""Of a text, no more."""
_SEED = 16


class Scored(msgspec.Struct, frozen=True):
    """What a check after each token of a text finds."""

    risk: NDArray[np.float32]
    """float32[token]: the highest score."""
    fires: NDArray[np.bool_]
    """bool[token]: some score reaches its threshold."""


class Left(msgspec.Struct, frozen=True):
    """What came of a text under a schedule."""

    stopped: bool
    tokens: int
    """That had left by then."""


def scored(session: Session, text: str, columns: Sequence[int], limits: NDArray[np.float32]) -> Scored:
    """Check a text after each of its tokens, each time over the window that a stream's check has."""
    grid, reach = TokenGrid(), HoldSettings().window
    spans = [*grid.feed(text), *grid.end()]
    rows: list[NDArray[np.float32]] = []
    for number, (start, end) in enumerate(spans):
        begin = spans[max(0, number + 1 - reach)][0]
        windows = list(windows_of(session, text[begin:end], end - start))
        rows.append(session.run(windows).scores.max(axis=0)[list(columns)])
    found = np.stack(rows)
    return Scored(found.max(axis=1), np.asarray(np.max(found >= limits, axis=1), np.bool_))


def left(text: Scored, every: int, calm: int) -> Left:
    """Tell what leaves of a text before it is stopped, or that it is not."""
    settings = HoldSettings(check_every=every, calm_tokens=calm)
    risks, tokens, count = Risks(settings.left), 0, len(text.risk)
    for at in range(1, count + 1):
        if at not in _EARLY and at % every and at != count:
            continue
        if text.fires[at - 1]:
            return Left(stopped=True, tokens=tokens)
        risks.take(at, float(text.risk[at - 1]))
        tokens = max(tokens, at - settings.hold(risks.latest[0]))
    return Left(stopped=False, tokens=count)


def _texts(path: Path, most: int, *, harmful: bool) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    found = sorted({row["text"][:_CHARS] for row in rows if (row.get("label") == 1) is harmful and row["text"].strip()})
    return random.Random(_SEED).sample(found, min(most, len(found)))


def _rows(harmless: Sequence[Sequence[Scored]], harmful: Sequence[Scored]) -> list[list[str]]:
    firsts = [int(text.fires.argmax()) + 1 if text.fires.any() else 0 for text in harmful]
    rows: list[list[str]] = []
    for every, calm in SCHEDULES:
        ends = [left(text, every, calm) for text in harmful]
        reached = [first > end.tokens for end, first in zip(ends, firsts, strict=True) if first]
        before = [first - end.tokens for end, first in zip(ends, firsts, strict=True) if first and end.stopped]
        stopped = [[left(text, every, calm).stopped for text in texts] for texts in (*harmless, harmful)]
        rows.append(
            [f"every {every}, {calm} wait"]
            + [f"{sum(each)} of {len(each)} ({statistics.mean(each):.2%})" for each in stopped]
            + [f"{statistics.mean(reached):.1%}", f"{statistics.median(before):.0f}"]
        )
    return rows


def main(given: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.schedule", description=__doc__)
    parser.add_argument("harmless", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--harmful", nargs="+", type=Path, required=True, metavar="FILE")
    parser.add_argument("--texts", type=int, default=5_000, help="of each file, at most")
    args = parser.parse_args(given)
    (model,) = load_models(bundled("models"), ("safety",))
    session = open_session(model)
    known = {rate.label: rate.threshold for rate in model.entry.rates if rate.fpr == _FPR}
    columns, limits = [model.labels.index(label) for label in _LABELS], np.array([known[label] for label in _LABELS])

    def read(path: Path, *, harmful: bool) -> list[Scored]:
        texts = _texts(path, args.texts, harmful=harmful)
        return [scored(session, text, columns, limits.astype(np.float32)) for text in texts]

    harmless = [read(path, harmful=False) for path in args.harmless]
    harmful = [text for path in args.harmful for text in read(path, harmful=True)]
    names = [f"stopped: {path.name.removesuffix('.jsonl.gz')}, harmless" for path in args.harmless]
    head = ["checks", *names, "stopped: harmful", "nothing left of what fires first", "tokens kept back before it"]
    print("\n".join([*table(head, _rows(harmless, harmful)), "", *machine()]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
