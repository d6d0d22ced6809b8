"""Policies on a page: their places in their files, their sources, and what a command of its own says of a text."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from blockbuster import blockbuster_ctx
from hypothesis import given
from hypothesis import strategies as st

from checkstream.console import explaining
from checkstream.console.explaining import Explainer, Explanation, read
from checkstream.console.facts import Places, Policies, Source
from checkstream.console.views.policies import places_of, policies_view, source_view
from tests.console_facts import HOSTILE, MadeUp, policies, rule, served

NAME = HOSTILE.encode("utf-8", "replace").decode()
OWN = {"sec-fetch-site": "same-origin"}
POLICY = """pack: {name: ours, version: 1.0.0}
policies:
  - name: contacts
    id: "R-1"
    stage: midstream
    entities: [EMAIL]
    actions: [{type: redact}]
  - {name: words, id: R-2, stage: [midstream], phrases: [zebra], actions: [{type: stop}], mode: shadow}
  - id: R-3   # of prompts
    name: prompts
    stage: ingress
    phrases: [quagga]
    actions: [{type: reject, message: no quagga}]
"""
PROGRAM = (sys.executable, "-m", "checkstream")


def test_rules_have_their_lines_as_people_write_them() -> None:
    found = places_of(POLICY)
    assert {name: found[name] for name in ("R-1", "R-2", "R-3", "contacts", "words", "prompts")} == {
        "R-1": 4, "R-2": 8, "R-3": 9, "contacts": 3, "words": 8, "prompts": 10,
    }  # fmt: skip


@given(st.text(max_size=300))
def test_no_file_is_too_strange_to_be_looked_at(text: str) -> None:
    places = places_of(text)
    assert all(1 <= line <= text.count("\n") + 1 for line in places.values())
    assert len(source_view(Source(name="f", text=text)).lines) <= text.count("\n") + 1


def test_a_rule_without_a_place_has_none_and_a_rule_is_looked_for_in_its_own_files() -> None:
    known = policies(rule(id="R-1", name="x"), rule(id="R-9", name="nobody"), files=("a.yaml", "b.yaml"), text=POLICY)
    other = msgspec.structs.replace(known.programs[0], files=("gone.yaml",))
    view = policies_view(Policies(programs=(*known.programs, other), sources=known.sources))
    first, second = view.programs
    assert [None if row.place is None else (row.place.source, row.place.line) for row in first.rows] == [(0, 4), None]
    assert [row.place for row in second.rows] == [None, None]


@asynccontextmanager
async def asked(
    folder: Path, facts: MadeUp, program: tuple[str, ...] = PROGRAM
) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    with blockbuster_ctx("checkstream"):
        async with served(facts, folder, program=program) as url, aiohttp.ClientSession() as session:
            yield session, f"{url}/console/policies"


def of_file(folder: Path, text: str = POLICY) -> MadeUp:
    file = folder / "ours.yaml"
    file.write_text(text, "utf-8")
    facts = MadeUp()
    facts.known = policies(files=(str(file),), text=text)
    return facts


async def explained(session: aiohttp.ClientSession, url: str, **form: str) -> str:
    given = {"program": "0", "stage": "midstream", "text": "mail joe@example.com"} | form
    async with session.post(f"{url}/explain", data=given, headers=OWN) as response:
        assert response.status == 200
        return await response.text()


async def test_a_text_is_explained_by_the_command_in_a_process_of_its_own(tmp_path: Path) -> None:
    facts = of_file(tmp_path)
    async with asked(tmp_path, facts) as (session, url):
        page = await explained(session, url, text="mail joe@example.com <b>\u202e a zebra")
        assert "mail [EMAIL] &lt;b&gt;\\u202e a zebra" in page
        assert [page.count(f"<bdi>{name}</bdi>") for name in ("R-1", "R-2", "R-3")] == [1, 1, 0]
        assert "1 other rules read no such text" in page
        facts.known = policies(files=(str(tmp_path / "ours.yaml"),), text="pack: {}\n")
        page = await explained(session, url, stage="ingress", text="a quagga")
        assert "changed since it came in force" in page
        assert "no quagga" in page


async def test_files_with_faults_are_told_with_their_places(tmp_path: Path) -> None:
    facts = of_file(tmp_path, POLICY.replace("entities: [EMAIL]", "entities: [EMALI]"))
    async with asked(tmp_path, facts) as (session, url):
        page = await explained(session, url)
    assert "can't be used as they are now" in page
    assert "EMALI" in page
    assert ":6:" in page


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"text": " "}, "there is no text"),
        ({"text": "x" * 20_001}, "at most 20,000 characters"),
        ({"stage": "<b>"}, "there is no stage `&lt;b&gt;`"),
        ({"program": "7"}, "not in force any more"),
        ({"program": "-1"}, "not in force any more"),
        ({"program": "x"}, "not in force any more"),
        ({}, "the command ended with 1 and said nothing"),
    ],
)
async def test_what_can_not_be_explained_says_why(tmp_path: Path, form: dict[str, str], said: str) -> None:
    async with asked(tmp_path, MadeUp(), program=("false",)) as (session, url):
        assert said in await explained(session, url, **form)


async def test_a_page_of_another_site_has_nothing_explained(tmp_path: Path) -> None:
    async with asked(tmp_path, MadeUp()) as (session, url):
        form = {"program": "0", "stage": "midstream", "text": "x"}
        async with session.post(f"{url}/explain", data=form, headers={"sec-fetch-site": "cross-site"}) as response:
            assert response.status == 403


def explainer(tmp_path: Path, *program: str) -> Explainer:
    places = Places(audit=tmp_path, key=None, runs=tmp_path, models=None, jobs=None, program=program)
    return Explainer(places)


async def test_one_text_is_looked_at_at_a_time_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explaining, "MOST_S", 0.3)
    asking = explainer(tmp_path, sys.executable, "-c", "import time; time.sleep(60)")
    first = asyncio.ensure_future(asking.explain((), "midstream", "x"))
    await asyncio.sleep(0.05)
    assert "another is being" in (await asking.explain((), "midstream", "x")).failure
    assert "not done within" in (await first).failure
    assert "not done within" in (await asking.explain((), "midstream", "x")).failure


async def test_it_runs_beneath_everything_else_and_ends_with_the_process(tmp_path: Path) -> None:
    code = (
        'import os, time; time.sleep(.3); print(\'{"faults": [{"file": "\' + str(os.nice(0)) + \'", "reason": "r"}]}\')'
    )
    said = await explainer(tmp_path, sys.executable, "-c", code).explain((), "midstream", "x")
    assert [fault.file for fault in said.faults] == ["19"]
    asking = explainer(tmp_path, sys.executable, "-c", "import time; time.sleep(60)")
    running = asyncio.ensure_future(asking.explain((), "midstream", "x"))
    await asyncio.sleep(0.1)
    await asking.close()
    assert (await asyncio.wait_for(running, 5)).failure


async def test_a_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    said = await explainer(tmp_path, str(tmp_path / "none")).explain((), "midstream", "x")
    assert "can't be started" in said.failure


@given(st.lists(st.one_of(st.binary(max_size=30), st.sampled_from([b'{"rule_id":1}', b'{"result":{}}', b"{}"]))))
def test_whatever_the_command_says_is_read_or_told(lines: list[bytes]) -> None:
    assert isinstance(read(b"\n".join(lines), b"\xff", 1), Explanation)


async def test_hostile_policies_stand_in_pages_as_text(tmp_path: Path) -> None:
    facts = MadeUp()
    one = rule(
        id=NAME, name=NAME, pack=NAME, stages=(NAME,), channels=(NAME,), mode=NAME, actions=(NAME,),
        triggers=(NAME,) * 9, conditions=(NAME,), severity=NAME, regulation=NAME,
        citation=f"javascript:{NAME}", description=NAME,
    )  # fmt: skip
    facts.known = policies(one, files=(NAME,), text=f"id: {NAME}\n{NAME}\n")
    async with asked(tmp_path, facts) as (session, url):
        for path in ("", "/source?file=0"):
            async with session.get(url + path) as response:
                assert response.status == 200
                page = await response.text()
            assert "&lt;script&gt;alert(1)" in page
            for never in ("<script>alert", "\u202e", "\x00", "<b>", 'href="javascript'):
                assert never not in page
        for query in ("1", "-1", "x", "", "99999999999", "%00"):
            async with session.get(f"{url}/source?file={query}") as response:
                assert response.status == 404


async def test_where_no_route_is_guarded_the_page_teaches(tmp_path: Path) -> None:
    facts: Any = MadeUp()
    facts.known = Policies(programs=(), sources=(), unguarded=("models",))
    async with asked(tmp_path, facts) as (session, url), session.get(url) as response:
        page = await response.text()
    assert "No route is guarded" in page
    assert "checkstream policy check builtin:default" in page
