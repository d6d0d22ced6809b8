"""What the domain model learns from and is measured on: texts of the pool by source, and generated ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from models.training import corpus
from models.training.domain.questions import questions
from models.training.domain.vignettes import vignettes

CLASSES = ("none", "medical", "legal", "financial")
"""Columns of the model, in order."""

FOLDS: tuple[tuple[str, ...], ...] = (
    ("domain_mmlu", "domain_medquad"),
    ("domain_banking77", "domain_clinc150", "domain_spikee_investment"),
    ("benign_prompts", "harm_prompts", "tox_jigsaw_subset", "out_hh_harmless_test"),
)
"""Sources that are left out together. Nobody's exam questions help with anybody else's bank."""
DOCUMENTS = ("pii_anon_dev", "pii_anon_extra")
"""Only learnt from: forms and logs of a trade, of which nobody could tell what they are about."""

BESIDE = {
    "tox_civil_comments_annot": ("text", 2000, "talk"),
    "tox_davidson": ("text", 800, "talk"),
    "out_gptfuzz_responses": ("text", 800, "talk"),
    "nli_conjnli": ("premise", 1500, "prose"),
    "nli_paws_en": ("premise", 800, "prose"),
    "nli_cad": ("premise", 800, "prose"),
    "ground_begin": ("premise", 800, "prose"),
    "ground_faithdial_audit": ("premise", 300, "prose"),
    "nli_scifact_rte": ("premise", 600, "abstracts"),
}
"""File, field, most texts and kind of what no source labels: talk and prose about anything count as `none`, abstracts
of medical papers as `medical`. Only learnt from; what few of them are of a domain does no harm."""
_DOMAIN_FILES = FOLDS[0] + FOLDS[1]
_PII_DOMAINS = {"clinical": "medical", "legal": "legal", "financial": "financial"}
_ADVICE = {
    "spc_fin": "financial",
    "Financial Advice": "financial",
    "Tailored Financial Advice": "financial",
    "spc_lgl": "legal",
    "Legal Opinion": "legal",
    "spc_hlt": "medical",
    "Health Consultation": "medical",
}
SHARES = {
    "questions": 8.0,
    "vignettes": 8.0,
    "talk": 4.0,
    "prose": 4.0,
    "domain_mmlu": 4.0,
    "domain_clinc150": 2.0,
    "benign_prompts": 2.0,
    "domain_spikee_investment": 0.5,
    "pii_anon_dev": 0.6,
    "pii_anon_extra": 0.4,
}
"""How much a source weighs in training, whatever its size; others weigh 1."""

_LONGEST = 600
"""Characters of a text of `BESIDE`."""
_NONE = 0.45
"""Share of the class `none` in training; the others share the rest alike."""


class Text(NamedTuple):
    """One labelled text."""

    text: str
    label: str
    source: str


def pool(folder: Path, most: int, seed: int) -> list[Text]:
    """Return the open pool's texts of known domain, at most `most` a source, no exact copies."""
    result: list[Text] = []
    known: set[str] = set()
    for source in [*(name for fold in FOLDS for name in fold), *DOCUMENTS]:
        found = [text for row in corpus.rows(folder, source) if (text := _read(row, source)) is not None]
        Random(seed).shuffle(found)
        kept = 0
        for text in found:
            key = corpus.normalised(text.text)
            if kept < most and key and key not in known:
                known.add(key)
                kept += 1
                result.append(text)
    return result


def _read(row: dict[str, object], source: str) -> Text | None:
    label: str | None = "none"
    if source in _DOMAIN_FILES:
        label = "none" if row["label"] == "other" else str(row["label"])
    elif source in DOCUMENTS:
        label = _PII_DOMAINS.get(str(row["domain"])) if row["language"] == "en" else None
    elif source == "harm_prompts":
        label = _ADVICE.get(str(row["label"]))
    return None if label is None else Text(str(row["text"]), label, source)


def innocent(folder: Path, part: corpus.Part, most: int, seed: int) -> list[Text]:
    """Return texts of no domain of a part, at most `most` a source, those too that `pool` has no room for."""
    found: list[Text] = []
    taken: dict[str, int] = {}
    for text in pool(folder, sys.maxsize, seed):
        if text.label == "none" and taken.get(text.source, 0) < most and corpus.part_of(text.text) == part:
            taken[text.source] = taken.get(text.source, 0) + 1
            found.append(text)
    return found


def beside(folder: Path, seed: int) -> list[Text]:
    """Return the texts of `BESIDE`."""
    random, result = Random(seed), list[Text]()
    for name, (field, most, kind) in BESIDE.items():
        texts = sorted({str(row[field])[:_LONGEST] for row in corpus.rows(folder, name)})
        random.shuffle(texts)
        result += [Text(text, "medical" if kind == "abstracts" else "none", kind) for text in texts[:most]]
    return result


def generated(count: int, seed: int) -> list[Text]:
    """Return generated texts, `count` questions and a half as many cases a class."""
    random = Random(seed)
    return [
        Text(text, label, source)
        for label in CLASSES
        for source, texts in (
            ("questions", questions(label, count, random)),
            ("vignettes", vignettes(label, count // 2, random)),
        )
        for text in texts
    ]


def weights(texts: Sequence[Text]) -> list[float]:
    """Return a weight for each text, mean 1: sources weigh their share, then classes theirs."""
    sizes: dict[str, int] = {}
    for text in texts:
        sizes[text.source] = sizes.get(text.source, 0) + 1
    raw = [SHARES.get(text.source, 1.0) / sizes[text.source] for text in texts]
    masses = dict.fromkeys(CLASSES, 0.0)
    for weight, text in zip(raw, texts, strict=True):
        masses[text.label] += weight
    shares = {label: _NONE if label == "none" else (1 - _NONE) / (len(CLASSES) - 1) for label in CLASSES}
    return [
        weight * len(texts) * shares[text.label] / masses[text.label] for weight, text in zip(raw, texts, strict=True)
    ]
