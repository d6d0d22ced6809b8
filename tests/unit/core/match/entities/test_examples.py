from __future__ import annotations

from collections import Counter

import pytest
import re2

from checkstream.core.match.entities import ENTITIES
from tests.unit.core.match.entities.examples import EXAMPLES, Example
from tests.unit.core.match.entities.oracle import find_all


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.entity}-{example.text[:40]!r}")
def test_an_example_finds_its_spans_and_nothing_else(example: Example) -> None:
    found = find_all(ENTITIES[example.entity], example.text)
    assert [example.text[a:b] for a, b in found] == [example.text[a:b] for a, b in example.spans]
    assert found == example.spans


def test_every_entity_has_examples_that_find_and_examples_that_do_not() -> None:
    finding = Counter(example.entity for example in EXAMPLES if example.spans)
    silent = Counter(example.entity for example in EXAMPLES if not example.spans)
    assert set(finding) == set(silent) == set(ENTITIES)
    assert min(finding.values()) >= 2
    assert min(silent.values()) >= 2


@pytest.mark.parametrize("name", sorted(ENTITIES))
def test_a_regex_is_re2_and_bounded_or_capped(name: str) -> None:
    entity = ENTITIES[name]
    re2.compile(entity.regex)
    unbounded = any(sign in entity.regex for sign in (")+", "]+", "]*", ")*", ",}"))
    assert unbounded == (entity.max_chars is not None)
