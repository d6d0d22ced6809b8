"""The console in a real browser, before two workers: what operators see, that nothing is out of order, and the proof.

The browser is Debian's `chromium`, the judge of accessibility is axe. Every page is looked at in both themes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, expect

from checkstream.audit.chain import canonical
from checkstream.gate.ledger import Ledger
from checkstream.gate.terms import Run
from tests.e2e.browsing import Seen, needs_browser
from tests.e2e.harness import Llm, Proxy, config, http, running, until

TOKEN = "a-token-of-the-operator"
POLICY = """
pack: {name: seen, version: 1.0.0}
policies:
  - name: mail
    id: PII-001
    stage: [midstream]
    entities: [EMAIL]
    actions: [{type: redact}]
    metadata: {regulation: GDPR Art. 5, severity: high}
  - {name: zebras, id: ZOO-001, stage: [ingress], phrases: [zebra], actions: [{type: reject, message: no zebras}]}
"""
MAIL = {"choices": [{"content": "write to joe@example.com and then to ann@example.com, please"}]}
CHAT = "/v1/chat/completions"
PAGES = ("", "live", "exchanges", "policies", "policies/source?file=0", "quality", "nothing")


pytestmark = needs_browser


@pytest.fixture(scope="module")
def proxy(llm: Llm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("console")
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "token").write_text(TOKEN)
    llm.put("mail", MAIL)
    ledger = Ledger(folder / "var" / "gate.db")
    for number, decision in enumerate(("deploy", "block")):
        run = Run(run_id=f"r{number}", config_hash="c", target="m", verifier="v", snapshot="s", begun=number * 1e6)
        ledger.begin(run)
        ledger.end(msgspec.structs.replace(run, ended=number * 1e6 + 1, decision=decision, risk=number / 4), None)
    settings = config(llm.url, folder, ["policy.yaml"])
    settings["server"] |= {"workers": 2, "admin_token": {"file": str(folder / "token")}}
    with running(Proxy(settings, folder)) as server:
        for _ in range(4):
            ask(server)
        ask(server, "I saw a zebra")
        yield server


def ask(proxy: Proxy, text: str = "hello") -> str:
    """Ask on a connection of its own, and return the id of the stream."""
    body = {"model": "mail", "messages": [{"role": "user", "content": text}]}
    return http("POST", proxy.url + CHAT, body, headers={"connection": "close"})[1]["x-checkstream-stream"]


def looking(browser: Browser, proxy: Proxy) -> Seen:
    return Seen(browser, f"{proxy.admin_url}/console/").log_in("Token", TOKEN, "Overview")


@pytest.fixture
def seen(browser: Browser, proxy: Proxy) -> Iterator[Seen]:
    one = looking(browser, proxy)
    yield one
    one.context.close()
    assert one.faults == []


def test_every_page_is_in_order_in_both_themes_and_fits_a_telephone(seen: Seen, browser: Browser, proxy: Proxy) -> None:
    record = proxy.records()[-1]

    def settled(path: str) -> None:
        if path.startswith("exchanges/"):
            expect(seen.page.locator("#proof")).not_to_have_attribute("data-state", "wait")
        if path == "quality":
            expect(seen.page.locator("canvas")).to_have_count(1)

    seen.require_order((*PAGES, f"exchanges/{record['chain']}/{record['seq']}"), settled)
    out = Seen(browser, seen.url)
    out.page.goto(out.url)
    assert out.findings() == []
    out.context.close()


def test_the_overview_counts_what_all_workers_did_and_keyboards_reach_everything(seen: Seen) -> None:
    page = seen.page

    def counted() -> bool:
        page.goto(seen.url)
        return int(page.locator("dt:text-is('Kept back in prompts') + dd").inner_text()) >= 1

    until(counted, what="the sums of both workers", timeout_s=20)
    assert int(page.locator("dt:text-is('Requests') + dd").inner_text()) >= 5
    expect(page.get_by_role("row", name="PII-001 redact")).to_be_visible()
    expect(page.get_by_text("2 workers").first).to_be_visible()
    page.evaluate("document.getElementById('now').dataset.old = 'yes'")
    page.evaluate("document.body.dispatchEvent(new Event('console:refresh'))")  # as the beat does
    expect(page.locator("#now:not([data-old])")).to_be_visible()
    page.goto(seen.url)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.get_by_role("link", name="PII-001").click()
    expect(page.get_by_role("heading", name="Exchanges", level=1)).to_be_visible()
    assert page.locator("tbody tr").count() >= 4
    page.get_by_label("Rule").fill("ZOO-001")
    page.get_by_role("button", name="Find").click()
    page.wait_for_url("**rule=ZOO-001**")
    # other tests have asked such, too
    until(lambda: 1 <= page.locator("tbody tr").count() < 4, what="the exchanges of one rule", timeout_s=10)


def test_exchanges_come_as_they_end_and_wait_while_paused(seen: Seen, proxy: Proxy) -> None:
    page = seen.page
    page.goto(seen.url + "live?rule=PII-001")
    expect(page.locator("#state")).to_have_text("live")
    first = ask(proxy)
    expect(page.get_by_role("link", name=first)).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    refused, second = ask(proxy, "a zebra"), ask(proxy)
    expect(page.locator("#said")).to_contain_text("1 have come meanwhile")
    assert page.get_by_role("link", name=second).count() == 0
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("link", name=second)).to_be_visible()
    assert page.get_by_role("link", name=refused).count() == 0


def test_a_pasted_text_is_explained(seen: Seen) -> None:
    page = seen.page
    page.goto(seen.url + "policies")
    page.get_by_label("Text", exact=True).fill("to joe@example.com <img src=x onerror=alert(1)>")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#explained pre")).to_have_text("to [EMAIL] <img src=x onerror=alert(1)>", timeout=30_000)
    expect(page.get_by_role("row", name="PII-001 fired")).to_be_visible()


def _made_up(dice: random.Random, depth: int = 0) -> Any:
    kinds = ("text", "number", "other") if depth > 3 else ("text", "number", "other", "list", "map", "map")
    match dice.choice(kinds):
        case "text":
            return "".join(chr(dice.choice((9, 34, 92, 31, 127, 233, 0x2028, 0xFFFD, 0x1F600, 97))) for _ in range(6))
        case "number":
            return dice.choice((0, -1, 2**53 - 1, -(2**53) + 1, dice.randrange(10**9)))
        case "list":
            return [_made_up(dice, depth + 1) for _ in range(dice.randrange(4))]
        case "map":
            names = [str(_made_up(dice, 9)) for _ in range(5)] + ["\uffff", "\U00010000", "__proto__", "10", "9"]
            return {name: _made_up(dice, depth + 1) for name in dice.sample(names, 6)}
    return dice.choice((None, True, False))


def test_g26_a_browser_proves_a_record_and_says_when_it_was_changed(seen: Seen, proxy: Proxy) -> None:
    page, chosen = seen.page, ask(proxy)
    record = proxy.record(chosen)
    place = page.locator("#proof")

    def look() -> str:
        page.goto(f"{seen.url}exchanges/{record['chain']}/{record['seq']}")
        expect(place).not_to_have_attribute("data-state", "wait")
        return place.get_attribute("data-state") or ""

    until(lambda: look() == "good", what="a signed head behind the record")
    expect(place).to_contain_text("It is what was written")
    dice = random.Random(7)
    values = [_made_up(dice) for _ in range(300)]
    spelled = page.evaluate("texts => texts.map((each) => canonical(JSON.parse(each)))", list(map(json.dumps, values)))
    assert spelled == [canonical(value).decode() for value in values]

    log = proxy.audit_dir / f"{record['chain']}-000001.jsonl"
    kept = log.read_bytes()
    mark = f'"stream":"{chosen}"'.encode()
    line = next(each for each in kept.splitlines() if mark in each)
    for other in (
        line.replace(b'"action":"redact"', b'"action":"rebate"'),  # as long, and still a record
        line.replace(b'"outcome":"complete"', b'"outcome": "omplete"'),  # no record any more
        line.replace(json.dumps(record["prev"]).encode(), b'"' + b"0" * 64 + b'"'),
    ):
        assert other != line
        with log.open("r+b") as file:  # in its place: the process goes on writing behind it
            file.seek(kept.index(line))
            file.write(other)
        assert look() == "bad"
        expect(page.get_by_role("alert").first).to_contain_text("was changed after it was written")
        assert seen.findings() == []
    with log.open("r+b") as file:
        file.seek(kept.index(line))
        file.write(line)
    assert look() == "good"


def test_who_logs_out_is_out(browser: Browser, proxy: Proxy) -> None:
    one = looking(browser, proxy)
    one.page.get_by_role("button", name="Log out").click()
    expect(one.page.get_by_label("Token")).to_be_visible()
    one.page.goto(one.url + "exchanges")
    expect(one.page.get_by_label("Token")).to_be_visible()
    one.page.get_by_label("Token").fill("wrong")
    one.page.get_by_role("button", name="Log in").click()
    expect(one.page.get_by_role("alert")).to_have_text("That is not the token of this listener.")
    one.context.close()
