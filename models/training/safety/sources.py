"""Rows of the pool -> texts with targets: what each set's own labels say about the nine, and what they don't."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import re2

from models.training.corpus import RESTRICTED, rows
from models.training.safety.labels import ANY, LABELS, Text, harmful, known, safe

Row = Mapping[str, Any]

_INSTRUCTIONS = {"self_harm": 0.0, "illegal_advice": 0.0, "financial_crime": 0.0, "regulated_advice": 0.0}
"""What a comment on a page hardly ever is."""


def civil(row: Row) -> Text | None:
    """Civil Comments: shares of annotators."""
    share, found = float(row["label"]), row["labels"]
    if share == 0.0:
        return Text(row["text"], safe(), "civil")
    insult, threat = found.get("Insult", 0.0), found.get("Threat", 0.0)
    identity = found.get("Identity based Attack", 0.0)
    values = {"toxicity": share, "hate": identity, "harassment": max(0.6 * insult, threat), "violence": threat}
    return Text(row["text"], known(**values, **_INSTRUCTIONS, any=share), "civil", weight=0.7)


def toxic_spans(row: Row) -> Text | None:
    """SemEval toxic spans: toxic texts, with the words that are."""
    spans = tuple((int(span["start"]), int(span["end"])) for span in row["spans"])
    return Text(row["text"], known(toxicity=1.0, **_INSTRUCTIONS), "toxic_spans", spans=spans or None, weight=0.7)


def davidson(row: Row) -> Text | None:
    """Tweets: votes for hate, offence and neither; of the offensive, which are four in five, one in six.

    Else every tweet would be suspicious for being one. Of the rest only the teacher says something.
    """
    hate, offensive, neither = (float(votes) for votes in row["votes"])
    if row["label"] == "offensive_language" and zlib.crc32(row["text"].encode("utf-8", "replace")) % 6:
        return Text(row["text"], np.full(ANY + 1, np.nan, np.float32), "davidson rest", weight=0.5)
    total = hate + offensive + neither
    share = (hate + offensive) / total
    values = {"toxicity": share, "hate": hate / total, **_INSTRUCTIONS}
    return Text(row["text"], safe() if share == 0.0 else known(**values, any=share), "davidson", weight=0.5)


def edos(row: Row) -> Text | None:
    """Sexism: what isn't sexist may be any other abuse, so it says something about hate alone."""
    if row["label"] == "not sexist":
        return Text(row["text"], known(hate=0.1, **_INSTRUCTIONS), "edos", weight=0.4)
    threat = row["category"].startswith("1.")
    softly = row["category"].startswith("4.")
    values = {"hate": 1.0, "toxicity": 0.7 if softly else 0.9, "violence": 0.8 if threat else 0.05}
    return Text(row["text"], known(**values, **_INSTRUCTIONS), "edos")


def hatemoji(row: Row) -> Text | None:
    """Hate with emoji, and its near misses, which may be rude."""
    if int(row["label"]) == 0:
        return Text(row["text"], known(hate=0.0, violence=0.05, any=0.15, **_INSTRUCTIONS), "hatemoji", weight=0.6)
    threat = 0.9 if row["type"] == "threateninglanguage" else 0.1
    return Text(row["text"], known(hate=1.0, toxicity=0.9, violence=threat, **_INSTRUCTIONS), "hatemoji")


def jigsaw(row: Row) -> Text | None:
    """Wikipedia talk: toxic or not."""
    target = known(toxicity=1.0, **_INSTRUCTIONS) if int(row["label"]) else safe()
    return Text(row["text"], target, "jigsaw")


def madlibs(row: Row) -> Text | None:
    """Praise and insults of every identity: the identity says nothing."""
    bad = row["label"] == "BAD"
    return Text(row["text"], known(toxicity=1.0, harassment=0.9) if bad else safe(), "madlibs", weight=0.3)


def stormfront(row: Row) -> Text | None:
    """Sentences of a forum of white supremacists; those that need their context are left out."""
    if row["label"] not in {"hate", "noHate"}:
        return None
    hateful = row["label"] == "hate"
    # Who calls a sentence of this forum free of hate means of open hate.
    target = known(hate=1.0, toxicity=0.8, **_INSTRUCTIONS) if hateful else safe()
    return Text(row["text"], target, "stormfront", weight=1.0 if hateful else 0.6)


def toxigen(row: Row) -> Text | None:
    """Implicit hate, and neutral statements on the same groups."""
    hateful = row["label"] == "hate"
    return Text(row["text"], known(hate=1.0, toxicity=0.8, **_INSTRUCTIONS) if hateful else safe(), "toxigen")


_TOPICS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"supremac|hate crime", ("hate",)),
    (r"harm themselves", ("harassment", "self_harm")),
    (r"insult|bully|annoy|troll|self.confidence|tarnish|defam|step in poo", ("harassment",)),
    (
        (
            r"fake money|scam|tax|insider|counterf|fake check|credit card|bank account|bribe|bank teller|insurance"
            r"|make money|bitcoin|personal information from my customers|property"
        ),
        ("financial_crime",),
    ),
    (
        (
            r"knock someone|break someone's leg|kidnap|electric shock|attack my|contaminate|poison|weapons|hijack"
            r"|hitman|incites violence|hit someone|mass panic|rob a family|rob someone"
        ),
        ("violence",),
    ),
)


