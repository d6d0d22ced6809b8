"""Drafts in the console: what pages show, what forms do, and what is hostile, against a real control server."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from checkstream.console.assets import Assets
from checkstream.console.pages import Frame, Pages
from checkstream.console.sessions import Person
from checkstream.console.views.drafts import draft_view, found_view
from checkstream.control.bundles.difference import Difference
from checkstream.control.drafts.draft import Approval
from checkstream.control.drafts.found import Found, ProgramFound
from checkstream.control.server.draft_showing import DraftShown, DraftWhole, FileShown
from checkstream.errors import Fault
from tests.bundled import STOPS
from tests.console_control import Browser, looking
from tests.controlled import Server
from tests.unit.cli.test_bundle_check import write

EVIL = "<img src=x onerror=alert(1)>"
NEXT = "</textarea><script>alert(1)</script>"


def whole(**draft: Any) -> DraftWhole:
    given = {
        "id": 3, "title": "t", "stage": "open", "author": "eve", "authors": ("eve",), "version": 2, "digest": "d",
        "base": "b", "needs": 0, "approvals": (), "why": "", "made_ms": 1, "changed_ms": 2,
    }  # fmt: skip
    files = (
        FileShown(path="a.md", digest="1"), FileShown(path="bundle.yaml", digest="2"),
        FileShown(path="x.yaml", digest="3", change="changed"),
        FileShown(path="y.yaml", digest="4", change="removed", editable=False),
    )  # fmt: skip
    return DraftWhole(draft=DraftShown(**{**given, **draft}), files=files, versions=(), moved_on=False)


MAY = [
    ("open", "eve", "engineer", {"propose": True, "withdraw": True}),
    ("open", "eli", "engineer", {"propose": True, "withdraw": False}),
    ("open", "gus", "auditor", {"propose": False, "withdraw": False}),
    ("proposed", "eve", "risk_officer", {"approve": False, "refuse": True, "withdraw": True}),
    ("proposed", "rob", "risk_officer", {"approve": True, "refuse": True, "withdraw": False}),
    ("proposed", "rita", "risk_officer", {"approve": False, "refuse": True, "withdraw": False}),
    ("proposed", "ada", "org_admin", {"approve": True, "refuse": True, "withdraw": True}),
    ("proposed", "ana", "analyst", {"approve": False, "refuse": False, "withdraw": False}),
    ("approved", "rob", "risk_officer", {"refuse": True, "withdraw": False}),
    ("refused", "eve", "engineer", {"withdraw": True}),
    ("withdrawn", "ada", "org_admin", {}),
    ("exported", "ada", "org_admin", {}),
]


@pytest.mark.parametrize(("stage", "name", "role", "may"), MAY)
def test_what_may_become_of_a_draft_is_shown_with_why_not(
    stage: str, name: str, role: Any, may: dict[str, bool]
) -> None:
    approvals = (Approval(who="rita", role="risk_officer", digest="d", at_ms=1),)
    view = draft_view(whole(stage=stage, approvals=approvals), Person(name, role), "")
    assert {move: not choice.why_not for move, choice in view.choices.items()} == may
    editable = role in {"engineer", "risk_officer", "org_admin"} and stage not in {"withdrawn", "exported"}
    assert (not view.why_not_edit) == editable


def test_the_first_changed_file_is_looked_at_unless_another_is_named() -> None:
    def chosen(path: str) -> str | None:
        file = draft_view(whole(), None, path).chosen
        return None if file is None else file.path

    assert (chosen(""), chosen("a.md"), chosen("none")) == ("x.yaml", "a.md", None)
    view = draft_view(whole(), None, "")
    assert [file.path for file in view.changed] == ["x.yaml", "y.yaml"]
    assert all(choice.why_not == "log in first" for choice in view.choices.values())


def test_faults_of_the_file_stand_apart_and_a_file_that_nothing_names_is_told() -> None:
    program = ProgramFound(name="b/p", policies=("ours/policy.yaml",), hash="", rules=1, enforced=1, cases=4)
    faults = tuple(Fault(file=file, line=line, reason="r") for file, line in (("b", 1), ("a", 9), ("a", 2)))
    view = found_view(Found(faults=faults, programs=(program,)), "a")
    assert ([fault.line for fault in view.here], [fault.file for fault in view.elsewhere]) == ([2, 9], ["b"])
    sound = Found(programs=(program,))
    paths = (
        "ours/policy.yaml",
        "ours/tests.yaml",
        "ours/list.yaml",
        "other/policy.yaml",
        "x.yaml",
        "bundle.yaml",
        "a.md",
    )
    assert [path for path in paths if found_view(sound, path).unnamed] == ["other/policy.yaml", "x.yaml"]


@pytest.mark.parametrize("page", ["control/found", "control/differing"])
def test_of_very_many_rules_those_that_need_approval_are_shown_and_the_others_counted(page: str) -> None:
    rules = [Difference(program="b/p", rule=f"A-{n}", change="added", needs_approval=False) for n in range(260)]
    rules.append(Difference(program="b/p", rule="Z-1", change="removed", needs_approval=True))
    frame = Frame(page="policies", theme="auto", menu=(), person=None, door=False)
    view = found_view(Found(differences=tuple(rules)), "")
    made = Pages(Assets()).render(page, frame, view=view, failure="", draft=1).decode()
    most = made.count("b/p/")
    assert made.index("b/p/Z-1") < made.index("b/p/A-0<")
    assert most < len(rules)
    assert f"And {len(rules) - most} more." in made


@asynccontextmanager
async def serving(folder: Path, *rules: str) -> AsyncIterator[Server]:
    server = Server(folder)
    write(folder / "sources", *(rules or (STOPS,)))
    server.written["policies"] = {"sources": "sources"}
    async with server.serving():
        yield server


def field(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None
    return html.unescape(found[1])


def text_of(page: str) -> str:
    found = re.search(r"<textarea id=\"text\"[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert found is not None, page
    return html.unescape(found[1])


async def begun(browser: Browser, title: str = "stricter") -> str:
    return (await browser.done("drafts", {"title": title, "reason": "they ask"})).page


async def saved(browser: Browser, version: int, text: str, path: str = "ours/policy.yaml") -> str:
    form = {"draft": "1", "version": str(version), "path": path, "text": text, "reason": "r"}
    return (await browser.done("draft-files", form)).page


async def test_a_draft_from_the_page_to_its_approval_by_two_others(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, looking(server, "eve") as eve, looking(server, "rob") as rob:
        assert "checkstream control draft new" in (await eve.get("policies")).page
        await begun(eve)
        text = text_of((await eve.get("policies/1?path=ours/policy.yaml")).page)
        page = await saved(eve, 1, text.replace("No.", "Never.").replace("\n", "\r\n"))
        assert "\r" not in text_of(page)
        assert "Never." in text_of(page)
        assert text_of((await eve.get("policies/1?path=ours/policy.yaml&version=1")).page) == text
        move = {"draft": "1", "digest": field(page, "digest"), "reason": "so"}
        assert (await rob.post("draft-moves", {**move, "move": "approve"})).status == 409
        page = (await eve.done("draft-moves", {**move, "move": "propose"})).page
        assert "waits for approval" in page
        assert "0 of 2 have approved" in page
        told = await eve.post("draft-moves", {**move, "move": "approve"})
        assert (told.status, "<code>approve_draft</code> is for" in told.page) == (403, True)
        assert "1 of 2 have approved" in (await rob.done("draft-moves", {**move, "move": "approve"})).page
        async with looking(server, "rita") as rita:
            page = (await rita.done("draft-moves", {**move, "move": "approve"})).page
        assert "checkstream control draft export 1" in page
        assert ">approved</span>" in (await eve.get("policies")).page
        differs = await eve.post("draft-checks", {"draft": "1", "part": "diff"})
        assert "Never." in differs.page
        acts = (await rob.get("acts")).page
        assert acts.count("draft_approve") >= 2


async def test_what_somebody_types_is_checked_in_place_and_not_saved(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, looking(server, "eve") as eve, looking(server, "gus") as gus:
        await begun(eve)
        text = text_of((await eve.get("policies/1?path=ours/policy.yaml")).page)
        typed = {"draft": "1", "version": "1", "path": "ours/policy.yaml", "typed": "true", "reason": ""}
        told = await eve.post("draft-checks", {**typed, "text": text.replace("type: stop", "type: stopp")})
        assert 'data-line="3"' in told.page
        assert "there is no action <code>stopp</code>" in told.page
        assert text_of((await eve.get("policies/1?path=ours/policy.yaml")).page) == text
        found = await gus.post("draft-checks", {**typed, "text": "pack: nonsense"})  # looks, and does not write
        assert "no faults" in found.page
        assert "readonly" in (await gus.get("policies/1")).page
        for form, said in (
            ({**typed, "path": "../../x"}, "leads down from the sources"),
            ({**typed, "draft": "99"}, "there is no draft 99"),
            ({**typed, "text": "x" * (256 * 1024 + 1)}, "has at most 262,144"),
            ({"draft": "x"}, "draft"),
            ({"draft": "1", "part": "what-if"}, "policies.recordings"),
        ):
            told = await eve.post("draft-checks", form)
            assert (told.status, said in html.unescape(told.page)) == (200, True), told.page


async def test_a_text_is_explained_under_the_draft_as_it_is_saved(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, looking(server, "eve") as eve:
        await begun(eve)
        text = text_of((await eve.get("policies/1?path=ours/policy.yaml")).page)
        await saved(eve, 1, text.replace("zero risk", "a zebra"))
        told = await eve.post("draft-explanations", {"draft": "1", "text": f"I saw a zebra {EVIL}"})
        assert "phrase:a zebra found" in told.page
        assert EVIL not in told.page
        for form, said in (
            ({"draft": "1", "text": " "}, "paste a text"),
            ({"draft": "1", "text": "x", "stage": "no"}, "there is no stage"),
            ({"draft": "1", "text": "x", "program": "b/none"}, "there is no program"),
            ({"draft": "9", "text": "x"}, "there is no draft 9"),
            ({"draft": "1", "text": "x" * 20_001}, "at most 20,000"),
        ):
            assert said in (await eve.post("draft-explanations", form)).page


async def test_nothing_of_a_draft_is_markup_and_nothing_hostile_is_taken(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, looking(server, "eve") as eve, looking(server, "gus") as gus:
        page = await begun(eve, EVIL)
        assert EVIL not in page
        page = await saved(eve, 1, NEXT, "notes.md")
        assert NEXT not in page
        assert text_of(page) == NEXT
        page = await saved(eve, 2, "\n\nfirst", "notes.md")
        assert text_of(page) == "\n\nfirst"
        assert text_of(await saved(eve, 3, "", "notes.md")) == ""
        for path in ("../x", "/etc/passwd", "a//b", ".git/config", "BUNDLE.yaml"):
            told = await eve.post("draft-files", {"draft": "1", "version": "4", "path": path, "text": "x"})
            assert told.status == 400, path
        late = await eve.post("draft-files", {"draft": "1", "version": "1", "path": "notes.md", "text": "late"})
        assert late.status == 409
        assert text_of(late.page) == "late"
        assert field(late.page[late.page.index('id="edit"') :], "version") == "1"  # the next try is refused as well
        assert (await gus.post("draft-files", {"draft": "1", "version": "4", "path": "a", "text": "x"})).status == 403
        assert (await gus.post("drafts", {"title": "t"})).status == 403
        assert (await eve.post("drafts", {"title": "t" * 121})).status == 400
        assert (await eve.post("drafts", {"title": "t"}, {"origin": "http://evil.example"})).status == 403
        assert (await eve.post("draft-moves", {"draft": "1", "move": "steal", "digest": "0" * 64})).status == 400
        for path in ("policies/99", "policies/x", "policies/1/2"):
            assert (await eve.get(path)).status == 404
        gone = await eve.done("draft-removals", {"draft": "1", "version": "4", "path": "notes.md"})
        assert "notes.md" not in gone.page
        (tmp_path / "sources" / "new.md").write_text("new")
        assert "Take them over" in (await eve.get("policies/1")).page
        page = (await eve.done("draft-rebases", {"draft": "1", "version": "5"})).page
        assert "new.md" in page
        assert (
            "It is withdrawn."
            in (await eve.done("draft-moves", {"draft": "1", "move": "withdraw", "digest": field(page, "digest")})).page
        )
        assert "No draft is being written" in (await eve.get("policies")).page
        assert "withdrawn" in (await eve.get("policies?all=1")).page


async def test_a_server_without_sources_teaches_how_to_get_drafts(tmp_path: Path) -> None:
    server = Server(tmp_path)
    async with server.serving(), looking(server, "eve") as eve:
        assert "sources: policies" in (await eve.get("policies")).page
        assert (await eve.get("policies/1")).status == 404
