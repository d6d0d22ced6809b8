"""The application reads its own people's data, and the model server never does (G38): with the real clients."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.harness import Proxy, running
from tests.e2e.sdks import test_messages, test_ollama, test_responses
from tests.e2e.sdks.conftest import Case
from tests.e2e.sdks.driver import Clients
from tests.e2e.sdks.test_calm import AGENTS
from tests.e2e.sdks.upstream import Turn, Upstream

ASKED = [
    {
        "role": "user",
        "content": 'Pay card 4929 1234 5678 9015 of Ann.Lee@northwind.example, "ann.lee@northwind.example".',
    }
]
SENT = 'Pay card <CREDIT_CARD_1> of <EMAIL_1>, "<EMAIL_1>".'
SECRETS = ("4929", "northwind.example")
TEXT = "Paid **<email_1>** ([mail](mailto:%3CEMAIL_1%3E), card <CREDIT_CARD_1>); told eve@stranger.example."
READ = (
    "Paid **Ann.Lee@northwind.example** ([mail](mailto:Ann.Lee%40northwind.example), card 4929 1234 5678 9015); "
    "told [EMAIL]."
)
ARGUMENTS = '{"amount": 1000, "card": "\\u003cCREDIT_CARD_1\\u003e"}'
PAYS: Turn = {
    "choices": [
        {
            "reasoning_content": "It is credit card 1.",
            "tool_calls": [
                {"name": "pay", "arguments": [ARGUMENTS[at : at + 5] for at in range(0, len(ARGUMENTS), 5)]}
            ],
        }
    ]
}
SAYS: Turn = {"choices": [{"content": [TEXT[at : at + 3] for at in range(0, len(TEXT), 3)]}]}
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(scope="module")
def named(begin: Callable[..., Proxy], clients: Clients, upstream: Upstream) -> Iterator[Case]:
    with running(begin(["builtin:default", "builtin:pseudonyms"])) as proxy:
        yield Case(clients, upstream, proxy.url)


def assert_unknown(asked: list[dict[str, Any]]) -> None:
    for body in asked:
        assert not any(secret in json.dumps(body) for secret in SECRETS)


def says(sdk: str, stream: bool) -> Turn:
    """Return what the model says, in the form of the client's API."""
    if sdk == "anthropic":
        return test_messages.says(test_messages.text(TEXT), stream=stream)
    if sdk == "openai_responses":
        return test_responses.says(test_responses.text(TEXT), stream=stream)
    if sdk == "ollama":
        return test_ollama.turn(*(TEXT[at : at + 3] for at in range(0, len(TEXT), 3)), stream=stream)
    return SAYS


@STREAMS
@pytest.mark.parametrize("sdk", ["openai", "openai_responses", "anthropic", "ollama"])
def test_g38_an_application_reads_its_own_values_and_the_server_placeholders(
    named: Case, sdk: str, stream: bool
) -> None:
    do = "helper" if stream and sdk == "anthropic" else "chat"
    outcome, asked = named.received(sdk, do, says(sdk, stream), stream=stream, messages=ASKED)
    assert outcome.given()["text"] == READ
    assert_unknown(asked)
    assert SENT in json.dumps(asked[0]).replace('\\"', '"')


@STREAMS
@pytest.mark.parametrize("sdk", AGENTS)
def test_g38_tools_are_run_with_the_callers_own_values_and_the_server_never_sees_them(
    named: Case, sdk: str, stream: bool
) -> None:
    outcome, asked = named.received(sdk, "agent", PAYS, SAYS, stream=stream, messages=ASKED)
    assert outcome.given()["text"] == READ
    assert outcome.ran == [("pay", {"amount": 1000, "card": "4929 1234 5678 9015"})]
    assert len(asked) == 2
    assert_unknown(asked)
    assert "<CREDIT_CARD_1>" in json.dumps(asked[1]["messages"][1:])


@STREAMS
@pytest.mark.parametrize("sdk", ["anthropic", "anthropic_node"])
def test_g38_a_thought_about_a_value_comes_back_as_it_was_signed(named: Case, sdk: str, stream: bool) -> None:
    """The API takes it back only so, and its placeholders mean the same in the next turn."""
    thought = test_messages.thought("It is <CREDIT_CARD_1> of <EMAIL_1>.")
    pays = test_messages.call("pay", amount=1000, card="<CREDIT_CARD_1>")
    first = test_messages.says(thought, pays, reason="tool_use", stream=stream)
    second = test_messages.says(test_messages.text(TEXT), stream=stream)
    outcome, asked = named.received(sdk, "agent", first, second, stream=stream, messages=ASKED)
    assert outcome.given()["text"] == READ
    assert outcome.ran == [("pay", {"amount": 1000, "card": "4929 1234 5678 9015"})]
    assert_unknown(asked)
    assert SENT in json.dumps(asked[1]["messages"][0]).replace('\\"', '"')
    blocks = asked[1]["messages"][1]["content"]
    assert blocks[0] == thought
    assert blocks[1]["input"]["card"] == "<CREDIT_CARD_1>"
