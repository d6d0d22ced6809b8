"""Policies in the console of a control server, in a real browser: written, checked, tried, proposed and approved."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.bundled import STOPS
from tests.controlled import Server, key_of
from tests.e2e.browsing import Seen, needs_browser
from tests.e2e.harness import Control
from tests.unit.cli.test_bundle_check import ANSWER, write

pytestmark = [needs_browser, pytest.mark.nightly]  # a dozen processes look at the draft, one after the other
PATIENCE_MS = 60_000
"""Of what a process of its own finds out, on a machine that does other things, too."""


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Control]:
    server = Server(tmp_path)
    write(tmp_path / "sources", STOPS.replace("No.", "We say nothing of that."))
    events = [
        {"type": "RequestReceived", "body": base64.b64encode(json.dumps({"model": "m", "stream": True, "messages": [
            {"role": "user", "content": "hi"}]}).encode()).decode()},
        {"type": "UpstreamOpened", "status": 200, "streaming": True},
        {"type": "UpstreamBytes", "data": base64.b64encode(ANSWER).decode()},
        {"type": "UpstreamClosed"},
    ]  # fmt: skip
    lines = ['{"surface": "openai.chat"}', *(json.dumps({"at": 0.1 * n, "event": e}) for n, e in enumerate(events))]
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings" / "a.jsonl").write_text("\n".join(lines))
    server.written["policies"] = {"sources": "sources", "recordings": "recordings"}
    process = Control(tmp_path, server.config_file())
    yield process
    process.kill()


def looking(browser: Browser, control: Control, person: str) -> Seen:
    seen = Seen(browser, f"{control.url}/console/").log_in("Key", key_of(person), "Overview")
    seen.page.set_default_timeout(PATIENCE_MS)
    return seen


def test_a_rule_is_changed_tried_and_approved_of_by_two_others(browser: Browser, control: Control) -> None:
    eve = looking(browser, control, "eve")
    page = eve.page
    page.goto(eve.url + "policies")
    page.get_by_label("What it is about").fill("Stricter")
    page.get_by_role("button", name="Begin a draft").click()
    page.get_by_role("link", name="ours/policy.yaml").click()
    editor, found = page.locator("#text"), page.locator("#found")
    expect(found).to_contain_text("1 case passes", timeout=PATIENCE_MS)
    was = editor.input_value()
    editor.fill(was.replace("type: stop", "type: stopp"))
    expect(found.locator("[data-line='3']")).to_contain_text("there is no action stopp", timeout=PATIENCE_MS)
    expect(page.locator(".editor .lines .marked")).to_have_text("3")
    expect(page.locator(".editor .wrong")).to_have_text("stopp")
    expect(editor).to_have_attribute("aria-invalid", "true")
    assert eve.findings() == []
    found.get_by_role("link", name="line 3").click()
    assert page.evaluate(
        "() => document.activeElement.value.slice(document.activeElement.selectionStart).startsWith('stopp')"
    )
    page.keyboard.press("Tab")  # it is no trap
    expect(page.get_by_label("What you have changed, for others")).to_be_focused()

    editor.fill(was.replace("type: stop", "type: redact").replace(", message: We say nothing of that.", ""))
    expect(found).to_contain_text("1 of 1 cases fails", timeout=PATIENCE_MS)
    editor.fill(was.replace("zero risk", "zero risk, no risk"))
    expect(found).to_contain_text("two have to approve", timeout=PATIENCE_MS)
    expect(page.locator(".editor .wrong")).to_have_count(0)
    page.get_by_role("button", name="Save").click()
    page.get_by_label("Text", exact=True).fill("There is no risk in it.")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#explained")).to_contain_text("phrase:no risk found", timeout=PATIENCE_MS)
    page.get_by_role("link", name="What if").click()
    expect(found).to_contain_text("0 of 1 recorded exchanges", timeout=PATIENCE_MS)
    page.get_by_label("Why, for those who approve").fill("asked for by legal")
    page.get_by_role("button", name="Propose").click()
    expect(page.get_by_role("status").first).to_contain_text("It is proposed", timeout=PATIENCE_MS)
    assert eve.faults == []
    eve.context.close()

    def settled(path: str) -> None:
        if path.startswith("policies/1") and "history" not in path:
            expect(other.page.locator("#found .tag, #found .card").first).to_be_visible(timeout=PATIENCE_MS)

    for person in ("rob", "rita"):
        other = looking(browser, control, person)
        other.page.goto(other.url + "policies/1?view=diff")
        settled("policies/1")
        other.page.get_by_role("button", name="Approve of").click()
        expect(other.page.get_by_text("You have approved of it.")).to_be_visible()
        assert other.faults == []
        if person == "rita":
            expect(other.page.get_by_text("It is approved. Now people sign it")).to_be_visible()
            views = (f"policies/1?view={view}" for view in ("edit", "diff", "what-if", "history"))
            other.require_order(["policies", *views], settled)
        other.context.close()
