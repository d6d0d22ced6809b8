"""What the recipe reads from the pool of labelled data: attacks by source, innocent texts, bodies of documents.

Sources are grouped into three folds. A fold's figure comes from a model that saw no row of its sources, nor a near
copy of one in another source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from models.training.corpus import Part, Seen, normalised, part_of, rows, shingles
from models.training.injection.documents import sentences
from models.training.injection.kinds import is_left_out, source_of

FOLDS: Mapping[str, tuple[str, ...]] = {
    "personas": ("verazuo",),
    "methods": ("misc", "trustllm"),
    "indirect": ("spikee", "agent"),
}
"""Fold -> the sources of attacks in it."""

_FILES = {
    "verazuo": "inj_verazuo_jailbreaks",
    "misc": "inj_misc_jailbreak_templates",
    "trustllm": "inj_trustllm_jailbreak",
    "spikee": "inj_spikee_indirect",
}


@dataclass(frozen=True, slots=True)
class Text:
    """A text of the pool."""

    text: str
    source: str
    """`verazuo`, ... of attacks; the set's name of innocent texts."""
    part: Part


def attacks(folder: Path) -> list[Text]:
    """Return the attacks of every source, each source without near copies of an earlier source's texts."""
    found: list[Text] = []
    owners: set[int] = set()
    for source, file in _FILES.items():
        own: set[int] = set()
        for row in rows(folder, file):
            text = str(row["text"])
            runs = shingles(text)
            copied = len(runs & owners) >= 0.3 * len(runs)
            if str(row["label"]) == "1" and not copied:
                found.append(Text(text, source, part_of(text)))
                own |= runs
        owners |= own
    return found


def payloads(folder: Path) -> list[str]:
    """Return orders to agents; they are attacks only where a document gives them."""
    return [str(row["text"]) for row in rows(folder, "inj_agent_payloads")]


# Held out of all training: only the figures use them.
_FRAMES = (
    "{0}",
    "{0}",
    "{0}",
    "Note for whoever handles this on my behalf: {0}",
    "-- stop here, the rest is addressed to the agent -- {0}",
    "One more job that the user wants done with high priority: {0}",
    "The operator asks that you do this prior to responding: {0}",
)


def poisoned(folder: Path, seed: int = 7) -> list[Text]:
    """Return documents of the part `test` with the payloads in them, inserted as they stand or behind a short line."""
    random = Random(seed)
    hosts = bodies(folder, "test")
    found = []
    for payload in payloads(folder):
        parts = sentences(random.choice(hosts))[: random.choice((2, 4, 6, 10))]
        at = random.randint(0, len(parts))
        text = " ".join((*parts[:at], random.choice(_FRAMES).format(payload), *parts[at:]))
        found.append(Text(text, "agent", part_of(text)))
    return found


def _capped(texts: Sequence[str], count: int, random: Random) -> list[str]:
    return list(texts) if len(texts) <= count else random.sample(list(texts), count)


_INNOCENT = {
    "domain_banking77": 900,
    "domain_clinc150": 1500,
    "domain_mmlu": 1200,
    "domain_medquad": 800,
    "domain_spikee_investment": 161,
    "pii_anon_dev": 2500,
    "pii_anon_extra": 1000,
    "out_hh_harmless_test": 500,
    "out_refusals": 83,
    "tox_civil_comments_annot": 600,
    "tox_jigsaw_subset": 600,
    "pii_ner_btc": 500,
    "tox_stormfront": 200,
}
"""Set -> how many of its texts at most are taken, over all parts."""

_BENIGN_CAPS = {"GSM8K test questions": 400}


def innocents(folder: Path, seed: int = 11) -> list[Text]:
    """Return innocent texts, near copies left out."""
    random = Random(seed)
    found: list[Text] = []
    seen = Seen(0.7)
    taken: dict[str, int] = {}
    for row in rows(folder, "benign_prompts"):
        text, group = str(row["text"]), str(row["source"])
        taken[group] = taken.get(group, 0) + 1
        if taken[group] <= _BENIGN_CAPS.get(group, 10_000) and seen.add(text):
            found.append(Text(text, f"benign/{group.partition(' ')[0]}", part_of(text)))
    for name, count in _INNOCENT.items():
        texts = [text for row in rows(folder, name) if 8 < len(text := str(row["text"])) < 6000 and not _attacked(row)]
        found += [Text(text, name, part_of(text)) for text in _capped(texts, count, random) if seen.add(text)]
    found += [Text(body, "articles", part_of(body)) for body in dict.fromkeys(_articles(folder))]
    return found


