"""`checkstream control draft` as people and CI use it: against a real control server, with the real checker."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from checkstream.cli import main
from tests.bundled import LOGS, STOPS
from tests.controlled import Server, asked, commands
from tests.unit.cli.test_bundle_check import write

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server on a thread of its own, with sources; one file of them is no text."""
    sources = write(tmp_path / "sources", STOPS)
    (sources / "ours" / "list.fp").write_bytes(b"\0\xff")
    made, ready, loop = Server(tmp_path), threading.Event(), asyncio.new_event_loop()
    made.written["policies"] = {"sources": "sources"}
    ended = asyncio.Event()

    async def serve() -> None:
        async with made.serving():
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(30)
    yield made
    loop.call_soon_threadsafe(ended.set)
    thread.join(30)
    loop.close()


@pytest.fixture
def run(server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command as somebody; returns its exit code and all that it says."""
    return commands(server, monkeypatch, capsys)


def checkout(tmp_path: Path, *rules: str) -> Path:
    folder = write(tmp_path / "checkout", *rules)
    (folder / "ours" / "list.fp").write_bytes(b"\0\xff")
    (folder / ".git").mkdir(exist_ok=True)
    (folder / ".git" / "config").write_text("hidden")
    return folder


def test_a_draft_from_a_checkout_to_a_folder_that_is_signed(run: Run, tmp_path: Path) -> None:
    folder = checkout(tmp_path, STOPS.replace("No.", "Never."))
    assert run("eve", "drafts") == (0, "there are no drafts\n")
    assert run("ana", "draft", "new", "Refunds")[0] == 2
    code, said = run("eve", "draft", "new", "Refunds", "--from", str(folder), "--reason", "they ask")
    assert (code, ", version 2) by eve: open: Refunds" in said) == (0, True)
    assert run("eve", "draft", "show", "1")[1].splitlines()[-1] == "  changed ours/policy.yaml"
    code, said = run("gus", "draft", "check", "1")
    assert (code, "changed retail/chat/R-1, needs approval" in said) == (0, True)
    assert run("eve", "draft", "export", "1", "--to", str(tmp_path / "out"))[0] == 2
    assert run("eve", "draft", "propose", "1")[0] == 0
    digest = json.loads(run("rob", "draft", "show", "1", "--json")[1])["draft"]["digest"]
    code, said = run("rob", "draft", "approve", "1", "--digest", "0" * 8)
    assert (code, "look at it again" in said) == (2, True)
    assert run("eve", "draft", "approve", "1", "--digest", digest[:8])[0] == 2
    assert ": proposed, approved by rob of 2" in run("rob", "draft", "approve", "1", "--digest", digest[:8])[1]
    assert ": approved, approved by rob, ada of 2" in run("ada", "draft", "approve", "1", "--digest", digest)[1]

    code, said = run("eve", "draft", "export", "1", "--to", str(tmp_path / "out"))
    assert (code, "1 file differ, such as `ours/list.fp`, which is no text" in said) == (2, True)
    notes = folder / "ours" / "tests.yaml"
    notes.write_bytes(newer := notes.read_bytes() + b"# newer\n")
    code, said = run("eve", "draft", "export", "1", "--to", str(folder))
    assert (code, "would be lost" in said, notes.read_bytes() == newer) == (2, True, True)
    assert run("eve", "draft", "export", "1", "--to", str(tmp_path / "sources"))[0] == 0  # here it stands
    named = json.loads((tmp_path / "sources" / "draft.json").read_text())
    assert (named["digest"], named["authors"], [each["who"] for each in named["approvals"]]) == (
        digest, ["eve"], ["rob", "ada"],
    )  # fmt: skip
    assert "Never." in (tmp_path / "sources" / "ours" / "policy.yaml").read_text()
    assert main(["bundle", "build", str(tmp_path / "sources" / "bundle.yaml"), "-o", str(tmp_path / "built")]) == 0
    assert ": exported" in run("gus", "drafts", "--all")[1]


def test_a_folder_takes_files_away_and_a_draft_follows_newer_sources(run: Run, server: Server, tmp_path: Path) -> None:
    run("eve", "draft", "new", "Fewer")
    folder = checkout(tmp_path, STOPS)
    (folder / "ours" / "tests.yaml").unlink()
    assert "version 2" in run("eve", "draft", "put", "1", str(folder))[1]
    assert "  removed ours/tests.yaml" in run("eve", "draft", "show", "1")[1]
    assert "version 2" in run("eve", "draft", "put", "1", str(folder))[1]
    assert "as they were" in run("eve", "draft", "rebase", "1")[1]
    write(server.folder / "sources", STOPS, LOGS)
    assert "the sources have changed" in run("eve", "draft", "show", "1")[1]
    assert "version 3" in run("eve", "draft", "rebase", "1")[1]
    assert run("eve", "draft", "get", "1", "--to", str(folder))[0] == 0
    assert "R-2" in (folder / "ours" / "policy.yaml").read_text()
    assert not (folder / "ours" / "tests.yaml").exists()
    (folder / "ours" / "list.fp").write_bytes(b"\0\xfe")
    code, said = run("eve", "draft", "put", "1", str(folder))
    assert (code, "bring it into the sources by itself" in said) == (2, True)
    assert run("eve", "draft", "get", "1", "--to", str(tmp_path))[0] == 2  # it holds much else


def test_a_folder_is_not_written_to_behind_a_link(run: Run, tmp_path: Path) -> None:
    run("eve", "draft", "new", "Links", "--from", str(checkout(tmp_path, STOPS, LOGS)))
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / "ours").symlink_to(elsewhere)
    code, said = run("eve", "draft", "get", "1", "--to", str(out))
    assert (code, "is a link, or stands behind one" in said) == (2, True)
    assert list(elsewhere.iterdir()) == []


async def test_what_is_hostile_is_refused_with_what_to_do(tmp_path: Path) -> None:
    server = Server(tmp_path)
    write(tmp_path / "sources", STOPS)
    server.written["policies"] = {"sources": "sources"}
    async with server.serving():

        async def post(path: str, body: Any, person: str = "eve") -> tuple[int, str]:
            status, said = await asked("POST", server.url, f"/v1/{path}", body, person=person)
            return status, said["error"]["message"] if status != 200 else said

        secrets = "bundle: b\nversion: '1'\nprograms: {a: {policies: [../../control.yaml]}}\n"
        bomb = "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\n" * 50
        files = {"bundle.yaml": secrets, "ours/policy.yaml": bomb}
        assert (await post("drafts", {"title": "t", "files": files}))[0] == 200
        status, found = await asked("GET", server.url, "/v1/draft-checks?draft=1", person="eve")
        told = json.dumps(found)
        assert (status, "lies outside of the folder" in told, "key_sha256" in told) == (200, True, False)
        status, said = await post("draft-moves", {"draft": 1, "move": "propose", "digest": "0" * 64})
        assert (status, "has changed meanwhile" in said) == (409, True)
        for body, expected in (
            ({"title": "t", "files": {"../../x": "y"}}, 400),
            ({"title": "t", "files": {"a\x00": "y"}}, 400),
            ({"title": "t", "files": {"a": "y\x00"}}, 400),
            ({"title": "t", "files": {"A": "", "a": ""}}, 400),
            ({"title": "t" * 121}, 400),
            ({"title": "t", "files": {f"f{n}": "" for n in range(501)}}, 400),
            (b'{"title": "t", "files": {"a": "\\ud800"}}', 400),
            ({"title": "t", "files": {"a": "x" * (256 * 1024 + 1)}}, 400),
            ({"title": "t", "files": {"a": "x" * (1 << 20)}}, 413),
        ):
            assert (await post("drafts", body))[0] == expected, str(body)[:80]
        assert (await post("drafts", {"title": "t"}, "gus"))[0] == 403
        assert (await post("draft-moves", {"draft": 1, "move": "approve", "digest": "0" * 64}))[0] == 403
        assert (await asked("GET", server.url, "/v1/drafts/7", person="eve"))[0] == 404
        assert (await asked("GET", server.url, "/v1/draft-texts?draft=1&path=..%2Fx", person="eve"))[0] == 404


async def test_the_api_answers_as_it_describes_itself(tmp_path: Path) -> None:
    server = Server(tmp_path)
    write(tmp_path / "sources", STOPS)
    server.written["policies"] = {"sources": "sources"}
    asking = {
        "/v1/drafts/{draft}": "/v1/drafts/1",
        "/v1/draft-texts": "/v1/draft-texts?draft=1&path=bundle.yaml",
        "/v1/draft-checks": "/v1/draft-checks?draft=1",
    }
    async with server.serving():
        told = (await asked("GET", server.url, "/openapi.json"))[1]
        await asked("POST", server.url, "/v1/drafts", {"title": "t", "files": {"notes.md": "x"}}, person="eve")
        described = {path: each["get"] for path, each in told["paths"].items() if "draft" in path and "get" in each}
        assert set(described) == {"/v1/drafts", *asking}
        for path, operation in described.items():
            status, body = await asked("GET", server.url, asking.get(path, path), person="gus")
            assert status == 200, body
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            jsonschema.validate(body, {**schema, "components": told["components"]})


async def test_a_server_without_sources_says_how_to_get_drafts(tmp_path: Path) -> None:
    server = Server(tmp_path)
    async with server.serving():
        status, said = await asked("GET", server.url, "/v1/drafts", person="eve")
        assert (status, "`policies.sources`" in said["error"]["message"]) == (404, True)
