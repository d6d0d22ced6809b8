"""Evidence from the proxy to the one who has the key: nobody in between could read it, and nothing else was written."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from checkstream.app.shipping import opened_shipper
from checkstream.config import load_config
from checkstream.control.telemetry.evidence import OpeningKey
from tests.controlled import Server as Files
from tests.controlled import key_of
from tests.e2e.harness import Llm, Proxy, http, running, until
from tests.e2e.telling import CHAT, Control, settings_of, shown
from tests.e2e.test_telemetry import files, keys

__all__ = ["files", "keys"]
SECRETS = ("canary-asked-4711", "canary-said-4712")


async def command(control: Control, *arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "checkstream", "control", *arguments, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "CHECKSTREAM_CONTROL_URL": control.url, "CHECKSTREAM_CONTROL_KEY": key_of("rob")},
    )  # fmt: skip
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


@pytest.mark.usefixtures("keys")
async def test_evidence_reaches_the_keys_holder_and_no_word_of_it_stands_anywhere_else(
    files: Files, llm: Llm, tmp_path: Path
) -> None:
    llm.put("telemetry", {"choices": [{"content": f"All of {SECRETS[1]} is blue."}]})
    node, desk = tmp_path / "node", tmp_path / "desk"
    desk.mkdir()
    settings = settings_of(files, llm, node)
    with running(Control(files)) as control:
        pair = OpeningKey.made()
        (desk / "open.pem").write_bytes(pair.private_pem)
        (node / "open.pub").write_bytes(pair.public_pem)
        settings["telemetry"] |= {"privacy_of_callers": {"open": "full_evidence", "shy": "decisions"}}
        settings["telemetry"] |= {"evidence_keys": {"open": "open.pub"}, "evidence_dir": "out"}
        body = {"model": "telemetry", "messages": [{"role": "user", "content": f"Tell me of {SECRETS[0]}."}]}
        with running(Proxy(settings, node)) as proxy:
            streams = {}
            for caller in ("open", "shy"):
                headers = {"authorization": f"Bearer {caller}"}
                status, told, _ = await asyncio.to_thread(http, "POST", proxy.url + CHAT, body, headers=headers)
                assert status == 200
                streams[caller] = told["x-checkstream-stream"]
            sent = 'checkstream_evidence_total{outcome="sent"} 1.0'
            await asyncio.to_thread(until, lambda: sent in shown(proxy), what="evidence", timeout_s=30)
            assert 'checkstream_evidence_total{outcome="sealed"} 1.0' in shown(proxy)
            metrics = shown(proxy)
        async with opened_shipper(load_config(node / "checkstream.yaml")) as shipper:
            while (await shipper.step()).shipping == "sent":
                pass

        opened = ("evidence", streams["open"], "--key", str(desk / "open.pem"), "--json")
        code, out = await command(control, *opened, "--transcript", str(desk / "told.jsonl"))
        assert code == 0, out
        told = json.loads(out)
        assert (told["stream"], told["route"], told["caller"]) == (streams["open"], "chat", "open")
        assert (told["record"], told["node"]) == ("signed", "n1")
        assert SECRETS[0] in told["asked"]
        assert SECRETS[1] in told["released"]
        assert "blue" not in told["released"], "the caller was not sent what the policy redacts"
        transcript = (desk / "told.jsonl").read_text()
        assert len(transcript.splitlines()) > 2
        assert control.told(f"/v1/evidence/{streams['shy']}") == {"evidence": []}
        answer = control.told(f"/v1/evidence/{streams['open']}")
        code, out = await command(control, "erase", "--caller", "open", "--reason", "they ask")
        assert (code, out) == (0, "1 pieces were erased\n")
        assert control.told(f"/v1/evidence/{streams['open']}") == {"evidence": []}
    written = [path for folder in (node, files.folder) for path in folder.rglob("*") if path.is_file()]
    assert any(path.name.endswith(".db") for path in written)
    for secret in SECRETS:
        assert secret not in metrics
        assert secret not in proxy.text + control.text
        assert secret not in json.dumps(answer)
        leaks = [path for path in written if secret.encode() in path.read_bytes()]
        assert leaks == [], secret
