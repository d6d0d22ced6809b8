"""A real proxy that follows a real repository: new policies come in force under running streams, bad ones don't."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.bundled import LOGS, STOPS, World
from tests.e2e.harness import ROOT, Llm, Proxy, RawCaller, config, http, running, until

STOPPED = "cases:\n  - {name: stops, answer: There is zero risk in it., expect: {action: stop}}\n"
REDACTS = "{name: r, id: R-5, stage: [midstream], phrases: [blue], actions: [{type: redact}]}"
TURNS = "{name: t, id: R-6, stage: [midstream], channels: [content], phrases: [red], actions: [{type: safe_mode}]}"
CHAT = "/v1/chat/completions"
ASK: Any = [{"role": "user", "content": "hello there"}]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A repository with a bundle whose only rule stops."""
    (tmp_path / "world").mkdir()
    made = World(tmp_path / "world")
    made.establish()
    cases(made, STOPPED)
    made.release(STOPS, version="1")
    return made


def cases(world: World, text: str) -> None:
    """Write the cases that the next bundle carries."""
    (world.folder / "tests.yaml").write_text(text, encoding="utf-8")


Begin = Callable[..., Proxy]


@pytest.fixture
def begin(world: World, llm: Llm, tmp_path: Path) -> Iterator[Begin]:
    """Start a proxy whose routes are of the bundle: `begin(workers=2)`."""
    llm.put("bundle-said", {"choices": [{"content": "There is zero risk in blue."}]})
    with ExitStack() as stack:

        def start(**server: Any) -> Proxy:
            settings = _settings(world, llm, tmp_path / "node")
            settings["server"] |= server
            return stack.enter_context(running(Proxy(settings, tmp_path / "node")))

        yield start


def _settings(world: World, llm: Llm, folder: Path) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    (folder / "root.json").write_bytes(world.root)
    bundles = {"source": str(world.public), "root": "root.json", "name": "retail", "poll_s": 1}
    return {**config(llm.url, folder, ["bundle:chat"], chat_only=True), "bundles": bundles}


def answer(proxy: Proxy, model: str = "bundle-said") -> str:
    """Return what a caller gets."""
    status, _, body = http("POST", proxy.url + CHAT, {"model": model, "messages": ASK})
    assert status == 200, body
    content: str = json.loads(body)["choices"][0]["message"]["content"]
    return content


@pytest.mark.parametrize("workers", [1, 2])
def test_g25_a_newer_bundle_comes_in_force_and_running_streams_keep_theirs(
    world: World, begin: Begin, llm: Llm, workers: int
) -> None:
    proxy = begin(workers=workers)
    assert answer(proxy) == "There is No."
    llm.put("bundle-slow", {"choices": [{"content": "word " * 200 + "of blue."}], "timing": {"token_ms": 25}})
    stream = RawCaller(proxy.url, {"model": "bundle-slow", "stream": True, "messages": ASK})
    stream.read_until(b"word")
    cases(
        world,
        "cases:\n  - {name: hides, answer: All is blue., expect: {action: redact, output: 'All is [REDACTED].'}}\n",
    )
    world.release(REDACTS, version="2")
    until(lambda: answer(proxy) == "There is zero risk in [REDACTED].", what="the newer bundle", timeout_s=30)
    stream.read_until(b"[DONE]")
    assert "".join(_deltas(stream.received)).endswith("of blue.")
    stream.leave()
    assert [row["version"] for row in proxy.logs("bundle.accepted")] == ["2"]
    shown = json.loads(http("GET", f"{proxy.admin_url}/admin/status")[2])
    assert shown["bundle"].startswith("retail@2#")
    metrics = http("GET", f"{proxy.admin_url}/metrics")[2].decode()
    assert 'checkstream_bundle_looks_total{outcome="accepted"} 1.0' in metrics
    reloads = [row["body"] for row in proxy.records() if row["kind"] == "reload"]
    assert reloads
    assert all(row["accepted"] and row["policies"] == ["ours@1.0.0"] for row in reloads)


def _deltas(data: bytes) -> Iterator[str]:
    for line in data.decode().splitlines():
        if line.startswith("data: {"):
            for choice in json.loads(line.removeprefix("data: "))["choices"]:
                yield choice["delta"].get("content") or ""


