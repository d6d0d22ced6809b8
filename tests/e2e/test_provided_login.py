"""A real browser logs in over a provider on another site: cookies go along where they must, and nowhere else."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest
from playwright.async_api import async_playwright

from tests.controlled import Server
from tests.provider import CLIENT, SECRET, Provider

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's `chromium`")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


async def test_a_browser_comes_back_from_another_site_logged_in_and_stays_so(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    async with Provider().serving() as provider:
        provider.url = provider.url.replace("127.0.0.1", "localhost")  # another site than 127.0.0.1
        server, here = Server(tmp_path), f"127.0.0.1:{free_port()}"
        server.written["listen"] = here
        server.written["oidc"] = {
            "issuer": provider.url, "client_id": CLIENT, "client_secret": {"file": "secret"},
            "url": f"http://{here}", "roles": {"risk": "risk_officer"},
        }  # fmt: skip
        for person in server.written["people"].values():
            person["subject"] = "none"
        async with server.serving(), async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = await browser.new_page()
            faults: list[str] = []
            page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
            await page.goto(f"http://{here}/console/login")
            await page.get_by_role("link", name="your organisation's account").click()
            await page.get_by_role("heading", name="Overview").wait_for()
            assert "Jane Doe" in await page.content()
            kept = {cookie["name"]: cookie for cookie in await page.context.cookies()}
            assert [(each["httpOnly"], each["sameSite"]) for each in kept.values()] == [(True, "Strict")]
            await page.get_by_role("link", name="Rollouts").click()
            await page.get_by_role("heading", name="Rollouts").wait_for()
            await page.get_by_role("button", name="Log out").click()
            await page.get_by_role("heading", name="Log in").wait_for()
            assert not [fault for fault in faults if "Content Security Policy" in fault]
            await browser.close()
