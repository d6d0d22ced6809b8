"""A real proxy tells a real control server of its exchanges, over ends of both by SIGKILL: each once, proven."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlled import Server as Files
from tests.e2e.harness import Llm, Proxy, running, until
from tests.e2e.telling import CALLERS, Control, ask, files_in, log_of, settings_of, shipped, shown


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return files_in(tmp_path / "control")


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CALLERS:
        monkeypatch.setenv(f"KEY_{name}", name)


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
        assert shipped(node) == "idle"  # what it wrote as it ended
        records = log_of(node / "audit")
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
