"""G33: no step is long, whatever value stands at whatever place of whatever is said (`tests.hostile_shapes`)."""

from __future__ import annotations

import json
import time
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.core.steps import done
from checkstream.core.wire.answers.numbers import Lists
from checkstream.core.wire.json_text.objects import looking_whether_json
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.surface import Surface
from checkstream.core.wire.surfaces import SURFACES, spoken
from tests import hostile_responses, responses
from tests.chance import examples
from tests.hostile_shapes import FORMS, SHAPES, TEXTS, Place, places, put
from tests.watchdog import (
    MOST_S,
    Step,
    answered,
    everything,
    guard_of,
    long_steps,
    pace,
    steps,
    without_collections,
)

SIZE = 3000
"""Bytes: what is dear of a value is dear where it is short ..."""
LONGER = 20_000
"""... and what is long is read in steps. Of texts each letter is dear, so none is as long in each run of the tests."""
LONG = 900_000
ASKED_WHOLE = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
SEEN = [
    ("chat, whole", "instead choices.0.message.reasoning_content", "figures"),
    ("chat, whole", "within choices.0.message", "members of levels"),
    ("chat, whole of parts", "instead choices.0.message.content.1.thinking", "pairs"),
    ("chat, streamed", "instead choices.0.delta.reasoning_details.0.text", "escapes to edit"),
    ("ollama, streamed", "within context", "levels"),
    ("messages, a delta", "instead delta.text", "levels"),
    ("responses, the last word", "within response.output.1.content.0.annotations", "levels"),
]
"""What has been long where it is short."""
SEEN_LONG = [
    ("chat, whole", "instead choices.0.message.tool_calls.0.function.arguments", "members of lists"),
    ("chat, whole of parts", "within choices.0.message.content", "empty objects"),
    ("chat, whole of parts", "instead choices.0.message.content.1", "members of nothing"),
    ("ollama, streamed", "instead message.content", "quotes to edit"),
    ("ollama, whole", "instead message.tool_calls.0.function.arguments", "members of numbers"),
    ("ollama, whole", "within all", "members"),
    ("ollama, whole", "within context", "one number"),
    ("messages, whole", "within all", "members"),
    ("messages, whole", "instead role", "parts to edit"),
    ("ollama, asked", "instead model", "other letters"),
    ("responses, asked", "beside input.2.content.0", "escapes to edit"),
    ("responses, the last word", "beside response.usage.output_tokens_details", "figures"),
    ("responses, whole", "within metadata", "members"),
    ("responses, whole", "instead output.0.summary", "calls"),
    ("responses, whole", "beside text.format", "levels"),
    ("responses, whole", "instead background", "addresses in a list"),
    ("chat, asked", "within all", "a long name to edit"),
    ("messages, whole", "within content.2.input", "a long name"),
]
"""What has been long where it is long: the longest step took between 5 and 40 ms."""


def place_of(form: str, name: str) -> Place:
    return next(place for place in places(FORMS[form].body) if str(place) == name)


def long_steps_of(form: str, place: Place, shape: str, size: int, *, runs: int = 7) -> list[Step]:
    surface, body, told = FORMS[form]
    events = told(put(body, place, SHAPES[shape](size)))
    return long_steps(lambda: steps(guard_of(surface, everything()), events), runs=runs)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_g33_no_step_is_long_whatever_stands_wherever(form: str, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from([*places(FORMS[form].body)]))
    shape = data.draw(st.sampled_from([*SHAPES]))
    size = SIZE if shape in TEXTS else data.draw(st.sampled_from([SIZE, LONGER]))
    assert long_steps_of(form, place, shape, size) == []


@pytest.mark.parametrize(("form", "place", "shape"), SEEN)
def test_g33_what_was_long_where_it_is_short_is_not(form: str, place: str, shape: str) -> None:
    assert long_steps_of(form, place_of(form, place), shape, SIZE) == []


@pytest.mark.nightly
@pytest.mark.parametrize(("form", "place", "shape"), SEEN_LONG)
def test_g33_what_was_long_where_it_is_long_is_not(form: str, place: str, shape: str) -> None:
    assert long_steps_of(form, place_of(form, place), shape, LONG) == []


@pytest.mark.parametrize("form", ["chat, whole", "chat, streamed"])
def test_g33_a_long_name_is_looked_at_in_steps(form: str) -> None:
    assert long_steps_of(form, Place((), "within"), "a long name to edit", 8 * LONGER) == []


def test_g33_log_probabilities_of_a_part_are_looked_at_in_steps() -> None:
    body = hostile_responses.WHOLE["log probabilities"](3 * LONG)
    events = answered(responses.request(stream=False), body, streaming=False)
    assert long_steps(lambda: steps(guard_of(responses.RESPONSES, everything()), events)) == []


