"""A control server and a node that tells it of its exchanges, as the processes that they are."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from checkstream.app.shipping import opened_shipper
from checkstream.audit.chain import Record, read
from checkstream.audit.verify import verify
from checkstream.config import load_config
from tests.bundled import LOGS, World
from tests.controlled import Server as Files
from tests.controlled import key_of
from tests.e2e.harness import Llm, Process, Proxy, config, http

CHAT = "/v1/chat/completions"
MODEL = "telemetry"
CALLERS = ("open", "shy")
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


def files_in(folder: Path) -> Files:
    """Return the files of a control server that takes what its nodes are, at an address of its own."""
    made = Files(folder, allow={"packages": "any", "configurations": "any"})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        made.written["listen"] = f"127.0.0.1:{free.getsockname()[1]}"
    return made


def settings_of(files: Files, llm: Llm, folder: Path, **telemetry: Any) -> dict[str, Any]:
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
    callers = [{"name": name, "key": {"env": f"KEY_{name}"}} for name in CALLERS]
    settings = config(llm.url, folder, ["ours.yaml"], chat_only=True)
    settings["server"] |= {"callers": callers}
    return settings | {
        "bundles": {"source": str(world.public), "root": "root.json", "name": "retail", "poll_s": 1},
        "control": {"url": f"http://{files.written['listen']}", "node": "n1", "key": "node.pem", "poll_s": 1},
        "telemetry": {"salt": {"file": "salt"}, "privacy_of_callers": {"shy": "none"}, "batch_ms": 50, **telemetry},
    }


def ask(proxy: Proxy, caller: str = "open") -> str:
    """Ask once, and return the id of the exchange."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}
    status, headers, _ = http("POST", proxy.url + CHAT, body, headers={"authorization": f"Bearer {caller}"})
    assert status == 200
    return headers["x-checkstream-stream"]


def shown(proxy: Proxy) -> str:
    """Return the proxy's metrics."""
    return http("GET", f"{proxy.admin_url}/metrics")[2].decode()


def log_of(folder: Path) -> list[Record]:
    """Return the records of an audit log that is whole."""
    (report,) = verify(folder)
    assert report.bad is None
    return [read(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines()]


async def _shipped(folder: Path) -> str:
    async with opened_shipper(load_config(folder / "checkstream.yaml")) as shipper:
        while (step := await shipper.step()).shipping == "sent":
            pass
        return step.shipping


def shipped(folder: Path) -> str:
    """Ship all that is left, as the agent does, and return what the last attempt came to."""
    return asyncio.run(_shipped(folder))
