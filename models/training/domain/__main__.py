"""Rebuild the model `domain` and measure its recipe on sources left out of training.

    python -m models.training.domain             train, measure, calibrate, export: writes models/domain
    python -m models.training.domain --report    write models/domain/CARD.md from what was measured

A run that was cut off goes on where it stopped. Everything repeats from `--seed`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import torch

from models.training import corpus
from models.training.domain.card import Measured, card
from models.training.domain.data import CLASSES, Text, beside, generated, innocent, pool, weights
from models.training.domain.measure import classes_of, figures, judged, left_out
from models.training.domain.ship import NAME, put_head, ship, tempered
from models.training.domain.student import Size, distilled, fit_head, lone_words, prose
from models.training.domain.teacher import Teacher
from models.training.encoder import base_tokenizer
from models.training.export import MODELS

QUESTIONS, MOST, WORDS = 4000, 4000, 12_000
"""Generated questions a class, texts a source, and texts of lone words."""
BENIGN = 1000
"""Texts of no domain of a source at most that set thresholds: else assistants' and comments would be two thirds."""
RESTRICTED = "domain_halueval2_questions"


def main() -> int:
    """Do what the command line asks; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m models.training.domain", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=corpus.data_folder(), help="folder of the pool of labelled data")
    parser.add_argument("--work", type=Path, default=Path("build/domain"), help="keeps checkpoints and figures")
    parser.add_argument("--report", action="store_true", help="write the card from the figures in the work folder")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    kept = asked.work / "figures.json"
    if not asked.report:
        found = _build(asked.data, asked.work, asked.seed)
        kept.write_bytes(msgspec.json.encode(found))
    (MODELS / NAME / "CARD.md").write_text(card(msgspec.json.decode(kept.read_bytes(), type=Measured)))
    return 0


def _build(folder: Path, work: Path, seed: int) -> Measured:
    made = generated(QUESTIONS, seed)
    student = distilled(_unlabelled(folder, made, seed), Teacher(), Size(), seed, work)
    made += beside(folder, seed)
    texts = pool(folder, MOST, seed)
    read = student.windows([text.text for text in texts])
    vectors = read.vectors[np.unique(read.owner, return_index=True)[1]]
    made_vectors = student.vectors([text.text for text in made])
    out = left_out(texts, made, read, made_vectors)
    parts = [corpus.part_of(text.text) for text in texts]
    learnt = [number for number, part in enumerate(parts) if part == "train"]
    examples = [texts[number] for number in learnt] + made
    weight, bias = fit_head(
        np.concatenate([vectors[learnt], made_vectors]), classes_of(examples), weights(examples), len(CLASSES)
    )
    dev = [number for number, part in enumerate(parts) if part == "dev"]
    factor = tempered(vectors[dev] @ weight.T + bias, classes_of([texts[number] for number in dev]))
    put_head(student, weight * factor, bias * factor)
    print(f"temperature {1 / factor:.3f}", file=sys.stderr)
    benign: dict[corpus.Part, list[Text]] = {part: innocent(folder, part, BENIGN, seed) for part in ("dev", "test")}
    shipped = ship(student, benign, [text for text, part in zip(texts, parts, strict=True) if part == "test"])
    rows = corpus.rows(folder / corpus.RESTRICTED, RESTRICTED, measuring=True)
    others = [
        Text(str(row["text"]), "none" if row["label"] == "other" else str(row["label"]), RESTRICTED) for row in rows
    ]
    guesses = judged(student.windows([text.text for text in others]), len(others), weight * factor, bias * factor)
    return Measured(out, figures(RESTRICTED, classes_of(others), guesses), shipped, student.progress.curve)


def _unlabelled(folder: Path, made: list[Text], seed: int) -> list[str]:
    vocabulary = json.loads(base_tokenizer().read_text())["model"]["vocab"]
    words = [word for word in vocabulary if word.isalpha() and word.isascii() and len(word) > 3]
    texts = [text.text for text in made] + prose(folder, seed)
    return texts + list(lone_words(words, WORDS, Random(seed)))


if __name__ == "__main__":
    sys.exit(main())
