"""What the entity model learns from and is measured on, in one form, by source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random

from models.training import corpus
from models.training.ner import gazetteer
from models.training.ner.generate import Cast
from models.training.ner.marked import Marked, Span

SOURCES = {
    "pii_anon_dev": "pii",
    "pii_anon_extra": "pii",
    "pii_ner_btc": "btc",
    "pii_ner_wnut17_train": "wnut17",
}
"""File of the pool -> source."""

MAPPED = {
    "PERSON_NAME": "PERSON",
    "LOCATION_NAME": "LOCATION",
    "ORGANIZATION_NAME": "ORGANIZATION",
    "STREET_ADDRESS": "STREET_ADDRESS",
    "DATE_OF_BIRTH": "DATE_OF_BIRTH",
    "HEALTH_CONDITION": "MEDICAL_CONDITION",
    "BANK_ACCOUNT_NUMBER": "ACCOUNT",
    "IBAN": "ACCOUNT",
    "INSURANCE_POLICY_NUMBER": "ACCOUNT",
    "HEALTH_INSURANCE_ID": "ACCOUNT",
    "PER": "PERSON",
    "LOC": "LOCATION",
    "ORG": "ORGANIZATION",
    "person": "PERSON",
    "location": "LOCATION",
    "corporation": "ORGANIZATION",
    "group": "ORGANIZATION",
}
"""The sources' labels as ours; the rest is no entity of this model."""

_SIGNS = re.compile(r"[@#&:/<>]|RT ")
_LETTERS = re.compile("[A-Za-z]{2}")
_TITLES = frozenset(
    {
        "mr",
        "mrs",
        "ms",
        "miss",
        "dr",
        "prof",
        "sir",
        "hon",
        "judge",
        "sr",
        "sra",
        "srta",
        "dra",
        "herr",
        "frau",
        "m",
        "mme",
        "mlle",
        "dott",
        "sig",
        "ing",
        "señor",
        "señora",
    }
)


def read(folder: Path, name: str) -> Iterator[tuple[Marked, Mapping[str, object]]]:
    """Yield the texts of one file of the pool, each with its row."""
    for row in corpus.rows(folder, name):
        text = str(row["text"])
        spans = row["spans"]
        if isinstance(spans, list):
            yield Marked(text, _known(text, spans)), row


def _known(text: str, spans: Iterable[Mapping[str, object]]) -> tuple[Span, ...]:
    """Map labels, leave out handles, titles and the later one of two that overlap."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: int(str(span["start"]))):
        entity = MAPPED.get(str(span["label"]))
        start, end = int(str(span["start"])), int(str(span["end"]))
        if entity is None or (found and start < found[-1].end):
            continue
        # A handle is a user name, not a person's; its source marks the sign and the name apart.
        if text[start:end].startswith("@") or text[max(0, start - 2) : start] == "@ ":
            continue
        if entity == "PERSON":
            start = past_titles(text, start, end)
        found.append(Span(start, end, entity))
    return tuple(found)


def past_titles(text: str, start: int, end: int) -> int:
    """Return where a person's name begins behind `Dr.`, `Mrs` and the like."""
    while True:
        word, space, rest = text[start:end].partition(" ")
        if not space or not rest.strip() or word.rstrip(".").casefold() not in _TITLES:
            return start
        start += len(word) + 1


def cleaned(text: Marked, given: frozenset[str], places: frozenset[str]) -> Marked:
    """Correct what the teacher gets wrong most: articles, designations, lone given names, well-known places."""
    spans: list[Span] = []
    for span in text.spans:
        name = text.text[span.start : span.end]
        start = span.start + 4 if name.lower().startswith("the ") else span.start
        name = text.text[start : span.end]
        end = span.end - 2 if name.endswith(("'s", "\u2019s")) else span.end
        name = text.text[start:end]
        if not name or any(sign.isdigit() for sign in name):
            continue
        entity = span.entity
        if name in places:
            entity = "LOCATION"
        elif name in given:
            entity = "PERSON"
        if entity == "PERSON":
            start = past_titles(text.text, start, end)
        spans.append(Span(start, end, entity))
    return Marked(text.text, tuple(spans))


def plain(text: Marked) -> Marked:
    """Leave out what the teacher takes for names in posts: handles, tags, links, emoji."""
    kept = tuple(
        span
        for span in cleaned(text, frozenset(), frozenset()).spans
        if not _SIGNS.search(text.text[span.start : span.end])
        and _LETTERS.search(text.text[span.start : span.end])
        and text.text[max(0, span.start - 1) : span.start] not in {"@", "#"}
    )
    return Marked(text.text, kept)


def renamed(text: Marked, cast: Cast, random: Random, share: float = 0.5) -> Marked:
    """Put invented names in the place of some persons, places and organisations: what was one word may become three."""
    result, spans, at = "", [], 0
    makers = {"PERSON": cast.person, "LOCATION": cast.place, "ORGANIZATION": cast.organization}
    for span in text.spans:
        name = text.text[span.start : span.end]
        if span.entity in makers and random.random() < share:
            alone = span.entity == "PERSON" and " " not in name
            name = (cast.last() if alone else makers[span.entity]()).removeprefix("the ")
        result += text.text[at : span.start]
        spans.append(Span(len(result), len(result) + len(name), span.entity))
        result, at = result + name, span.end
    return Marked(result + text.text[at:], tuple(spans))


def silver(texts: Iterable[Marked], random: Random) -> list[Marked]:
    """Return silver texts cleaned, half of their names replaced."""
    cast = Cast(random)
    given, places = listed(cast)
    return [renamed(cleaned(text, given, places), cast, random, random.choice((0.0, 0.6))) for text in texts]


def listed(cast: Cast) -> tuple[frozenset[str], frozenset[str]]:
    """Return English given names that are no places, and places, as lists know them."""
    places = frozenset(place.removeprefix("the ") for place in gazetteer.PLACES)
    return frozenset(cast.faker("en_US").first_name() for _ in range(4000)) - places, places


def recased(text: Marked, random: Random) -> Marked:
    """Write a text as it is, or now and then in lower case, capitals or title case, where offsets stay."""
    draw = random.random()
    if draw > 0.2:
        return text
    changed = text.text.lower() if draw < 0.12 else text.text.upper() if draw < 0.17 else text.text.title()
    return Marked(changed, text.spans) if len(changed) == len(text.text) else text
