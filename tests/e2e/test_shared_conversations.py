"""What conversations have come to, over proxies and restarts that share a store, and without the store."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Llm, Proxy, config, http, running

POLICY = """
pack: {name: past, version: 1.0.0}
policies:
  - name: red_flag
    id: FLAG-1
    stage: [ingress]
    phrases: [red flag]
    actions: [{type: log_event}]
  - name: twice
    id: TWICE-1
    stage: [ingress]
    conditions: ['conversation.fired["FLAG-1"] > 0']
    actions: [{type: reject}]
"""
KEYS = {"app1": "k-" + "1" * 20, "app2": "k-" + "2" * 20}


def settings(llm: Llm, folder: Path, shared: Path, **route: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    (folder / "policy.yaml").write_text(POLICY)
    made = config(llm.url, folder, ["policy.yaml"], chat_only=True, **route)
    callers = []
    for name, key in KEYS.items():
        (folder / name).write_text(key)
        callers.append({"name": name, "key": {"file": name}})
    made["server"]["callers"] = callers
    (folder / "secret").write_text(base64.b64encode(bytes(range(40))).decode())
    made["conversations"] = {"store": f"sqlite:{shared}", "secret": {"file": "secret"}}
    return made


def ask(proxy: Proxy, text: str, caller: str = "app1", conversation: str = "c") -> int:
    said = [{"role": "user", "content": text}]
    body = {"model": "clean", "messages": said, "checkstream": {"conversation": conversation}}
    headers = {"authorization": f"Bearer {KEYS[caller]}"}
    status, _, raw = http("POST", f"{proxy.url}/v1/chat/completions", body, headers=headers)
    if status == 400:
        assert json.loads(raw)["rule_id"] == "TWICE-1"
    return status


def test_what_one_proxy_has_seen_is_known_to_the_others_and_after_a_restart(llm: Llm, tmp_path: Path) -> None:
    shared = tmp_path / "conversations.db"
    one, two = (settings(llm, tmp_path / name, shared) for name in ("one", "two"))
    with running(Proxy(one, tmp_path / "one")) as first:
        assert ask(first, "A red flag") == 200
        with running(Proxy(two, tmp_path / "two")) as second:
            assert ask(second, "Go on.") == 400
            assert ask(second, "Go on.", "app2") == 200
            assert ask(second, "Go on.", conversation="d") == 200
            assert ask(second, "A red flag", conversation="d") == 200
        assert ask(first, "Go on.", conversation="d") == 400
    with running(Proxy(one, tmp_path / "one")) as again:
        assert ask(again, "And now?") == 400
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("conversations.db*"))
    assert b"FLAG-1" not in stored
    assert shared.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(("fail_mode", "status"), [("closed", 503), ("open", 200)])
def test_g23_without_the_store_the_fail_mode_decides_and_a_history_tells_its_own(
    llm: Llm, tmp_path: Path, fail_mode: str, status: int
) -> None:
    made = settings(llm, tmp_path / "one", tmp_path / "c.db", fail_mode=fail_mode)
    made["conversations"] = {"store": "redis://127.0.0.1:9/0", "secret": {"file": "secret"}, "timeout_ms": 2000}
    with running(Proxy(made, tmp_path / "one")) as proxy:
        assert ask(proxy, "A red flag") == status
        outcomes = [entry["body"]["record"] for entry in proxy.records() if "record" in entry["body"]]
    (record,) = outcomes
    assert record["outcome"] == ("overloaded" if fail_mode == "closed" else "complete")
    assert ("conversation_not_known" in record["degradations"]) is (fail_mode == "open")