def test_g27_a_bundle_that_is_bad_changes_nothing(world: World, begin: Begin) -> None:
    """Its own case fails; this node can't carry it out; nobody has approved of it. Then a good one is taken."""
    proxy = begin()
    world.release(STOPS.replace("zero risk", "no risk"), version="2")
    why = until(lambda: proxy.logs("bundle.refused"), what="a refusal", timeout_s=30)
    assert "its case `stops` fails" in why[-1]["reason"]
    cases(world, STOPPED)
    world.release(STOPS, TURNS, version="3")
    why = until(lambda: proxy.logs("bundle.refused")[1:], what="another refusal", timeout_s=30)
    assert "safe_mode" in why[-1]["reason"]
    world.sign(world.files(STOPS, REDACTS, version="4"))
    world.publish(look=False)
    why = until(lambda: proxy.logs("bundle.refused")[2:], what="a third", timeout_s=30)
    assert "is not what was approved" in why[-1]["reason"]
    assert answer(proxy) == "There is No."
    assert proxy.logs("reload.accepted") == proxy.logs("reload.refused") == []
    world.release(STOPS, LOGS, version="5")
    until(lambda: proxy.logs("bundle.accepted"), what="a good one", timeout_s=30)
    assert answer(proxy) == "There is No."
    assert len(proxy.logs("bundle.refused")) == 3  # each is said once


def test_without_its_source_a_node_keeps_what_it_has_and_starts_from_it(
    world: World, begin: Begin, tmp_path: Path
) -> None:
    proxy = begin()
    away = world.public.rename(tmp_path / "away")
    (said,) = until(lambda: proxy.logs("bundle.unreachable"), what="the missing source", timeout_s=30)
    assert "can't be read" in said["reason"]
    assert answer(proxy) == "There is No."
    assert proxy.stop() == 0
    again = begin()
    assert answer(again) == "There is No."
    until(lambda: again.logs("bundle.unreachable"), what="the missing source", timeout_s=30)
    away.rename(world.public)
    until(lambda: again.logs("bundle.current"), what="the source again", timeout_s=30)


def test_a_proxy_that_is_killed_leaves_nothing_and_goes_on(
    world: World, begin: Begin, llm: Llm, tmp_path: Path
) -> None:
    """Its follower ends with it, wherever it was; what it left can be used."""
    proxy = Proxy(_settings(world, llm, tmp_path / "node"), tmp_path / "node")
    world.release(STOPS, LOGS, version="2")
    proxy.kill()
    until(lambda: not proxy.left(), what="the end of the follower", timeout_s=30)
    again = begin()
    assert answer(again) == "There is No."
    current = again.folder / "var" / "bundles" / "current"
    world.release(STOPS, REDACTS, version="3")
    before = current.read_text()
    until(lambda: current.read_text() != before, what="the newer bundle", timeout_s=30)
    for path in (again.folder / "var" / "bundles" / "bundles").iterdir():
        assert (path / "bundle.json").exists()


def test_a_follower_that_ends_is_started_again(world: World, begin: Begin) -> None:
    proxy = begin()

    def followers() -> list[int]:
        found = Path("/proc").glob("[0-9]*/cmdline")
        return [
            int(path.parent.name)
            for path in found
            if str(proxy.folder).encode() in _read(path) and b"\0follow\0" in _read(path)
        ]

    (first,) = until(followers, what="the follower", timeout_s=30)
    subprocess.run(["kill", "-9", str(first)], check=True)
    until(lambda: [pid for pid in followers() if pid != first], what="another", timeout_s=30)
    assert proxy.logs("bundle.follower_ended")[0]["code"] == -9
    world.release(STOPS, LOGS, version="2")
    until(lambda: proxy.logs("bundle.accepted"), what="the newer bundle", timeout_s=30)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_node_that_has_no_bundle_and_can_get_none_does_not_start(world: World, llm: Llm, tmp_path: Path) -> None:
    settings = _settings(world, llm, tmp_path / "node")
    shutil.rmtree(world.public)
    file = tmp_path / "node" / "checkstream.yaml"
    file.write_text(json.dumps(settings), encoding="utf-8")
    for command, says in (
        ("serve", "no bundle `retail` can be had: `"),
        ("config check", "no bundle `retail` has been fetched yet"),
    ):
        words = [*command.split(), *(["--config"] if command == "serve" else []), str(file)]
        done = subprocess.run(
            [sys.executable, "-m", "checkstream", *words],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=ROOT,
            check=False,
        )
        assert done.returncode == 2
        assert says in done.stderr
    settings.pop("bundles")
    file.write_text(json.dumps(settings), encoding="utf-8")
    check = [sys.executable, "-m", "checkstream", "config", "check", str(file)]
    done = subprocess.run(check, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert "`bundle:chat` is of a bundle, and none is configured" in done.stderr
