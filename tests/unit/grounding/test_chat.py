"""A model behind HTTP is asked within bounds, and whatever its server does, an answer or one typed error comes."""

import asyncio
import json
import math
from typing import Any

import msgspec
import pytest
from aiohttp import web

from checkstream.errors import ChatError
from checkstream.grounding.chat import ChatModel, ChatReply, ChatSettings
from tests.scripted_chat import ScriptedChat, said, scripted

ODDS = [("YES", math.log(0.7)), (" yes", math.log(0.1)), ("NO", math.log(0.1))]


def settings(chat: ScriptedChat, **changes: Any) -> ChatSettings:
    return msgspec.convert({"url": chat.url, "model": "m", "retries": 0, "timeout_ms": 20_000} | changes, ChatSettings)


async def asked(chat: ScriptedChat, *, odds: bool = False, **changes: Any) -> ChatReply:
    async with ChatModel(settings(chat, **changes)) as model:
        return await model.ask("hello", max_tokens=5, odds=odds)


async def reason(chat: ScriptedChat, **changes: Any) -> str:
    with pytest.raises(ChatError) as caught:
        await asked(chat, **changes)
    assert str(caught.value)[0].islower()
    assert not str(caught.value).endswith(".")
    return caught.value.reason


async def test_a_question_goes_out_as_the_api_wants_it_and_its_text_comes_back() -> None:
    async with scripted(lambda _, __: "fine") as chat:
        async with ChatModel(settings(chat, temperature=0.5), key="secret") as model:
            reply = await model.ask("how?", system="be short", max_tokens=7, schema={"type": "object"})
        assert reply == ChatReply(text="fine")
        (sent,) = chat.asked
        assert sent["messages"] == [{"role": "system", "content": "be short"}, {"role": "user", "content": "how?"}]
        assert (sent["model"], sent["max_tokens"], sent["temperature"]) == ("m", 7, 0.5)
        assert sent["response_format"]["json_schema"]["schema"] == {"type": "object"}
        assert "logprobs" not in sent
        assert chat.headers[0]["Authorization"] == "Bearer secret"


async def test_the_odds_of_the_first_word_come_back() -> None:
    async with scripted(lambda _, __: said("YES", ODDS)) as chat:
        reply = await asked(chat, odds=True)
        assert dict(reply.first_words) == dict(ODDS)
        assert chat.asked[0]["logprobs"] is True


@pytest.mark.parametrize(
    "answer",
    [
        said("NO", ODDS, first="YES"),  # of another answer
        said("YES", [("NO", -0.1)]),  # without the word that was said
        said("YES", [("YES", 2.0)]),  # above certainty
        said("YES", [("YES", -0.1), ("yes", -0.1)]),  # more than certainty together
        {"choices": [{"message": {"content": "YES"}, "logprobs": "high"}]},
        {"choices": [{"message": {"content": "YES"}, "logprobs": {"content": [{"token": 5}]}}]},
        {"choices": [{"message": {"content": "YES"}, "logprobs": {"content": None}}]},
        {"choices": [{"message": {"content": "YES"}, "logprobs": None}]},
    ],
)
async def test_odds_that_can_not_be_those_of_the_answer_are_left_out(answer: dict[str, Any]) -> None:
    async with scripted(lambda _, __: answer) as chat:
        reply = await asked(chat, odds=True)
        assert reply.text in {"YES", "NO"}
        assert reply.first_words == ()


async def test_a_server_that_knows_no_options_is_asked_without_and_stays_so() -> None:
    def answer(question: Any, _: int) -> Any:
        return 400 if "logprobs" in question else "YES"

    async with scripted(answer) as chat, ChatModel(settings(chat)) as model:
        assert (await model.ask("a", max_tokens=1, odds=True)).text == "YES"
        assert (await model.ask("b", max_tokens=1, odds=True)).text == "YES"
        assert ["logprobs" in each for each in chat.asked] == [True, False, False]


async def test_a_refusal_that_has_nothing_to_do_with_options_does_not_turn_them_off() -> None:
    def answer(question: Any, _: int) -> Any:
        return 400 if "bad" in question["messages"][0]["content"] else said("YES", ODDS)

    async with scripted(answer) as chat, ChatModel(settings(chat)) as model:
        with pytest.raises(ChatError):
            await model.ask("bad", max_tokens=1, odds=True)
        assert (await model.ask("good", max_tokens=1, odds=True)).first_words


def refusal(message: str, param: str | None) -> web.Response:
    return web.json_response({"error": {"message": message, "param": param, "code": "unsupported"}}, status=400)


NEWER = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
COLD = "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported."


