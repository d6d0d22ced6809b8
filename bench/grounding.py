"""What the pure half of grounding costs: the risk engine by length of the answer, and the sentence splitter by bytes.

CPU time of this thread, so that company on the machine changes little; the 95th percentile is over analyses of
different answers, each analysed once a round.

    python -m bench.grounding
"""

from __future__ import annotations

import sys
import time
from itertools import cycle, islice

import msgspec

from checkstream.grounding.risk import analyze
from checkstream.grounding.sentences import sentences

_ROUNDS = 10
_LENGTHS = (50, 200, 500)
"""Words of an answer."""
_ANSWERS = 50
_TEXT_BYTES = 2_000_000
_SENTENCES = (
    "The programme started in 2005 and was extended by the council in the following year.",
    "About 4.2% of the 1,250 participants left before the end, most of them for reasons of health. [S0]",
    "Dr. Smith said that opened software is not refundable within thirty days of the purchase.",
    "Is the office open on Sundays?",
    "It serves 5,000 customers in 12 countries, and shipping is free for orders over $50 [Source: terms, p. 3].",
    "The revenue of the company rose from $3.5 million to $4.1 million in the last quarter of the year.",
    "See https://example.org/terms.html for the conditions that apply to customers outside the U.S. and Canada.",
    "According to the handbook, every claim must be made in writing and is answered within two weeks.",
    "The museum has been active since 2010, but its garden is closed for the winter.",
)
_DOCUMENTS = tuple({"content": " ".join(islice(cycle(_SENTENCES), at, at + 12)), "metadata": {}} for at in range(5))


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What analyses of answers of one length cost."""

    words: int
    median_ms: float
    p95_ms: float
    per_second: float
    """Analyses a second of one core."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a run."""

    costs: tuple[Cost, ...]
    splitter_mb_s: float


def run(rounds: int) -> Report:
    """Measure `rounds` times."""
    return Report(costs=tuple(_cost(words, rounds) for words in _LENGTHS), splitter_mb_s=_splitter(rounds))


def lines(report: Report) -> list[str]:
    """Return the figures as Markdown."""
    rows = [
        f"| {cost.words} | {cost.median_ms:.2f} | {cost.p95_ms:.2f} | {cost.per_second:.0f} |" for cost in report.costs
    ]
    return [
        "## Risk engine",
        "",
        "Five documents of about 180 words.",
        "",
        "| words of the answer | median, ms | p95, ms | analyses a second of one core |",
        "|--:|--:|--:|--:|",
        *rows,
        "",
        f"Sentence splitter: {report.splitter_mb_s:.1f} MB/s.",
        "",
    ]


def _answer(words: int, start: int) -> str:
    said: list[str] = []
    for sentence in islice(cycle(_SENTENCES), start, None):
        if len(said) >= words:
            break
        said += sentence.split()
    return " ".join(said[:words])


def _cost(words: int, rounds: int) -> Cost:
    answers = [f"{_answer(words, at)} Note {at}." for at in range(_ANSWERS)]
    spent = []
    for answer in answers * rounds:
        began = time.thread_time()
        analyze("What does the handbook say?", answer, list(_DOCUMENTS))
        spent.append((time.thread_time() - began) * 1e3)
    spent.sort()
    return Cost(
        words=words,
        median_ms=spent[len(spent) // 2],
        p95_ms=spent[int(0.95 * len(spent))],
        per_second=1e3 * len(spent) / sum(spent),
    )


def _splitter(rounds: int) -> float:
    """Return millions of bytes a second: the quickest of the rounds, which company on the machine disturbed least."""
    text = " ".join(_SENTENCES)
    text *= _TEXT_BYTES // len(text)
    spent = []
    for _ in range(rounds):
        began = time.thread_time()
        sentences(text)
        spent.append(time.thread_time() - began)
    return len(text.encode()) / min(spent) / 1e6


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines(run(_ROUNDS))))
