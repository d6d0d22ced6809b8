"""`checkstream control` as people use it: against a real control server, each with a key of their own."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkstream.cli import main
from checkstream.cli.control_ask import KEY, _told
from checkstream.config.control import Fleet, Ring
from checkstream.control.attestation import Candidate
from checkstream.control.server.rollout import Rollout
from checkstream.control.server.showing import FleetShown, shown_node, shown_rollout
from checkstream.control.server.tables import Known
from tests.controlled import Server, asked, attestation, commands

Run = Callable[..., tuple[int, str]]
ONE, TWO = "1" * 64, "2" * 64
OFFERED = [{"digest": TWO, "version": "v2"}, {"digest": ONE, "version": "v1"}]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server on a thread of its own, whose nodes have said that they have `v1`."""
    made, ready, loop = Server(tmp_path), threading.Event(), asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        async with made.serving():
            for name, key in made.nodes.items():
                said = attestation(bundle=ONE, bundle_version="v1", offered=OFFERED)
                assert (await asked("POST", made.url, "/v1/attestations", said, node=key))[0] == 200, name
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


def test_a_rollout_from_its_proposal_to_its_end(run: Run) -> None:
    code, said = run("gus", "status")
    assert (code, said.splitlines()[0]) == (
        0,
        "fleet shop, bundle retail; signed now: v2 (222222222222), v1 (111111111111)",
    )
    assert run("ana", "rollout", "shop", "v2") == (
        2,
        "checkstream: `ana` is `analyst`, and `rollout` is for `engineer` or `risk_officer`\n",
    )
    code, said = run("eve", "rollout", "shop", "v2", "--reason", "refunds")
    assert (code, said.startswith("rollout 1 of v2 (222222222222), asked for by eve: proposed: it waits")) == (0, True)
    assert run("rob", "approve", "shop")[0] == 2
    code, said = run("rob", "approve", "1")
    assert (code, "asked for by eve, approved by rob: running, ring" in said) == (0, True)
    code, said = run("gus", "status", "shop")
    assert (code, "DRIFTED it has not taken it yet" in said) == (1, True)
    code, said = run("ada", "rollback", "shop", "--reason", "too much")
    assert (code, said.endswith("ada: too much\n")) == (0, True)
    assert run("gus", "status", "shop")[0] == 0
    code, said = run("gus", "events", "shop")
    assert (code, "Z  rolled_back  shop: v2: ada: too much" in said) == (0, True)
    code, said = run("gus", "status", "shop", "--json")
    assert json.loads(said)["rollout"]["stage"] == "rolled_back"
    assert "fleet `bank`" in run("gus", "promote", "bank")[1]


def test_which_bundle_how_many_callers_have_is_shown() -> None:
    rings = (Ring(name="tenth", callers=10), Ring(name="all", percent=100))
    fleet = Fleet(bundle="retail", nodes={"n1": "", "n2": ""}, rings=rings)
    beside = Candidate(bundle=TWO, version="v2", share=10, salt="ab")
    rollout = Rollout(
        fleet="shop", digest=TWO, version="v2", before=ONE, before_version="v1", stage="running", ring=0,
        asked_by="eve", approved_by="rob", salt="ab", why="it is watched",
    )  # fmt: skip
    said: dict[str, Any] = {"bundle": ONE, "bundle_version": "v1", "offered": OFFERED}
    has = attestation(**said, candidate={"wanted": msgspec.to_builtins(beside)})
    lacks = attestation(**said, error="its case `stops` fails")
    known = {
        name: Known(node=name, heard_ms=0, since_ms=0, refused="", attestation=each)
        for name, each in (("n1", has), ("n2", lacks))
    }
    nodes = tuple(shown_node(name, each, rollout, fleet, 4000) for name, each in known.items())
    shown = FleetShown(
        fleet="shop",
        bundle="retail",
        offered=has.offered,
        allowed={},
        rollout=shown_rollout(1, rollout, fleet),
        nodes=nodes,
    )
    _, told, _, one, other = _told(shown)
    assert told.endswith("running, ring tenth of tenth, all with 10 % of callers: it is watched")
    both = "v1 (111111111111), for 10 % v2 (222222222222)"
    assert " ".join(one.split()) == f"n1 all {both} {both} 4 s ago"
    assert " ".join(other.split()) == (f"n2 all v1 (111111111111) {both} 4 s ago DRIFTED its case `stops` fails")


def test_lists_and_their_refusals(run: Run) -> None:
    digest = "d" * 64
    assert run("eve", "allow", "shop", "package", digest)[0] == 2
    assert run("rob", "allow", "shop", "package", digest) == (0, "")
    assert run("rob", "allow", "shop", "package", digest, "--remove") == (0, "")
    assert "nobody has added" in run("rob", "allow", "shop", "package", digest, "--remove")[1]
    assert run("rob", "allow", "shop", "colour", digest)[0] == 2
    code, said = run("rob", "allow", "shop", "image", "two words")
    assert (code, "at `$.value`" in said) == (2, True)


