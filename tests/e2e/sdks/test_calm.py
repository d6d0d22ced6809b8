"""Calm weather: through the proxy each client library gives its application what it gives without it (G5)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.e2e.sdks.conftest import Case
from tests.e2e.sdks.upstream import Turn

SDKS = [
    "openai", "openai_node", "langchain", "litellm", "llama_index", "instructor", "openai_agents", "pydantic_ai",
    "vercel",
]  # fmt: skip
TALKERS = [sdk for sdk in SDKS if sdk != "instructor"]
AGENTS = TALKERS
"""Those that run tools: by themselves, but for the openai SDK in Python, whose pages show the loop."""

TEXT = "The tides follow the moon. Ärger, 潮汐, 🌊! They rise twice a day."
SAYS: Turn = {"choices": [{"reasoning_content": "Let me think about tides.", "content": TEXT}]}
CALLS: Turn = {
    "choices": [
        {
            "reasoning_content": "Both are wanted.",
            "content": "I will do both.",
            "tool_calls": [
                {"name": "pay", "arguments": ['{"amount": 10', '00, "card": "gold"}']},
                {"name": "look_up", "arguments": ['{"about": "the tides ', 'of \\"Brest\\""}']},
            ],
        }
    ]
}
RAN: list[tuple[str, dict[str, Any]]] = [
    ("pay", {"amount": 1000, "card": "gold"}),
    ("look_up", {"about": 'the tides of "Brest"'}),
]
PERSON = {"name": "Ada", "age": 36, "city": "London"}
JSON = '{"name": "Ada", "age": 36, "city": "London"}'
AS_TEXT: Turn = {"choices": [{"content": JSON}]}
AS_MARKDOWN: Turn = {"choices": [{"content": f"Here it is:\n```json\n{JSON}\n```\n"}]}


def as_call(name: str) -> Turn:
    return {"choices": [{"tool_calls": [{"name": name, "arguments": [JSON[:12], JSON[12:30], JSON[30:]]}]}]}


def plain(value: Any) -> Any:
    """Without the names that LangChain makes up for each run, and of padding its length alone."""
    match value:
        case dict():
            return {key: len(each) if key == "obfuscation" else plain(each) for key, each in value.items()}
        case list():
            return [plain(each) for each in value]
        case str():
            return re.sub(r"^(lc_)?run-.*|^[0-9a-f-]{36}$", "-", value)
    return value


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("sdk", TALKERS)
def test_g05_text_thoughts_and_usage_are_those_of_the_upstream(case: Case, sdk: str, stream: bool) -> None:
    told = case.guarded(sdk, "chat", SAYS, stream=stream).given()
    assert told["text"] == TEXT
    assert plain(told) == plain(case.direct(sdk, "chat", SAYS, stream=stream).given())


@pytest.mark.parametrize("sdk", ["openai", "openai_node", "langchain", "litellm", "llama_index", "vercel"])
@pytest.mark.parametrize("turn", [SAYS, CALLS], ids=["text", "calls"])
def test_g05_what_adds_a_stream_up_comes_to_the_same(case: Case, sdk: str, turn: Turn) -> None:
    told = case.guarded(sdk, "helper", turn).given()
    assert plain(told) == plain(case.direct(sdk, "helper", turn).given())


@pytest.mark.parametrize("sdk", ["openai", "openai_node"])
def test_g05_several_choices_and_log_probabilities_are_those_of_the_upstream(case: Case, sdk: str) -> None:
    turn = {"choices": [{"content": TEXT}, {"content": "Other words.", "refusal": "Or none."}]}
    fields = {"n": 2, "logprobs": True, "top_logprobs": 2}
    assert (
        case.guarded(sdk, "chat", turn, fields=fields).given() == case.direct(sdk, "chat", turn, fields=fields).given()
    )
    # a choice keeps its order, another may overtake it: so what all of a stream comes to is compared, not each event
    told, direct = (ask(sdk, "helper", turn, fields=fields).given()["raw"][1] for ask in (case.guarded, case.direct))
    assert told == direct


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("sdk", AGENTS)
def test_g35_an_agent_runs_the_calls_of_the_model_and_goes_on(case: Case, sdk: str, stream: bool) -> None:
    outcome, asked = case.received(sdk, "agent", CALLS, SAYS, stream=stream)
    assert outcome.given()["text"] == TEXT
    assert sorted(outcome.ran) == sorted(RAN)
    assert asked == case.received_directly(sdk, "agent", CALLS, SAYS, stream=stream)
    assert [message["role"] for message in asked[1]["messages"]][-3:] == ["assistant", "tool", "tool"]
    direct = case.direct(sdk, "agent", CALLS, SAYS, stream=stream)
    assert (outcome.value, sorted(outcome.ran)) == (direct.value, sorted(direct.ran))


SHAPES: list[tuple[str, str, str | None, Turn]] = [
    ("openai", "shape", None, AS_TEXT),
    ("openai_node", "shape", None, AS_TEXT),
    ("langchain", "shape", "json_schema", AS_TEXT),
    ("langchain", "shape", "json_mode", AS_TEXT),
    ("langchain", "shape", "function_calling", as_call("Person")),
    ("litellm", "shape", None, AS_TEXT),
    ("llama_index", "shape", None, AS_TEXT),
    ("instructor", "shape", "TOOLS", as_call("Person")),
    ("instructor", "shape", "TOOLS_STRICT", as_call("Person")),
    ("instructor", "shape", "JSON", AS_TEXT),
    ("instructor", "shape", "JSON_SCHEMA", AS_TEXT),
    ("instructor", "shape", "MD_JSON", AS_MARKDOWN),
    ("pydantic_ai", "shape", "native", AS_TEXT),
    ("pydantic_ai", "shape", "prompted", AS_TEXT),
    ("pydantic_ai", "shape", "tool", as_call("final_result")),
    ("vercel", "shape", None, AS_TEXT),
    ("vercel", "shape", "openai", AS_TEXT),
    ("vercel", "output", None, AS_TEXT),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("way", SHAPES, ids=lambda way: "-".join(filter(None, way[:3])))
def test_structured_output_comes_whole(case: Case, way: tuple[str, str, str | None, Turn], stream: bool) -> None:
    sdk, do, how, turn = way
    assert case.guarded(sdk, do, turn, stream=stream, how=how).given() == PERSON


PAID = {"choices": [{"tool_calls": [{"name": "pay", "arguments": '{"amount": 5}'}]}]}


def test_g35_what_makes_objects_of_calls_gets_each_call(case: Case) -> None:
    """The ways to tools that go without an agent, and the lists of objects that are calls, too."""
    assert case.guarded("openai", "parsed_call", PAID).given() == [{"amount": 5, "card": None}]
    outcome = case.guarded("llama_index", "calls", CALLS)
    outcome.given()
    assert sorted(outcome.ran) == sorted(RAN)
    both = json.dumps({"tasks": [PERSON, PERSON | {"name": "Bo"}]})
    called = {"name": "IterablePerson", "arguments": [both[:40], both[40:70], both[70:]]}
    listed = {"choices": [{"tool_calls": [called]}]}
    assert [each["name"] for each in case.guarded("instructor", "many", listed).given()] == ["Ada", "Bo"]
    told, direct = (ask("instructor", "chat", as_call("Person")).given() for ask in (case.guarded, case.direct))
    assert told == direct
