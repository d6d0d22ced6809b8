"""`checkstream telemetry ship` as its user runs it, against a real control server."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from checkstream.audit.journal import Journal, JournalSettings
from checkstream.cli import main
from checkstream.config import load_config, warnings
from tests.certificates import Authority, put
from tests.controlled import Server, asked
from tests.records import KEY, stream


def node_file(server: Server, folder: Path, /, **more: Any) -> Path:
    """Write the configuration of the node `n1`, with an audit log of five exchanges."""
    private = server.nodes["n1"]._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "node.pem").write_bytes(private)
    (folder / "var").mkdir(exist_ok=True)
    (folder / "var" / "audit.key.pub").write_bytes(KEY.public.pem())
    journal = Journal(JournalSettings(directory=folder / "var" / "audit", head_ms=1.0), KEY, process="p")
    for number in range(5):
        journal.append(stream(number))
    journal.close()
    (folder / "root.json").write_text("{}")
    written = {
        "upstreams": {"llm": {"url": "http://127.0.0.1:1"}},
        "routes": [
            {"name": "chat", "match": {"path": "/v1/completions"}, "upstream": "llm", "policies": ["builtin:default"]}
        ],
        "bundles": {"source": str(folder), "root": "root.json", "name": "retail"},
        "control": {"url": server.url, "node": "n1", "key": "node.pem"},
        **more,
    }
    file = folder / "checkstream.yaml"
    file.write_text(yaml.safe_dump(written))
    return file


async def test_what_waits_is_sent_and_it_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with Server(tmp_path / "control").serving() as server:
        file = await asyncio.to_thread(node_file, server, tmp_path)
        command = ["telemetry", "ship", "--once", "--config", str(file)]
        assert await asyncio.to_thread(main, command) == 0
        assert capsys.readouterr().out == "sent: 5 records; 0 bytes wait\n"
        assert await asyncio.to_thread(main, [*command, "--json"]) == 0
        (said,) = map(json.loads, capsys.readouterr().out.splitlines())
        assert (said["shipping"], said["records"]) == ("sent", 0)
        found = (await asked("GET", server.url, "/v1/exchanges", person="gus"))[1]["exchanges"]
        assert {each["stream"] for each in found} == {f"s{number}" for number in range(5)}
    assert await asyncio.to_thread(main, command) == 2
    assert capsys.readouterr().out.startswith("unreachable: the control server `http://127.0.0.1:")


async def test_a_node_without_a_control_server_or_key_is_told_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Server(tmp_path / "control")
    server.url = "http://127.0.0.1:1"
    file = await asyncio.to_thread(node_file, server, tmp_path, control=None)
    command = ["telemetry", "ship", "--once", "--config", str(file)]
    assert await asyncio.to_thread(main, command) == 2
    assert "names no control server; add `control`" in capsys.readouterr().err
    await asyncio.to_thread(node_file, server, tmp_path)
    (tmp_path / "node.pem").unlink()
    assert await asyncio.to_thread(main, command) == 2
    assert "node.pem" in capsys.readouterr().err


async def test_a_node_whose_policies_are_files_tells_by_a_service_that_ends_well(tmp_path: Path) -> None:
    async with Server(tmp_path / "control").serving() as server:
        authority = Authority()
        put(tmp_path, "admin", authority.issue("node"))
        trusted = ssl.create_default_context(cadata=authority.pem().decode())
        secured = {"admin_tls": {"certificate": "admin.pem", "key": "admin.key"}}
        file = await asyncio.to_thread(partial(node_file, server, tmp_path, bundles=None, server=secured))
        assert [each for each in warnings(await asyncio.to_thread(load_config, file)) if "`bundles` is not" in each]
        command = (sys.executable, "-m", "checkstream", "telemetry", "ship", "--config", str(file))
        process = await asyncio.create_subprocess_exec(*command, "--metrics", "127.0.0.1:0", stderr=subprocess.PIPE)
        try:
            assert process.stderr is not None
            row = json.loads(await process.stderr.readline())
            assert row["event"] == "shipping"
            async with asyncio.timeout(30), aiohttp.ClientSession() as client:
                seen = ""
                while 'checkstream_telemetry_records_total{outcome="sent"} 5.0' not in seen:
                    async with client.get(f"https://{row['metrics']}/metrics", ssl=trusted) as answer:
                        seen = await answer.text()
                    await asyncio.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), 30) == 0
        finally:
            if process.returncode is None:
                process.kill()
        taken = await asyncio.create_subprocess_exec(
            *command, "--metrics", server.url.removeprefix("http://"), stderr=subprocess.PIPE
        )
        _, said = await taken.communicate()
        assert taken.returncode == 2
        assert b"give another `--metrics`" in said
