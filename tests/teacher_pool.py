"""A small pool of labelled data for the recipe of teachers, and a tiny base of MPNet's kind, written here."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import orjson
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

WORDS = ("apple", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "islet", "jetty", "knoll", "larch")
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_OPPOSITE = {"nli_plain": "contradiction", "nli_more": "neutral", "ground_talk": "inconsistent"}


def write(folder: Path, name: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Write one set."""
    (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(b"".join(orjson.dumps(row) + b"\n" for row in rows)))


def sentence(random: Random, words: int = 12) -> str:
    """Return a text of random words."""
    return " ".join(random.choice(WORDS) for _ in range(words))


def fill_pairs(folder: Path, count: int = 40) -> Path:
    """Write three pair files: what a premise supports is a word of the first half of the list."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, opposite in _OPPOSITE.items():
        random, rows = Random(name), list[dict[str, object]]()
        for _ in range(count):
            pair = {"premise": sentence(random, 8), "source": name}
            rows += [
                {**pair, "claim": random.choice(WORDS[:6]), "label": "entailment"},
                {**pair, "claim": random.choice(WORDS[6:]), "label": opposite},
            ]
        write(folder, name, rows)
    return folder


def tokenizer() -> str:
    """Return a `tokenizer.json` that knows the words of this pool, with MPNet's frame."""
    vocabulary = {piece: number for number, piece in enumerate((*SPECIAL, *WORDS))}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens(list(SPECIAL))
    return str(made.to_str())
