"""What is said at the start: whether this is the process that was meant, and whether its upstreams are there."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import msgspec
import pytest

from checkstream.app.force import load, put_in_force
from checkstream.app.start import introduction, unreachable
from checkstream.config import Address, AuditSettings, Config, Secret, Upstream, default_config, override
from checkstream.config.secrets import audit_key
from checkstream.config.settings import Match, RouteSettings
from checkstream.scoring.scorer import Scorer
from checkstream.telemetry.logs import MAX_ITEMS


def said(config: Config, file: Path | None = None) -> dict[str, object]:
    force = put_in_force(load(lambda: config), (), Scorer([], lambda _: None), None)  # type: ignore[arg-type,return-value]
    return introduction(force, Address("127.0.0.1", 8080), Address("127.0.0.1", 9090), file)


def test_upstreams_routes_and_places_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours.yaml").write_text(
        "pack: {name: ours, version: 1.2.3}\n"
        "policies: [{name: r, id: R-1, entities: [EMAIL], actions: [{type: redact}]}]\n"
    )
    found = said(default_config("http://h:8000/v1", policies=["ours.yaml"]))
    assert found["upstreams"] == {"default": "http://h:8000"}
    routes = found["routes"]
    assert isinstance(routes, list)
    assert routes[0] == "POST /v1/chat/completions -> default, guarded by ours@1.2.3"
    assert "GET /v1/models -> default, passed on unguarded" in found["unguarded"]  # type: ignore[operator]
    assert found["audit"] == str(tmp_path / "var/audit")
    assert found["audit_key"] == str(tmp_path / "var/audit.key")
    assert (found["listen"], found["admin"], found["config"]) == ("127.0.0.1:8080", "127.0.0.1:9090", "command line")
    assert found["console"] == "http://127.0.0.1:9090/console/"
    assert "record" not in found
    assert said(default_config("http://h"), tmp_path / "c.yaml")["config"] == str(tmp_path / "c.yaml")


def test_every_route_is_said_or_counted() -> None:
    config = default_config("http://h")
    found = said(config)
    told = [*found["routes"], *found["unguarded"]]  # type: ignore[misc]
    more = [int(line.split()[1]) for line in told if line.startswith("and ")]
    assert len(told) - len(more) + sum(more) == len(config.routes)
    assert max(len(found["routes"]), len(found["unguarded"])) <= MAX_ITEMS  # type: ignore[arg-type]
    assert "DELETE GET /v1/responses/{id} -> default, guarded by default@" in " ".join(told)
    assert any(line.startswith("POST /api/show -> default, passed") for line in told)
    many = [RouteSettings(name=f"r{i}", match=Match(path=f"/p{i}"), upstream="default", pass_=True) for i in range(40)]
    rest = said(msgspec.structs.replace(config, routes=tuple(many)))["unguarded"]
    assert isinstance(rest, list)
    assert (len(rest), rest[-1]) == (MAX_ITEMS, "and 9 more")


def test_the_key_of_the_audit_is_where_it_was_put() -> None:
    assert audit_key(AuditSettings(dir="/a/log")) == Path("/a/log.key")
    assert audit_key(AuditSettings(key=Secret(file="/k"))) == Path("/k")
    named = Secret(env="AUDIT_KEY")
    assert audit_key(AuditSettings(key=named)) == named


async def test_upstreams_that_are_not_there_are_named_with_the_reason() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        closed = Upstream(url=f"http://127.0.0.1:{port}")
        taken.listen()
        there = Upstream(url=f"http://127.0.0.1:{port}/v1")
        assert await unreachable({"there": there}) == {}
    found = await unreachable({"closed": closed, "nowhere": Upstream(url="http://nowhere.invalid:1")})
    assert found["closed"] == "connection refused"
    assert found["nowhere"]


async def test_an_upstream_that_answers_nothing_is_waited_for_no_longer_than_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("checkstream.app.start.asyncio.open_connection", never)
    monkeypatch.setattr("checkstream.app.start._REACH_S", 0.01)
    assert await unreachable({"a": Upstream(url="https://h")}) == {"a": "no connection within 0 s"}


def test_the_command_line_decides_on_logs() -> None:
    assert default_config("http://h").telemetry.log == "auto"
    assert default_config("http://h", log="console").telemetry.log == "console"
    assert override(Config(), log="json").telemetry.log == "json"