MILLIONS = 15_000_000
"""Bytes: nearly the longest answer that is read as shipped. One call over all of it is a long step."""
LARGEST = [
    ("chat, whole", "instead choices.0.message.content", "words"),
    ("chat, whole", "beside choices.0.message", "words"),
    ("chat, whole", "within choices.0.message.annotations", "words"),
    ("messages, whole", "instead content.1.text", "words"),
    ("ollama, whole", "instead message.content", "words"),
    ("responses, whole", "beside output.1", "words"),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("form", "place", "shape"), LARGEST)
def test_g33_no_step_on_an_answer_of_the_largest_texts_is_long(form: str, place: str, shape: str) -> None:
    assert long_steps_of(form, place_of(form, place), shape, MILLIONS) == []


def test_g33_no_step_on_a_picture_is_long() -> None:
    picture = "data:image/png;base64,iVBORw0KGgo" + "QUJDRGFi" * (MILLIONS // 16)
    body = json.dumps({"choices": [{"message": {"content": "a", "images": [{"image_url": {"url": picture}}]}}]})
    events = answered(ASKED_WHOLE, body.encode(), streaming=False)
    assert long_steps(lambda: steps(guard_of(SURFACES["openai.chat"], everything()), events)) == []


def test_g33_no_step_on_a_context_of_many_names_is_long() -> None:
    context = {f"n{number}": 1 for number in range(24_900)}
    events: list[on.AnyEvent] = [
        on.RequestReceived(json.dumps({**json.loads(ASKED_WHOLE), "checkstream": {"context": context}}).encode())
    ]
    assert replies(SURFACES["openai.chat"], events) == [400]
    assert long_steps(partial(refuse, SURFACES["openai.chat"], events)) == []


def test_g33_a_step_over_numbers_that_all_differ_is_short() -> None:
    numbers: list[object] = [*range(700_000)]

    def longest() -> float:
        reading, most = Lists().text(numbers, drawn=False, trees=True), 0.0
        while True:
            began = time.thread_time()
            try:
                next(reading)
            except StopIteration:
                return max(most, time.thread_time() - began)
            most = max(most, time.thread_time() - began)

    with without_collections():
        assert min(longest() for _ in range(4)) <= MOST_S * pace()


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_g33_no_step_is_long_whatever_long_value_stands_wherever(form: str, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from([*places(FORMS[form].body)]))
    shape = data.draw(st.sampled_from([*SHAPES]))
    assert long_steps_of(form, place, shape, LONG, runs=4) == []


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("openai.chat", "numbers"),
        ("anthropic.messages", "empty objects"),
        ("mcp", "numbers"),
        *(
            pytest.param(name, shape, marks=pytest.mark.nightly)
            for name in SURFACES
            for shape in ("numbers", "empty objects")
        ),
    ],
)
def test_g33_what_was_read_of_a_request_that_is_refused_is_freed_in_steps(name: str, shape: str) -> None:
    surface, texts = spoken(name), b'"prompt":"a","input":"a","messages":[{"role":"user","content":"a"}]'
    head = b'{"jsonrpc":"2.0","id":1,' + texts + b',"more":' + SHAPES[shape](LONG).encode()
    ends = [b',"model":5,"method":5}', b',"a":1} and more', b',"a":"\xff"}', b',"a":1,"a":2}']
    for end in ends:
        events: list[on.AnyEvent] = [on.RequestReceived(head + end)]
        assert replies(surface, events) == [400], end
        assert long_steps(partial(refuse, surface, events)) == [], end


def refuse(surface: Surface | Mcp, events: list[on.AnyEvent]) -> list[Step]:
    return steps(guard_of(surface, everything()), events)


def replies(surface: Surface | Mcp, events: list[on.AnyEvent]) -> list[int]:
    """Return the statuses with which an exchange is answered."""
    guard, found, pending = guard_of(surface, everything()), list[int](), [*reversed(events)]
    while pending and not found:
        commands = guard.receive(pending.pop(), 1.0)
        found += [command.status for command in commands if isinstance(command, do.Reply)]
        pending += [on.Resumed()] * any(isinstance(command, do.Yield) for command in commands)
    return found


@pytest.mark.parametrize("form", ["chat, whole", "messages, whole", "ollama, whole", "responses, whole"])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_g33_a_caller_who_leaves_while_a_long_answer_is_read_leaves_no_step_behind(form: str) -> None:
    surface, body, told = FORMS[form]
    place = Place((), "beside")
    events = told(put(body, place, SHAPES["members of lists"](20 * LONGER)))
    for turns in range(2, 60, 6):
        guard = guard_of(surface, everything())
        for event in (*events, *[on.Resumed()] * turns, on.DownstreamClosed(), *[on.Resumed()] * 2000):
            guard.receive(event, 1.0)
        assert guard.over


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(value=JSON, cut=st.integers(0, 3), padding=st.sampled_from(["", " " * 70_000]))
def test_g33_a_long_text_is_told_to_be_json_as_a_short_one_is(value: object, cut: int, padding: str) -> None:
    text = json.dumps(value)
    text = padding + text[: len(text) - cut]
    try:
        json.loads(text)
    except ValueError:
        assert not done(looking_whether_json(text))
    else:
        assert done(looking_whether_json(text))
