"""Laws of the entities: findings depend on the text alone, and hostile text breaks no validator."""

from __future__ import annotations

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.match.entities import ENTITIES, Entity
from checkstream.core.match.entities.entity import LEFT_CHARS
from tests.chance import examples
from tests.unit.core.match.entities.examples import EXAMPLES, Example
from tests.unit.core.match.entities.oracle import find_all

NAMES = sorted(ENTITIES)


def of(name: str) -> list[Example]:
    return [example for example in EXAMPLES if example.entity == name]


def hostile(name: str) -> st.SearchStrategy[str]:
    """Text near to the entity: pieces of its examples, its neighbours' and any characters, mixed."""
    own = [example.text for example in of(name)]
    odd = st.text(
        st.sampled_from("\u212a\u017f\u0660\u0967\uff10\u00b2\u2460@.:-/\\%=\0\ud7ff \n\u00df\u0130"), max_size=4
    )
    sliced = st.tuples(st.sampled_from(own), st.integers(0, 80), st.integers(0, 200)).map(lambda t: t[0][t[1] : t[2]])
    return st.lists(st.one_of(st.sampled_from(own), sliced, odd, st.text(max_size=4)), max_size=6).map("".join)


def candidates(entity: Entity, text: str) -> list[tuple[int, int]]:
    compiled = re2.compile(entity.regex)
    spans, at = [], 0
    while (match := compiled.search(text, at)) is not None:
        spans.append(match.span())
        at = match.start() + 1
    return spans


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(20), deadline=None)
@given(data=st.data())
def test_hostile_text_breaks_no_validator_and_spans_stay_inside(name: str, data: st.DataObject) -> None:
    entity = ENTITIES[name]
    text = data.draw(hostile(name))
    for start, end in candidates(entity, text):
        spans = entity.refine(text, start, end)
        last = start
        for a, b in spans:
            assert last <= a < b <= end
            last = b
        left = max(0, start - LEFT_CHARS)
        near = entity.refine(text[left : end + 1], start - left, end - left)
        assert [(left + a, left + b) for a, b in near] == list(spans)


@pytest.mark.parametrize("name", NAMES)
def test_neighbours_in_a_list_are_each_found(name: str) -> None:
    """Values a line, as in a dump: none hides the next."""
    finding = [example for example in of(name) if example.spans]
    text, spans = "", []
    for example in finding:
        spans += [(len(text) + a, len(text) + b) for a, b in example.spans]
        text += example.text + "\n" + "." * LEFT_CHARS + "\n"
    assert find_all(ENTITIES[name], text) == tuple(spans)
