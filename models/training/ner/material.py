"""Gathers what the entity model learns from: generated, silver and labelled texts, all or without some sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec
from tokenizers import Tokenizer

from models.training import corpus
from models.training.multilingual import pruned
from models.training.ner import abroad
from models.training.ner.data import SOURCES, plain, read, silver
from models.training.ner.generate import documents
from models.training.ner.marked import Marked, read_marked, write_marked
from models.training.ner.parallel import nameless_prompts, translated
from models.training.ner.silver import label
from models.training.ner.silver import posts as silver_posts
from models.training.ner.silver import prose as silver_prose
from models.training.ner.social import posts

FOLDS = {"pii": ("pii_anon_dev", "pii_anon_extra"), "social": ("pii_ner_btc", "pii_ner_wnut17_train")}
"""Sources that are left out together."""


class Amounts(NamedTuple):
    """How many texts of each origin, at most."""

    generated: int = 10_000
    silver: int = 6_500
    pii: int = 3_000
    btc: int = 7_400
    wnut17: int = 3_400
    posts: int = 7_500
    """Marked prose rewritten as posts."""
    comments: int = 6_250
    """Posts and comments that the teacher marked."""
    abroad: int = 0
    """Generated texts of each other language; half as many again where names aren't in Latin letters."""
    translated: int = 0
    """Passages to which labels were carried, of all languages together."""
    nameless: int = 0
    """System prompts of each other language in which nobody is named."""

    def scaled(self, share: float) -> Amounts:
        """Return a share of each."""
        return Amounts(*(int(amount * share) for amount in self))


SHIPPED = Amounts()
FOLD = Amounts().scaled(0.4)
"""What a fold learns from: it is to cost less than half of what ships."""
ABROAD = Amounts(4_000, 4_500, 3_000, 6_000, 3_400, 4_500, 2_500, abroad=550, translated=2_000, nameless=80)
"""What the model of ten languages learns from."""
TRANSLATED = ("de", "es", "ru", "zh")
"""Languages of carried passages that are learnt from."""
MEASURED = ("tr", "ar", "hi")
"""Languages of carried passages that only measure."""
SIGNS = 9_000
"""Signs that tell where words begin; which pieces they make doesn't matter."""
PASSAGES = 2500
"""Silver passages a source."""


def silver_texts(folder: Path, work: Path, seed: int) -> list[Marked]:
    """Return the teacher's texts, labelled once and kept in `work`."""
    path = work / "silver.jsonl"
    if not path.exists():
        write_marked(path, label(silver_prose(folder, PASSAGES, seed)))
    return list(read_marked(path))


def comments(folder: Path, work: Path, seed: int) -> list[Marked]:
    """Return posts and comments of the pool as the teacher marks them, kept in `work`."""
    path = work / "comments.jsonl"
    if not path.exists():
        write_marked(path, label(silver_posts(folder, seed)))
    return list(map(plain, read_marked(path)))


def carried(folder: Path, work: Path) -> list[tuple[str, str, Marked]]:
    """Return the passages of XQuAD to which English labels were carried, made once and kept in `work`.

    Each is its language, the English text that it translates, and the passage.
    """
    path = work / "translated.jsonl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        words = Tokenizer.from_str(pruned((), 1, SIGNS)[0])
        found = map(msgspec.json.encode, translated(folder, (*TRANSLATED, *MEASURED), words))
        path.write_bytes(b"".join(line + b"\n" for line in found))
    return [msgspec.json.decode(line, type=tuple[str, str, Marked]) for line in path.read_bytes().splitlines()]


def prompts(folder: Path, work: Path) -> list[tuple[str, str]]:
    """Return system prompts in which nobody is named, as (language, text), chosen once and kept in `work`."""
    path = work / "nameless.jsonl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        found = nameless_prompts(folder, [*abroad.HOMES, *abroad.UNLEARNT], PASSAGES)
        path.write_bytes(b"".join(msgspec.json.encode(pair) + b"\n" for pair in found))
    return [msgspec.json.decode(line, type=tuple[str, str]) for line in path.read_bytes().splitlines()]


def foreign(folder: Path, work: Path, amounts: Amounts, seed: int) -> list[Marked]:
    """Return texts of the other languages: generated ones, the train part of carried ones, and nameless prompts."""
    texts: list[Marked] = []
    for number, language in enumerate(abroad.HOMES):
        count = amounts.abroad + (amounts.abroad // 2 if language in abroad.OWN else 0)
        texts += abroad.documents(language, count, Random(seed + 20 + number))
    passages = [
        passage
        for language, english, passage in carried(folder, work)
        if language in TRANSLATED and corpus.part_of(english) == "train"
    ]
    texts += _some(passages, amounts.translated, seed)
    for language in abroad.HOMES:
        own = [Marked(text, ()) for its, text in prompts(folder, work) if its == language]
        # The others measure.
        texts += _some([text for number, text in enumerate(own) if number % 2], amounts.nameless, seed)
    return texts


def learnt(folder: Path, work: Path, amounts: Amounts, seed: int, left_out: Sequence[str] = ()) -> list[Marked]:
    """Return training texts in random order.

    Args:
        folder: the pool.
        work: keeps the silver labels.
        amounts: how many of each origin.
        seed: of every choice.
        left_out: files of the pool of which nothing is to be learnt; of the others the train part is.
    """
    texts = list(documents(amounts.generated, Random(seed)))
    prose = silver(_some(silver_texts(folder, work, seed), amounts.silver, seed), Random(seed + 1))
    texts += [*prose, *posts(prose, amounts.posts, Random(seed + 10))]
    texts += _some(comments(folder, work, seed), amounts.comments, seed)
    for group in ("pii", "btc", "wnut17"):
        known = [
            text
            for name, own in SOURCES.items()
            if own == group and name not in left_out
            for text, _ in read(folder, name)
            if corpus.part_of(text.text) == "train"
        ]
        texts += _some(known, getattr(amounts, group), seed)
    if amounts.abroad:
        texts += foreign(folder, work, amounts, seed)
    Random(seed).shuffle(texts)
    return texts


def _some(texts: Sequence[Marked], most: int, seed: int) -> list[Marked]:
    return Random(seed).sample(texts, min(most, len(texts)))
