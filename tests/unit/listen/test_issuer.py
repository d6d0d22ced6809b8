"""A provider's keys: fetched, kept, rotated, and what happens when it is away or says nonsense."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from checkstream.config.identity import TokenSettings
from checkstream.errors import KeyUnknown, NotReady, TokenRefused
from checkstream.listen import issuer as module
from checkstream.listen.issuer import Issuer
from tests.provider import AUDIENCE, Provider, SigningKey

FROM = "192.0.2.1"


@asynccontextmanager
async def asking(**more: Any) -> AsyncIterator[tuple[Provider, Issuer, list[str]]]:
    told: list[str] = []
    async with Provider().serving() as provider:
        issuer = Issuer(TokenSettings(issuer=provider.url, **more), told.append)
        try:
            yield provider, issuer, told
        finally:
            await issuer.close()


class Clock:
    """The loop's clock, put forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        real = loop.time
        self.ahead = 0.0
        monkeypatch.setattr(loop, "time", lambda: real() + self.ahead)


async def test_keys_are_fetched_once_and_a_token_is_verified_once() -> None:
    async with asking() as (provider, issuer, _):
        token = provider.token()
        many = await asyncio.gather(*(issuer.claims(token, AUDIENCE, FROM) for _ in range(50)))
        assert {each["sub"] for each in many} == {provider.person.subject}
        assert provider.asked["/jwks"] == 1
        begun = time.perf_counter()
        for _ in range(1000):
            await issuer.claims(token, AUDIENCE, FROM)
        assert time.perf_counter() - begun < 1, "it is known by its digest"
        with pytest.raises(TokenRefused, match="not meant for"):
            await issuer.claims(token, "another", FROM)


async def test_a_new_key_is_fetched_when_a_token_names_it_and_at_most_twice_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with asking() as (provider, issuer, _):
        clock = Clock(monkeypatch)
        old = provider.token()
        await issuer.claims(old, AUDIENCE, FROM)
        provider.rotate("EdDSA")
        with pytest.raises(KeyUnknown):
            await issuer.claims(provider.token(), AUDIENCE, FROM)
        clock.ahead += 30
        fresh = await asyncio.gather(*(issuer.claims(provider.token(), AUDIENCE, FROM) for _ in range(9)))
        assert len(fresh) == 9
        assert provider.asked["/jwks"] == 2
        with pytest.raises(KeyUnknown):
            await issuer.claims(old, AUDIENCE, FROM)  # its key is gone, and with it what was known of the token
        stranger = SigningKey("ES256", "nobody's")
        for _ in range(50):
            with pytest.raises(KeyUnknown):
                await issuer.claims(stranger.sign(provider.claims()), AUDIENCE, FROM)
        assert provider.asked["/jwks"] == 2


async def test_while_the_provider_is_away_its_keys_count_for_a_time_and_then_nobody_s_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with asking(keys_s=3600) as (provider, issuer, told):
        clock = Clock(monkeypatch)
        provider.down = True
        with pytest.raises(NotReady, match="use a key"):
            await issuer.claims(provider.token(), AUDIENCE, FROM)
        asked = provider.asked.total()
        for _ in range(20):
            with pytest.raises(NotReady):
                await issuer.claims(provider.token(), AUDIENCE, FROM)
        assert (provider.asked.total(), len(told)) == (asked, 1), "it is not asked anew by each"
        provider.down = False
        clock.ahead += 5
        assert await issuer.claims(provider.token(), AUDIENCE, FROM)
        provider.down = True
        for _ in range(3):
            clock.ahead += 1190
            assert await issuer.claims(provider.token(), AUDIENCE, FROM)
        clock.ahead += 31
        with pytest.raises(NotReady):
            await issuer.claims(provider.token(), AUDIENCE, FROM)
        provider.down = False
        clock.ahead += 5
        assert await issuer.claims(provider.token(), AUDIENCE, FROM)


@pytest.mark.parametrize(
    "said",
    [
        {"issuer": "http://127.0.0.1:1"},
        {"jwks_uri": "http://keys.example.com/jwks"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": ""},
        {"token_endpoint": "ftp://127.0.0.1/token"},
        {"authorization_endpoint": 5},
    ],
)
async def test_a_provider_that_says_what_can_t_be_trusted_is_not_asked_further(said: dict[str, Any]) -> None:
    async with asking() as (provider, issuer, told):
        provider.said = said
        with pytest.raises(NotReady):
            await issuer.claims(provider.token(), AUDIENCE, FROM)
        assert provider.asked["/jwks"] == 0
        assert told


async def test_answers_without_end_redirects_and_nonsense_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RETRY_S", 0.0)
    async with asking() as (provider, issuer, told):
        answers: tuple[Callable[[], web.Response], ...] = (
            lambda: web.Response(body=b"x" * 300_000),
            lambda: web.Response(status=302, headers={"location": f"{provider.url}/jwks?again"}),
            lambda: web.Response(body=b"{"),
            lambda: web.Response(body=b"[" * 200_000),
            lambda: web.Response(status=400, body=json.dumps({"error": "no\nway"}).encode()),
        )
        for answer in answers:
            provider.answers["/jwks"] = answer()
            with pytest.raises(NotReady):
                await issuer.claims(provider.token(), AUDIENCE, FROM)
        assert len(told) == len(answers)
        assert not any("\n" in each for each in told)
        provider.answers.clear()
        assert await issuer.claims(provider.token(), AUDIENCE, FROM)


async def test_g33_few_wait_for_a_provider_that_is_slow_and_nobody_for_what_can_t_count() -> None:
    asked, left = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()  # until who asks gives up
        writer.close()
        left.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    place = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    issuer = Issuer(TokenSettings(issuer=place))
    token = SigningKey("ES256", "first").sign({"iss": place})
    for nonsense in ("a.b.c", "..", "x" * 20_000, "a.b", SigningKey("ES256", "k").sign({}).replace(".", "..")):
        with pytest.raises(TokenRefused):
            await issuer.claims(nonsense, AUDIENCE, FROM)
    assert not asked.is_set(), "the provider is not asked for them"
    try:
        flood = [asyncio.create_task(issuer.claims(token, AUDIENCE, FROM)) for _ in range(300)]
        await asyncio.wait_for(asked.wait(), 2)
        refused = [each for each in flood if each.done()]
        assert len(flood) - len(refused) == 192, "three quarters of 256"
        assert all("too many wait" in str(each.exception()) for each in refused)
        another = asyncio.create_task(issuer.provider("192.0.2.2"))
        await asyncio.sleep(0)
        assert not another.done(), "another address has a place"
        for each in (*flood, another):
            each.cancel()
        await asyncio.gather(*flood, another, return_exceptions=True)
        assert issuer._waiting.taken == 0
    finally:
        await issuer.close()
        await asyncio.wait_for(left.wait(), 2)
        server.close()
