"""Who may look, what may be sent, and what every answer says to browsers: over a real listener."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from blockbuster import blockbuster_ctx

from tests.console_facts import HOSTILE, MadeUp, hostile_status, served

HEADERS = {
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
}
OWN = {"sec-fetch-site": "same-origin"}


@asynccontextmanager
async def asked(
    folder: Path, facts: MadeUp | None = None, token: str | None = None
) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of an address, as browsers keep them
    with blockbuster_ctx("checkstream"):
        async with (
            served(facts or MadeUp(), folder, token=token) as url,
            aiohttp.ClientSession(cookie_jar=jar) as session,
        ):
            yield session, url


async def status_of(session: aiohttp.ClientSession, url: str, method: str = "GET", **more: object) -> int:
    async with session.request(method, url, allow_redirects=False, **more) as response:  # type: ignore[arg-type]
        for name, value in HEADERS.items():
            assert response.headers.get(name) == value, (url, name)
        await response.read()
        return response.status


async def test_pages_say_to_browsers_what_may_run(tmp_path: Path) -> None:
    async with asked(tmp_path) as (session, url):
        async with session.get(f"{url}/console/") as response:
            assert response.status == 200
            assert response.headers["cache-control"] == "no-store"
            assert response.headers["referrer-policy"] == "same-origin"
            page = await response.text()
        assert "style=" not in page
        assert " on" not in "".join(part.partition(">")[0] for part in page.split("<")).replace(" on ", "")
        assert await status_of(session, f"{url}/console") == 308
        assert await status_of(session, f"{url}/console/nothing") == 404
        assert await status_of(session, f"{url}/console/login/x") == 404
        assert await status_of(session, f"{url}/console/", "POST", headers=OWN) == 405
        assert await status_of(session, f"{url}/console/theme") == 405
        async with session.get(f"{url}/admin/nothing") as response:
            assert "`GET /console/`" in await response.text()


async def test_static_files_are_kept_for_ever_under_names_that_have_their_hash(tmp_path: Path) -> None:
    async with asked(tmp_path, token="secret") as (session, url):
        async with session.get(f"{url}/console/login") as response:
            page = await response.text()
        names = [part.partition('"')[0] for part in page.split('"/console/static/')[1:]]
        assert len(names) >= 5
        for name in names:
            async with session.get(f"{url}/console/static/{name}") as response:
                assert response.status == 200
                assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        for name in ("console.css", "..%2ffacts.py", ""):
            assert await status_of(session, f"{url}/console/static/{name}") == 404


async def test_whoever_has_not_logged_in_sees_the_login_alone(tmp_path: Path) -> None:
    async with asked(tmp_path, token="secret") as (session, url):
        for path in ("", "live", "exchanges", "policies", "nothing"):
            async with session.get(f"{url}/console/{path}", allow_redirects=False) as response:
                assert (response.status, response.headers["location"]) == (303, "/console/login")
        async with session.get(f"{url}/console/", headers={"hx-request": "true"}) as response:
            assert (response.status, response.headers["hx-redirect"]) == (401, "/console/login")
        assert await status_of(session, f"{url}/console/theme", "POST", data={"theme": "dark"}) == 303
        assert await status_of(session, f"{url}/console/", headers={"authorization": "Bearer wrong"}) == 303
        assert await status_of(session, f"{url}/console/", headers={"authorization": "Bearer secret"}) == 200
        assert (
            await status_of(session, f"{url}/console/", headers={"cookie": 'a={"b": 1}; =; ;; checkstream_console=x'})
            == 303
        )


async def test_the_token_begins_a_session_that_ends_with_the_logout(tmp_path: Path) -> None:
    async with asked(tmp_path, token="secret") as (session, url):
        async with session.post(
            f"{url}/console/login", data={"token": "secret"}, headers=OWN, allow_redirects=False
        ) as response:
            assert (response.status, response.headers["location"]) == (303, "/console/")
            cookie = response.headers["set-cookie"]
        assert "; HttpOnly; SameSite=Strict" in cookie
        assert "Path=/console/" in cookie
        assert "secret" not in cookie
        assert await status_of(session, f"{url}/console/") == 200
        assert await status_of(session, f"{url}/console/login") == 303
        async with session.get(f"{url}/admin/status") as response:
            assert response.status == 401  # a session is for the pages alone
        kept = {"cookie": cookie.partition(";")[0]}
        assert await status_of(session, f"{url}/console/logout", "POST", headers=OWN) == 204
        assert await status_of(session, f"{url}/console/", headers=kept) == 303


async def test_who_guesses_tokens_waits(tmp_path: Path) -> None:
    async with asked(tmp_path, token="secret") as (session, url):
        login = f"{url}/console/login"
        for given in ("", "a", "\udcff", "secret " * 9, "b"):
            form = {"token": given.encode("utf-8", "replace").decode()}
            assert await status_of(session, login, "POST", data=form, headers=OWN) == 401
        async with session.post(login, data={"token": "secret"}, headers=OWN) as response:
            assert response.status == 429
            assert 0 < int(response.headers["retry-after"]) <= 60


async def test_who_guesses_many_tokens_at_once_waits_as_well(tmp_path: Path) -> None:
    async with asked(tmp_path, token="secret") as (session, url):
        headers, go = OWN | {"content-type": "application/x-www-form-urlencoded"}, asyncio.Event()

        async def slowly(number: int) -> AsyncIterator[bytes]:
            yield b"token="
            await go.wait()
            yield b"%d" % number

        async def guess(number: int) -> int:
            return await status_of(session, f"{url}/console/login", "POST", data=slowly(number), headers=headers)

        guesses = [asyncio.create_task(guess(number)) for number in range(20)]
        await asyncio.sleep(0.2)  # so that all of them have begun
        go.set()
        assert sorted(await asyncio.gather(*guesses)) == [401] * 5 + [429] * 15


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "same-origin"}, 204),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({}, 403),
        ({"origin": "OWN"}, 204),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"origin": "OWN", "sec-fetch-site": "cross-site"}, 403),
    ],
)
async def test_only_pages_of_the_console_may_send_it_something(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async with asked(tmp_path) as (session, url):
        given = {name: url if value == "OWN" else value for name, value in headers.items()}
        async with session.post(f"{url}/console/theme", data={"theme": "dark"}, headers=given) as response:
            assert response.status == status


async def test_a_name_that_points_here_from_elsewhere_gets_nothing(tmp_path: Path) -> None:
    async with asked(tmp_path) as (session, url):
        async with session.get(f"{url}/console/", headers={"host": "evil.example:80"}) as response:
            assert response.status == 421
        async with session.get(f"{url}/console/", headers={"origin": "http://evil.example"}) as response:
            assert response.status == 403


@pytest.mark.parametrize(
    ("site", "dest", "status"),
    [
        (
            "cross-site",
            "image",
            403,
        ),  # a page that somebody reads has nothing searched, and takes no place on the live page
        ("same-site", "empty", 403),  # of another port
        ("cross-site", "iframe", 403),
        ("cross-site", "document", 200),  # a link that somebody has followed
        ("same-origin", "empty", 200),
        ("none", "document", 200),
    ],
)
async def test_pages_of_other_sites_have_nothing_done_here(tmp_path: Path, site: str, dest: str, status: int) -> None:
    headers = {"sec-fetch-site": site, "sec-fetch-dest": dest}
    async with asked(tmp_path) as (session, url):
        assert await status_of(session, f"{url}/console/exchanges?rule=x", headers=headers) == status
        async with session.get(f"{url}/console/live/events", headers=headers) as response:
            assert (response.status, response.headers["server"]) == (status, "checkstream")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"theme=" + b"x" * 300_000, "application/x-www-form-urlencoded"),
        (b"&".join(b"a=b" for _ in range(50)), "application/x-www-form-urlencoded"),
        (b"theme=\xff\xfe", "application/x-www-form-urlencoded"),
        (b'{"theme": "dark"}', "application/json"),
        (b"theme=pink", "application/x-www-form-urlencoded"),
        (b"", "application/x-www-form-urlencoded"),
    ],
)
async def test_what_is_no_form_is_refused(tmp_path: Path, body: bytes, kind: str) -> None:
    async with asked(tmp_path) as (session, url):
        headers = OWN | {"content-type": kind}
        assert await status_of(session, f"{url}/console/theme", "POST", data=body, headers=headers) == 400


async def test_a_theme_is_kept_in_a_cookie_and_stands_in_the_page(tmp_path: Path) -> None:
    async with asked(tmp_path) as (session, url):
        for theme in ("dark", "light"):
            assert await status_of(session, f"{url}/console/theme", "POST", data={"theme": theme}, headers=OWN) == 204
            async with session.get(f"{url}/console/") as response:
                assert f'<html lang="en" data-theme="{theme}">' in await response.text()
        assert await status_of(session, f"{url}/console/theme", "POST", data={"theme": "auto"}, headers=OWN) == 204
        async with session.get(f"{url}/console/") as response:
            assert '<html lang="en">' in await response.text()


async def test_hostile_names_stand_in_the_overview_as_text(tmp_path: Path) -> None:
    facts = MadeUp()
    facts.status = hostile_status()
    facts.counted.upstream_errors.of("chat", HOSTILE.encode("utf-8", "replace").decode()).inc()
    async with asked(tmp_path, facts) as (session, url), session.get(f"{url}/console/") as response:
        page = await response.text()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "\x00" not in page
    assert len(page) < 60_000