@pytest.mark.parametrize("param", ["max_tokens", None])
async def test_a_model_that_names_what_it_wants_gets_it_and_from_then_on_at_once(param: str | None) -> None:
    def answer(question: Any, _: int) -> Any:
        if "max_tokens" in question:
            return refusal(NEWER, param)
        return refusal(COLD, "temperature") if "temperature" in question else said("YES", ODDS)

    async with scripted(answer) as chat, ChatModel(settings(chat)) as model:
        for _ in range(2):
            assert (await model.ask("a", max_tokens=9, odds=True)).first_words
        assert [each.get("max_completion_tokens") for each in chat.asked] == [None, 9, 9, 9]
        assert ["temperature" in each for each in chat.asked] == [True, True, False, False]
        assert all("logprobs" in each for each in chat.asked)


@pytest.mark.parametrize("param", ["max_tokens", "max_completion_tokens", "temperature", "model", "messages", ""])
async def test_a_server_that_refuses_whatever_it_is_sent_is_not_asked_for_ever(param: str) -> None:
    async with scripted(lambda _, __: refusal("no", param)) as chat:
        assert await reason(chat, retries=3) == "refused"
        assert len(chat.asked) <= 2


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[" * 9_000, b'{"error": "max_completion_tokens"}', b"max_completion_tokens", b"x" * 99_999]
)
async def test_a_refusal_that_says_nothing_changes_nothing(body: bytes) -> None:
    def answer(_: Any, number: int) -> Any:
        return web.Response(status=400, body=body) if number == 0 else "fine"

    async with scripted(answer) as chat, ChatModel(settings(chat)) as model:
        with pytest.raises(ChatError):
            await model.ask("a", max_tokens=3)
        await model.ask("a", max_tokens=3)
        assert [each["max_tokens"] for each in chat.asked] == [3, 3]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_what_failed_on_the_way_is_repeated_so_often_as_allowed(status: int) -> None:
    async with scripted(lambda _, number: status if number < 1 else "fine") as chat:
        assert (await asked(chat, retries=1)).text == "fine"
        assert len(chat.asked) == 2
    async with scripted(lambda _, __: status) as chat:
        assert await reason(chat, retries=1) == "unreachable"
        assert len(chat.asked) == 2


@pytest.mark.parametrize("status", [401, 403, 404, 301])
async def test_a_refusal_is_not_repeated(status: int) -> None:
    async with scripted(lambda _, __: status) as chat:
        assert await reason(chat, retries=3) == "refused"
        assert len(chat.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>busy</html>",
        b"{",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": "x"}',
        b'{"choices": [{"message": {"content": 5}}]}',
        b"\xff\xfe",
        b"[" * 5_000,
        b'{"choices": ' + b"[" * 100_000,
    ],
)
async def test_garbage_is_told_as_such(body: bytes) -> None:
    async with scripted(lambda _, __: body) as chat:
        assert await reason(chat) == "garbage"


async def test_an_answer_without_a_text_is_empty() -> None:
    async with scripted(lambda _, __: said(None)) as chat:
        assert (await asked(chat)).text == ""


async def test_an_answer_that_is_too_long_is_not_read() -> None:
    body = json.dumps(said("x" * 5_000)).encode()
    async with scripted(lambda _, __: body) as chat:
        assert await reason(chat, answer_bytes=2_000) == "garbage"
        assert (await asked(chat, answer_bytes=20_000)).text.startswith("xxx")


async def test_an_answer_that_never_comes_ends_in_time() -> None:
    async with scripted(lambda _, __: None) as chat:
        assert await reason(chat, timeout_ms=50, retries=5) == "deadline"


async def test_a_server_that_is_not_there_is_told() -> None:
    async with scripted(lambda _, __: "fine") as chat:
        gone = chat.url
    async with ChatModel(ChatSettings(url=gone, model="m", retries=0)) as model:
        with pytest.raises(ChatError) as caught:
            await model.ask("hello", max_tokens=1)
    assert caught.value.reason == "unreachable"
    assert "Connection refused" in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)  # callers read it too


async def test_no_more_questions_run_at_once_than_allowed() -> None:
    async with scripted(lambda _, __: "fine") as chat, ChatModel(settings(chat, connections=3)) as model:
        await asyncio.gather(*(model.ask(str(number), max_tokens=1) for number in range(12)))
        assert len(chat.asked) == 12
        assert chat.most_at_once <= 3


async def test_lone_surrogates_are_sent_as_what_can_be_sent() -> None:
    async with scripted(lambda _, __: "fine") as chat, ChatModel(settings(chat)) as model:
        await model.ask("a\ud800b", max_tokens=1)
        assert chat.asked[0]["messages"][0]["content"] == "a?b"


@pytest.mark.parametrize("ending", ["", "/", "/chat/completions"])
async def test_the_url_may_be_written_in_each_usual_way(ending: str) -> None:
    async with scripted(lambda _, __: "fine") as chat:
        assert (await asked(chat, url=chat.url + ending)).text == "fine"
