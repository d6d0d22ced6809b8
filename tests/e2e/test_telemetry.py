"""A real proxy tells a real control server of its exchanges, over ends of both by SIGKILL: each once, proven."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from checkstream.app.shipping import opened_shipper
from checkstream.audit.chain import Record, read
from checkstream.audit.verify import verify
from checkstream.config import load_config
from tests.bundled import LOGS, World
from tests.controlled import Server as Files
from tests.controlled import key_of
from tests.e2e.harness import Llm, Process, Proxy, config, http, running, until

CHAT = "/v1/chat/completions"
POLICY = """
pack: {name: ours, version: 1.0.0}
policies:
  - {name: hides, id: R-1, stage: [midstream], phrases: [blue], actions: [{type: redact}]}
"""


class Control(Process):
    """`checkstream control serve`, at the same address each time."""

    def __init__(self, files: Files) -> None:
        super().__init__("-m", "checkstream", "control", "serve", "--config", str(files.config_file()))
        self.url = f"http://{self.said(lambda row: row.get('event') == 'listening')['listen']}"

    def told(self, path: str) -> Any:
        status, _, body = http("GET", self.url + path, headers={"authorization": f"Bearer {key_of('gus')}"})
        assert status == 200, body
        return json.loads(body)

    def streams(self) -> list[str]:
        """Return the ids of all exchanges that have arrived."""
        found: list[str] = []
        before = ""
        while True:
            page = self.told(f"/v1/exchanges?most=1000&before={before}")
            found += [each["stream"] for each in page["exchanges"]]
            if not (before := page["next"]):
                return found


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path / "control", allow={"packages": "any", "configurations": "any"})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        made.written["listen"] = f"127.0.0.1:{free.getsockname()[1]}"
    return made


def settings_of(files: Files, llm: Llm, folder: Path) -> dict[str, Any]:
    """Return what a node is configured with, whose policies are a file."""
    folder.mkdir()
    (folder / "world").mkdir()
    world = World(folder / "world")
    world.establish()
    world.release(LOGS, version="1")
    (folder / "root.json").write_bytes(world.root)
    private = files.nodes["n1"]._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "node.pem").write_bytes(private)
    (folder / "ours.yaml").write_text(POLICY)
    (folder / "salt").write_text("s" * 44)
    callers = [{"name": name, "key": {"env": f"KEY_{name}"}} for name in ("open", "shy")]
    settings = config(llm.url, folder, ["ours.yaml"], chat_only=True)
    settings["server"] |= {"callers": callers}
    return settings | {
        "bundles": {"source": str(world.public), "root": "root.json", "name": "retail", "poll_s": 1},
        "control": {"url": f"http://{files.written['listen']}", "node": "n1", "key": "node.pem", "poll_s": 1},
        "telemetry": {"salt": {"file": "salt"}, "privacy_of_callers": {"shy": "none"}, "batch_ms": 50},
    }


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("open", "shy"):
        monkeypatch.setenv(f"KEY_{name}", name)


def ask(proxy: Proxy, caller: str = "open") -> str:
    """Ask once, and return the id of the exchange."""
    body = {"model": "telemetry", "messages": [{"role": "user", "content": "hello"}]}
    status, headers, _ = http("POST", proxy.url + CHAT, body, headers={"authorization": f"Bearer {caller}"})
    assert status == 200
    return headers["x-checkstream-stream"]


@pytest.mark.usefixtures("keys")
def test_exchanges_arrive_once_and_proven_whoever_is_killed_when(files: Files, llm: Llm, tmp_path: Path) -> None:
    llm.put("telemetry", {"choices": [{"content": "All is blue."}]})
    node = tmp_path / "node"
    settings = settings_of(files, llm, node)
    control = Control(files)
    proxy = Proxy(settings, node)
    asked = [ask(proxy) for _ in range(3)]
    until(lambda: set(asked) <= set(control.streams()), what="what was asked first", timeout_s=30)
    control.kill()
    asked += [ask(proxy) for _ in range(3)]
    private = [ask(proxy, "shy") for _ in range(2)]
    until(lambda: 'attempts_total{outcome="unreachable"}' in shown(proxy), what="an attempt", timeout_s=30)
    with running(Control(files)) as control:
        until(lambda: set(asked) <= set(control.streams()), what="what was asked meanwhile", timeout_s=30)
        assert 'checkstream_telemetry_records_total{outcome="sent"}' in shown(proxy)
        asked.append(ask(proxy))
        until(lambda: asked[-1] in control.streams(), what="its record", timeout_s=30)
        proxy.kill()
        with running(Proxy(settings, node)) as proxy:
            asked.append(ask(proxy))
        assert asyncio.run(shipped(node)) == "idle"  # what it wrote as it ended
        records = log(node / "audit")
        exchanges = [str(record.body["stream"]) for record in records if record.kind == "stream"]
        assert sorted(exchanges) == sorted(asked + private)
        assert sorted(control.streams()) == sorted(asked), "each once, and none that is private"
        (chain,) = control.told("/v1/chains")["chains"]
        assert (chain["seq"], chain["signed"], chain["flaws"]) == (len(records), len(records), [])
        decided = control.told("/v1/decisions")["decisions"]
        assert {(each["rule_id"], each["action"], each["caller"]) for each in decided} == {("R-1", "redact", "open")}
        (proof,) = control.told(f"/v1/exchanges/{asked[0]}")["records"]
        assert (proof["signed"], proof["exchange"]["proven"]) == (True, True)
        events = {each["kind"] for each in control.told("/v1/events")["events"]}
        assert not events & {"chain_broken", "chain_gap", "chain_silent", "audit_key_new"}


def shown(proxy: Proxy) -> str:
    return http("GET", f"{proxy.admin_url}/metrics")[2].decode()


def log(folder: Path) -> list[Record]:
    (report,) = verify(folder)
    assert report.bad is None
    return [read(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines()]


async def shipped(folder: Path) -> str:
    """Ship all that is left, as the agent does."""
    async with opened_shipper(load_config(folder / "checkstream.yaml")) as shipper:
        while (step := await shipper.step()).shipping == "sent":
            pass
        return step.shipping
