"""`checkstream bench` as its user runs it: a real proxy, a real model server, real connections."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop

from checkstream.bench.caller import Place
from checkstream.bench.figures import Run
from checkstream.bench.play import Wanted, play
from checkstream.bench.scenario import Arrivals, Scenario, Script, cut
from tests.e2e.conftest import POLICY
from tests.e2e.harness import Proxy, config, running


def _script(name: str, **settings: object) -> Script:
    known: dict[str, object] = {
        "about": name,
        "arrivals": Arrivals(count=3, within_s=0.1),
        "says": ("benign.txt",),
        "tokens": 20,
        "per_s": 100.0,
    }
    scenario = Scenario(**{**known, **settings})  # type: ignore[arg-type]
    return Script(name=name, scenario=scenario, text=[piece for text in scenario.says for piece in cut(text)])


def _play(wanted: Wanted) -> dict[tuple[str, str], Run]:
    runs = uvloop.run(play(wanted, lambda *_: None))
    return {(run.scenario, run.target): run for run in runs}


def test_each_form_of_answer_comes_through_as_it_is_and_what_fires_shows() -> None:
    scripts = (
        _script("stream"),
        _script("whole", form="whole"),
        _script("call", form="call"),
        _script("fast", per_s=None, tokens=200),
        _script("slow", per_s=None, tokens=40, reads_bytes_per_s=20_000),
        _script("leaving", leaving=1.0, tokens=60),
        _script("personal", says=("personal.txt",), tokens=150, per_s=None),
        _script("harmful", says=("harmful.txt",), tokens=120, per_s=200.0, harm=" stupid"),
    )
    found = _play(Wanted(scripts=scripts, rounds=1))
    for script in scripts:
        bare, guarded = found[script.name, "direct"], found[script.name, "checkstream"]
        expected = {"leaving": "left", "personal": "edited", "harmful": "stopped"}.get(script.name, "whole")
        assert guarded.outcomes[expected] == 3, (script.name, guarded.outcomes)
        assert bare.outcomes["left" if expected == "left" else "whole"] == 3
        assert bare.first_text.count == 3
        assert bare.cpu_us is None
        assert guarded.cpu_us is None or guarded.cpu_us > 0
        assert guarded.memory[0].rss_bytes > 10**7
    assert min(found["harmful", "direct"].leaked) > 0
    assert found["harmful", "checkstream"].leaked == (0, 0, 0)
    assert found["stream", "direct"].delay.count == 60
    paced = found["stream", "checkstream"]
    assert paced.delay.count == 60
    assert (paced.delay.at("p50") or 0) > (found["stream", "direct"].delay.at("p50") or 0)


async def _broken(kind: str) -> asyncio.Server:
    """Return a gateway that does its work badly."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        said = {
            "cut": head + b"5\r\ndata:",
            "garbage": b"\x00\x01\x02 nonsense\r\n\r\n",
            "json": head + b"b\r\ndata: {]}\n\n\r\n",
            "error": head + b'18\r\ndata: {"error":{"a":1}}\n\r\n0\r\n\r\n',
            "busy": b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 2\r\n\r\n{}",
            "denied": b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n",
            "silent": b"",
        }[kind]
        writer.write(said)
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("cut", "broken"),
        ("garbage", "broken"),
        ("json", "broken"),
        ("error", "broken"),
        ("busy", "refused"),
        ("denied", "denied"),
        ("silent", "broken"),
    ],
)
def test_a_deployment_that_fails_is_told_as_what_it_is(kind: str, outcome: str) -> None:
    async def run() -> list[Run]:
        async with await _broken(kind) as server:
            port = server.sockets[0].getsockname()[1]
            target = Place.at(f"http://127.0.0.1:{port}/v1", {}, "m")
            return await play(Wanted(scripts=(_script("stream"),), rounds=1, target=target), lambda *_: None)

    (found,) = uvloop.run(run())
    assert found.outcomes[outcome] == 3
    assert found.cpu_us is None


def _command(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "checkstream", "bench", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **env},
        check=False,
    )


def test_the_command_writes_a_table_rows_and_a_page(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    scenario.write_text("about: mine\narrivals: {count: 2, within_s: 0}\nsays: [benign.txt]\ntokens: 5\nper_s: null\n")
    rows, html = tmp_path / "rows.json", tmp_path / "page.html"
    done = _command("--scenario", str(scenario), "--rounds", "2", "--json", str(rows), "--html", str(html))
    assert "mine" in done.stdout, done.stderr
    assert "checkstream adds at the median a token" in done.stdout
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    assert {(row["target"], row["round"]) for row in found} >= {("direct", 1), ("checkstream", 2)}
    assert html.read_text().startswith("<!doctype html>")
    assert "share of tokens by added delay" in html.read_text()
    assert not (tmp_path / "var").exists()


def test_another_gateway_is_measured_beside_this_one(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "policy.yaml").write_text(POLICY)
    scenario = tmp_path / "mine.yaml"
    scenario.write_text("about: mine\narrivals: {count: 2, within_s: 0}\nsays: [benign.txt]\ntokens: 5\nper_s: null\n")
    gateway = Proxy(config(f"http://127.0.0.1:{port}", tmp_path, ["policy.yaml"]), tmp_path)
    with running(gateway):
        told = ("--scenario", str(scenario), "--rounds", "1", "--json", str(tmp_path / "rows.json"))
        done = _command(*told, "--proxy", f"other={gateway.url}", "--model-port", str(port))
    assert "checkstream adds at the median a token" in done.stdout, done.stderr
    assert "other adds at the median a token" in done.stdout
    rows = [json.loads(line) for line in (tmp_path / "rows.json").read_text().splitlines()]
    assert {row["target"]: row["outcomes"]["whole"] for row in rows if row["target"] != "nginx"} == {
        "direct": 2,
        "checkstream": 2,
        "other": 2,
    }


def test_nginx_is_measured_where_it_is_installed_and_nowhere_else() -> None:
    found = _play(Wanted(scripts=(_script("stream"),), rounds=1))
    beside = {target for _, target in found} - {"direct", "checkstream"}
    assert beside == ({"nginx"} if shutil.which("nginx") is not None else set())
    for target in beside:
        assert found["stream", target].outcomes["whole"] == 3
        assert (found["stream", target].cpu_us or 0) > 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--scenario", "nowhere"], "shipped"),
        (["--rounds", "0"], "1 or more"),
        (["--proxy", "a=http://127.0.0.1:1"], "--model-port"),
        (["--target", "ftp://x"], "http://host:port"),
        (["--target", "http://127.0.0.1:1", "--header", "authorization=NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE"),
    ],
)
def test_what_can_not_be_measured_is_said(arguments: list[str], reason: str) -> None:
    done = _command(*arguments)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
