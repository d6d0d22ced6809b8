"""What nodes tell, in a real browser over the control server: overview, live, proofs, review and quality.

The server is a process of its own; nodes are what they say, signed with their keys.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from checkstream.audit.entries import AnyEntry
from checkstream.control.telemetry.privacy import Privacy
from tests.controlled import Server, key_of
from tests.e2e.browsing import Seen, needs_browser
from tests.e2e.harness import Control, http
from tests.records import start
from tests.told import DELIVER, Teller, exchange

pytestmark = needs_browser
RUN = {
    "target": "model-1", "verifier": "reader", "config_hash": "c", "snapshot": "s", "ended": 1.79e9, "reason": "",
    "total_claims": 8, "supported": 5, "weakly_supported": 2, "unsupported": 1,
}  # fmt: skip
PAGES = (
    "", "?span=week", "live", "exchanges", "exchanges?stream=nothing", "exchanges/n1/cn1/2", "exchanges/n2/cn2/1",
    "review", "quality",
)  # fmt: skip


class Site:
    """A control server whose two nodes tell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = Server(folder)
        self.control = Control(folder, self.server.config_file())
        self.tellers = {name: Teller(self.server, name) for name in self.server.nodes}

    def tell(self, node: str, entries: Sequence[AnyEntry], privacy: Privacy | None = None) -> None:
        teller = self.tellers[node]
        content = teller.packed(teller.next(entries, privacy)[1])
        headers = self.server.nodes[node].headers("POST", DELIVER, content)
        status, _, answer = http("POST", self.control.url + DELIVER, content, headers=headers)
        assert status == 200, answer

    def ask(self, path: str, person: str, body: object) -> None:
        headers = {"authorization": f"Bearer {key_of(person)}"}
        status, _, answer = http("POST", f"{self.control.url}/v1/{path}", body, headers=headers)
        assert status == 200, answer

    def item(self, person: str) -> str:
        headers = {"authorization": f"Bearer {key_of(person)}"}
        found = json.loads(http("GET", f"{self.control.url}/v1/reviews", headers=headers)[2])["items"]
        return str(found[0]["id"])

    def seen_by(self, browser: Browser, person: str) -> Seen:
        return Seen(browser, f"{self.control.url}/console/").log_in("Key", key_of(person), "Overview")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("told"))
    try:
        judged: dict[str, Any] = {"risks": {"watchdog": 80.0}, "checked_ms": 9.0}
        made.tell("n1", [start(), *(exchange(f"b{at}c1", **judged) for at in range(4))])
        made.tell("n2", [exchange(f"x{at}", route="bulk") for at in range(3)], Privacy(usual="aggregate"))
        for at in range(2):
            run = {
                **RUN,
                "run_id": f"r{at}",
                "begun": 1.79e9 + at * 1e5,
                "decision": ("deploy", "block")[at],
                "risk": at / 4,
            }
            made.ask("gate-runs", "eve", {"fleet": "shop", "run": run})
        made.ask("reviews/flags", "eve", {"stream": "b0c1", "rule": "PII-001"})
        yield made
    finally:
        made.control.kill()


def test_exchanges_come_live_are_found_reviewed_and_proved(site: Site, browser: Browser) -> None:
    eve, ana = site.seen_by(browser, "eve"), site.seen_by(browser, "ana")
    page = eve.page
    expect(page.get_by_role("link", name="PII-001")).to_be_visible()
    page.get_by_role("link", name="Live").click()
    expect(page.locator("#state")).to_have_text("live")
    page.wait_for_timeout(600)  # until the first look has begun
    site.tell("n1", [exchange("fresh1", rules=("R-9",), action="stop", outcome="stopped")])
    row = page.get_by_role("row").filter(has_text="fresh1")
    expect(row).to_contain_text("n1")
    page.get_by_role("button", name="Pause").click()
    site.tell("n1", [exchange("fresh2")])
    expect(page.locator("#said")).to_contain_text("1 have come meanwhile")
    expect(page.get_by_text("fresh2")).to_have_count(0)
    row.get_by_role("link").click()
    expect(page.locator("#proof")).to_have_attribute("data-state", "good")
    expect(page.locator("#proof")).to_contain_text("has signed that head")
    page.get_by_role("button", name="Put it among the reviews").click()
    expect(page.get_by_role("status").first).to_contain_text("for two people to say")

    page.goto(eve.url + "exchanges/n2/cn2/2")
    expect(page.locator("#proof")).to_have_attribute("data-state", "good")
    expect(page.locator("#proof")).to_contain_text("what it says has stayed on its node")

    ana.page.goto(ana.url + "review?rule=R-9")
    ana.page.get_by_label("Why, if you like").fill("it was a <b>joke</b>")
    ana.page.get_by_role("button", name="wrong: R-9").click()
    expect(ana.page.get_by_role("status").first).to_contain_text("Your word is kept")
    page.goto(eve.url + "review?rule=R-9")
    expect(page.get_by_text("joke")).to_have_count(0)
    page.get_by_role("button", name="wrong: R-9").click()
    expect(page.get_by_text("it was a <b>joke</b>")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_label("Texts, one object a line").fill('{"stream": "fresh1", "text": "nine lives"}')
        page.get_by_role("button", name="Cases for").click()
    assert "nine lives" in download.value.path().read_text("utf-8")

    for one in (eve, ana):
        assert one.faults == []
        one.context.close()


def test_a_record_that_somebody_has_changed_in_the_store_turns_red(site: Site, browser: Browser) -> None:
    site.tell("n1", [exchange("t1"), exchange("t2"), exchange("t3")])
    last = site.tellers["n1"].sealed[-1].seq
    eve = site.seen_by(browser, "eve")
    place = f"exchanges/n1/cn1/{last - 2}"
    eve.page.goto(eve.url + place)
    expect(eve.page.locator("#proof")).to_have_attribute("data-state", "good")
    for column, old, new in (("digest", last - 1, "0" * 64), ("content", last - 2, None)):
        with sqlite3.connect(site.folder / "var" / "control.db") as database:
            change = "replace(content, '\"t1\"', '\"t9\"')" if new is None else f"'{new}'"
            database.execute(f"update records set {column} = {change} where node = 'n1' and seq = ?", (old,))
        database.close()
        eve.page.goto(eve.url + place)
        expect(eve.page.locator("#proof")).to_have_attribute("data-state", "bad")
        expect(eve.page.locator("body")).to_have_class("broken")
    expect(eve.page.get_by_role("alert")).to_contain_text("This record was changed after it was written")
    assert eve.faults == []
    eve.context.close()


def test_every_page_of_what_is_told_is_in_order(site: Site, browser: Browser) -> None:
    item = site.item("rob")
    for person in ("rob", "rita"):
        site.ask("reviews/labels", person, {"item": item, "word": "right", "note": "yes"})
    rob = site.seen_by(browser, "rob")

    def settled(path: str) -> None:
        if path.startswith("exchanges/"):
            expect(rob.page.locator("#proof")).not_to_have_attribute("data-state", "wait")
        if path == "quality":
            expect(rob.page.locator("canvas")).to_have_count(1)

    rob.require_order(PAGES, settled)
    assert rob.faults == []
    rob.context.close()
