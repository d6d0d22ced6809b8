"""The console of a control server in a real browser: people who ask, approve and silence, and a rollback that they see.

The server is a process of its own; the nodes are what they say, signed with their keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, expect

from tests.controlled import Server, attestation, key_of
from tests.e2e.browsing import Seen, needs_browser
from tests.e2e.harness import Control, http, until

pytestmark = needs_browser
ONE, TWO = "1" * 64, "2" * 64
OFFERED = [{"digest": TWO, "version": "2026.11.2"}, {"digest": ONE, "version": "2026.11.1"}]
PATHS = ("fleets", "fleets/shop", "rollouts/shop", "alerts", "acts", "events", "nothing")


class Site:
    """A control server, and two nodes of which one is the canary."""

    def __init__(self, folder: Path) -> None:
        rings = [{"name": "canary", "nodes": ["n1"], "soak_s": 3600}, {"name": "all", "percent": 100}]
        self.server = Server(folder, rings=rings, health={"exchanges": 20}, stale_s=3600)
        (folder / "secret").write_text("whsec_" + "a" * 32)
        hook = {"url": "http://127.0.0.1:9/hook", "secret": {"file": str(folder / "secret")}}  # where nobody listens
        self.server.written["alerts"] = {"every_s": 5, "to": {"on-call": {"webhook": hook}}}
        self.control = Control(folder, self.server.config_file())
        self.sequence = 0
        self.exchanges = dict.fromkeys(self.server.nodes, (0, 0))

    def says(self, name: str, bundle: str, *, exchanges: int = 0, stops: int = 0, **more: Any) -> int:
        """Have a node attest that it has a bundle, and that it has counted some more; return the status."""
        self.sequence += 1
        before = self.exchanges[name]
        self.exchanges[name] = count = (before[0] + exchanges, before[1] + stops)
        figures = {"run": bundle[:1] or "0", "age_s": 1, "exchanges": count[0], "stops": count[1]}
        said = {"bundle": bundle, "bundle_version": f"2026.11.{bundle[:1]}", "offered": OFFERED, "figures": figures}
        body = msgspec.json.encode(attestation(self.sequence, **said, models={"pii": "e" * 64}, **more))
        headers = self.server.nodes[name].headers("POST", "/v1/attestations", body)
        return http("POST", f"{self.control.url}/v1/attestations", body, headers=headers)[0]

    def ask(self, method: str, path: str, person: str, body: object = None) -> Any:
        headers = {"authorization": f"Bearer {key_of(person)}"}
        status, _, answer = http(method, f"{self.control.url}/v1/{path}", body, headers=headers)
        assert status == 200, answer
        return json.loads(answer)

    def furnish(self) -> None:
        """Have something of everything: what is wrong, what is silent, what did not arrive, what goes round and did."""
        for name in self.server.nodes:
            assert self.says(name, ONE) == 200
        assert self.says("n2", ONE, package="d" * 64) == 403
        allowed = {"fleet": "shop", "kind": "package", "value": "f" * 64, "reason": "a build to come"}
        self.ask("POST", "allowances", "rob", allowed)
        self.ask("POST", "silences", "eve", {"pattern": "score_*", "seconds": 3600, "reason": "new models"})
        newest = self.ask("GET", "fleets/shop", "gus")["rollout"]
        if newest is None:
            newest = self.ask("POST", "rollouts", "rita", {"fleet": "shop", "version": TWO})
        if newest["stage"] != "rolled_back":
            self.ask("POST", "rollbacks", "eve", {"rollout": newest["id"]})
        begun = self.ask("POST", "rollouts", "rita", {"fleet": "shop", "version": TWO, "reason": "once more"})
        self.ask("POST", "approvals", "rob", {"rollout": begun["id"]})

        def stands() -> bool:
            alerts = self.ask("GET", "alerts", "gus")
            return bool(alerts["troubles"] and alerts["waiting"])

        until(lambda: stands() or None, what="an alert that does not arrive", timeout_s=40)

    def seen_by(self, browser: Browser, person: str) -> Seen:
        return Seen(browser, f"{self.control.url}/console/", 403).log_in("Key", key_of(person), "Overview")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    try:
        yield made
    finally:
        made.control.kill()


def test_people_roll_out_a_bundle_see_it_come_back_and_silence_what_is_wrong(site: Site, browser: Browser) -> None:
    for name in site.server.nodes:
        assert site.says(name, ONE, exchanges=30) == 200
    with ExitStack() as stack:
        eve, rob = (site.seen_by(browser, person) for person in ("eve", "rob"))
        stack.callback(eve.context.close)
        stack.callback(rob.context.close)

        eve.page.get_by_role("link", name="Rollouts").click()
        expect(eve.page.get_by_text("Nothing has been rolled out yet")).to_be_visible()
        eve.page.get_by_label("Why").fill("stricter <b>rules</b>")
        eve.page.get_by_role("button", name="Ask for it").click()
        expect(eve.page.get_by_role("status").first).to_contain_text("Nothing changes before another person")
        expect(eve.page.get_by_role("button", name="Approve")).to_be_disabled()
        expect(eve.page.get_by_text("stricter <b>rules</b>")).to_be_visible()

        rob.page.goto(rob.url + "rollouts/shop")
        rob.page.get_by_label("Why approve").fill("read it")
        rob.page.get_by_role("button", name="Approve").click()
        expect(rob.page.get_by_text("It is approved, and has begun.")).to_be_visible()

        # what comes from here on comes by itself, and takes nothing that is being written
        expect(eve.page.get_by_text("gets it now")).to_be_visible(timeout=15_000)
        assert site.says("n1", TWO, exchanges=5) == 200
        expect(eve.page.get_by_role("row", name="canary")).to_contain_text("1 1", use_inner_text=True, timeout=15_000)
        eve.page.get_by_label("Why promote").fill("half a sentence")
        for _ in range(2):
            assert site.says("n1", TWO, exchanges=40, stops=40) == 200
        expect(rob.page.get_by_text("goes back")).to_be_visible(timeout=15_000)
        expect(rob.page.get_by_text("stops: ", exact=False).first).to_contain_text("under the bundle before 0 of")
        expect(rob.page.get_by_role("row", name="answers stopped")).to_contain_text("too much")
        assert eve.page.get_by_label("Why promote").input_value() == "half a sentence"
        eve.page.get_by_role("button", name="Promote").click()
        expect(eve.page.get_by_role("alert")).to_contain_text("only one that runs can be promoted")

        assert site.says("n2", ONE, package="d" * 64) == 403
        rob.page.get_by_role("link", name="Alerts").click()
        refused = rob.page.get_by_role("row", name="a node is not let in")
        until(lambda: (rob.page.reload() and refused.count()) or None, what="the alert", timeout_s=30)
        refused.get_by_role("link", name="Silence").click()
        expect(rob.page.get_by_label("Those with this key")).to_have_value("node_refused:shop/n2")
        rob.page.get_by_label("Why", exact=True).fill("it is built anew")
        rob.page.get_by_role("button", name="Silence them").click()
        expect(refused).to_contain_text("silenced")
        rob.page.get_by_role("link", name="Acts").click()
        expect(rob.page.locator("tbody tr").first).to_contain_text("muted alerts")
        expect(rob.page.get_by_role("row", name="approved of a rollout")).to_contain_text("read it")
        for one in (eve, rob):
            assert [each for each in one.faults if "409" not in each] == []

        rob.page.get_by_role("link", name="Alerts").click()
        old = rob.page.get_by_text("nothing newer could be had")
        expect(old).to_be_hidden()
        site.control.kill()
        rob.page.evaluate("document.body.dispatchEvent(new Event('console:refresh'))")  # as the beat does
        expect(old).to_be_visible()
        expect(refused).to_contain_text("silenced")


def test_every_page_is_in_order_for_those_who_may_and_those_who_may_not(site: Site, browser: Browser) -> None:
    site.furnish()
    for person, paths in (("rob", PATHS), ("gus", ("rollouts/shop",))):
        one = site.seen_by(browser, person)
        one.require_order(paths)
        assert one.faults == []
        one.context.close()
    out = Seen(browser, f"{site.control.url}/console/")
    out.page.goto(out.url)
    assert out.findings() == []
    out.context.close()
