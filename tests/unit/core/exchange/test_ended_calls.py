"""A rule that ends an answer in any member of a tool call: of that call nothing leaves (G35)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.guarded import CHAT, DONE, STOP, ends, event, plan, request, stream, whole
from tests.playbook import play

SILENT = STOP.replace(", message: Halt.", "")
BAD = "zero risk"


def _call(**members: Any) -> dict[str, Any]:
    return {"id": "c0", "type": "function", "function": {"name": "pay", "arguments": '{"a": 1}'}, **members}


CALLS = {
    "id": _call(id=BAD),
    "unknown": _call(note=BAD),
    "unknown within": _call(extra_content={"google": {"thought": BAD}}),
    "a name within": _call(extra_content={BAD: 1}),
    "beside the name": _call(function={"name": "pay", "arguments": '{"a": 1}', "parsed_arguments": {"a": BAD}}),
    "arguments": _call(function={"name": "pay", "arguments": json.dumps({"a": BAD})}),
    "name": _call(function={"name": BAD, "arguments": "{}"}),
}


@pytest.mark.parametrize("rules", [STOP, SILENT], ids=["message", "silent"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_g35_a_rule_that_ends_the_answer_in_a_member_of_a_call_leaves_nothing_of_the_call(
    call: dict[str, Any], rules: str
) -> None:
    said = "Halt." if rules is STOP else "[a tool call was withheld by policy: STOP-1]"
    function = call["function"]
    head = {**call, "index": 0, "function": {**function, "arguments": function["arguments"][:4]}}
    rest = {"index": 0, "function": {"arguments": function["arguments"][4:]}}
    for pieces in ([head, rest], [{**call, "index": 0}]):
        out = stream(
            rules, [*(event((0, {"tool_calls": [each]}, None)) for each in pieces), ends(0, "tool_calls"), DONE]
        )
        assert b"tool_calls" not in out.joined
        assert b"content_filter" in out.joined
        assert said.encode() in out.joined
    played = play(CHAT, plan(rules), request(stream=False), [whole(None, tool_calls=[call])], streaming=False)
    assert played.reply is not None
    [choice] = json.loads(played.reply.body)["choices"]
    assert not choice["message"].get("tool_calls")
    assert (choice["message"]["content"], choice["finish_reason"]) == (said, "content_filter")
