"""A real control server and real proxies: bundles go round by rings, and bad ones come back, whoever is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.bundled import STOPS, World
from tests.controlled import Server, key_of
from tests.e2e.harness import ROOT, Control, Llm, Proxy, config, http, running, until, verify_audit

EVERYTHING = STOPS.replace("zero risk", "all is").replace("No.", "Nothing goes.")
REDACTS = "{name: r, id: R-5, stage: [midstream], phrases: [blue], actions: [{type: redact}]}"
CHAT = "/v1/chat/completions"
RINGS = ({"name": "canary", "nodes": ["n1"], "soak_s": 3600}, {"name": "all", "percent": 100, "soak_s": 0})
BY_CALLERS = (
    {"name": "tenth", "callers": 10, "soak_s": 3600},
    {"name": "half", "callers": 50, "soak_s": 3600},
    {"name": "all", "percent": 100, "soak_s": 0},
)


class Site:
    """A control server with a repository and the nodes `n1`, which is the canary, and `n2`."""

    def __init__(self, folder: Path, llm: Llm, stack: ExitStack, rings: Sequence[Any] = RINGS) -> None:
        (folder / "world").mkdir()
        self.folder, self.llm, self.stack = folder, llm, stack
        self.world = World(folder / "world")
        self.world.establish()
        self.world.release(STOPS, version="1")
        health = {"exchanges": 40, "reach_s": 120}
        self.server = Server(
            folder, rings=list(rings), health=health, allow={"packages": "any", "configurations": "any"}
        )
        self.own: dict[str, Any] = {}
        """Settings of every node besides."""
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
        plain = config(self.llm.url, folder, ["bundle:chat"], chat_only=True)
        return {**plain, "server": {**plain["server"], **self.own}, "bundles": bundles, "control": control}

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

    def candidate(self, name: str) -> tuple[str, int]:
        """Return the bundle of a share of the callers, and how many percent they are."""
        shown = json.loads(http("GET", f"{self.proxies[name].admin_url}/admin/status")[2])["candidate"]
        return ("", 0) if shown is None else (str(shown["bundle"]).partition("#")[0], shown["share"])

    def answer(self, name: str, key: str = "") -> str:
        messages = [{"role": "user", "content": "hello"}]
        headers = {"authorization": f"Bearer {key}"} if key else {}
        asked = {"model": "said", "messages": messages}
        status, _, body = http("POST", self.proxies[name].url + CHAT, asked, headers=headers)
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


@pytest.mark.nightly
def test_a_bundle_goes_round_by_callers_who_keep_their_side(
    tmp_path: Path, llm: Llm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 callers: a tenth of them, then half, each over a restart; and a bad one comes back by itself."""
    keys = {f"app-{number}": f"key-of-app-{number}" for number in range(200)}
    for name, key in keys.items():
        monkeypatch.setenv(name.upper().replace("-", "_"), key)
    llm.put("said", {"choices": [{"content": "All is blue."}]})
    with ExitStack() as stack, ThreadPoolExecutor(4) as threads:
        site = Site(tmp_path, llm, stack, BY_CALLERS)
        site.own["workers"] = 2
        site.own["callers"] = [{"name": name, "key": {"env": name.upper().replace("-", "_")}} for name in keys]

        def answers() -> dict[str, str]:
            return dict(zip(keys, threads.map(lambda key: site.answer("n1", key), keys.values()), strict=True))

        def others() -> set[str]:
            """Return who is not answered as by the first bundle."""
            return {name for name, said in answers().items() if said != "All is blue."}

        site.attest("n1")
        site.rolled_out("1")  # the first comes to all: nobody has another
        site.begin("n1")
        until(lambda: site.fleet()["rollout"]["stage"] == "done" or None, what="the first rollout", timeout_s=30)
        assert others() == set()

        site.world.release(REDACTS, version="2")
        until(lambda: len(site.fleet()["offered"]) == 2 or None, what="the offer", timeout_s=30)
        number = site.rolled_out("2")
        until(lambda: site.candidate("n1") == ("retail@2", 10) or None, what="the candidate", timeout_s=30)
        tenth = others()
        assert 7 <= len(tenth) <= 36
        site.ask("POST", "/v1/promotions", "eve", {"rollout": number})
        until(lambda: site.candidate("n1") == ("retail@2", 50) or None, what="more callers", timeout_s=30)
        half = others()
        assert tenth < half
        assert 70 <= len(half) <= 130
        site.control.kill()  # a node starts with what it was told last
        assert site.proxies["n1"].stop() == 0
        site.begin("n1")
        assert (site.in_force("n1"), site.candidate("n1")) == ("retail@1", ("retail@2", 50))
        assert others() == half

        site.control = Control(site.folder, site.server.folder / "control.yaml")
        site.ask("POST", "/v1/rollbacks", "rob", {"rollout": number})
        until(lambda: site.candidate("n1") == ("", 0) or None, what="the way back", timeout_s=30)
        assert others() == set()

        site.world.release(EVERYTHING, version="3", keep=2)  # the first is what callers are to go back to
        until(lambda: site.fleet()["offered"][0]["version"] == "3" or None, what="the next offer", timeout_s=30)
        site.rolled_out("3")
        until(lambda: site.candidate("n1")[0] == "retail@3" or None, what="the bad candidate", timeout_s=30)
        stopped = others()
        assert 7 <= len(stopped) <= 36
        assert stopped != tenth  # another rollout begins with others
        until(lambda: not others() or None, what="the way back by itself", timeout_s=60)
        shown = site.fleet()["rollout"]
        assert (shown["stage"], shown["why"].partition(" ")[0]) == ("rolled_back", "stops:")

        decided: dict[str, set[str]] = {}
        for record in site.proxies["n1"].records():
            body = record["body"]
            if record["kind"] == "stream" and body["record"]["outcome"] == "stopped":
                decided.setdefault(body["record"]["program"], set()).add(body["caller"])
        assert list(decided.values()) == [stopped]  # each record names what has decided, by its hash
        assert site.control.stop() == 0
