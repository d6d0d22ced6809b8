"""Who gets into the console of a control server, as whom, and what of the server is where."""

from __future__ import annotations

from pathlib import Path

import aiohttp

from tests.console_control import OWN, looking, stranger
from tests.controlled import Server, asked, key_of

ALLOW = {"fleet": "shop", "kind": "package", "value": "c" * 64, "reason": "the new build"}


async def test_people_log_in_with_their_keys_and_are_named_with_their_roles(tmp_path: Path) -> None:
    async with Server(tmp_path).serving() as server:
        for person, role in (("eve", "engineer"), ("gus", "auditor")):
            async with looking(server, person) as browser:
                told = await browser.get("fleets")
                assert told.status == 200
                assert f"<bdi>{person}</bdi>, {role}" in told.page
                assert told.headers["cache-control"] == "no-store"
                assert (await browser.post("logout", {})).status == 204
                assert (await browser.get("fleets")).status == 303


async def test_whoever_is_nobody_sees_the_login_alone_and_does_nothing(tmp_path: Path) -> None:
    async with Server(tmp_path).serving() as server, stranger(server) as browser:
        for path in ("", "fleets", "fleets/shop", "nothing"):
            told = await browser.get(path)
            assert (told.status, told.headers["location"]) == (303, "/console/login")
        assert (await browser.post("allowances", ALLOW)).status == 303
        assert "checkstream control key" in (await browser.get("login")).page
        for wrong in ("", "eve", key_of("nobody"), key_of("eve") + "x"):
            told = await browser.log_in(wrong)
            assert told.status == 401
            assert "nobody&#39;s key" in told.page
        assert (await asked("GET", server.url, "/v1/fleets/shop", person="gus"))[1]["allowed"]["package"] == []


ELSEWHERE: tuple[dict[str, str], ...] = (
    {},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "none"},
    {"origin": "null"},
    {"origin": "http://evil.example"},
    {"origin": "http://evil.example", "sec-fetch-site": "cross-site"},
)


async def test_a_page_of_another_site_has_nothing_done(tmp_path: Path) -> None:
    async with Server(tmp_path).serving() as server, looking(server, "rob") as browser:
        for headers in ELSEWHERE:
            assert (await browser.post("allowances", ALLOW, headers)).status == 403
        assert (await asked("GET", server.url, "/v1/fleets/shop", person="gus"))[1]["allowed"]["package"] == []


async def test_the_console_stands_beside_the_api(tmp_path: Path) -> None:
    async with Server(tmp_path).serving() as server, aiohttp.ClientSession() as client:
        for path, status in (("/", 308), ("/console", 308), ("/console/", 303), ("/livez", 200), ("/v1/fleets", 401)):
            async with client.get(server.url + path, allow_redirects=False) as response:
                assert (path, response.status) == (path, status)
                assert response.headers["server"] == "checkstream"
        async with client.get(f"{server.url}/consoles") as response:
            assert response.status == 401  # the API's


async def test_cookies_are_for_tls_alone_where_it_ends_in_front_of_the_server(tmp_path: Path) -> None:
    for gateway in (False, True):
        server = Server(tmp_path / str(gateway))
        server.written["behind_gateway"] = gateway
        async with server.serving(), stranger(server) as browser:
            cookie = (await browser.log_in(key_of("eve"))).headers["set-cookie"]
            assert cookie.endswith("; HttpOnly; SameSite=Strict" + ("; Secure" if gateway else ""))
            assert key_of("eve") not in cookie


async def test_what_a_role_may_not_do_is_disabled_with_the_reason_and_refused_all_the_same(tmp_path: Path) -> None:
    async with Server(tmp_path).serving() as server, looking(server, "gus") as browser:
        page = (await browser.get("fleets/shop")).page
        why = "<code>gus</code> is <code>auditor</code>, and <code>allow</code> is for <code>org_admin</code>"
        assert why in page
        assert '<fieldset class="fields" disabled>' in page
        told = await browser.post("allowances", ALLOW)
        assert told.status == 403
        assert why in told.page
        assert (await asked("GET", server.url, "/v1/fleets/shop", person="gus"))[1]["allowed"]["package"] == []


async def test_a_program_with_a_key_needs_no_cookie(tmp_path: Path) -> None:
    async with Server(tmp_path).serving() as server, stranger(server) as browser:
        headers = {"authorization": f"Bearer {key_of('rob')}"}
        assert (await browser.get("fleets", **headers)).status == 200
        assert (await browser.post("allowances", ALLOW, headers)).status == 303
        assert (await browser.post("allowances", ALLOW, {**headers, "origin": "http://evil.example"})).status == 403
        assert (await browser.post("allowances", ALLOW, OWN)).status == 303  # to the login: nobody is known
        events = (await asked("GET", server.url, "/v1/fleets/shop", person="gus"))[1]["allowed"]["package"]
        assert events == ["c" * 64]
