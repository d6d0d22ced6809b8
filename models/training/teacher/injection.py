"""Texts for a teacher of `injection`: what its recipe writes, attacks of the pool, and innocent texts of many kinds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from random import Random

import numpy as np

from models.training.corpus import part_of, rows
from models.training.injection import pool
from models.training.injection.generate import Generated, Generator
from models.training.teacher.rows import UNSURE, Row, Task

_UNSURE = frozenset({"verazuo", "tox_jigsaw_subset"})
"""Sources whose licence nobody has read."""

GENERATED = {"attacks": 52_000, "poisoned": 30_000, "innocents": 38_000, "clean": 16_000}
"""How many texts of a kind the recipe writes."""

INNOCENT = (
    *("benign_docs_llm_security", "benign_documents", "benign_prompts_awesome", "benign_support_chats"),
    *("documents_reference", "documents_varied", "prompts_code_agents", "prompts_misc", "prompts_multilingual"),
    *("prompts_oasst", "prompts_questions", "prompts_tasks", "roleplay_composed", "roleplay_dnd", "roleplay_real"),
    *("system_prompts_agents", "system_prompts_lobe"),
)
"""Files of innocent texts that the recipe of `injection` doesn't read, or reads for other languages alone."""

CAPS = {"roleplay_composed": 1000, **{f"generated {kind}": count for kind, count in GENERATED.items()}}
_LONGEST = 20_000
"""Characters of a text: what is behind them no window of a training would reach often."""

_UNREAD = {"prompts_tasks": "Apache-2.0 repo", "documents_varied": "GUM"}
"""File -> in the licence of its rows: that of the texts themselves nobody has read."""


def _row(text: str, value: float, source: str, group: str = "", span: tuple[int, int] | None = None) -> Row:
    target = np.array([value], np.float32)
    return Row(text=text[:_LONGEST], target=target, source=source, part=part_of(group or text), span=span)


def _innocent(folder: Path, name: str) -> Iterator[Row]:
    for number, row in enumerate(rows(folder, name), 1):
        text, licence = row.get("text"), str(row.get("licence", ""))
        if not isinstance(text, str) or str(row.get("label")) != "0":
            raise ValueError(f"row {number} of `{name}` has no text, or a label other than `0`")
        unread = UNSURE in licence or (name in _UNREAD and _UNREAD[name] in f"{licence} {row.get('source')}")
        if text.strip() and not unread:
            # The agents of this file are translations of one another: all of one agent fall into one part.
            agent = str(row.get("source")).rpartition("/")[0] if name == "system_prompts_lobe" else ""
            yield _row(text, 0.0, name, agent)


def _generated(kind: str, texts: Iterator[Generated], value: float) -> Iterator[Row]:
    for made in texts:
        at = made.text.find(made.insertion) if made.insertion else -1
        span = (at, at + len(made.insertion)) if 0 <= at < _LONGEST else None
        yield _row(made.text, value, f"generated {kind}", span=span)


def _rows(folder: Path, seed: int, without: Collection[str]) -> Iterator[Row]:
    attacks = [text for text in pool.attacks(folder) if text.source not in _UNSURE]
    yield from (_row(text.text, 1.0, text.source) for text in attacks)
    for row in rows(folder, "inj_email_agent"):
        yield _row(str(row["text"]), float(str(row["label"])), "inj_email_agent", str(row.get("seed", "")))
    yield from (_row(text.text, 0.0, text.source) for text in pool.innocents(folder) if text.source not in _UNSURE)
    for name in INNOCENT:
        yield from _innocent(folder, name)
    held = [text.text for text in attacks if text.source in without]
    generator, random = Generator(pool.slots(folder, held), pool.bodies(folder, "train")), Random(seed)
    for kind, count in GENERATED.items():
        texts = getattr(generator, kind)(count, random)
        yield from _generated(kind, texts, float(kind in {"attacks", "poisoned"}))


TASK = Task(name="injection", labels=("injection",), rows=_rows, caps=CAPS, cap=20_000, words=(20, 110))
