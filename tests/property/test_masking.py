"""Laws of masked recordings: nothing that a detector finds survives, and what fired goes on firing."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.scan import Scan
from checkstream.core.terms import Stage
from checkstream.errors import UnmaskableError
from checkstream.proxy.masking import _program
from checkstream.proxy.specimens import SPECIMENS
from tests.chance import examples
from tests.recordings import DONE, answer_of, body_of, delta, masked, request, say, streamed
from tests.unit.core.match.entities.examples import EXAMPLES

PROGRAM = _program()
KINDS = {"content": "content", "reasoning": "reasoning_content", "refusal": "refusal"}
POSITIVE = [example for example in EXAMPLES if example.spans]
MOST_LOST = 10
"""Of some 300 examples, those whose specimen does not fit its surroundings."""


def found(text: str) -> list[tuple[str, str]]:
    scan = Scan(PROGRAM.scope(Stage.MIDSTREAM, "content").hold)
    findings = [*scan.feed(text), *scan.end()]
    return [(PROGRAM.signals[hit.signal].name, text[hit.span.start : hit.span.end]) for hit in findings]


def survivors(text: str, kept: str) -> list[str]:
    """Return what was found once in `text` and still stands in what was kept."""
    return [value for _, value in found(text) if text.count(value) == 1 and value in kept and value not in _ALLOWED]


_ALLOWED = "\n".join(SPECIMENS.values())


def pieces(text: str, edges: list[int]) -> list[str]:
    places = sorted({0, len(text), *(edge % (len(text) + 1) for edge in edges)})
    return [text[low:high] for low, high in itertools.pairwise(places)]


@pytest.mark.parametrize("entity", sorted(ENTITIES))
@settings(max_examples=examples(8), deadline=None)
@given(data=st.data())
def test_no_entity_of_prompt_or_answer_survives_on_any_channel_however_it_is_cut(
    entity: str, data: st.DataObject
) -> None:
    own = st.sampled_from([example.text for example in POSITIVE if example.entity == entity])
    others = st.sampled_from([example.text for example in EXAMPLES])
    text = "\n".join(data.draw(st.permutations([data.draw(own), *data.draw(st.lists(others, max_size=3))])))
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    cut = pieces(text, data.draw(st.lists(st.integers(0, 5000), max_size=12)))
    answer = b"".join(delta({KINDS[kind]: piece}) for piece in cut) + delta({}, finish_reason="stop") + DONE
    kept = masked(request(text), *streamed(answer, step=data.draw(st.sampled_from([0, 3, 50]))))
    for now in (body_of(kept)["messages"][0]["content"], answer_of(kept, kind)):
        assert survivors(text, now) == []
        assert all(value in _ALLOWED for _, value in found(now))


@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_no_entity_in_the_arguments_of_a_call_survives(data: st.DataObject) -> None:
    value = data.draw(st.sampled_from([example.text for example in POSITIVE]))
    arguments = json.dumps({"note": value, "n": 1}, ensure_ascii=data.draw(st.booleans()))
    events = [
        delta({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]})
    ]
    events += [
        delta({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        for piece in pieces(arguments, data.draw(st.lists(st.integers(0, 5000), max_size=8)))
    ]
    try:
        kept = masked(request(), *streamed(b"".join(events) + delta({}, finish_reason="tool_calls") + DONE))
    except UnmaskableError:
        return  # nothing is kept at all
    now = answer_of(kept, "tool_arguments")
    assert survivors(arguments, now) == []
    assert survivors(value, json.loads(now)["note"]) == []


def test_what_fired_goes_on_firing_or_is_said_to_be_lost() -> None:
    lost: Counter[str] = Counter()
    for example in POSITIVE:
        kept = masked(request(), *streamed(say([example.text])))
        before = {name for name, _ in found(example.text)}
        after = {name for name, _ in found(answer_of(kept))}
        assert {f"entity:{name}" for name in before - after} == set(kept.header.lost), example
        lost[example.entity] += example.entity in before - after
    assert sum(lost.values()) <= MOST_LOST
    assert max(lost.values()) <= 2
