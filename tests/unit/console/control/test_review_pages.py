"""Review and quality of the control server's console: words of people, what is taken home, and runs of the gate."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from checkstream.console.views.grades import grades
from checkstream.console.views.traffic import Asked
from checkstream.control.server.counted import Scope
from tests.console_control import Browser, looking
from tests.console_facts import HOSTILE
from tests.controlled import Server, asked
from tests.told import Teller, exchange

XSS = "<script>alert(1)</script>"
RUN: dict[str, Any] = {
    "run_id": "r1", "target": "model-1", "verifier": "reader", "config_hash": "c", "snapshot": "s", "begun": 1.7e9,
    "ended": 1.7e9 + 60, "decision": "warn", "reason": "", "risk": 0.25, "total_claims": 8, "supported": 5,
    "weakly_supported": 2, "unsupported": 1,
}  # fmt: skip


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(tmp_path).serving() as served:
        yield served


async def flagged(server: Server, browser: Browser, *streams: str) -> list[str]:
    """Have findings wait, and return their items."""
    await Teller(server).tell(*(exchange(stream) for stream in streams))
    for stream in streams:
        assert (await browser.post("flags", {"stream": stream, "rule": "PII-001"})).status == 303
    status, told = await asked("GET", server.url, "/v1/reviews", person="eve")
    assert status == 200
    return [item["id"] for item in told["items"]]


async def test_two_people_settle_a_finding_and_see_each_others_words_only_then(server: Server) -> None:
    async with looking(server, "eve") as eve, looking(server, "ana") as ana:
        (item,) = await flagged(server, eve, "s1")
        assert "<code>s1</code>" in (await ana.get("review")).page
        page = (await eve.done("labels", {"item": item, "word": "wrong", "note": "a sample, no person"})).page
        assert "Your word is kept." in page
        assert "Nothing waits for your word" in page
        page = (await ana.get("review")).page
        assert "a sample, no person" not in page
        page = (await ana.done("labels", {"item": item, "word": "wrong", "note": XSS})).page
        assert "Two people say the same now" in page
        assert "settled: wrong" in page
        assert "a sample, no person" in page
        assert XSS not in page
        assert "&lt;script&gt;" in page
        told = await ana.get("review/labels.jsonl")
        assert told.headers["content-disposition"] == 'attachment; filename="labels.jsonl"'
        (line,) = map(json.loads, told.page.splitlines())
        assert (line["stream"], line["rule"], line["wrong"], line["right"]) == ("s1", "PII-001", 2, 0)


async def test_of_what_is_settled_cases_and_rows_are_made_with_texts_of_ones_own(server: Server) -> None:
    async with looking(server, "eve") as eve, looking(server, "ana") as ana, looking(server, "gus") as gus:
        for item in await flagged(server, eve, "s1", "s2"):
            for browser in (eve, ana):
                await browser.done("labels", {"item": item, "word": "right"})
        texts = "\n".join(
            json.dumps({"stream": stream, "text": f"of {stream}: joe@x.example"}) for stream in ("s1", "s9")
        )
        told = await gus.post("exports", {"form": "cases", "texts": texts})
        assert (told.status, told.headers["content-disposition"]) == (200, 'attachment; filename="tests.yaml"')
        (case,) = yaml.safe_load(told.page)["cases"]
        assert (case["answer"], case["expect"]["rule_id"]) == ("of s1: joe@x.example", "PII-001")
        told = await gus.post("exports", {"form": "rows", "texts": texts})
        assert json.loads(told.page)["label"] == 1
        for form, says in (
            ({"form": "cases", "texts": '{"stream": "s9", "text": "x"}'}, "nothing can be made of it: 2 settled"),
            ({"form": "rows", "texts": "no json"}, "line 1 of the texts is not"),
            ({"form": "rows", "texts": '\n{"stream": 1, "text": "x"}'}, "line 2 of the texts is not"),
            ({"form": "both", "texts": "x"}, "Invalid enum value"),
            ({"form": "rows"}, "texts"),
        ):
            told = await gus.post("exports", form)
            assert (told.status, says in told.page) == (400, True), form
        page = (await gus.post("exports", {"form": "cases", "texts": '{"stream": "s9", "text": "x"}'})).page
        assert "&#34;stream&#34;: &#34;s9&#34;" in page


async def test_who_may_not_review_looks_and_is_refused(server: Server) -> None:
    async with looking(server, "eve") as eve, looking(server, "gus") as gus:
        (item,) = await flagged(server, eve, "s1")
        page = (await gus.get("review")).page
        assert '<fieldset class="fields" disabled>' in page
        assert "<code>gus</code> is <code>auditor</code>" in page
        assert (await gus.post("labels", {"item": item, "word": "wrong"})).status == 403
        assert (await gus.post("flags", {"stream": "s1", "rule": "PII-001"})).status == 403
        assert "Put it among the reviews" not in (await gus.get("exchanges/n1/cn1/1")).page
        assert "Put it among the reviews" in (await eve.get("exchanges/n1/cn1/1")).page
        told = await eve.post("flags", {"stream": "s1", "rule": "PII-001", "back": "n1/cn1/1"})
        assert told.headers["location"] == "/console/exchanges/n1/cn1/1?done=flagged"


WRONG_FORMS: tuple[tuple[str, dict[str, str], int], ...] = (
    ("labels", {"item": "none", "word": "right"}, 404),
    ("labels", {"item": "none", "word": "maybe"}, 400),
    ("labels", {"word": "right"}, 400),
    ("labels", {"item": "x" * 300, "word": "right"}, 400),
    ("labels", {"item": "x", "word": "right", "note": "n" * 501}, 400),
    ("labels", {"item": XSS, "word": "right"}, 404),
    ("labels", {"item": "none", "word": "right", "other": "1"}, 400),
    ("flags", {"stream": "nobody", "rule": "PII-001"}, 404),
    ("flags", {"stream": "", "rule": "x"}, 400),
    ("flags", {"stream": "x", "rule": "y", "back": "x?\r\nset-cookie: a"}, 400),
)


async def test_forms_that_are_none_are_refused_with_words(server: Server) -> None:
    async with looking(server, "eve") as eve:
        for path, form, status in WRONG_FORMS:
            told = await eve.post(path, form)
            assert told.status == status, form
            assert XSS not in told.page


async def test_a_run_of_the_gate_is_told_by_those_who_may_and_shown_by_fleet_and_model(server: Server) -> None:
    async with looking(server, "gus") as gus:
        assert "control tell reports/report.json --fleet shop" in (await gus.get("quality")).page
        for person, status in (("gus", 403), ("ana", 403), ("eve", 200), ("rob", 200), ("ada", 200)):
            told = await asked("POST", server.url, "/v1/gate-runs", {"fleet": "shop", "run": RUN}, person=person)
            assert told[0] == status, told
        hostile = HOSTILE.replace("\ud800", "")[:150]
        other = {**RUN, "run_id": "r2", "target": hostile, "decision": "block", "begun": 1.8e9, "reason": XSS}
        assert (await asked("POST", server.url, "/v1/gate-runs", {"run": other}, person="eve"))[0] == 200
        page = (await gus.get("quality")).page
        assert page.count("<code>r1</code>") == 1
        assert XSS not in page
        assert "model-1" in (await gus.get("quality?target=model-1")).page
        assert "r2" not in (await gus.get("quality?fleet=shop")).page
        assert "like that" in (await gus.get("quality?target=%00&fleet=none")).page
        listed = (await asked("GET", server.url, "/v1/gate-runs?fleet=shop", person="gus"))[1]["runs"]
        assert [(each["run"]["run_id"], each["who"]) for each in listed] == [("r1", "eve")]


WRONG_RUNS: tuple[dict[str, Any], ...] = (
    {"risk": 2}, {"risk": "high"}, {"decision": "maybe"}, {"run_id": ""}, {"target": "t" * 201}, {"total_claims": -1},
    {"begun": 1e30}, {"more": 1}, {"reason": "r" * 501},
)  # fmt: skip


async def test_a_run_that_is_none_is_refused(server: Server) -> None:
    for change in WRONG_RUNS:
        told = await asked("POST", server.url, "/v1/gate-runs", {"run": {**RUN, **change}}, person="eve")
        assert told[0] == 400, told
    assert (await asked("POST", server.url, "/v1/gate-runs", {"fleet": "none", "run": RUN}, person="eve"))[0] == 404


async def test_quality_shows_what_grounding_said_of_answers(server: Server) -> None:
    await Teller(server).tell(
        exchange("s1", risks={"watchdog": 80.0}), exchange("s2", risks={"watchdog": 20.0, XSS: 1.0}), exchange("s3")
    )
    async with looking(server, "gus") as gus:
        page = (await gus.get("quality")).page
        assert '<bdi>watchdog</bdi></th><td class="n">2</td><td class="n">50.0</td>' in page
        assert '<span class="tag bad">1</span>' in page
        assert XSS not in page
        assert "No answer of this time" in (await gus.get("quality?node=n2")).page


def test_mean_risk_is_drawn_where_answers_were_judged() -> None:
    scope = Scope(since=0, until=180, step=60)
    one = {"scored:w": 2, "risk:w": 30_000, "high:w": 0}
    view = grades(
        Asked(), "", scope, {0: one, 60: {"exchanges": 4}, 120: {"scored:w": 1, "risk:w": 90_000, "high:w": 1}}, []
    )
    assert view.risk is not None
    assert (view.risk.at, view.risk.lines[0].values) == ((3600.0, 10_800.0), (15.0, 90.0))
    (profile,) = view.profiles
    assert (profile.count, profile.mean, profile.high) == (3, 40.0, 1)
    assert grades(Asked(), "", scope, {0: one}, []).risk is None