def test_without_a_server_or_a_key(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "can't be asked" in run("gus", "status", "--server", "http://127.0.0.1:1")[1]
    assert "which control server?" in run("gus", "status", "--server", "control.example")[1]
    monkeypatch.setattr("tests.controlled.key_of", lambda _: "nobody-has-this-key-at-all")
    assert "no valid key" in run("gus", "status")[1]
    monkeypatch.delenv(KEY)
    assert main(["control", "status"]) == 2
    assert "who asks?" in capsys.readouterr().err


def test_a_key_and_what_the_server_needs_to_know_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["control", "key"]) == 0
    said = capsys.readouterr()
    assert said.err == f"key_sha256: {hashlib.sha256(said.out.strip().encode()).hexdigest()}\n"
    assert len(said.out) > 40


def test_people_silence_alerts_and_end_that(run: Run) -> None:
    assert run("gus", "alerts") == (0, "")
    code, said = run("eve", "silence", "node_stale:shop/*", "--minutes", "5", "--reason", "they move")
    assert (code, said.startswith("silence 1 of node_stale:shop/* until ")) == (0, True)
    assert "by eve: they move" in run("gus", "alerts")[1]
    assert run("gus", "speak", "1")[0] == 2
    assert run("eve", "speak", "1") == (0, "")
    assert run("gus", "alerts") == (0, "")


def test_people_review_what_fired_and_take_home_what_is_settled(run: Run, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "var" / "control.db") as store:
        store.execute(
            "insert into decisions(node, chain, seq, place, at_ms, stream, route, rule_id, action, mode, stage, "
            "policy, confidence_ppm, latency_us) values('n1', 'c', 1, 0, ?, 's1', 'chat', 'PII-1', 'redact', "
            "'enforce', 'midstream', 'default@1', 1000000, 0)",
            (int(datetime.now(UTC).timestamp() * 1000),),
        )
    store.close()
    code, item = run("ana", "flag", "s1", "PII-1")
    assert code == 0
    item = item.strip()
    code, said = run("ana", "reviews")
    assert (code, said.split()[0], "PII-1 of default@1 -> redact" in said, "flagged" in said) == (0, item, True, True)
    assert run("ana", "review", item, "wrong")[1] == "open, by 1 of two or more people\n"
    assert run("ana", "reviews") == (0, "")
    assert run("gus", "review", item, "right")[0] == 2
    assert run("eve", "review", item, "wrong")[1] == "settled as wrong, by 2 of two or more people\n"
    assert "0 findings wait" in run("gus", "precision")[1]
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"stream": "s1", "text": "call 555-0100"}\n')
    code, said = run("gus", "reviewed", "--texts", str(texts))
    assert (code, "answer: call 555-0100" in said, "action: allow" in said, "1 written, 0 left out" in said) == (
        0,
        True,
        True,
        True,
    )
    code, said = run("gus", "reviewed", "--texts", str(texts), "--as", "rows")
    assert '"text":"call 555-0100","label":0' in said
    texts.write_text('{"text": "x"}\n')
    assert run("gus", "reviewed", "--texts", str(texts))[0] == 2


def test_a_run_of_the_gate_is_told_without_what_it_asked_and_heard(run: Run, tmp_path: Path) -> None:
    report = {
        "run_id": "20261129-1", "begun": 1.7e9, "ended": 1.7e9 + 9.5, "score": 0.125, "decision": "warn", "reason": "",
        "total_claims": 8, "supported": 6, "unsupported": 1, "weakly_supported": 1, "contradicted": 0,
        "not_checkable": 0, "details": [], "use_case": "bank", "target": "gpt-x",
        "verifier": "reader", "config_hash": "c", "snapshot": "s",
        "thresholds": {"deploy": 0.1}, "prompts": [{"id": "p1", "text": "a secret question", "category": "x"}],
        "responses": [{"prompt_id": "p1", "text": "a secret answer"}],
    }  # fmt: skip
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report), encoding="utf-8")
    assert run("eve", "tell", str(file), "--fleet", "shop") == (
        0,
        "told: gpt-x, warn, risk 0.1250 (run 20261129-1)\n",
    )
    code, said = run("eve", "tell", str(file), "--fleet", "shop", "--json")
    assert (code, json.loads(said)["who"], "secret" in said) == (0, "eve", False)
    assert run("gus", "tell", str(file))[0] == 2
    assert "there is no fleet `bank`" in run("eve", "tell", str(file), "--fleet", "bank")[1]
    file.write_text(json.dumps({**report, "score": 0.5}), encoding="utf-8")
    assert "another run `20261129-1`" in run("eve", "tell", str(file), "--fleet", "shop")[1]
    file.write_bytes(b"\xff{}")
    assert "is no report of the gate" in run("eve", "tell", str(file))[1]
    assert "can't be read" in run("eve", "tell", str(tmp_path / "none.json"))[1]
