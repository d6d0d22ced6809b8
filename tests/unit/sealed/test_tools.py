"""The store of how tools were described: over processes, reviewed by commands, refused where it was altered."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from checkstream.cli import tools as command
from checkstream.cli.parser import Parser
from checkstream.config import Secret, ToolSettings
from checkstream.core.commands import KeepTools, RecallTools
from checkstream.core.events import ToolsKept, ToolsKnown
from checkstream.core.exchange.rpc.toolbook import Pins, Seen
from checkstream.errors import ConfigError, VaultFailed
from checkstream.sealed import ToolStore, open_tools

SERVER = "library /mcp"
CONFIG = """
upstreams: {library: {url: "http://127.0.0.1:1"}}
routes: [{name: tools, match: {path: /mcp}, surface: mcp, upstream: library, policies: ["builtin:default"]}]
tools: {secret: {file: secret}, store: "sqlite:tools.db"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("s" * 44)
    (tmp_path / "checkstream.yaml").write_text(CONFIG)
    return tmp_path


def opened(folder: Path) -> ToolStore:
    settings = ToolSettings(secret=Secret(file=str(folder / "secret")), store=f"sqlite:{folder / 'tools.db'}")
    store = open_tools(settings)
    assert store is not None
    return store


def as_seen(text: str) -> Seen:
    return Seen(text * 8, f'{{"description":"{text}"}}')


def pins(**said: str) -> Pins:
    made = Pins()
    for name, text in said.items():
        made.look(name, as_seen(text), keeps=True)
    return made


def kept(store: ToolStore, server: str = SERVER, **said: str) -> None:
    assert asyncio.run(store.keep(KeepTools(server, pins(**said).state(), 0))) == ToolsKept()


def change(store: ToolStore, name: str, text: str, server: str = SERVER) -> None:
    def seen(known: Pins) -> int:
        return int(known.look(name, as_seen(text), keeps=True))

    assert store.change(server, seen) == 1


def run(folder: Path, *arguments: str) -> int:
    parser = Parser(prog="checkstream tools", later=command.add_arguments)
    return command.run(parser.parse_args([*arguments, "--config", str(folder / "checkstream.yaml")]))


def test_what_one_process_keeps_another_knows(folder: Path) -> None:
    one, other = opened(folder), opened(folder)
    assert asyncio.run(one.recall(RecallTools(SERVER))) == ToolsKnown()
    kept(one, look="a")
    known = asyncio.run(other.recall(RecallTools(SERVER)))
    assert known == ToolsKnown(pins(look="a").state(), 1)
    assert asyncio.run(other.keep(KeepTools(SERVER, b"{}", 0))) == known
    assert one.servers() == [SERVER]
    assert asyncio.run(one.recall(RecallTools("library /other"))) == ToolsKnown()


def test_tools_are_listed_and_changes_accepted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = opened(folder)
    kept(store, look="a", find="b")
    assert run(folder, "list", "--changed") == 0
    change(store, "look", "c")
    assert run(folder, "list") == 0
    out = capsys.readouterr().out
    assert "library /mcp  find  bbbbbbbb  as it was" in out
    assert "library /mcp  look  aaaaaaaa  changed to cccccccc" in out
    assert '- "description": "a"' in out.replace("-  ", "- ")
    assert run(folder, "list", "--changed") == 1
    assert run(folder, "accept", SERVER, "find") == 1
    assert run(folder, "accept", SERVER, "look") == 0
    assert store.tools(SERVER)["look"].first == as_seen("c")
    assert run(folder, "list", "--changed", "--json") == 0
    assert run(folder, "forget", SERVER, "--all", "--json") == 0
    assert store.tools(SERVER) == {}
    for wrong in (("accept", SERVER), ("accept", SERVER, "look", "--all"), ("accept", "nobody", "look")):
        with pytest.raises(ConfigError):
            run(folder, *wrong)


def test_a_tool_that_was_condemned_is_listed_as_such(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = opened(folder)
    kept(store, look="a")

    def condemn(known: Pins) -> int:
        known.condemn("look", "DOC-1")
        known.condemn("find", "DOC-1")
        return 2

    assert store.change(SERVER, condemn) == 2
    assert run(folder, "list") == 0
    out = capsys.readouterr().out
    assert "library /mcp  find  never as it may be called  refused: DOC-1" in out
    assert "library /mcp  look  aaaaaaaa  as it was  refused: DOC-1" in out
    assert run(folder, "list", "--json") == 0
    assert '"refused":"DOC-1"' in capsys.readouterr().out.replace(" ", "")


def test_what_is_accepted_counts_for_a_process_that_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("checkstream.sealed.tools.time.monotonic", lambda: now[0])
    proxy, store = opened(folder), opened(folder)
    kept(proxy, look="a")
    change(store, "look", "c")
    asyncio.run(proxy.recall(RecallTools(SERVER)))
    run(folder, "accept", SERVER, "look")
    now[0] = 5.0
    known = asyncio.run(proxy.recall(RecallTools(SERVER)))
    made = Pins()
    made.begin_with(known.state)
    assert made.tools["look"].first == as_seen("c")


def test_a_store_that_was_altered_is_refused(folder: Path) -> None:
    kept(opened(folder), look="a")
    with sqlite3.connect(folder / "tools.db") as connection:
        rows = connection.execute("SELECT id, sealed FROM states").fetchall()
        for key, sealed in rows:
            connection.execute("UPDATE states SET sealed = ? WHERE id = ?", (sealed[:-1] + b"\x00", key))
    with pytest.raises(VaultFailed, match="altered"):
        asyncio.run(opened(folder).recall(RecallTools(SERVER)))
    with pytest.raises(VaultFailed, match="altered"):
        run(folder, "list")
    for path in folder.glob("tools.db*"):
        path.unlink()
    (folder / "tools.db").write_bytes(b"no database at all, but long enough to be looked at" * 40)
    with pytest.raises(VaultFailed, match="can't be used for tools"):
        opened(folder)


def test_nothing_that_servers_say_stands_readable_in_the_store(folder: Path) -> None:
    store = opened(folder)
    made = Pins()
    made.look("secret_tool", Seen("0" * 64, '{"description":"about Ann"}'), keeps=True)
    asyncio.run(store.keep(KeepTools(SERVER, made.state(), 0)))
    store.close()
    data = b"".join(path.read_bytes() for path in folder.glob("tools.db*"))
    assert b"Ann" not in data
    assert b"secret_tool" not in data
    assert b"/mcp" not in data


def test_a_server_too_many_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkstream.sealed.tools._MOST_SERVERS", 2)
    store = opened(folder)
    kept(store, "a /1", look="a")
    kept(store, "a /2", look="a")
    with pytest.raises(VaultFailed, match="no more"):
        kept(store, "a /3", look="a")


def test_a_short_secret_and_a_missing_store_are_told(folder: Path) -> None:
    (folder / "secret").write_text("short")
    with pytest.raises(VaultFailed, match="`tools` has 5 bytes"):
        opened(folder)
    assert open_tools(None) is None
    text = (folder / "checkstream.yaml").read_text()
    (folder / "checkstream.yaml").write_text(text.partition("tools: {secret")[0])
    with pytest.raises(ConfigError, match="no store of tools"):
        run(folder, "list")
