"""What services answer, and how they fail: none can do harm by it."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from aiohttp import web

from checkstream.config import bundled
from checkstream.core.events import EntityFound
from checkstream.errors import ScoringError
from checkstream.scoring import Scorer, load_models, open_session
from tests.detecting import PATIENT_MS, answering, reason_of, remote, remote_model, saying, service

GOOD = {"injection": 0.25, "toxicity": 0.5}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"\xff\xfe",
        b"[" * 100_000,
        {"results": []},
        {"results": [{"scores": GOOD}, {"scores": GOOD}]},
        {"results": [{"scores": {"injection": 0.25}}]},
        {"results": [{"scores": {}}]},
        {"results": [{"scores": {**GOOD, "toxicity": 1.5}}]},
        {"results": [{"scores": {**GOOD, "toxicity": -0.1}}]},
        {"results": [{"scores": {**GOOD, "toxicity": "high"}}]},
        b'{"results": [{"scores": {"injection": NaN, "toxicity": 0.5}}]}',
        b'{"results": [{"scores": {"injection": 1e999, "toxicity": 0.5}}]}',
        {"results": [{"scores": GOOD, "entities": [{"entity": "PERSON", "start": 0, "end": 99, "score": 0.9}]}]},
        {"results": [{"scores": GOOD, "entities": [{"entity": "PERSON", "start": 3, "end": 3, "score": 0.9}]}]},
        {"results": [{"scores": GOOD, "entities": [{"entity": "PERSON", "start": -1, "end": 3, "score": 0.9}]}]},
        {"results": [{"scores": GOOD, "entities": [{"entity": "PERSON", "start": 0, "end": 3, "score": 9}]}]},
        b'{"results": [{"scores": {"x": "' + b"a" * 2_000_000 + b'"}}]}',
    ],
)
async def test_g23_an_answer_that_can_not_be_used_is_garbage(body: object) -> None:
    async with answering(saying(body)) as url:
        assert await reason_of(url) == "garbage"


@pytest.mark.parametrize(
    ("status", "reason"),
    [(500, "crash"), (503, "crash"), (401, "crash"), (404, "crash"), (504, "deadline")],
)
async def test_g23_a_refusal_says_what_failed(status: int, reason: str) -> None:
    async with answering(saying({"results": [{"scores": GOOD}]}, status)) as url:
        assert await reason_of(url) == reason


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (429, {}),
        (429, {"retry-after": "0"}),
        (503, {"retry-after": "0.01"}),
        (429, {"retry-after": "Mon, soon"}),
        (429, {"retry-after": "-inf"}),
        (429, {"retry-after": "nan"}),
    ],
)
async def test_g32_a_service_that_is_busy_is_asked_again_until_it_answers(status: int, headers: dict[str, str]) -> None:
    asked = 0

    async def busy(_: web.BaseRequest) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        if asked <= 3:
            return web.Response(status=status, headers=headers)
        return web.json_response({"results": [{"scores": GOOD}]})

    async with answering(busy) as url, remote(remote_model(url)) as scorer, asyncio.timeout(10):
        assert (await scorer.score(("lexicon",), "x", 1000.0)).scores["lexicon.injection"] == 0.25
        assert scorer._lanes["lexicon", False].state == "closed"
    assert asked == 4


@pytest.mark.parametrize("status", [400, 413, 500])
async def test_g33_a_text_that_a_service_can_not_read_fails_alone(status: int) -> None:
    heard: list[list[str]] = []

    async def respond(request: web.BaseRequest) -> web.StreamResponse:
        texts = msgspec.json.decode(await request.read())["texts"]
        heard.append(texts)
        if "poison" in texts:
            return web.Response(status=status)
        return web.json_response({"results": [{"scores": GOOD} for _ in texts]})

    async with answering(respond) as url, remote(remote_model(url)) as scorer:
        texts = ("one", "poison", "two")
        found = await asyncio.gather(
            *(scorer.score(("lexicon",), text, 1000.0) for text in texts), return_exceptions=True
        )
    assert [getattr(each, "reason", "read") for each in found] == ["read", "crash", "read"]
    assert heard[0] == ["one", "poison", "two"]
    assert sorted(heard[1:]) == [["one"], ["poison"], ["two"]]


async def test_g32_a_text_that_a_service_had_no_time_for_is_sent_again_and_the_others_are_not() -> None:
    heard: list[list[str]] = []

    async def busy(request: web.BaseRequest) -> web.StreamResponse:
        texts = msgspec.json.decode(await request.read())["texts"]
        heard.append(texts)
        late = len(heard) == 1
        return web.json_response(
            {"results": [{"error": "overload"} if late and text == "late" else {"scores": GOOD} for text in texts]}
        )

    async with answering(busy) as url, remote(remote_model(url)) as scorer:
        scored = await asyncio.gather(*(scorer.score(("lexicon",), text, 1000.0) for text in ("one", "late", "two")))
    assert [each.scores["lexicon.injection"] for each in scored] == [0.25] * 3
    assert heard == [["one", "late", "two"], ["late"]]


async def test_texts_are_sent_nowhere_else() -> None:
    heard: list[str] = []

    async def other(request: web.BaseRequest) -> web.StreamResponse:
        heard.append(await request.text())
        return web.json_response({"results": [{"scores": GOOD}]})

    async with answering(other) as elsewhere:
        for status in (302, 307, 308):
            async with answering(saying(b"", status, {"location": f"{elsewhere}/v1/detect"})) as url:
                assert await reason_of(url) == "crash"
    assert heard == []


async def test_g23_nobody_there_is_a_crash_and_silence_meets_the_deadline() -> None:
    assert await reason_of("http://127.0.0.1:1") == "crash"
    never = asyncio.Event()

    async def silent(_: web.BaseRequest) -> web.StreamResponse:
        await never.wait()
        return web.Response()

    async with answering(silent) as url:
        assert await reason_of(url, 50) == "deadline"
        never.set()


async def test_g23_an_answer_that_drips_meets_the_deadline() -> None:
    over = asyncio.Event()

    async def dripping(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"results": [')
        await over.wait()
        return response

    async with answering(dripping) as url:
        assert await reason_of(url, 50) == "deadline"
        over.set()


async def test_a_connection_that_was_given_up_is_opened_anew() -> None:
    asked = 0

    async def once_each(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        if asked == 2:
            assert request.transport
            request.transport.abort()
        return web.json_response({"results": [{"scores": GOOD}]})

    async with answering(once_each) as url, remote(remote_model(url)) as scorer:
        for _ in range(3):
            assert (await scorer.score(("lexicon",), "x", PATIENT_MS)).scores["lexicon.injection"] == 0.25
    assert asked == 4


async def test_no_more_requests_run_than_there_are_connections_and_none_is_forgotten() -> None:
    running = most = 0
    go = asyncio.Event()

    async def counting(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 2:
            go.set()
        await go.wait()
        texts = msgspec.json.decode(await request.read())["texts"]
        running -= 1
        return web.json_response({"results": [{"scores": GOOD}] * len(texts)})

    async with answering(counting) as url, remote(remote_model(url)) as scorer:
        found = await asyncio.gather(*(scorer.score(("lexicon",), f"text {n}", PATIENT_MS) for n in range(100)))
    assert len(found) == 100
    assert most == 2


async def test_labels_of_a_service_get_our_names_and_the_highest_counts() -> None:
    body = {
        "results": [
            {
                "scores": {"toxic": 0.2, "insult": 0.7, "attack": 0.1, "other": 0.9},
                "entities": [
                    {"entity": "PER", "start": 0, "end": 1, "score": 0.9},
                    {"entity": "PER", "start": 2, "end": 6, "score": 0.3},
                    {"entity": "LOC", "start": 2, "end": 6, "score": 0.9},
                ],
            }
        ]
    }
    labels = {"toxic": "toxicity", "insult": "toxicity", "attack": "injection", "PER": "PERSON"}
    async with answering(saying(body)) as url, remote(remote_model(url, labels=labels)) as scorer:
        checked = await scorer.score(("lexicon",), "a text", PATIENT_MS)
    assert checked.scores == pytest.approx({"lexicon.injection": 0.1, "lexicon.toxicity": 0.7})
    assert checked.entities == (EntityFound("PERSON", 0, 1, 0.9),)


async def test_closing_breaks_off_what_runs() -> None:
    started, never = asyncio.Event(), asyncio.Event()

    async def silent(_: web.BaseRequest) -> web.StreamResponse:
        started.set()
        await never.wait()
        return web.Response()

    async with answering(silent) as url:
        async with remote(remote_model(url)) as scorer:
            waiting = asyncio.ensure_future(scorer.score(("lexicon",), "x", PATIENT_MS))
            await started.wait()
        with pytest.raises(ScoringError) as caught:
            await waiting
        assert caught.value.reason == "overload"
        never.set()


async def test_a_service_is_unheard_until_it_has_answered_a_text() -> None:
    local = load_models(bundled("models"), ("lexicon",))
    async with service() as (url, _):
        scorer = Scorer([*local, remote_model(url, name="far")], open_session)
        told = [scorer.unheard]
        for asked, ingress in (("lexicon", False), ("far", True)):
            await scorer.score((asked,), "hello", PATIENT_MS, ingress=ingress)
            told.append(scorer.unheard)
        assert told == [("far",), ("far",), ()]
        await scorer.close()
    async with answering(saying(b"no", 500)) as url, remote(remote_model(url)) as scorer:
        with pytest.raises(ScoringError):
            await scorer.score(("lexicon",), "hello", PATIENT_MS)
        assert scorer.unheard == ("lexicon",)
