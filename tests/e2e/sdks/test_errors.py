"""What applications are told when something was done or could not be done: the words of each client's own errors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openai import OpenAI

from tests.e2e.harness import Proxy, http, running
from tests.e2e.sdks.conftest import ASK, Case
from tests.e2e.sdks.driver import Clients
from tests.e2e.sdks.test_calm import JSON, PERSON, SDKS, SHAPES, plain
from tests.e2e.sdks.test_requests import STREAMS, verb
from tests.e2e.sdks.upstream import SCRIPT, Turn, Upstream

CARD = "4111 1111 1111 1111"


@STREAMS
@pytest.mark.parametrize("sdk", SDKS)
def test_g32_each_client_repeats_what_was_refused_for_want_of_room(case: Case, sdk: str, stream: bool) -> None:
    do, turn = verb(sdk)
    refused: Turn = {"error": {"status": 429, "headers": {"retry-after": "0"}}}
    outcome, asked = case.received(sdk, do, refused, turn, stream=stream, retries=2)
    outcome.given()
    assert len(asked) == 2


@pytest.mark.parametrize("sdk", ["openai", "openai_node", "langchain"])
def test_g37_what_adds_up_an_edited_stream_comes_to_the_answer_of_a_model_that_said_it_so(case: Case, sdk: str) -> None:
    turn: Turn = {"choices": [{"content": f"Your card is {CARD}, isn't it?"}]}
    edited: Turn = {"choices": [{"content": "Your card is [CREDIT_CARD], isn't it?"}]}
    told, direct = (
        plain(ask(sdk, "helper", say).given()["raw"]) for ask, say in ((case.guarded, turn), (case.direct, edited))
    )
    if sdk != "langchain":
        told, direct = told[1], direct[1]
    if sdk == "openai_node":
        assert told.pop("checkstream")["rule_id"] == "PII-002"
    for each in (told, direct):
        each.pop("usage", each.pop("usage_metadata", None))
    assert told == direct


@pytest.mark.parametrize("way", SHAPES, ids=lambda way: "-".join(filter(None, way[:3])))
def test_g35_structured_output_is_still_an_object_after_an_edit(
    case: Case, way: tuple[str, str, str | None, Turn]
) -> None:
    sdk, do, how, turn = way
    given = case.guarded(sdk, do, _with(turn, JSON, JSON.replace("London", CARD)), stream=True, how=how).given()
    assert given == PERSON | {"city": "[CREDIT_CARD]"}


@pytest.mark.parametrize(
    "way",
    [way for way in SHAPES if way[2] != "MD_JSON"],  # whose object stands in prose
    ids=lambda way: "-".join(filter(None, way[:3])),
)
def test_g35_no_client_takes_words_of_a_rule_for_a_value(case: Case, way: tuple[str, str, str | None, Turn]) -> None:
    """LlamaIndex and instructor mend half an object while it streams: what they make of it is the model's alone."""
    sdk, do, how, turn = way
    outcome = case.guarded(
        sdk, do, _with(turn, JSON, JSON.replace("London", "launch the missiles")), stream=True, how=how
    )
    assert "launch" not in str(outcome)
    assert outcome.value in (None, PERSON | {"city": ""})


def _with(value: Any, old: str, new: str) -> Any:
    """Return a turn that says something else, also where it is said in pieces."""
    match value:
        case dict():
            return {key: _with(each, old, new) for key, each in value.items()}
        case list() if value and all(isinstance(each, str) for each in value):
            text = "".join(value).replace(old, new)
            return [text[at : at + 7] for at in range(0, len(text), 7)]
        case list():
            return [_with(each, old, new) for each in value]
        case str():
            return value.replace(old, new)
    return value


@pytest.mark.parametrize("sdk", SDKS)
def test_g20_a_stream_that_breaks_off_raises_in_each_client(case: Case, sdk: str) -> None:
    do, turn = verb(sdk)
    said = case.guarded(sdk, do, {**turn, "fault": {"kind": "close", "after_events": 4}}, stream=True).raised()
    assert "upstream" in said


@pytest.mark.parametrize("sdk", ["openai", "openai_node"])
def test_an_api_that_is_not_guarded_is_refused_with_what_to_call_instead(case: Case, sdk: str) -> None:
    outcome, asked = case.received(sdk, "compact", {"body": {}})
    assert (
        "it can't be guarded in this version; send the items of the conversation to `/v1/responses`" in outcome.raised()
    )
    assert asked == []


SLOW = """
pack: {name: slow, version: 1.0.0}
policies:
  - name: toxic
    id: TOX-001
    stage: [midstream]
    classifiers: [{name: lexicon.toxicity}]
    actions: [{type: stop, message: "[withheld]"}]
"""


@pytest.fixture(scope="session")
def slow(begin: Callable[..., Proxy]) -> Iterator[Proxy]:
    """A proxy whose one classifier never comes to an end in time."""
    with running(begin(["policy.yaml"], policy=SLOW, fault="asleep", holdback={"max_hold_ms": 200})) as proxy:
        yield proxy


@STREAMS
@pytest.mark.parametrize("sdk", SDKS)
def test_g32_what_waits_too_long_is_an_error_in_each_client_and_no_moderation(
    clients: Clients, upstream: Upstream, slow: Proxy, sdk: str, stream: bool
) -> None:
    do, turn = verb(sdk)
    outcome = Case(clients, upstream, slow.url).guarded(sdk, do, turn, stream=stream)
    assert "checks take too long at present; try again in a moment" in outcome.raised()
    assert "filter" not in outcome.raised()


@pytest.mark.nightly
@STREAMS
@pytest.mark.parametrize("sdk", SDKS)
def test_g32_each_client_comes_again_when_there_is_room(
    clients: Clients, upstream: Upstream, crowded: Proxy, sdk: str, stream: bool
) -> None:
    do, turn = verb(sdk)
    before = _refused(crowded)
    long = {"choices": [{"content": " ".join(f"word{number}" for number in range(300))}], "timing": {"token_ms": 10}}
    headers = {SCRIPT: upstream.says(long)}
    with OpenAI(base_url=f"{crowded.url}/v1", api_key="k", max_retries=0, default_headers=headers) as other:
        ask: Any = {"model": "m", "messages": ASK, "stream": True}
        with other.chat.completions.create(**ask) as first:
            next(first)
            reading = threading.Thread(target=list, args=(first,))
            reading.start()
            Case(clients, upstream, crowded.url).guarded(sdk, do, turn, stream=stream, retries=8).given()
            reading.join()
    assert _refused(crowded) > before


def _refused(proxy: Proxy) -> float:
    lines = http("GET", f"{proxy.admin_url}/metrics")[2].decode().splitlines()
    return sum(
        float(line.split()[-1])
        for line in lines
        if line.startswith("checkstream_requests_total{") and 'status="429"' in line
    )


@pytest.fixture(scope="session")
def crowded(begin: Callable[..., Proxy]) -> Iterator[Proxy]:
    """A proxy that has time for one answer at once."""
    with running(begin(["policy.yaml"], policy=SLOW, limits={"load": 0.001})) as proxy:
        yield proxy
