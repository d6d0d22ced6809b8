"""A real control server and real proxies: bundles go round by rings, and bad ones come back, whoever is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.bundled import STOPS, World
from tests.controlled import Server, key_of
from tests.e2e.harness import ROOT, Control, Llm, Proxy, config, http, running, until, verify_audit

EVERYTHING = STOPS.replace("zero risk", "all is").replace("No.", "Nothing goes.")
CHAT = "/v1/chat/completions"


class Site:
    """A control server with a repository and the nodes `n1`, which is the canary, and `n2`."""

    def __init__(self, folder: Path, llm: Llm, stack: ExitStack) -> None:
        (folder / "world").mkdir()
        self.folder, self.llm, self.stack = folder, llm, stack
        self.world = World(folder / "world")
        self.world.establish()
        self.world.release(STOPS, version="1")
        health = {"exchanges": 40, "reach_s": 120}
        rings = [{"name": "canary", "nodes": ["n1"], "soak_s": 3600}, {"name": "all", "percent": 100, "soak_s": 0}]
        self.server = Server(folder, rings=rings, health=health, allow={"packages": "any", "configurations": "any"})
        self.server.written["repository"] = str(self.world.public)
        self.control = Control(folder, self.server.config_file())
        # killed and started anew, it is to be found at the same address
        self.server.written["listen"] = self.control.url.removeprefix("http://")
        self.server.config_file()
        stack.callback(self.end)
        self.proxies: dict[str, Proxy] = {}

    def end(self) -> None:
        self.control.kill()

    def settings(self, name: str) -> dict[str, Any]:
        """Return a node's configuration; it reads bundles from the control server."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "root.json").write_bytes(self.world.root)
        self.server.write_key(name, folder / "node.pem")
        bundles = {"source": f"{self.control.url}/bundles/", "root": "root.json", "name": "retail", "poll_s": 1}
        control = {"url": self.control.url, "node": name, "key": "node.pem", "poll_s": 1}
        own = config(self.llm.url, folder, ["bundle:chat"], chat_only=True)
        own["server"]["workers"] = 2 if name == "n1" else 1  # the canary's counts are those of two processes
        return {**own, "bundles": bundles, "control": control}

    def begin(self, *names: str) -> None:
        """Start nodes, at the same time."""
        with ThreadPoolExecutor(len(names)) as threads:
            started = threads.map(lambda name: Proxy(self.settings(name), self.folder / name), names)
            for name, proxy in zip(names, started, strict=True):
                self.proxies[name] = self.stack.enter_context(running(proxy))

    def attest(self, name: str) -> str:
        """Look once as a node that doesn't run, and return what is said."""
        file = self.folder / name / "checkstream.yaml"
        settings = self.settings(name)
        file.write_text(json.dumps(settings), encoding="utf-8")
        command = [sys.executable, "-m", "checkstream", "bundle", "follow", "--config", str(file), "--once"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False).stdout

    def ask(self, method: str, path: str, person: str, body: object = None) -> dict[str, Any]:
        """Ask as a person does."""
        key = {"authorization": f"Bearer {key_of(person)}"}
        status, _, answer = http(method, self.control.url + path, body, headers=key)
        assert status == 200, answer
        found: dict[str, Any] = json.loads(answer)
        return found

    def rolled_out(self, version: str) -> int:
        """Ask for a rollout and approve of it; return its number."""
        made = self.ask("POST", "/v1/rollouts", "eve", {"fleet": "shop", "version": version})
        self.ask("POST", "/v1/approvals", "rob", {"rollout": made["id"]})
        return int(made["id"])

    def fleet(self) -> dict[str, Any]:
        """Return how the fleet stands."""
        return self.ask("GET", "/v1/fleets/shop", "gus")

    def in_force(self, name: str) -> str:
        shown = json.loads(http("GET", f"{self.proxies[name].admin_url}/admin/status")[2])
        return str(shown["bundle"]).partition("#")[0]

    def answer(self, name: str) -> str:
        messages = [{"role": "user", "content": "hello"}]
        status, _, body = http("POST", self.proxies[name].url + CHAT, {"model": "said", "messages": messages})
        assert status == 200, body
        content: str = json.loads(body)["choices"][0]["message"]["content"]
        return content


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, llm: Llm) -> Iterator[Site]:
    """A fleet that had nothing, and has version 1 by its first rollout."""
    llm.put("said", {"choices": [{"content": "All is blue."}]})
    with ExitStack() as stack:
        made = Site(tmp_path_factory.mktemp("control"), llm, stack)
        assert "names no bundle yet; `checkstream control rollout FLEET 1` begins" in made.attest("n1")
        number = made.rolled_out("1")
        made.ask("POST", "/v1/promotions", "eve", {"rollout": number})
        made.begin("n1", "n2")
        until(lambda: made.fleet()["rollout"]["stage"] == "done" or None, what="the first rollout", timeout_s=30)
        yield made


def test_a_bundle_that_stops_everything_comes_back_from_its_canary_though_the_server_is_killed(site: Site) -> None:
    for name in ("n1", "n2"):
        assert (site.in_force(name), site.answer(name)) == ("retail@1", "All is blue.")
        for _ in range(30):
            site.answer(name)
    site.world.release(EVERYTHING, version="2")
    until(lambda: [each["version"] for each in site.fleet()["offered"]] == ["2", "1"], what="the offer", timeout_s=30)
    site.rolled_out("2")
    until(lambda: site.in_force("n1") == "retail@2" or None, what="the canary", timeout_s=30)
    assert site.answer("n1").startswith("Nothing goes.")
    assert (site.in_force("n2"), site.answer("n2")) == ("retail@1", "All is blue.")
    site.control.kill()  # in the midst of it; nodes go on without
    for _ in range(45):
        site.answer("n1")
    site.control = Control(site.folder, site.server.folder / "control.yaml")
    until(lambda: site.in_force("n1") == "retail@1" or None, what="the way back", timeout_s=120)
    assert site.answer("n1") == "All is blue."
    shown = site.fleet()
    assert (shown["rollout"]["stage"], "stops: " in shown["rollout"]["why"]) == ("rolled_back", True)
    until(lambda: not any(node["drifted"] for node in site.fleet()["nodes"]), what="no drift", timeout_s=30)
    assert site.control.stop() == 0
    checked = verify_audit(site.folder / "var" / "control-audit")
    assert checked.returncode == 0, checked.stdout + checked.stderr