def question_labels(question: str) -> tuple[str, ...]:
    """Return the harms that an answer to one of GPTFuzz's questions would do."""
    return next((labels for pattern, labels in _TOPICS if re2.search(f"(?i){pattern}", question)), ("illegal_advice",))


_SWEARING = r"(?i)fuck|shit\b|shitt|bitch|asshole|\bcunt|bastard|nigg|\bwhore|\bslut"


def gptfuzz(row: Row) -> Text | None:
    """Answers of chat models to jailbreaks, judged by people; the question says which harm.

    They judged whether an answer complies. Of one that swears instead nobody said whether it does harm.
    """
    if int(row["label"]):
        target = harmful(*question_labels(row["prompt"]), share=0.95)
    elif re2.search(_SWEARING, row["text"]):
        target = known(**_INSTRUCTIONS)
    else:
        target = safe()
    return Text(row["text"], target, "gptfuzz", row["prompt"])


def hh(row: Row) -> Text | None:
    """Answers that people liked better are mostly harmless; of the others only the teacher says something."""
    if row["label"] != "chosen":
        return Text(row["text"], np.full(ANY + 1, np.nan, np.float32), "hh rejected", row["prompt"], 0.5)
    return Text(row["text"], known(any=0.05, **dict.fromkeys(LABELS, 0.02)), "hh", row["prompt"], 0.3)


def refusal(row: Row) -> Text | None:
    """Refusals of chat models."""
    return Text(row["text"], safe(), "refusals")


def benign(name: str, *fields: str) -> Callable[[Row], Text | None]:
    """Return a reader of texts that do no harm: the longest of these fields."""

    def read(row: Row) -> Text | None:
        text = max((str(row.get(field) or "") for field in fields), key=len)
        return Text(text, safe(), name, weight=0.6) if len(text) > 15 else None

    return read


READERS: Mapping[str, Callable[[Row], Text | None]] = {
    "tox_civil_comments_annot": civil,
    "tox_toxic_spans_semeval": toxic_spans,
    "tox_davidson": davidson,
    "tox_edos": edos,
    "tox_hatemoji_build": hatemoji,
    "tox_jigsaw_subset": jigsaw,
    "tox_madlibs_bias": madlibs,
    "tox_stormfront": stormfront,
    "tox_toxigen_prompts": toxigen,
    "out_gptfuzz_responses": gptfuzz,
    "out_hh_harmless_test": hh,
    "out_refusals": refusal,
    "benign_prompts": benign("benign_prompts", "text"),
    "domain_medquad": benign("medquad", "answer", "text"),
    "domain_mmlu": benign("mmlu", "text"),
    "domain_banking77": benign("banking77", "text"),
    "ground_frank_valid": benign("frank", "premise"),
    "ground_bump": benign("bump", "premise"),
    "ground_halueval_qa": benign("halueval_qa", "premise"),
    "ground_begin": benign("begin", "premise"),
    "ground_faithdial_audit": benign("faithdial", "premise"),
    "nli_conjnli": benign("conjnli", "premise"),
    "pii_anon_dev": benign("pii_anon", "text"),
    "pii_ner_btc": benign("btc", "text"),
    "pii_ner_wnut17_train": benign("wnut17", "text"),
}
"""File of the pool -> its reader."""


def _olid(row: Row) -> Text | None:
    return Text(row["text"], known(any=float(row["label"] == "OFF"), toxicity=float(row["label"] == "OFF")), "olid")


def _ethos(row: Row) -> Text | None:
    share = float(row["label"])
    return Text(row["text"], known(any=float(share >= 0.5), hate=float(share >= 0.5)), "ethos")


def _saferlhf(row: Row) -> Text | None:
    return Text(row["text"], known(any=float(row["label"])), "saferlhf")


MEASURES: Mapping[str, Callable[[Row], Text | None]] = {
    f"{RESTRICTED}/tox_olid": _olid,
    f"{RESTRICTED}/tox_ethos": _ethos,
    f"{RESTRICTED}/out_saferlhf_mini": _saferlhf,
    f"{RESTRICTED}/out_halueval_general": benign("halueval_general", "text"),
    f"{RESTRICTED}/out_safety_tuned_safe_responses": benign("safety_tuned", "text"),
}
"""Sets that only measure."""


def texts(folder: Path, name: str, reader: Callable[[Row], Text | None], *, measuring: bool = False) -> Iterator[Text]:
    """Yield the texts of one file of the pool."""
    for row in rows(folder, name, measuring=measuring):
        text = reader(row)
        if text is not None and text.text.strip():
            yield text


def is_harmful(text: Text) -> bool | None:
    """Tell whether a text does harm; None where that is unknown."""
    value = text.target[ANY]
    return None if np.isnan(value) or 0.1 < value < 0.5 else bool(value >= 0.5)
