from __future__ import annotations

import pytest

from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.scan import Scan
from checkstream.core.terms import Stage
from checkstream.proxy.masking import _program
from checkstream.proxy.specimens import SPECIMENS

PROGRAM = _program()
BESIDE = {
    "UK_NHS": "NHS number: {}",
    "BANK_ACCOUNT": "account number: {}",
    "SORT_CODE": "sort code: {}",
    "PASSPORT": "passport number: {}",
    "DRIVER_LICENSE": "driver license: {}",
    "DATE_OF_BIRTH": "date of birth: {}",
    "AZURE_KEY": "azure storage key: {}",
    "AUTHORIZATION": "Authorization: Basic {}",
    "GENERIC_SECRET": "password = {}",
}
"""Entities that are only what they are beside a word that says so."""


WIDER = {"US_ITIN": "US_SSN"}
"""Entities of which all, or many, are another's too. The one with the better name stands first, and gives its own."""


def found(text: str) -> list[tuple[str, str]]:
    scan = Scan(PROGRAM.scope(Stage.MIDSTREAM, "content").hold)
    findings = [*scan.feed(text), *scan.end()]
    return [(PROGRAM.signals[hit.signal].name, text[hit.span.start : hit.span.end]) for hit in findings]


def test_every_entity_of_a_group_has_a_specimen_of_its_own() -> None:
    assert set(SPECIMENS) == {entity.name for entity in ENTITIES.values() if entity.group is not None}
    assert len(set(SPECIMENS.values())) == len(SPECIMENS)


@pytest.mark.parametrize("entity", sorted(SPECIMENS))
def test_a_specimen_is_found_as_its_entity_and_as_no_other(entity: str) -> None:
    specimen = SPECIMENS[entity]
    wider = [(WIDER[entity], specimen)] if entity in WIDER else []
    assert found(BESIDE.get(entity, "{}").format(specimen)) == sorted([(entity, specimen), *wider], key=place)
    assert found(BESIDE.get(entity, "see {} there").format(specimen)) == sorted([(entity, specimen), *wider], key=place)


def place(named: tuple[str, str]) -> int:
    return list(SPECIMENS).index(named[0])


def test_specimens_are_taken_as_they_stand_when_they_are_texts_of_actions() -> None:
    assert not any(set("{}") & set(specimen) for specimen in SPECIMENS.values())
