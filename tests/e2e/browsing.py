"""Consoles in a real browser: Debian's `chromium`, with axe as the judge of accessibility."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

AXE = Path(__file__).parent / "sdks" / "node_modules" / "axe-core" / "axe.min.js"
WIDE, NARROW = 1280, 390


def chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name)) is not None), None)


needs_browser = pytest.mark.skipif(
    chromium() is None or not AXE.is_file(), reason="needs Debian's `chromium`, and axe of `make test` (.venv-sdks)"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"]) as opened,
    ):
        yield opened


class Seen:
    """A page, and what the browser had to say of it."""

    def __init__(self, browser: Browser, url: str, *refused: int) -> None:
        """Look at the console at `url`; `refused` are statuses that are no faults of its pages."""
        self.context = browser.new_context(viewport={"width": WIDE, "height": 900}, reduced_motion="reduce")
        self.page: Page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.url = url
        self._refused = refused

    def _heard(self, message: ConsoleMessage) -> None:
        expected = "404 (Not Found)" in message.text and message.location["url"].endswith("/nothing")
        expected = expected or any(f"status of {status} " in message.text for status in self._refused)
        if message.type in ("error", "warning") and not expected:
            self.faults.append(message.text)

    def log_in(self, label: str, secret: str, heading: str) -> Self:
        self.page.goto(self.url)
        self.page.get_by_label(label).fill(secret)
        self.page.get_by_role("button", name="Log in").click()
        expect(self.page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        return self

    def choose(self, theme: str) -> None:
        """Choose a theme by its button."""
        with self.page.expect_navigation():
            self.page.get_by_role("button", name=theme).click()
        expect(self.page.locator("html")).to_have_attribute("data-theme", theme.lower())

    def findings(self, *rules: str) -> list[str]:
        """Return what axe finds wrong, each with where; by some rules, or all."""
        self.page.evaluate(AXE.read_text("utf-8"))
        options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
        found: dict[str, Any] = self.page.evaluate("options => axe.run(document, options)", options)
        return [f"{each['id']}: {node['html'][:200]}" for each in found["violations"] for node in each["nodes"]]

    def require_order(self, paths: Sequence[str], settled: Callable[[str], None] = lambda _: None) -> None:
        """Have axe find nothing on pages, in both themes, at both widths; and no page be wider than a telephone.

        All rules are held at each width; the other theme differs in colours alone.
        """
        for theme in ("Dark", "Light"):
            self.page.goto(self.url)
            self.choose(theme)
            for path in paths:
                self.page.goto(self.url + path)
                settled(path)
                for width in (WIDE, NARROW):
                    self.page.set_viewport_size({"width": width, "height": 900})
                    rules = () if (theme, width) in (("Dark", WIDE), ("Light", NARROW)) else ("color-contrast",)
                    found = self.findings(*rules)
                    assert found == [], f"{path}, {theme}, {width}: {found}"
                    assert self.page.evaluate("document.documentElement.scrollWidth") <= width, (width, path)
        self.page.set_viewport_size({"width": WIDE, "height": 900})
