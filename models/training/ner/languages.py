"""What the entity model is worth in each language, and what it marks where nobody is named.

    python -m models.training.ner.languages

measures the shipped model. The figures are of generated sentences that are never learnt from (weak evidence: names and
places come from the same lists), of passages of XQuAD to which spaCy's English labels were carried (as good as spaCy
and the carrying are), of the test part of pii-anon, of sentences of newspapers and encyclopaedias that were read by a
person (`abroad/read.txt`), and of a Japanese corpus that people labelled (package `hironsancorpus`, MIT; it only
measures, and is skipped where it is not installed).
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Protocol

import msgspec

from checkstream.scoring.provenance import described_models, load_described
from models.training import corpus
from models.training.encoder import package_file
from models.training.ner import abroad
from models.training.ner.data import SOURCES, read
from models.training.ner.figures import Counts, count, interval
from models.training.ner.marked import Marked, Span
from models.training.ner.material import MEASURED, TRANSLATED, carried, prompts
from models.training.ner.measure import NAMES, Finder

GENERATED = 150
"""Left-out sentences a language."""
MOST = 400
"""Texts of a set."""
READ = files(abroad).joinpath("read.txt").read_text(encoding="utf-8")
"""What a person read: language, digits of the text's hash, names."""
_READ_CHARS = 420
"""So much of a text was read."""
_JAPANESE = {"PSN": "PERSON", "LOC": "LOCATION", "ORG": "ORGANIZATION"}


class Finds(Protocol):
    """Finds names in a text."""

    def find(self, text: str) -> Sequence[Span]:
        """Return what is found."""
        ...


class Row(msgspec.Struct, frozen=True):
    """Figures of one language on one set of texts."""

    language: str
    source: str
    texts: int
    marked: int
    """Names that the source marks."""
    strict: float
    """F1 of PERSON, LOCATION and ORGANIZATION together, exact bounds."""
    strict_interval: tuple[float, float]
    overlap: float
    each: dict[str, float]
    """Strict F1 of each."""


class Alarms(msgspec.Struct, frozen=True):
    """Texts of one language in which nobody is named."""

    language: str
    texts: int
    chars: int
    alarmed: int
    """Texts with a name in them, as the model sees it."""


class Languages(msgspec.Struct, frozen=True):
    """Figures by language."""

    rows: list[Row]
    alarms: list[Alarms]


def sets(folder: Path, work: Path, seed: int) -> Iterator[tuple[str, str, Sequence[Marked]]]:
    """Yield (language, source, texts) of each set that is measured."""
    for number, language in enumerate((*abroad.HOMES, *abroad.UNLEARNT)):
        yield language, "sentences", list(abroad.documents(language, GENERATED, Random(seed + number), left_out=True))
    passages = carried(folder, work)
    for language in (*TRANSLATED, *MEASURED):
        own = [
            text
            for its, english, text in passages
            if its == language and (language in MEASURED or corpus.part_of(english) != "train")
        ]
        yield language, "XQuAD", _some(own, seed)
    for language in ("en", *abroad.HOMES, *abroad.UNLEARNT):
        own = [
            text
            for name, group in SOURCES.items()
            if group == "pii"
            for text, row in read(folder, name)
            if row["language"] == language and not row.get("adversarial") and corpus.part_of(text.text) == "test"
        ]
        if len(own) >= 10:
            yield language, "pii-anon", _some(own, seed)
    yield from as_read(folder)
    yield from _japanese(seed)


def _some(texts: Sequence[Marked], seed: int) -> Sequence[Marked]:
    return Random(seed).sample(texts, min(MOST, len(texts)))


