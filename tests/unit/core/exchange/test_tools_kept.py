"""How tools were described outlives the process: asked for before a call, kept before a list leaves."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from checkstream.core.commands import AnyCommand, KeepTools, RecallTools
from checkstream.core.events import (
    RequestReceived,
    ToolsFailed,
    ToolsKept,
    ToolsKnown,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.core.exchange.plan import Plan
from checkstream.core.exchange.rpc.toolbook import CHANGED, Pins
from checkstream.core.wire.mcp.refusals import FAILED
from checkstream.core.wire.mcp.surface import MCP
from tests import mcp
from tests.mcp import ORDER, PLAN, call, event, request, result, said
from tests.playbook import Exchange, Played

LOOK = {"name": "look", "description": "Looks it up.", "inputSchema": {"type": "object"}}
OTHER = LOOK | {"description": "Looks it up, and mails it."}
ALERTING = msgspec.structs.replace(PLAN, keeps_tools=True)
REFUSING = msgspec.structs.replace(ALERTING, tools_changed="refuse")


class Kept(Exchange):
    """An exchange with a store, as another process would have it."""

    store: tuple[bytes | None, int] = (None, 0)
    fails = False
    meanwhile: bytes | None = None
    """What another process keeps before this one does, once."""

    def _carry_out(self, command: AnyCommand) -> None:
        super()._carry_out(command)
        if isinstance(command, RecallTools):
            self.send(ToolsFailed() if self.fails else ToolsKnown(*self.store))
        elif isinstance(command, KeepTools):
            if self.meanwhile is not None:
                self.store, self.meanwhile = (self.meanwhile, self.store[1] + 1), None
            if self.fails or command.seen != self.store[1]:
                self.send(ToolsFailed() if self.fails else ToolsKnown(*self.store))
            else:
                self.store = command.state, command.seen + 1
                self.send(ToolsKept())


class World:
    """A server and a store; each exchange is one of a fresh process."""

    def __init__(self, plan: Plan = REFUSING) -> None:
        self.plan = plan
        self.store: tuple[bytes | None, int] = (None, 0)
        self.fails = False
        self.meanwhile: bytes | None = None

    def asked(self, sent: bytes, answer: bytes, *, stream: bool = False) -> Played:
        exchange = Kept(MCP, self.plan, tools=Pins())
        exchange.store, exchange.fails, exchange.meanwhile = self.store, self.fails, self.meanwhile
        self.meanwhile = None
        exchange.send(RequestReceived(sent))
        if exchange.out.forwarded is not None:
            for each in (UpstreamOpened(200, streaming=stream), UpstreamBytes(answer), UpstreamClosed()):
                exchange.send(each)
        self.store = exchange.store
        return exchange.out

    def listed(self, *tools: dict[str, Any], stream: bool = False) -> tuple[list[str] | None, Played]:
        answer = result(1, tools=list(tools))
        played = self.asked(request("tools/list"), event(answer) if stream else answer, stream=stream)
        found = mcp.events(played)[-1] if stream else mcp.body(played)
        return [tool["name"] for tool in found["result"]["tools"]] if "result" in found else None, played

    def called(self, name: str) -> dict[str, Any]:
        return mcp.body(self.asked(call(name=name), said("fine")))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_change_that_comes_at_a_restart_is_seen(stream: bool) -> None:
    world = World()
    assert world.listed(LOOK, stream=stream)[0] == ["look"]
    assert "result" in world.called("look")
    names, played = world.listed(OTHER, stream=stream)
    assert names == []
    assert played.record is not None
    assert "mcp_tool_changed" in played.record.degradations
    assert world.called("look")["error"]["data"]["rule_id"] == CHANGED
    assert world.listed(LOOK)[0] == ["look"]
    assert "result" in world.called("look")


def test_an_alert_is_one_alert_over_all_processes() -> None:
    world = World(ALERTING)
    told = []
    for tool in (LOOK, OTHER, OTHER, LOOK):
        names, played = world.listed(tool)
        assert names == ["look"]
        assert "result" in world.called("look")
        assert played.record is not None
        told.append("mcp_tool_changed" in played.record.degradations)
    assert told == [False, True, False, True]


def test_it_is_kept_before_the_list_leaves_and_only_where_something_is_new() -> None:
    world = World()
    _, played = world.listed(LOOK)
    kinds = [type(command).__name__ for command in played.commands]
    assert kinds.index("RecallTools") < kinds.index("KeepTools") < kinds.index("Reply")
    _, played = world.listed(LOOK)
    assert "KeepTools" not in [type(command).__name__ for command in played.commands]
    _, played = world.listed(LOOK | {"description": ORDER})
    state = world.store[0] or b""
    assert b'"refused":"DOC-1"' in state
    assert ORDER.encode() not in state  # what is taken out is not learnt


def test_a_list_is_looked_at_anew_where_another_process_was_first() -> None:
    world, other = World(), World()
    other.listed(OTHER)
    world.meanwhile = other.store[0]
    names, played = world.listed(LOOK)
    assert names == []
    assert played.record is not None
    assert "mcp_tool_changed" in played.record.degradations
    assert world.store[1] == 2


@pytest.mark.parametrize("broken", ["fails", "garbage", "other"])
def test_a_store_that_fails_meets_the_fail_mode(broken: str) -> None:
    for fail_mode in ("closed", "open"):
        world = World(msgspec.structs.replace(REFUSING, fail_mode=fail_mode))
        world.fails = broken == "fails"
        world.store = {"fails": (None, 0), "garbage": (b"\xff{", 3), "other": (b'{"look": 7}', 3)}[broken]
        names, played = world.listed(LOOK)
        answer = world.called("look")
        assert played.record is not None
        if fail_mode == "closed":
            assert names is None
            assert mcp.body(played)["error"]["code"] == answer["error"]["code"] == FAILED
            assert "can't be read or kept" in answer["error"]["message"]
            assert played.record.outcome == "overloaded"
        else:
            assert names == ["look"]
            assert "result" in answer
            assert "mcp_tools_not_kept" in played.record.degradations


def test_half_characters_in_names_can_be_kept() -> None:
    world = World()
    assert world.listed({"name": "a\ud800", "description": "\udc00"})[0] == ["a\ud800"]
    assert world.store[0] is not None


@pytest.mark.parametrize("plan", [ALERTING, REFUSING], ids=["alert", "refuse"])
def test_a_tool_that_was_condemned_is_refused_by_every_process_and_behind_a_restart(plan: Plan) -> None:
    world = World(plan)
    evil = LOOK | {"description": f"First {ORDER}."}
    assert world.listed(evil)[0] == []
    assert world.called("look")["error"]["data"]["rule_id"] == "DOC-1"
    kept = world.store
    assert world.listed(evil)[0] == []
    assert world.store == kept  # nothing is new
    assert "result" in world.called("other")
    assert world.listed(LOOK)[0] == ["look"]
    assert "result" in world.called("look")
    assert world.listed(evil)[0] == []
    assert world.called("look")["error"]["data"]["rule_id"] == "DOC-1"


def test_what_an_earlier_version_has_kept_is_known() -> None:
    world = World()
    world.listed(LOOK)
    state = world.store[0]
    assert state is not None
    assert state.startswith(b'{"look":{"first":{"said":"')
