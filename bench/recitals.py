"""What it costs to look for recitals: bytes of fingerprints, text that is held without need, time for each word.

    python -m bench.recitals DATA_FOLDER

DATA_FOLDER has gzipped JSON lines. Texts of some of its sets get fingerprints, in files of several sizes, and answers
of models, of other sets, are read a word at a time, as they stream. Prints Markdown. Close what else uses the machine.
"""

from __future__ import annotations

import gzip
import json
import re
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.overblocking import REAL
from checkstream.core.match.fingerprints import Fingerprints
from checkstream.core.match.patterns import Pattern
from checkstream.core.match.plain_words import numbers_of
from checkstream.core.match.recital import Recital
from checkstream.core.match.winnowing import Winnowing
from checkstream.core.match.work import Work

TEXTS = ("documents_varied", "benign_documents", "documents_reference", "nli_cosmosqa")
SIZES_MB = (1, 10, 40)
WORDS = 12
_ANSWERS = 400
_LEAST_CHARS = 300
_TOKEN = re.compile(r"\s*\S+|\s+\Z")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one file of fingerprints comes to."""

    text_mb: float
    file_mb: float
    made_s: float
    held_words: float
    """Held when a word has come, on average; the word that may still go on among them."""
    held_p99_chars: int
    word_us: float
    found: int
    """Recitals in answers that have nothing to do with the texts."""


def texts(folder: Path, sets: Sequence[str]) -> Iterator[str]:
    """Yield the English texts of some sets."""
    for name in sets:
        path = folder / f"{name}.jsonl.gz"
        if not path.is_file():
            continue
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                text = row.get("text") or row.get("premise") or ""
                if row.get("language", "en") == "en" and len(text) >= _LEAST_CHARS:
                    yield text


def measure(fingerprinted: Sequence[str], answers: Sequence[str]) -> Row:
    """Return what fingerprints of some texts come to over some answers."""
    began = time.perf_counter()
    made = Winnowing(WORDS)
    for text in fingerprinted:
        made.take(text)
    file = made.file()
    took = time.perf_counter() - began
    pattern = Pattern(signal=0, name="bench", texts=Fingerprints(file), words=WORDS)
    held, found = list[int](), 0
    began = time.thread_time()
    for answer in answers:
        recital, at = Recital([pattern], Work()), 0
        for piece in _TOKEN.findall(answer):
            found += len(recital.feed(piece))
            at += len(piece)
            held.append(at - recital.live)
        found += len(recital.end())
    spent = time.thread_time() - began
    words, chars = sum(len(numbers_of(answer)) for answer in answers), sum(map(len, answers))
    return Row(
        text_mb=sum(map(len, fingerprinted)) / 1e6,
        file_mb=len(file) / 1e6,
        made_s=took,
        held_words=statistics.fmean(held) * words / chars,
        held_p99_chars=sorted(held)[len(held) * 99 // 100],
        word_us=spent / words * 1e6,
        found=found,
    )


def page(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown."""
    lines = [
        "| texts, MB | file, MB | made in, s | held, words | held, p99 characters | us a word | found |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += (
        f"| {row.text_mb:.1f} | {row.file_mb:.1f} | {row.made_s:.1f} | {row.held_words:.1f} | {row.held_p99_chars} "
        f"| {row.word_us:.1f} | {row.found} |"
        for row in rows
    )
    return "\n".join(lines) + "\n"


def main(folder: Path) -> None:
    """Measure, and print the table."""
    answers = list(texts(folder, REAL))
    answers = answers[:: max(1, len(answers) // _ANSWERS)][:_ANSWERS]
    known = list(texts(folder, TEXTS))
    rows = []
    for size in SIZES_MB:
        chosen, room = list[str](), size * 1_000_000
        for text in known:
            if room <= 0:
                break
            chosen.append(text)
            room -= len(text)
        rows.append(measure(chosen, answers))
    sys.stdout.write(page(rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
