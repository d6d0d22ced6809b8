"""The console of a control server, asked as a browser asks it: with a cookie, and with forms of its own pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import aiohttp

from tests.controlled import Server, asked, attestation, key_of

OWN = {"sec-fetch-site": "same-origin"}


class Told(NamedTuple):
    """What was answered."""

    status: int
    page: str
    headers: Mapping[str, str]


class Browser:
    """Somebody who looks."""

    def __init__(self, client: aiohttp.ClientSession, url: str) -> None:
        self._client = client
        self.url = f"{url}/console/"

    async def get(self, path: str = "", **headers: str) -> Told:
        return await self._asked("GET", path, None, headers)

    async def post(self, path: str, form: Mapping[str, str], headers: Mapping[str, str] = OWN) -> Told:
        return await self._asked("POST", path, form, headers)

    async def _asked(self, method: str, path: str, form: Mapping[str, str] | None, headers: Mapping[str, str]) -> Told:
        async with self._client.request(
            method, self.url + path, data=form, headers=headers, allow_redirects=False
        ) as response:
            return Told(response.status, await response.text(), response.headers)

    async def done(self, path: str, form: Mapping[str, str]) -> Told:
        """Send a form that has to be done, and return the page that shows it."""
        told = await self.post(path, form)
        assert told.status == 303, told.page
        return await self.get(told.headers["location"].removeprefix("/console/"))

    async def log_in(self, key: str) -> Told:
        return await self.post("login", {"token": key})


@asynccontextmanager
async def stranger(server: Server) -> AsyncIterator[Browser]:
    """Give a browser of somebody who has not logged in."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        yield Browser(client, server.url)


@asynccontextmanager
async def looking(server: Server, person: str) -> AsyncIterator[Browser]:
    """Give a browser of somebody who has logged in."""
    async with stranger(server) as browser:
        assert (await browser.log_in(key_of(person))).status == 303
        yield browser


async def attest(server: Server, node: str, sequence: int = 1, **said: object) -> int:
    """Have a node say something, and return the status."""
    body = attestation(sequence, **said)
    return (await asked("POST", server.url, "/v1/attestations", body, node=server.nodes[node]))[0]
