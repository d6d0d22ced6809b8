"""The corpus of a training: the pool's texts and the generated ones, in fixed parts; sources are left out on demand."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import re2

from models.training.corpus import Part, normalised, part_of
from models.training.safety import (
    abuse,
    accounts,
    answers,
    completions,
    howto,
    promotions,
    registers,
    retold,
    steps,
    voices,
)
from models.training.safety.goals import goals
from models.training.safety.labels import ANY, HARMS, Text
from models.training.safety.sources import READERS, texts

LIMITS: Mapping[str, int] = {
    "civil": 8000,
    "davidson": 9000,
    "btc": 4000,
    "wnut17": 2500,
    "edos": 9000,
    "jigsaw": 12_000,
    "madlibs": 900,
    "stormfront": 5000,
    "hh": 1500,
    "hh rejected": 1500,
    "mmlu": 2500,
    "medquad": 2500,
    "benign_prompts": 2500,
    "banking77": 500,
    "begin": 900,
    "faithdial": 300,
    "conjnli": 800,
    "pii_anon": 1500,
    "halueval_qa": 700,
    "davidson rest": 0,
}
"""How many texts of a source at most; the rest of them would drown the others."""

WIDER: Mapping[str, int] = {
    "civil": 16_000,
    "davidson": 12_000,
    "davidson rest": 8000,
    "btc": 8000,
    "wnut17": 4000,
    "edos": 16_000,
    "jigsaw": 18_000,
    "madlibs": 1500,
    "stormfront": 9000,
    "hh": 3000,
    "hh rejected": 3000,
    "mmlu": 5000,
    "medquad": 4000,
    "benign_prompts": 5000,
    "banking77": 500,
    "begin": 1500,
    "faithdial": 600,
    "conjnli": 1500,
    "pii_anon": 2500,
    "halueval_qa": 1500,
}
"""The same for the student's second pass, where the teacher's word on a text is what it learns."""

_RETOLD = ("generated reported", "generated quoted", "generated mention")
_RETOLD_TOO = ("generated retelling", "generated explanation")

FOLDS: Mapping[str, frozenset[str]] = {
    "comments": frozenset({"civil", "toxic_spans", "hatemoji", "gptfuzz", "refusals", "mmlu", *_RETOLD_TOO}),
    "tweets": frozenset(
        {"davidson", "davidson rest", "stormfront", "hh", "hh rejected", "frank", "bump", "benign_prompts", "btc"}
        | {*_RETOLD}
    ),
    "talk": frozenset({"jigsaw", "edos", "toxigen", "madlibs", "medquad", "begin", "faithdial", "halueval_qa"}),
}
"""Sources that a fold leaves out of everything; each fold has abuse and innocent texts of its own.

Two families of frames retell abuse, with no wording in common: a fold that leaves one out learns the other.
"""

_GENERATED: Mapping[str, int] = {
    "harmful": 4000,
    "passage": 2600,
    "other passage": 3200,
    "two voices": 4200,
    "one voice": 2200,
    "refusal": 2200,
    "safe answer": 2200,
    "guide": 2600,
    "everyday": 800,
    "reported": 1600,
    "innocent": 2600,
    "abusive": 1200,
    "endorsed": 900,
    "quoted": 1400,
    "retold abuse": 2400,
    "retold harm": 1600,
    "swearing": 2200,
    "explained": 700,
    "group": 2800,
    "account": 5600,
    "harm account": 2000,
    "meant": 3000,
    "usage": 1600,
    "completion": 2600,
    "promotion": 3000,
    "balanced": 3600,
    "quoted promotion": 900,
}


_QUOTABLE_WORDS = 14
"""Of an abuse that is quoted at most, so that its frame stays in a window."""


def cleaned(text: str) -> str:
    """Return a text without the marks of the site that it was copied from."""
    text = html.unescape(text).encode("utf-8", "ignore").decode()
    text = re2.sub(r"^(?:RT\s+)?(?:@\S+:?\s+)+", "", text)
    text = re2.sub(r"(?:https?://|t\.co/|pic\.twitter)\S+", "", text)
    return str(re2.sub(r"\s?(?:\[USER\]|\[URL\]|@USER|URL\b)", "", text)).strip()


def pool(folder: Path, seed: int, limits: Mapping[str, int] = LIMITS) -> list[Text]:
    """Return the pool's texts, each once, no source above its limit, in an order that the seed decides."""
    known: set[str] = set()
    found: list[Text] = []
    for name, reader in READERS.items():
        own = [
            replace(text, text=cleaned(text.text)) if text.spans is None else text
            for text in texts(folder, name, reader)
        ]
        Random(f"{seed} {name}").shuffle(own)
        counts: dict[str, int] = {}
        kept: list[Text] = []
        for text in own:
            key = normalised(text.text) or text.text
            if key and key not in known and counts.get(text.source, 0) < limits.get(text.source, 1 << 30):
                known.add(key)
                counts[text.source] = counts.get(text.source, 0) + 1
                kept.append(text)
        found += kept
    return found