def as_read(folder: Path) -> Iterator[tuple[str, str, Sequence[Marked]]]:
    """Yield the sentences whose names a person read: a name is marked wherever it stands."""
    wanted = {line[3:13]: line for line in READ.splitlines() if not line.startswith("#")}
    found: dict[str, list[Marked]] = {}
    for source in corpus.rows(folder, "documents_varied"):
        line = wanted.get(hashlib.sha256(str(source["text"]).encode()).hexdigest()[:10])
        if line is None:
            continue
        text, spans = str(source["text"])[:_READ_CHARS], list[Span]()
        for entity, _, name in (part.strip().partition(" ") for part in line[14:].split(";") if part.strip()):
            for hit in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text):
                if not any(hit.start() < span.end and hit.end() > span.start for span in spans):
                    spans.append(Span(hit.start(), hit.end(), entity))
        found.setdefault(line[:2], []).append(Marked(text, tuple(sorted(spans, key=lambda span: span.start))))
    for language, texts in sorted(found.items()):
        yield language, "people", texts


def _japanese(seed: int) -> Iterator[tuple[str, str, Sequence[Marked]]]:
    try:
        lines = package_file("hironsancorpus", "iob_sents.txt").read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return
    texts: list[Marked] = []
    text, spans = "", list[Span]()
    for line in (*lines, ""):
        if not line.strip():
            if text:
                texts.append(Marked(text, tuple(spans)))
            text, spans = "", []
            continue
        cells = line.split("\t")
        mark, _, kind = cells[-1].partition("-")
        start, text = len(text), text + cells[0]
        if kind not in _JAPANESE:
            continue
        if mark == "I" and spans and spans[-1].end == start and spans[-1].entity == _JAPANESE[kind]:
            spans[-1] = Span(spans[-1].start, len(text), spans[-1].entity)
        else:
            spans.append(Span(start, len(text), _JAPANESE[kind]))
    yield "ja", "people", _some(texts, seed)


def row(language: str, source: str, texts: Sequence[Marked], finder: Finds) -> Row:
    """Measure one set."""
    every: list[Counts] = []
    totals = dict.fromkeys(NAMES, Counts())
    for text in texts:
        found = finder.find(text.text)
        own = {entity: count(found, text.spans, entity) for entity in NAMES}
        totals = {entity: totals[entity] + own[entity] for entity in NAMES}
        every.append(sum(own.values(), Counts()))
    whole = sum(every, Counts())
    each = {entity: counts.f1() for entity, counts in totals.items() if counts.marked}
    return Row(language, source, len(texts), whole.marked, whole.f1(), interval(every, 1), whole.f1(overlap=True), each)


def measured(folder: Path, work: Path, finder: Finds, seed: int) -> Languages:
    """Measure every language."""
    rows = [row(language, source, texts, finder) for language, source, texts in sets(folder, work, seed) if texts]
    alarms: list[Alarms] = []
    for language in (*abroad.HOMES, *abroad.UNLEARNT):
        own = [text for its, text in prompts(folder, work) if its == language][::2]
        named = sum(any(span.entity in NAMES for span in finder.find(text)) for text in own)
        if own:
            alarms.append(Alarms(language, len(own), sum(map(len, own)), named))
    return Languages(rows, alarms)


def shown(found: Languages) -> list[str]:
    """Return the figures as lines."""
    lines: list[str] = []
    for one in found.rows:
        low, high = one.strict_interval
        each = " ".join(f"{entity[:3]} {f1:.2f}" for entity, f1 in one.each.items())
        lines.append(
            f"{one.language} {one.source:10} {one.texts:4} texts {one.marked:5} names "
            f"{one.strict:.3f} ({low:.3f} to {high:.3f}) overlap {one.overlap:.3f}  {each}"
        )
    lines += [f"{one.language} nameless: {one.alarmed} of {one.texts}, {one.chars} characters" for one in found.alarms]
    return lines


def main() -> int:
    """Do what the command line asks; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m models.training.ner.languages", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=corpus.data_folder(), help="folder of the pool of labelled data")
    parser.add_argument("--work", type=Path, default=Path("build/ner"), help="keeps the texts that were carried over")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    found = measured(asked.data, asked.work, Finder(load_described(described_models()["ner"])), asked.seed)
    print("\n".join(shown(found)))
    (asked.work / "languages.json").write_bytes(msgspec.json.encode(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
