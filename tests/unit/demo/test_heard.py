from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from checkstream.demo.conversations import Conversation
from checkstream.demo.heard import hear
from checkstream.demo.llm import ScriptedLlm
from checkstream.demo.scenario import built_in, read_folder, read_scenario
from checkstream.demo.spoken import failure

ODD = {
    "odd": """
choices:
  - {reasoning_content: hm, content: one two}
  - {content: three, tool_calls: [{name: f, arguments: ['{"a":', ' 1}']}]}
wire: {cut: {by: fixed, size: 7}, line_end: crlf, bom: true, comments: {every: 2}, tail: no_newline}
""",
    "thinks": "choices: [{reasoning: hm, content: one two}]",
    "calls": 'choices: [{tool_calls: [{name: f, arguments: ["{\\"a\\":", " 1}"]}]}]',
    "limited": "error: {status: 429, message: slow down}",
    "malformed": "choices: [{content: x}]\ninsert: [{after_events: 1, data: '{'}]",
    "failing": 'choices: [{content: x}]\ninsert: [{after_events: 2, data: \'{"error": {"message": "no more"}}\'}]',
    "torn": "choices: [{content: one two}]\nfault: {kind: close, after_events: 2}",
}


@pytest.fixture
async def llm() -> AsyncIterator[ScriptedLlm]:
    known = dict(read_folder(built_in())) | {name: read_scenario(name, text) for name, text in ODD.items()}
    async with ScriptedLlm(known) as server:
        yield server


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as one:
        yield one


def _body(model: str, **fields: object) -> dict[str, object]:
    return {"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}], **fields}


async def test_an_answer_is_put_together_whatever_its_bytes(llm: ScriptedLlm, session: aiohttp.ClientSession) -> None:
    heard = await hear(session, llm.url, _body("odd", n=2))
    assert heard.choices == ("hmone two", 'threef({"a": 1})')
    assert heard.finishes == ("stop", "tool_calls")
    assert heard.status == 200
    assert not heard.failure
    assert heard.ttft_ms is not None
    assert 0 < heard.ttft_ms <= heard.total_ms
    assert all(event["object"] == "chat.completion.chunk" for event in heard.events)
    assert "one two" in heard.everything


async def test_an_error_status_is_told(llm: ScriptedLlm, session: aiohttp.ClientSession) -> None:
    heard = await hear(session, llm.url, _body("limited"))
    assert (heard.status, heard.failure, heard.choices, heard.ttft_ms) == (429, "slow down", (), None)


@pytest.mark.parametrize(("model", "failure"), [("malformed", "an event was not JSON"), ("failing", "no more")])
async def test_an_error_inside_a_stream_is_told(
    llm: ScriptedLlm, session: aiohttp.ClientSession, model: str, failure: str
) -> None:
    assert (await hear(session, llm.url, _body(model))).failure == failure


async def test_a_torn_stream_raises(llm: ScriptedLlm, session: aiohttp.ClientSession) -> None:
    with pytest.raises(aiohttp.ClientError):
        await hear(session, llm.url, _body("torn"))


def _asked(surface: str, model: str) -> dict[str, object]:
    return Conversation(title="", model=model, prompt="hi").body(surface)


@pytest.mark.parametrize(
    ("surface", "finish"),
    [("openai", "stop"), ("responses", "completed"), ("anthropic", "end_turn"), ("ollama", "stop")],
)
async def test_every_api_is_heard_alike(
    llm: ScriptedLlm, session: aiohttp.ClientSession, surface: str, finish: str
) -> None:
    heard = await hear(session, llm.url, _asked(surface, "thinks"), surface)
    assert heard.choices == ("hmone two",)
    assert heard.finishes == (finish,)
    assert not heard.failure
    called = await hear(session, llm.url, _asked(surface, "calls"), surface)
    assert called.choices == ('f({"a": 1})',)
    refused = await hear(session, llm.url, _asked(surface, "limited"), surface)
    assert (refused.status, refused.failure) == (429, "slow down")


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ({"error": {"message": "no more"}}, "no more"),
        ({"error": "no more"}, "no more"),
        ({"type": "error", "error": {"type": "api_error", "message": "no more"}}, "no more"),
        ({"type": "error", "code": "x", "message": "no more", "param": None, "sequence_number": 1}, "no more"),
        ({"type": "response.failed", "response": {"status": "failed", "error": {"message": "no more"}}}, "no more"),
        ({"type": "response.created", "response": {"error": None}}, ""),
        ({"choices": []}, ""),
    ],
)
def test_an_error_is_told_in_any_api_s_form(event: dict[str, object], told: str) -> None:
    assert failure(event) == told
