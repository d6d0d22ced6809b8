"""Texts for a teacher of `safety`: the corpus of its recipe, and labelled sets that the recipe doesn't read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from models.training.corpus import part_of, rows
from models.training.safety.assemble import WIDER, cleaned, corpus, pool
from models.training.safety.labels import ANY, HARMS, Text, harmful, known, safe
from models.training.safety.promotions import SOURCE
from models.training.teacher.rows import Row, Task

Reader = Callable[[Mapping[str, Any]], Text | None]

UNSURE = frozenset({"jigsaw"})
"""Sources whose licence nobody has read."""

_COMMENT = {"self_harm": 0.0, "illegal_advice": 0.0, "financial_crime": 0.0, "regulated_advice": 0.0}
"""What a comment on a page hardly ever is."""

_FAILURES: Mapping[str, tuple[str, ...]] = {
    "Offending User": ("harassment", "toxicity"),
    "Biased Opinion": ("hate",),
    "Toxicity Agreement": ("toxicity",),
    "Unauthorized Expertise": ("regulated_advice",),
}
"""What DiaSafety blames an answer for -> labels; other failures are some harm."""


def _comments(source: str, calm: str, *, hate: str = "", rude: str = "") -> Reader:
    """Return a reader of comments by their labels: harmless ones, hateful ones, and some that are only rude."""

    def read(row: Mapping[str, Any]) -> Text:
        label = str(row["label"])
        if label == hate:
            return Text(row["text"], known(hate=0.95, toxicity=0.85, **_COMMENT), source)
        if label == rude:
            return Text(row["text"], known(toxicity=0.95, **_COMMENT), source)
        if label != calm:
            raise ValueError(f"the label `{label}` is not known")
        return Text(row["text"], safe(), source, weight=0.6)

    return read


def _answers(source: str, bad: Collection[str], calm: Collection[str]) -> Reader:
    """Return a reader of answers: some that do a harm of which nobody said which, and harmless ones."""

    def read(row: Mapping[str, Any]) -> Text | None:
        label, group = str(row["label"]), str(row.get("prompt") or "")
        if label in bad:
            return Text(row["text"], harmful(share=0.9), source, group)
        return Text(row["text"], safe(), source, group) if label in calm else None

    return read


def _diasafety(row: Mapping[str, Any]) -> Text:
    if row["label"] == "safe":
        return Text(row["text"], safe(), "diasafety", row["prompt"], 0.6)
    return Text(row["text"], harmful(*_FAILURES.get(row["category"], ()), share=0.8), "diasafety", row["prompt"], 0.6)


def _bias(row: Mapping[str, Any]) -> Text:
    share = 0.8 if str(row["label"]) == "1" else 0.1
    return Text(row["text"], known(hate=share, any=share, **_COMMENT), "redditbias", weight=0.6)


def _sbic(row: Mapping[str, Any]) -> Text | None:
    if row["label"] in ("", None):
        return None
    share, sexual = float(row["label"]), row.get("sexual")
    values = {"sexual": float(sexual)} if sexual not in ("", None) else {}
    return Text(row["text"], known(toxicity=share, any=share, **values, **_COMMENT), "sbic")


ADDED: Mapping[str, Reader] = {
    "out_decodingtrust_harmfulness": _answers("decodingtrust_answers", (), ("refusal",)),
    "out_diasafety": _diasafety,
    "out_fuzzyai_uncensored": _answers("fuzzyai", ("harmful",), ("refusal",)),
    "out_latent_jailbreak": _answers("latent_jailbreak", ("unsafe",), ("safe",)),
    "out_openai_rbr": _answers("openai_rbr", ("disallowed",), ("ok",)),
    "tox_context_wiki": _comments("context_wiki", "0", rude="1"),
    "tox_decodingtrust": _comments("decodingtrust", "not_toxic", rude="toxic"),
    "tox_fox_comments": _comments("fox", "0", hate="1"),
    "tox_hatexplain": _comments("hatexplain", "normal", hate="hatespeech", rude="offensive"),
    "tox_implicit_hate": _comments("implicit_hate", "neutral", hate="hate"),
    "tox_measuring_hate": _comments("measuring_hate", "0", hate="1"),
    "tox_redditbias": _bias,
    "tox_sbic_dev": _sbic,
    "tox_toxigen_human": _comments("toxigen_human", "neutral", hate="hate"),
}
"""File of the pool -> its reader."""


def _row(text: Text) -> Row:
    return Row(
        text=text.text,
        target=text.target[[*range(len(HARMS)), ANY]],
        source=text.source,
        part=part_of(text.group or text.text),
        weight=text.weight,
    )


def _rows(folder: Path, seed: int, without: Collection[str]) -> Iterator[Row]:
    for parts in corpus(folder, seed, UNSURE | frozenset(without) | {SOURCE}, wider=True).values():
        yield from map(_row, parts)
    if without:
        yield from (
            _row(text) for text in pool(folder, seed, WIDER) if text.source in without and text.source not in UNSURE
        )
    for name, reader in ADDED.items():
        for number, row in enumerate(rows(folder, name), 1):
            try:
                text = reader({**row, "text": cleaned(str(row["text"]))})
            except (KeyError, TypeError, ValueError) as broken:
                raise ValueError(f"row {number} of `{name}` is broken: {broken!r}") from broken
            if text is not None and text.text.strip() and not np.isnan(text.target).all():
                yield _row(text)


TASK = Task(name="safety", labels=(*HARMS, "any"), rows=_rows, caps={"context_wiki": 6000}, cap=30_000)
