"""What of a bundle needs approval: what is enforced, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.bundles.weight import approval_of, read_approval, weighty
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.errors import BundleRefused

HEAD = "pack: {name: ours, version: 1.0.0}\npolicies:\n"
RULE = (
    "  - {name: s, id: R-1, stage: [midstream], phrases: [zero risk], "
    "conditions: ['context.user.segment == \"retail\"'], actions: [{type: stop, message: No.}]}\n"
)
LOGS = (
    "  - {name: l, id: R-2, stage: [midstream], phrases: [trial], conditions: ['context.a == 1'], "
    "actions: [{type: log_event}]}\n"
)


def program(*rules: str, head: str = HEAD) -> Program:
    return compile_sources([("ours.yaml", (head + "".join(rules)).encode())], ())


def weight(*rules: str, head: str = HEAD) -> str:
    return approval_of("b", {"chat": program(*rules, head=head)}).weight


@pytest.mark.parametrize(
    "other",
    [
        RULE.replace("zero risk", "no risk"),
        RULE.replace("retail", "professional"),
        RULE.replace("No.", "Nope."),
        RULE.replace("stop, message: No.", "redact"),
        RULE.replace("midstream", "ingress, midstream").replace("type: stop, message: No.", "type: redact"),
        RULE.replace("name: s,", "name: s, mode: shadow,"),
        RULE.replace("name: s,", "name: s, mode: disabled,"),
        RULE.replace("name: s,", "name: s, priority: 3,"),
        RULE.replace("name: s,", "name: s, fail_mode: open,"),
        RULE.replace("name: s,", "name: s, channels: [content],"),
        RULE.replace("name: s,", "name: s, enforce_share: 0.5,"),
        RULE.replace("name: s,", "name: s, enabled_when: context.on == true,"),
        RULE.replace("R-1", "R-9"),
        "",
        RULE + "  - {name: x, id: R-3, stage: [ingress], phrases: [hush], actions: [{type: reject, message: No.}]}\n",
        RULE + "  - {name: x, id: R-3, stage: [midstream], phrases: [zero], priority: 9, actions: [{type: allow}]}\n",
    ],
)
def test_what_is_enforced_otherwise_weighs_otherwise(other: str) -> None:
    assert weight(other or LOGS) != weight(RULE)
    assert weight(LOGS, other or LOGS.replace("R-2", "R-4")) != weight(LOGS, RULE)


@pytest.mark.parametrize(
    "others",
    [
        (LOGS, RULE),
        (RULE, LOGS),
        (RULE, LOGS.replace("trial", "error")),
        (RULE, LOGS.replace("== 1", "== 1 && context.b > 2")),
        (RULE, LOGS.replace("log_event", "redact").replace("name: l,", "name: l, mode: shadow,")),
        (RULE.replace("name: s,", "name: s, metadata: {description: why, owner: me, regulation: X 1},"),),
    ],
)
def test_what_is_not_enforced_weighs_nothing(others: tuple[str, ...]) -> None:
    """Rules beside it shift the numbers of its code, its constants and its signals."""
    assert weight(*others) == weight(RULE)
    assert weight(*others, head=HEAD.replace("1.0.0", "1.4.2")) == weight(RULE)


def test_long_constants_weigh_to_their_end() -> None:
    """People see them cut; who signs must not."""
    values = ", ".join(f'"{number:03}"' for number in range(200))
    first = RULE.replace("'context.user.segment == \"retail\"'", f"'context.a in [{values}]'")
    second = RULE.replace("'context.user.segment == \"retail\"'", f"'context.a in [{values.replace('199', '777')}]'")
    assert weight(first) != weight(second)


def test_a_rule_that_others_ask_about_weighs() -> None:
    asks = RULE.replace("'context.user.segment == \"retail\"'", "'conversation.fired[\"R-2\"] > 0'")
    asks = asks.replace("midstream", "ingress").replace("stop, message: No.", "reject, message: No.")
    logs = LOGS.replace("midstream", "ingress")
    assert weight(asks, logs) != weight(asks, logs.replace("trial", "error"))
    assert {rule.rule for rule in weighty({"chat": program(asks, logs)})} == {"R-1", "R-2"}


def test_nothing_enforced_has_to_be_approved_too() -> None:
    assert approval_of("b", {"chat": program(LOGS)}).rules == ()
    assert weight(LOGS) == weight(LOGS.replace("trial", "error")) != weight(RULE)


def test_the_same_rules_in_another_program_weigh_otherwise() -> None:
    one = program(RULE)
    assert approval_of("b", {"chat": one}).weight != approval_of("b", {"tools": one}).weight
    assert approval_of("b", {"chat": one, "tools": one}).weight != approval_of("b", {"chat": one}).weight


def test_an_approval_comes_back_as_it_was() -> None:
    approval = approval_of("b", {"chat": program(RULE, LOGS)})
    assert read_approval(approval.encode()) == approval
    assert approval.rules == ("chat/R-1",)


@given(st.binary(max_size=200))
def test_rubbish_is_refused(data: bytes) -> None:
    with pytest.raises(BundleRefused, match="an approval can't be read"):
        read_approval(data)


def test_an_endless_approval_is_refused() -> None:
    with pytest.raises(BundleRefused, match="the limit is"):
        read_approval(b" " * (5 << 20))


def test_rules_that_a_stream_or_a_conversation_adds_up_weigh() -> None:
    """A shadow rule has a part in `stream.risk` and the like: to add one may change what an enforced rule does."""
    shadow = LOGS.replace("name: l,", "name: l, mode: shadow,")
    reads = RULE.replace('context.user.segment == "retail"', "{}")
    for condition in ("stream.risk > 0.3", "stream.trend > 0.0"):
        assert weight(reads.replace("{}", condition)) != weight(reads.replace("{}", condition), shadow)
    prompt = reads.replace("midstream", "ingress").replace("stop, message", "reject, message")
    for condition in ('"EMAIL" in conversation.entities', "conversation.refused > 1"):
        assert weight(prompt.replace("{}", condition)) != weight(prompt.replace("{}", condition), shadow)
    other = program(shadow)
    asks, one = program(prompt.replace("{}", "conversation.refused > 1")), program(prompt.replace("{}", "true"))
    assert {each.rule for each in weighty({"chat": asks, "tools": other})} == {"R-1", "R-2"}
    assert {each.rule for each in weighty({"chat": one, "tools": other})} == {"R-1"}