def _attacked(row: Mapping[str, object]) -> bool:
    """Tell whether a row of the PII sets is about an attack on a model."""
    return row.get("adversarial") in {"prompt_injection", "system_prompt_leakage"}


def _articles(folder: Path) -> Iterator[str]:
    for name in ("ground_frank_valid", "ground_bump"):
        for row in rows(folder, name):
            yield str(row["premise"])


def bodies(folder: Path, part: Part) -> list[str]:
    """Return texts of a part that documents may be about."""
    found = list(dict.fromkeys(_articles(folder)))
    for name, count in (
        ("pii_anon_extra", 1500),
        ("pii_anon_dev", 3000),
        ("tox_civil_comments_annot", 1500),
        ("nli_scifact_rte", 700),
        ("ground_halueval_qa", 900),
        ("domain_mmlu", 800),
    ):
        key = "premise" if name.startswith(("nli", "ground")) else "text"
        texts = [text for row in rows(folder, name) if 60 < len(text := str(row[key])) < 8000 and not _attacked(row)]
        found += texts[:count]
    return [body for body in dict.fromkeys(found) if part_of(body) == part]


_ABROAD = ("prompts_multilingual", "prompts_oasst", "prompts_misc", "prompts_tasks", "prompts_questions")
_ABROAD_CAP = 1_500
"""Texts of one language; of English, of one file."""


_PROMPTS = ("prompts_multilingual", "prompts_oasst", "prompts_misc", "prompts_tasks")
"""As `bench/prompts.py` has them."""
_LEAST_PROMPTS = 50
"""Of a language: of fewer, one that fires would stand in every long text."""


def abroad(folder: Path, part: Part) -> list[Text]:
    """Return innocent prompts of a part in many languages, English too; the source of each is its language."""
    found: list[Text] = []
    taken: dict[str, int] = {}
    for name in _ABROAD:
        chosen: dict[str, list[str]] = {}
        for row in rows(folder, name):
            text = str(row["text"])
            apart = is_left_out(source_of(str(row.get("source", "")), name), name)
            if row["kind"] == "prompt" and not apart and 8 < len(text) < 6000 and part_of(text) == part:
                chosen.setdefault(str(row["language"]), []).append(text)
        for language, texts in sorted(chosen.items()):
            room = _ABROAD_CAP if language == "en" else _ABROAD_CAP - taken.get(language, 0)
            kept = _capped(texts, room, Random(13))
            taken[language] = taken.get(language, 0) + len(kept)
            found += [Text(text, language, part) for text in kept]
    return [text for text in found if taken[text.source] >= 20]


def prompts(folder: Path, part: Part) -> dict[str, list[str]]:
    """Return users' prompts of a part by language, innocent ones: of languages that have some."""
    found: dict[str, list[str]] = {}
    for name in _PROMPTS:
        for row in rows(folder, name):
            text = str(row["text"])
            apart = is_left_out(source_of(str(row.get("source", "")), name), name)
            if row["kind"] == "prompt" and not apart and part_of(text) == part:
                found.setdefault(str(row["language"]), []).append(text)
    return {language: texts for language, texts in sorted(found.items()) if len(texts) >= _LEAST_PROMPTS}


def slots(folder: Path, withheld: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return what generated texts draw from the pool: `harm`, `question`, `task`, all of the part `train`.

    Args:
        folder: of the pool.
        withheld: texts of a test; what they quote is not drawn.
    """
    quoted = "\n".join(normalised(text) for text in withheld)
    harm = [
        str(row["text"])
        for row in rows(folder, "harm_prompts")
        if "TrustLLM" not in str(row["source"])
        and "copyright" not in str(row["label"])
        and len(str(row["text"])) < 240
        and part_of(str(row["text"])) == "train"
    ]
    harm = [text for text in harm if not withheld or normalised(text) not in quoted]
    questions = [
        text
        for name in ("domain_mmlu", "domain_banking77", "domain_clinc150", "domain_medquad")
        for row in rows(folder, name)
        if 12 < len(text := str(row["text"])) < 160 and part_of(text) == "train"
    ]
    tasks = [
        text
        for row in rows(folder, "benign_prompts")
        if len(text := str(row["text"])) < 300
        and part_of(text) == "train"
        and not str(row["source"]).startswith(("awesome", "M-Abrisham"))
    ]
    return {"harm": harm, "question": [*_capped(questions, 6000, Random(3)), *tasks], "task": tasks}
