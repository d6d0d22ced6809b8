"""The matrix action x stage x channel x surface (G8): what a policy may ask for is carried out, streamed and whole;
what can't be is refused by name when the policy is compiled. The cases are made of the table in `policies/LANGUAGE.md`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from checkstream.core.commands import ForwardRequest
from checkstream.core.events import AnyEvent, RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.capabilities import CAN, CHAT, COMPLETIONS, MCP, MESSAGES, RESPONSES, Target
from checkstream.core.policy.compile import compile_sources
from checkstream.core.terms import STAGE_CHANNELS, Stage
from checkstream.core.wire.surfaces import SURFACES
from checkstream.errors import PolicyError
from tests.conformance.page import ROWS
from tests.conformance.page import SURFACES as SURFACES_OF_PAGE
from tests.conformance.surfaces import CHANNELS, answer, received, request
from tests.playbook import Exchange, Played

FOUND = "zebra crossing"
ADDED = "Mind the gap."
ACTIONS = {
    "allow": "{type: allow}",
    "reject": "{type: reject, status: 403}",
    "require_confirmation": "{type: require_confirmation}",
    "constrain_tools": "{type: constrain_tools, allow: [look_up]}",
    "redact": "{type: redact}",
    "pseudonymise": "{type: pseudonymise}",
    "rewrite_span": "{type: rewrite_span, words: {zebra crossing: crosswalk}, scope: span}",
    "remove_message": "{type: remove_message}",
    "stop": "{type: stop}",
    "inject_disclaimer": f"{{type: inject_disclaimer, text: {ADDED}}}",
    "inject_disclaimer position: start": f"{{type: inject_disclaimer, text: {ADDED}, position: start}}",
    "inject_disclaimer position: after_sentence": (
        f"{{type: inject_disclaimer, text: {ADDED}, position: after_sentence}}"
    ),
    "require_disclaimer": f"{{type: require_disclaimer, text: {ADDED}}}",
    "attribute_sources": "{type: attribute_sources}",
    "safe_mode": "{type: safe_mode, temperature: 0.25}",
    "safe_mode bad_words": "{type: safe_mode, temperature: 0.25, bad_words: [stripes]}",
    "safe_mode logit_bias": "{type: safe_mode, temperature: 0.25, logit_bias: {7: -5}}",
    "safe_mode tools": "{type: safe_mode, temperature: 0.25, tools: [look_up]}",
    "safe_mode instruction": "{type: safe_mode, temperature: 0.25, instruction: Be kind.}",
    "lower_temp": "{type: lower_temp, temperature: 0.25}",
    "allow_constrained json_schema": "{type: allow_constrained, json_schema: {type: object}}",
    "allow_constrained grammar": "{type: allow_constrained, grammar: root ::= yes}",
    "adapt_tone": "{type: adapt_tone, instruction: Be kind.}",
    "log_event": "{type: log_event}",
}
_OPENAI = frozenset({CHAT, COMPLETIONS})


def policy(action: str, stage: Stage, channel: str) -> str:
    rule = f"stage: [{stage}], channels: [{channel}], phrases: [{FOUND}], actions: [{ACTIONS[action]}]"
    rules = [f"  - {{name: r, id: R-1, priority: 5, {rule}}}"]
    if action == "allow":
        rules.append(f"  - {{name: s, id: R-2, {rule.replace('allow}', 'redact}')}}}")
    return "pack: {name: p, version: 1.0.0}\npolicies:\n" + "\n".join(rules) + "\n"


def combinations() -> Iterator[tuple[str, Stage, str, str, bool]]:
    """Yield every cell that says yes; messages of tools are asked elsewhere."""
    for action, row in ROWS.items():
        for surface, streamed in itertools.product(sorted(row.surfaces - {MCP}), (True, False)):
            for stage, only in row.stages.items():
                for channel in CHANNELS[surface][stage]:
                    if not only or channel in only:
                        yield action, stage, channel, surface, streamed


def test_every_row_of_the_matrix_is_asked_for_and_looked_at() -> None:
    assert ACTIONS.keys() == ROWS.keys() == CHECKS.keys()
    assert set(SURFACES_OF_PAGE) == {*CHANNELS, MCP}


def play(rules: str, surface: str, streamed: bool, texts: dict[str, str], *, confirmed: tuple[str, ...] = ()) -> Played:
    target = Target(route="r", surface=surface, upstream="u", can=frozenset(CAN))
    plan = Plan(program=compile_sources([("p.yaml", rules)], (), (target,)))
    running = Exchange(SURFACES[surface], plan)
    prompts = {name: text for name, text in texts.items() if name in STAGE_CHANNELS[Stage.INGRESS]}
    running.send(RequestReceived(request(surface, streamed, prompts), confirmed=confirmed))
    for asked, said in enumerate((texts, {"content": "Safe."}), 1):
        if len(forwards(running.out)) < asked:
            break
        running.out.cancelled = False
        events: list[AnyEvent] = [
            UpstreamOpened(200, streamed),
            *map(UpstreamBytes, answer(surface, streamed, said)),
            UpstreamClosed(),
        ]
        for event in events:
            if not running.out.cancelled and running.out.record is None:
                running.send(event)
    return running.out


def forwards(played: Played) -> list[dict[str, Any]]:
    return [json.loads(command.body) for command in played.commands if isinstance(command, ForwardRequest)]


def found_in(channel: str) -> str:
    return f'{{"q": "{FOUND}. Then"}}' if channel == "tool_arguments" else f"A {FOUND}. Then more."


class Ran(NamedTuple):
    """A case that has run."""

    played: Played
    got: dict[str, str]
    stage: Stage
    channel: str
    surface: str


Check = Callable[[Ran], None]


def check_edit(word: str) -> Check:
    def check(ran: Ran) -> None:
        if ran.stage == Stage.INGRESS:
            sent = json.dumps(forwards(ran.played)[0])
            # Documents are for the policies: nothing of them is forwarded.
            assert FOUND not in sent
            assert (word in sent) == (ran.channel != "document")
        elif ran.channel == "tool_name":
            # A name can't be edited, so the choice is stopped before it.
            assert ran.got["tool_name"] in {"", "A "}
            assert ran.got["finish"] == "content_filter"
        elif ran.surface == MESSAGES and ran.channel == "reasoning":
            assert ran.got["reasoning"] == ""  # its signature would not fit the text any more
        else:
            assert ran.got[ran.channel].endswith(found_in(ran.channel).replace(FOUND, word))

    return check


def check_end(ran: Ran) -> None:
    assert ran.got["content"].endswith(f"\n\n{ADDED}")


def check_fields(**fields: object) -> Check:
    def check(ran: Ran) -> None:
        sent = forwards(ran.played)[-1]
        sent |= sent.get("options", {})
        if "response_format" not in fields or ran.surface in _OPENAI:
            assert fields.items() <= sent.items()
        elif ran.surface == RESPONSES:
            assert sent["text"]["format"]["schema"] == {"type": "object"}
        else:
            assert sent["format"] == {"type": "object"}

    return check


def check_refusal(status: int) -> Check:
    def check(ran: Ran) -> None:
        assert ran.played.reply is not None
        assert (ran.played.reply.status, forwards(ran.played)) == (status, [])
        assert json.loads(ran.played.reply.body)["rule_id"] == "R-1"
        assert (ran.played.reply.confirm is not None) == (status == 409)

    return check


def check_stop(ran: Ran) -> None:
    assert ran.got["finish"] == "content_filter"
    assert FOUND not in "".join(ran.got.values())


def check_start(ran: Ran) -> None:
    assert ran.got["content"].startswith(f"{ADDED}\n\nHello")


def check_sentence(ran: Ran) -> None:
    assert ran.got["content"] == f"Hello there. A {FOUND}. {ADDED} Then more."


def check_sources(ran: Ran) -> None:
    assert ran.got["content"].endswith("\n\nSources: The Book")


def check_safe_mode(ran: Ran) -> None:
    sent = [body | body.get("options", {}) for body in forwards(ran.played)]
    assert len(sent) == (2 if ran.stage == Stage.MIDSTREAM else 1)
    assert sent[-1]["temperature"] == 0.25
    if ran.stage == Stage.MIDSTREAM:
        assert ran.got["content"] == "Hello there. A Hello there. Safe."


def check_safe_mode_with(*checks: Check) -> Check:
    def check(ran: Ran) -> None:
        for each in (check_safe_mode, *checks):
            each(ran)

    return check


def check_tools(ran: Ran) -> None:
    assert [tool.get("function", tool)["name"] for tool in forwards(ran.played)[-1]["tools"]] == ["look_up"]


def check_tone(ran: Ran) -> None:
    sent = forwards(ran.played)[-1]
    if ran.surface in {MESSAGES, RESPONSES}:
        assert sent["system" if ran.surface == MESSAGES else "instructions"].endswith("\n\nBe kind.")
    else:
        assert {"role": "system", "content": "Be kind."} in sent["messages"]


def check_nothing(ran: Ran) -> None:
    assert len(forwards(ran.played)) == 1
    if ran.stage != Stage.INGRESS:
        assert ran.got[ran.channel].endswith(found_in(ran.channel))


def check_removal(ran: Ran) -> None:
    (sent,) = forwards(ran.played)
    assert FOUND not in json.dumps(sent)
    if ran.channel == "tool_result" and ran.surface == MESSAGES:
        note = {"type": "tool_result", "tool_use_id": "c", "content": "[removed by policy R-1]"}
        assert sent["messages"][-1]["content"] == [note]
    elif ran.channel == "tool_result" and ran.surface == RESPONSES:
        note = {"type": "function_call_output", "call_id": "c", "output": "[removed by policy R-1]"}
        assert sent["input"][-1] == note
    elif ran.channel == "tool_result":
        note = {"role": "tool", "tool_call_id": "c", "content": "[removed by policy R-1]"}
        assert sent["messages"][-1] == note


CHECKS: dict[str, Check] = {
    "allow": check_nothing,
    "reject": check_refusal(403),
    "require_confirmation": check_refusal(409),
    "constrain_tools": check_tools,
    "redact": check_edit("[REDACTED]"),
    "pseudonymise": check_edit("<TERM_1>"),
    "rewrite_span": check_edit("crosswalk"),
    "remove_message": check_removal,
    "stop": check_stop,
    "inject_disclaimer": check_end,
    "inject_disclaimer position: start": check_start,
    "inject_disclaimer position: after_sentence": check_sentence,
    "require_disclaimer": check_end,
    "attribute_sources": check_sources,
    "safe_mode": check_safe_mode,
    "safe_mode bad_words": check_safe_mode_with(check_fields(bad_words=["stripes"])),
    "safe_mode logit_bias": check_safe_mode_with(check_fields(logit_bias={"7": -5})),
    "safe_mode tools": check_safe_mode_with(check_tools),
    "safe_mode instruction": check_safe_mode_with(check_tone),
    "lower_temp": check_fields(temperature=0.25),
    "allow_constrained json_schema": check_fields(
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "policy", "schema": {"type": "object"}, "strict": True},
        }
    ),
    "allow_constrained grammar": check_fields(structured_outputs={"grammar": "root ::= yes"}),
    "adapt_tone": check_tone,
    "log_event": check_nothing,
}


@pytest.mark.parametrize(("action", "stage", "channel", "surface", "streamed"), list(combinations()))
def test_g08_what_the_matrix_allows_is_carried_out(
    action: str, stage: Stage, channel: str, surface: str, streamed: bool
) -> None:
    texts = {channel: found_in(channel)}
    played = play(policy(action, stage, channel), surface, streamed, texts)
    assert played.record is not None
    mine = [verdict for verdict in played.record.verdicts if verdict.rule_id == "R-1"]
    assert [(verdict.stage, verdict.channel.kind) for verdict in mine[:1]] == [(stage, channel)]
    if action == "allow":
        others = [verdict for verdict in played.record.verdicts if verdict.rule_id == "R-2"]
        # What stands in several events of a stream is found in each.
        assert {verdict.excepted_by for verdict in others} == {"R-1"}
    CHECKS[action](Ran(played, received(played, surface), stage, channel, surface))


def refused(action: str, stage: Stage, channel: str, *targets: Target) -> str:
    with pytest.raises(PolicyError) as raised:
        compile_sources([("p.yaml", policy(action, stage, channel))], (), targets)
    return raised.value.faults[0].reason


def barred() -> Iterator[tuple[str, Stage, str]]:
    """Yield every stage and channel of a cell that says no, or names other channels."""
    for action, row in ROWS.items():
        for stage in Stage:
            for channel in STAGE_CHANNELS[stage]:
                if stage not in row.stages or (row.stages[stage] and channel not in row.stages[stage]):
                    yield action, stage, channel


@pytest.mark.parametrize(("action", "stage", "channel"), list(barred()))
def test_g08_what_the_matrix_does_not_allow_is_refused_by_name(action: str, stage: Stage, channel: str) -> None:
    said = refused(action, stage, channel)
    name, _, rest = action.partition(" ")
    assert f"`{name}`" in said or (rest.endswith("start") and "before the answer" in said) or "sentence" in said


def lacking(action: str, stage: Stage, surface: str, can: frozenset[str]) -> str:
    target = Target(route="r", surface=surface, upstream="u", can=can)
    return refused(action, stage, CHANNELS.get(surface, CHANNELS[CHAT])[stage][0], target)


@pytest.mark.parametrize(
    ("action", "surface"),
    [(action, surface) for action, row in ROWS.items() for surface in SURFACES_OF_PAGE if surface not in row.surfaces],
)
def test_g08_what_a_surface_can_not_carry_out_is_refused_by_name(action: str, surface: str) -> None:
    name, _, rest = action.partition(" ")
    for stage in ROWS[action].stages:
        if surface == MCP and stage is not Stage.INGRESS:
            continue  # rules of answers have nothing to act on there
        said = lacking(action, stage, surface, frozenset(CAN))
        assert f"`{name}` of rule `R-1` needs" in said
        assert f"for `{name}`" in said or f"for `{rest}`" in said


@pytest.mark.parametrize(
    ("action", "surface"),
    [(action, surface) for action, row in ROWS.items() if row.needs for surface in sorted(row.surfaces)],
)
def test_g08_what_an_upstream_is_not_said_to_support_is_refused_by_name(action: str, surface: str) -> None:
    row = ROWS[action]
    (need,) = row.needs
    for stage in row.stages:
        if not row.midstream or stage is Stage.MIDSTREAM:
            said = lacking(action, stage, surface, frozenset(CAN) - {need})
            assert f"needs an upstream that can `{need}`" in said


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("surface", [CHAT, MESSAGES])
def test_a_call_of_a_tool_that_is_not_allowed_ends_the_choice(streamed: bool, surface: str) -> None:
    rules = policy("constrain_tools", Stage.INGRESS, "user")
    texts = {"user": found_in("user"), "tool_name": "delete_all", "tool_arguments": '{"all": true}'}
    played = play(rules, surface, streamed, texts)
    got = received(played, surface)
    assert (got["tool_name"], got["tool_arguments"], got["finish"]) == ("", "", "content_filter")
    assert played.record is not None
    assert [(v.action, v.channel.kind) for v in played.record.verdicts] == [
        ("constrain_tools", "user"),
        ("stop", "tool_name"),
    ]
    allowed = play(rules, surface, streamed, texts | {"tool_name": "look_up"})
    assert received(allowed, surface)["tool_name"] == "look_up"


def test_a_confirmed_request_is_forwarded() -> None:
    rules = policy("require_confirmation", Stage.INGRESS, "user")
    played = play(rules, CHAT, True, {"user": found_in("user")}, confirmed=("R-1",))
    assert len(forwards(played)) == 1
    assert played.record is not None
    assert (played.record.action, played.record.confirmed) == ("allow", ("R-1",))
    other = play(rules, CHAT, True, {"user": found_in("user")}, confirmed=("R-2",))
    assert forwards(other) == []


@pytest.mark.parametrize("streamed", [True, False])
def test_a_status_makes_an_error_of_a_whole_answer_and_not_of_a_stream(streamed: bool) -> None:
    rules = policy("stop", Stage.MIDSTREAM, "content").replace(
        "{type: stop}", "{type: stop, status: 451, message: No.}"
    )
    played = play(rules, CHAT, streamed, {"content": found_in("content")})
    if streamed:
        assert received(played, CHAT)["content"] == "Hello there. A No."
    else:
        assert played.reply is not None
        assert (played.reply.status, played.reply.retry) == (451, False)
        assert json.loads(played.reply.body)["error"]["message"] == "No. (rule R-1)"
