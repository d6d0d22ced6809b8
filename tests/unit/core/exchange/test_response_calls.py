"""Calls in an answer of the Responses API: which of them wait for its end, and what stands behind them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from tests import responses
from tests.guarded import MAIL, STOP, TOX, plan
from tests.playbook import Exchange, by_words, constant

CODE = {
    "id": "ci_1", "type": "code_interpreter_call", "status": "completed", "container_id": "c", "outputs": [],
    "code": "write('john.doe@example.com')",
}  # fmt: skip
REMOTE = {
    "id": "mcp_1", "type": "mcp_call", "status": "completed", "name": "find", "server_label": "crm", "error": None,
    "arguments": '{"who": "john.doe@example.com"}', "output": "Ask mary.roe@example.com.",
}  # fmt: skip
PAY = responses.call("pay", '{"to": "john.doe@example.com"}')

_DEL = {"type": "update_file", "path": "a.md", "diff": "-john.doe@example.com"}
_RUN: dict[str, Any] = {"commands": ["mail john.doe@example.com"], "timeout_ms": 9, "max_output_length": None}
BEGUN: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "computer_call": ("action", {"type": "type", "text": ""}, {"type": "type", "text": "john.doe@example.com"}),
    "shell_call": ("action", {"commands": [], "timeout_ms": None, "max_output_length": None}, _RUN),
    "local_shell_call": ("action", {"type": "exec", "command": []}, {"type": "exec", "command": _RUN["commands"]}),
    "apply_patch_call": ("operation", {**_DEL, "diff": ""}, _DEL),
    "tool_search_call": ("arguments", {"goal": None}, {"goal": "john.doe@example.com"}),
}  # fmt: skip
"""Type of a call -> its member that says how, as that is told when the item begins, and when it is over."""


def begun(form: str) -> list[bytes]:
    """Return the events of an answer with a call that is told in part when it begins, its end last."""
    member, first, last = BEGUN[form]
    item: dict[str, Any] = {"id": "x_1", "type": form, "call_id": "c_1", "status": "in_progress", member: first}
    over: dict[str, Any] = {**item, "status": "completed", member: last}
    made = responses.Stream()
    made.add("response.output_item.added", output_index=0, item=item)
    if form == "shell_call":
        made.add("response.shell_call_command.added", output_index=0, command_index=0, command="")
        for piece in responses.cut(over[member]["commands"][0], 5):
            made.add("response.shell_call_command.delta", output_index=0, command_index=0, delta=piece)
        whole = {"command": over[member]["commands"][0]}
        made.add("response.shell_call_command.done", output_index=0, command_index=0, **whole)
    if form == "apply_patch_call":
        at = {"output_index": 0, "item_id": "x_1"}
        for piece in responses.cut(over[member]["diff"], 5):
            made.add("response.apply_patch_call_operation_diff.delta", **at, delta=piece, obfuscation="xxxx")
        made.add("response.apply_patch_call_operation_diff.done", **at, diff=over[member]["diff"])
    made.add("response.output_item.done", output_index=0, item=over)
    made.end(over)
    return made.events


def streamed(*items: dict[str, Any]) -> list[bytes]:
    """Return the events of an answer, its end last."""
    made = responses.Stream()
    for index, item in enumerate(items):
        if item["type"] == "code_interpreter_call":
            at = {"output_index": index, "item_id": item["id"]}
            made.add("response.output_item.added", output_index=index, item={**item, "code": ""})
            made.add("response.code_interpreter_call.in_progress", **at)
            for piece in responses.cut(item["code"], 3):
                made.add("response.code_interpreter_call_code.delta", **at, delta=piece)
            made.add("response.code_interpreter_call_code.done", **at, code=item["code"])
            made.add("response.code_interpreter_call.completed", **at)
            made.add("response.output_item.done", output_index=index, item=item)
        else:
            made.item(index, item)
    made.end(*items)
    return made.events


def opened(rules: str, **settings: Any) -> Exchange:
    exchange = Exchange(responses.RESPONSES, plan(rules, **settings), by_words("lexicon.toxicity", ["idiot"]))
    exchange.send(RequestReceived(responses.request()))
    exchange.send(UpstreamOpened(200, streaming=True))
    return exchange


@pytest.mark.parametrize("item", [CODE, REMOTE], ids=["code", "mcp"])
def test_text_behind_a_call_of_the_provider_s_leaves_while_the_answer_goes_on(item: dict[str, Any]) -> None:
    exchange = opened(MAIL + STOP)
    events = streamed(item, responses.message("It is so, and then some more, and not otherwise."))
    for piece in events[:-4]:
        exchange.send(UpstreamBytes(piece))
    assert b"[EMAIL]" in exchange.out.joined
    assert b"It is so, " in exchange.out.joined
    for piece in events[-4:]:
        exchange.send(UpstreamBytes(piece))
    exchange.send(UpstreamClosed())
    assert b"@example" not in exchange.out.joined
    answer = responses.read(exchange.out.joined, typed=False)
    assert [each["type"] for each in answer["output"]] == [item["type"], "message"]


def test_a_call_of_the_caller_s_tools_waits_for_others_where_rules_find_what_is_cut_over_several() -> None:
    exchange = opened(MAIL)
    events = streamed(PAY, responses.call("pay", '{"to": "me"}', number=2))
    for piece in events[:-1]:
        exchange.send(UpstreamBytes(piece))
    assert b"pay" not in exchange.out.joined
    exchange.send(UpstreamBytes(events[-1]))
    assert exchange.out.joined.count(b"[EMAIL]") == 4  # its pieces, and three that say all of it


@pytest.mark.parametrize("rules", [TOX, TOX.replace("[content]", "[content, tool_arguments]")])
def test_a_call_leaves_when_it_is_over_where_nothing_can_stand_over_several(rules: str) -> None:
    exchange = opened(rules)
    first, second = PAY, responses.call("pay", '{"to": "me"}', number=2)
    events = streamed(first, second)
    over = next(at for at, event in enumerate(events) if b"output_item.done" in event)
    for piece in events[:over]:
        exchange.send(UpstreamBytes(piece))
    assert b"pay" not in exchange.out.joined
    exchange.send(UpstreamBytes(events[over]))
    assert b"".join(events[: over + 1]) == exchange.out.joined
    for piece in events[over + 1 :]:
        exchange.send(UpstreamBytes(piece))
    assert exchange.out.joined == b"".join(events)


@pytest.mark.parametrize("given", ['{"to": "idiot"}', '{"to": "me"'], ids=["stopped", "torn"])
def test_g35_a_call_that_is_stopped_or_torn_never_leaves_when_it_is_over(given: str) -> None:
    exchange = opened(TOX.replace("[content]", "[content, tool_arguments]"))
    for piece in streamed(responses.call("pay", given), responses.message("Well.")):
        if not exchange.out.closed:
            exchange.send(UpstreamBytes(piece))
    assert b"pay" not in exchange.out.joined
    answer = responses.read(exchange.out.joined)
    assert [each["type"] for each in answer["output"]] == ["message"] * len(answer["output"])


def test_what_comes_for_a_call_that_is_over_goes_nowhere() -> None:
    exchange = opened(MAIL)
    events = streamed(REMOTE)
    late = {"item_id": "mcp_1", "output_index": 0, "delta": "drop all"}
    events[-1:-1] = [responses.event("response.mcp_call_arguments.delta", len(events) - 1, **late)]
    for piece in events:
        exchange.send(UpstreamBytes(piece))
    assert b"drop all" not in exchange.out.joined
    answer = responses.read(exchange.out.joined, typed=False)
    assert json.loads(answer["output"][0]["arguments"]) == {"who": "[EMAIL]"}
    assert exchange.out.record is not None
    assert "text_after_end" in exchange.out.record.degradations


def test_a_last_word_that_says_a_call_otherwise_still_leaves() -> None:
    exchange = Exchange(responses.RESPONSES, plan(TOX), constant(0.0))
    exchange.send(RequestReceived(responses.request()))
    exchange.send(UpstreamOpened(200, streaming=True))
    made = responses.Stream()
    made.item(0, PAY)
    made.end({**PAY, "namespace": "bank"})
    exchange.send(UpstreamBytes(made.joined))
    exchange.send(UpstreamClosed())
    assert exchange.out.joined == made.joined


def run(events: list[bytes], rules: str) -> Exchange:
    """Return an exchange in which these events have come, and no more do."""
    exchange = opened(rules)
    for piece in events:
        if not exchange.out.cancelled:
            exchange.send(UpstreamBytes(piece))
    if not exchange.out.cancelled:
        exchange.send(UpstreamClosed())
    return exchange


@pytest.mark.parametrize("form", BEGUN)
def test_g05_a_call_that_is_told_in_part_when_it_begins_is_told_whole_when_it_is_over(form: str) -> None:
    events = begun(form)
    assert run(events, TOX).out.joined == b"".join(events)


@pytest.mark.parametrize("form", BEGUN)
def test_g04_nothing_that_is_condemned_leaves_in_a_call_that_is_told_in_part_before(form: str) -> None:
    out = run(begun(form), MAIL).out
    assert b"john.doe" not in out.joined
    assert b"example.com" not in out.joined
    *_, over, end = responses.events(out.joined)
    assert end["response"]["output"] == [over["item"]]
    member, _, last = BEGUN[form]
    assert json.dumps(over["item"][member]) == json.dumps(last).replace("john.doe@example.com", "[EMAIL]")
    stopped = run(
        begun(form), "  - {name: s, id: S-1, entities: [EMAIL], actions: [{type: stop, message: Halt.}]}\n"
    ).out
    assert b"x_1" not in stopped.joined
    assert responses.said(responses.read(stopped.joined, typed=False)) == "Halt."


OF_CALLS = MAIL.replace("stage: [midstream]", "stage: [midstream], channels: [tool_arguments]")


@pytest.mark.parametrize("form", BEGUN)
@pytest.mark.parametrize("rules", [OF_CALLS, OF_CALLS.replace("redact", "stop")], ids=["redact", "stop"])
def test_g34_what_a_tool_is_given_is_its_arguments_in_each_event_that_tells_it(form: str, rules: str) -> None:
    out = run(begun(form), rules).out
    assert b"john.doe" not in out.joined
    assert b"example.com" not in out.joined
    assert out.record is not None
    assert {verdict.channel.kind for verdict in out.record.verdicts} == {"tool_arguments"}


@pytest.mark.parametrize("kind", ["computer_call_action", "local_shell_call_command", "tool_search_call_goal"])
def test_g34_what_a_tool_is_given_is_its_arguments_in_events_that_nobody_knows(kind: str) -> None:
    form = f"{kind.partition('_call')[0]}_call"
    *events, over, end = begun(form)
    made = responses.Stream()
    made.events = events
    for piece in responses.cut("to john.doe@example.com", 5):
        made.add(f"response.{kind}.delta", output_index=0, item_id="x_1", delta=piece)
    made.add(f"response.{kind}.done", output_index=0, item_id="x_1", said="to john.doe@example.com")
    out = run([*made.events, over, end], OF_CALLS).out
    assert b"john.doe" not in out.joined
    assert b"example.com" not in out.joined
    assert out.joined.count(b"[EMAIL]") == 4
    assert run([*made.events, over, end], TOX).out.joined.count(b"john.doe") > 0


def test_g04_commands_of_a_shell_are_read_each_by_itself_and_by_turns() -> None:
    rules = "  - {name: p, id: P-1, channels: [tool_arguments], patterns: [{name: w, regex: '\\brm -rf\\b'}],"
    rules += " actions: [{type: redact, text: '#'}]}\n"
    said = ["a; rm -rf", "b; rm -rf"]
    item = {"id": "x_1", "type": "shell_call", "call_id": "c_1", "status": "in_progress", "action": {"commands": []}}
    made = responses.Stream()
    made.add("response.output_item.added", output_index=0, item=item)
    for at, command in enumerate(said):
        made.add("response.shell_call_command.added", output_index=0, command_index=at, command=command[:2])
    for size in range(2, 9, 2):
        for at, command in enumerate(said):
            piece = command[size : size + 2]
            made.add("response.shell_call_command.delta", output_index=0, command_index=at, delta=piece)
    for at, command in enumerate(said):
        made.add("response.shell_call_command.done", output_index=0, command_index=at, command=command)
    over = {**item, "status": "completed", "action": {"commands": said}}
    made.add("response.output_item.done", output_index=0, item=over)
    made.end(over)
    assert run(made.events, TOX).out.joined == made.joined
    found = list(responses.events(run(made.events, rules).out.joined))
    assert [each["command"] for each in found if each["type"].endswith("command.done")] == ["a; #", "b; #"]
    assert found[-1]["response"]["output"][0]["action"] == {"commands": ["a; #", "b; #"]}
    for at in (0, 1):
        pieces = [e["delta"] for e in found if e["type"].endswith("command.delta") and e["command_index"] == at]
        assert "rm" not in "".join(pieces)


@pytest.mark.parametrize("ends", ["incomplete", "completed"])
@pytest.mark.parametrize("form", BEGUN)
def test_g35_a_call_that_has_only_begun_never_leaves(form: str, ends: str) -> None:
    *events, _, _ = begun(form)
    made = responses.Stream()
    made.events = list(events)
    why: dict[str, Any] = {"incomplete_details": {"reason": "max_output_tokens"}} if ends == "incomplete" else {}
    made.end(status=ends, **why)
    out = run(made.events, TOX).out
    assert b"x_1" not in out.joined
    assert out.record is not None
    assert f"call_withheld:{'length' if why else 'no_end'}" in out.record.degradations


TORN: dict[str, dict[str, Any]] = {
    "custom_tool_call": responses.call("sh", "rm -rf /", form="custom_tool_call") | {"id": "x_1"},
    "code_interpreter_call": {**CODE, "id": "x_1"},
    **{form: {"id": "x_1", "type": form, "call_id": "c_1", member: last} for form, (member, _, last) in BEGUN.items()},
}
"""Type of a call whose item may be well-formed, and yet not all that the tool is to be given -> such an item."""


@pytest.mark.parametrize(("rules", "ends"), [(TOX, "incomplete"), (OF_CALLS, "completed")], ids=["at-once", "waits"])
@pytest.mark.parametrize("form", TORN)
def test_g35_a_call_of_which_the_answer_says_that_it_was_broken_off_is_no_call(
    form: str, rules: str, ends: str
) -> None:
    item = TORN[form] | {"status": "incomplete"}
    why: dict[str, Any] = {"incomplete_details": {"reason": "max_output_tokens"}} if ends == "incomplete" else {}
    made = responses.Stream()
    made.events = begun(form)[:-2] if form in BEGUN else streamed(item)[:-2]
    made.add("response.output_item.done", output_index=0, item=item)
    made.end(item, status=ends, **why)
    out = run(made.events, rules).out
    whole = responses.reply(rules, responses.whole(item, status=ends, **why))
    assert whole.reply is not None
    reason = "length" if why else "no_end"
    for answer, record in (
        (responses.read(out.joined), out.record),
        (responses.parsed(whole.reply.body), whole.record),
    ):
        assert [each["type"] for each in answer["output"]] == ["message"]
        assert "the upstream broke off in it" in responses.said(answer)
        assert record is not None
        assert f"call_withheld:{reason}" in record.degradations


@pytest.mark.parametrize("form", BEGUN)
def test_g35_a_call_that_only_the_last_word_tells_whole_is_told_as_it_says(form: str) -> None:
    *events, over, end = begun(form)
    made = responses.Stream()
    made.events = [*events, end]
    for rules in (TOX, OF_CALLS):
        [item] = list(responses.events(run(made.events, rules).out.joined))[-1]["response"]["output"]
        [told] = list(responses.events(run([*events, over, end], rules).out.joined))[-1]["response"]["output"]
        assert item == told


def test_g20_a_search_within_which_a_rule_ends_the_answer_is_told_as_one_that_has_failed() -> None:
    rules = "  - {name: s, id: S-1, entities: [EMAIL], actions: [{type: stop, message: Halt.}]}\n"
    item = responses.search("about john.doe@example.com")
    out = run(streamed(item), rules).out
    assert b"john.doe" not in out.joined
    found, said = responses.read(out.joined)["output"]
    assert (found["type"], found["status"]) == ("web_search_call", "failed")
    assert responses.said({"output": [said]}) == "Halt."