def generated(folder: Path, abusive: Sequence[Text], seed: int, share: float = 1.0) -> Iterator[Text]:
    """Yield the texts that this recipe writes.

    Args:
        folder: of the pool, for the requests that the answers are built on.
        abusive: texts to let assistants write and reports quote.
        seed: of every choice.
        share: of the usual numbers.
    """
    random = Random(seed)
    asked = list(goals(folder))
    adult = [goal for goal in asked if not goal.minors]
    by_label = {label: [goal for goal in adult if goal.labels[0] == label] for label in HARMS}
    full = {label: found for label, found in by_label.items() if found}
    words = abuse.swears(folder)
    short = [text for text in abusive if len(text.text.split()) <= _QUOTABLE_WORDS]
    makers: Mapping[str, Callable[[], Text | None]] = {
        "harmful": lambda: answers.harmful_answer(random.choice(full[random.choice(list(full))]), random),
        "passage": lambda: answers.harmful_passage(random.choice(list(steps.BANKS)), random),
        "refusal": lambda: answers.refusal(random.choice(asked), random),
        "safe answer": lambda: answers.safe_answer(random.choice(asked), random),
        "reported": lambda: answers.reported(random),
        "innocent": lambda: answers.innocent(random),
        "abusive": lambda: answers.abusive_answer(random.choice(abusive), random),
        "swearing": lambda: abuse.swearing(words, random),
        "group": lambda: abuse.on_a_group(random),
        "quoted": lambda: answers.quoted_abuse(random.choice(abusive), random),
        "other passage": lambda: voices.passage(random.choice(list(registers.BANKS)), random),
        "two voices": lambda: voices.two_voices(random.choice(full[random.choice(list(full))]), random),
        "one voice": lambda: voices.one_voice(random.choice(asked), random),
        "guide": lambda: howto.harmless_guide(random),
        "everyday": lambda: howto.everyday(random),
        "endorsed": lambda: retold.endorsed(random.choice(short), random),
        "retold abuse": lambda: retold.retold_abuse(random.choice(short), random),
        "retold harm": lambda: retold.retold_harm(random.choice(list(registers.BANKS)), random),
        "explained": lambda: retold.explained(random.choice(words).word, random),
        "account": lambda: accounts.account(random.choice(short), random),
        "harm account": lambda: accounts.harm_account(random.choice(list(registers.BANKS)), random),
        "meant": lambda: accounts.meant(random.choice(short), random),
        "usage": lambda: accounts.usage(random.choice(words).word, random),
        "completion": lambda: completions.completion(random.choice(asked), random),
        "promotion": lambda: promotions.promotion(random),
        "balanced": lambda: promotions.lookalike(random),
        "quoted promotion": lambda: promotions.quoted(random),
    }
    for kind, number in _GENERATED.items():
        if kind in {"abusive", "quoted", "endorsed", "retold abuse", "account", "meant"} and not short:
            continue
        for _ in range(int(number * share)):
            text = makers[kind]()
            if text is not None:
                yield text


def corpus(
    folder: Path, seed: int, left_out: frozenset[str] = frozenset(), *, wider: bool = False
) -> dict[Part, list[Text]]:
    """Return the texts of each part.

    Args:
        folder: of the pool.
        seed: of every choice.
        left_out: sources that no text comes from, quoted or whole; generated ones too.
        wider: take more of the large sources.
    """
    found = [text for text in pool(folder, seed, WIDER if wider else LIMITS) if text.source not in left_out]
    abusive = [text for text in found if text.target[ANY] >= 0.8 and text.source != "gptfuzz" and len(text.text) < 300]
    parts: dict[Part, list[Text]] = {"train": [], "dev": [], "test": []}
    for text in (*found, *generated(folder, abusive, seed)):
        if text.source not in left_out:
            parts[part_of(text.group or text.text)].append(text)
    for own in parts.values():
        Random(seed).shuffle(own)
    return parts
