"""Logging in over a provider: the whole way of a real code, and every way of getting in by another's."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import pytest

from tests.console_control import Browser, stranger
from tests.controlled import Server
from tests.provider import CLIENT, SECRET, Person, Provider

ROLES = {"risk": "risk_officer", "dev": "engineer"}


class Site:
    """A control server whose people come over a provider."""

    def __init__(self, provider: Provider, server: Server, log: io.BytesIO) -> None:
        self.provider, self.server, self.log = provider, server, log

    async def sent_on(self, browser: Browser) -> dict[str, str]:
        """Begin in a browser, let the provider answer, and return what it sends the browser back with."""
        begun = await browser.get("oidc/begin")
        assert begun.status == 303, begun.page
        there = begun.headers["location"]
        assert there.startswith(f"{self.provider.url}/authorize?")
        async with aiohttp.ClientSession() as client, client.get(there, allow_redirects=False) as response:
            assert response.status == 303, await response.text()
            back = response.headers["location"]
        assert back.startswith("https://control.example/console/oidc/back?")
        return {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}

    @staticmethod
    async def back(browser: Browser, said: dict[str, str]) -> int:
        return (await browser.get(f"oidc/back?{urlencode(said)}", **FROM_ELSEWHERE)).status


FROM_ELSEWHERE = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}


@asynccontextmanager
async def opened(folder: Path, **more: Any) -> AsyncIterator[Site]:
    (folder / "secret").write_text(SECRET)
    async with Provider().serving() as provider:
        server, log = Server(folder), io.BytesIO()
        server.written["oidc"] = {
            "issuer": provider.url, "client_id": CLIENT, "client_secret": {"file": "secret"},
            "url": "https://control.example", "roles": ROLES, **more,
        }  # fmt: skip
        for name, person in server.written["people"].items():
            person["subject"] = f"sub-of-{name}"
        async with server.serving(log):
            yield Site(provider, server, log)


async def test_somebody_logs_in_with_the_name_and_the_role_that_the_provider_gives(tmp_path: Path) -> None:
    async with opened(tmp_path) as site, stranger(site.server) as browser:
        login = await browser.get("login")
        assert 'href="/console/oidc/begin"' in login.page
        said = await site.sent_on(browser)
        back = await browser.get(f"oidc/back?{urlencode(said)}", **FROM_ELSEWHERE)
        assert (back.status, 'http-equiv="refresh"' in back.page) == (200, True)
        cookie = next(each for each in back.headers.getall("set-cookie") if "checkstream_console" in each)  # type: ignore[attr-defined]  # a multidict
        assert [each for each in _jar(browser) if "login" in each] == [], "the cookie of the log-in is gone"
        assert "SameSite=Strict" in cookie
        assert "HttpOnly" in cookie
        assert 590 <= int(cookie.partition("Max-Age=")[2].partition(";")[0]) <= 600, "it ends with the token"
        shown = await browser.get("fleets")
        assert (shown.status, "Jane Doe" in shown.page, "risk officer" in shown.page) == (200, True, True)
        assert (await browser.post("logout", {})).status == 204
        assert (await browser.get("fleets")).status == 303


async def test_what_comes_back_counts_once_and_in_the_browser_that_has_begun_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as site, stranger(site.server) as browser, stranger(site.server) as other:
        said = await site.sent_on(browser)
        assert await site.back(other, said) == 400, "somebody is lured to another's code"
        begun = await site.sent_on(other)
        assert await site.back(other, said) == 400
        assert await site.back(other, {**begun, "code": said["code"]}) == 401, "PKCE: another has asked for the code"
        assert await site.back(browser, {**said, "state": said["state"][:-1]}) == 400
        assert await site.back(browser, {**said, "state": ""}) == 400
        twice = f"oidc/back?{urlencode(said)}&state={said['state']}"
        assert (await browser.get(twice, **FROM_ELSEWHERE)).status == 400


async def test_a_log_in_is_spent_by_its_answer(tmp_path: Path) -> None:
    async with opened(tmp_path) as site, stranger(site.server) as browser:
        said = await site.sent_on(browser)
        kept = {name: morsel for name, morsel in _jar(browser).items() if name == "checkstream_login"}
        assert await site.back(browser, said) == 200
        browser._client.cookie_jar.update_cookies(kept)
        asked = site.provider.asked["/token"]
        assert await site.back(browser, said) == 400
        assert site.provider.asked["/token"] == asked


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"iss": "https://evil.example"}, 401),
        ({"iss": None}, 401),
        ({"code": "guessed"}, 401),
        ({"code": None, "error": "access_denied"}, 401),
        ({"code": None, "error": "<script>alert(1)</script>"}, 401),
    ],
)
async def test_another_provider_s_answer_or_none_lets_nobody_in(
    tmp_path: Path, changed: dict[str, Any], status: int
) -> None:
    async with opened(tmp_path) as site, stranger(site.server) as browser:
        said = {**await site.sent_on(browser), **changed}
        told = await browser.get(
            f"oidc/back?{urlencode({at: each for at, each in said.items() if each is not None})}", **FROM_ELSEWHERE
        )
        assert (told.status, "<script>alert" in told.page) == (status, False)
        assert (await browser.get("fleets")).status == 303


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"}, {"nonce": None}, {"aud": "another"}, {"aud": [CLIENT, "x"]}, {"azp": "another"},
        {"iss": "https://evil.example"}, {"exp": 1}, {"sub": None},
    ],
)  # fmt: skip
async def test_a_token_of_another_log_in_or_for_another_lets_nobody_in(tmp_path: Path, claims: dict[str, Any]) -> None:
    async with opened(tmp_path) as site, stranger(site.server) as browser:
        made = site.provider.claims

        def changed(audience: str, **more: Any) -> dict[str, Any]:
            found = {**made(audience, **more), **claims}
            return {name: value for name, value in found.items() if value is not None}

        site.provider.claims = changed  # type: ignore[method-assign,assignment]  # a provider that does wrong
        assert await site.back(browser, await site.sent_on(browser)) == 401
        assert (await browser.get("fleets")).status == 303


async def test_whom_the_provider_gives_no_role_is_told_so_and_the_log_says_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as site, stranger(site.server) as browser:
        site.provider.person = Person("5", roles=["sales"], name="Joe")
        assert await site.back(browser, await site.sent_on(browser)) == 403
        events = [json.loads(line)["event"] for line in site.log.getvalue().splitlines()]
        assert "oidc.no_role" in events


async def test_a_provider_that_is_away_keeps_nobody_with_a_key_out(tmp_path: Path) -> None:
    async with opened(tmp_path) as site, stranger(site.server) as browser:
        site.provider.down = True
        told = await browser.get("oidc/begin")
        assert (told.status, "can&#39;t be asked" in told.page) == (503, True)
        assert (await browser.log_in("eve-has-a-key-of-some-length")).status == 303


async def test_a_console_of_a_server_without_a_provider_leads_to_none(tmp_path: Path) -> None:
    async with Server(tmp_path).serving() as server, stranger(server) as browser:
        assert "oidc" not in (await browser.get("login")).page
        assert (await browser.get("oidc/begin")).status == 303  # to the login, as for every path that is not there


def _jar(browser: Browser) -> dict[str, str]:
    return {morsel.key: morsel.value for morsel in browser._client.cookie_jar}
