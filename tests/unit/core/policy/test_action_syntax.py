"""What each fault of an action says stands in `policies/errors/`; here: what a sound action means."""

from __future__ import annotations

import pytest

from checkstream.core.policy import action_syntax
from checkstream.core.policy.action import (
    AdaptTone,
    Allow,
    AllowConstrained,
    AnyAction,
    AttributeSources,
    ConstrainTools,
    InjectDisclaimer,
    LogEvent,
    LowerTemp,
    Redact,
    Reject,
    RequireConfirmation,
    RequireDisclaimer,
    RewriteSpan,
    SafeMode,
    Stop,
)
from checkstream.core.policy.action_syntax import read_action
from checkstream.core.policy.nodes import SequenceNode, Source, open_source, read_nodes


def read(written: str) -> tuple[AnyAction | None, Source]:
    source = open_source("f.yaml", f"- {written}\n")
    root = read_nodes(source)
    assert isinstance(root, SequenceNode)
    placed = read_action(source, root.items[0])
    return None if placed is None else placed.value, source


@pytest.mark.parametrize(
    ("written", "action"),
    [
        ("{type: allow}", Allow()),
        ("{type: reject}", Reject()),
        ("{type: reject, status: 403, message: No.}", Reject(status=403, message="No.")),
        ("{type: require_confirmation}", RequireConfirmation()),
        (
            "{type: require_confirmation, expires_s: 60, message: 'Sure, {context.user.name|you}?'}",
            RequireConfirmation(expires_s=60, message="Sure, {context.user.name|you}?"),
        ),
        ("{type: constrain_tools, allow: []}", ConstrainTools(allow=())),
        (
            "{type: constrain_tools, allow: [search, get_*], message: No.}",
            ConstrainTools(allow=("search", "get_*"), message="No."),
        ),
        ("{type: redact}", Redact()),
        ("{type: redact, text: ''}", Redact(text="", style="text")),
        ("{type: redact, style: text, text: x}", Redact(text="x", style="text")),
        ("{type: redact, style: hash, scope: word}", Redact(style="hash", scope="word")),
        ("{type: redact, numbers: json_null}", Redact(numbers="json_null")),
        ("{type: redact, numbers: -1}", Redact(numbers=-1)),
        (
            "{type: rewrite_span, words: {guaranteed: expected, 'no risk': ''}}",
            RewriteSpan(words=(("guaranteed", "expected"), ("no risk", "")), scope="sentence"),
        ),
        ("{type: stop}", Stop()),
        ("{type: stop, message: Bye, status: 451}", Stop(message="Bye", status=451)),
        ("{type: inject_disclaimer, text: T}", InjectDisclaimer(text="T", position="end")),
        ("{type: inject_disclaimer, text: T, position: start}", InjectDisclaimer(text="T", position="start")),
        (
            "{type: inject_disclaimer, text: T, position: after_sentence}",
            InjectDisclaimer(text="T", position="after_sentence"),
        ),
        ("{type: require_disclaimer, text: T}", RequireDisclaimer(text="T")),
        ("{type: attribute_sources}", AttributeSources()),
        (
            "{type: attribute_sources, text: 'See {sources}', max_sources: 3}",
            AttributeSources(text="See {sources}", max_sources=3),
        ),
        ("{type: safe_mode}", SafeMode()),
        (
            "{type: safe_mode, temperature: 0, bad_words: [x], logit_bias: {'7': -9, 5: 3}, tools: [a*], message: Bye}",
            SafeMode(
                temperature=0.0,
                bad_words=("x",),
                logit_bias=((7, -9), (5, 3)),
                tools=("a*",),
                message="Bye",
            ),
        ),
        ("{type: safe_mode, tools: []}", SafeMode(tools=())),
        ("{type: lower_temp, temperature: 1.5}", LowerTemp(temperature=1.5)),
        ("{type: allow_constrained, grammar: 'root ::= x'}", AllowConstrained(grammar="root ::= x")),
        (
            "{type: allow_constrained, json_schema: {type: object, required: [b, a]}}",
            AllowConstrained(json_schema='{"type":"object","required":["b","a"]}'),
        ),
        ("{type: adapt_tone, instruction: Be kind.}", AdaptTone(instruction="Be kind.")),
        ("{type: log_event}", LogEvent()),
        ("{severity: critical, type: log_event}", LogEvent(severity="critical")),
    ],
)
def test_actions(written: str, action: AnyAction) -> None:
    found, source = read(written)
    assert not source.faults
    assert found == action


@pytest.mark.parametrize(
    "written",
    [
        "{type: inject_disclaimer}",
        "{type: inject_disclaimer, text: T, position: middle}",
        "{type: reject, status: 399}",
        "{type: reject, message: ''}",
        "{type: [redact]}",
        "{type: allow, text: x}",
        "{type: ~}",
        "[redact]",
        "redact",
        "{type: redact, text: ~}",
        '{type: redact, text: "a\\eb"}',
        "{type: constrain_tools, allow: a}",
        "{type: constrain_tools, allow: [a**]}",
        "{type: constrain_tools, allow: ['']}",
        "{type: rewrite_span, words: [a]}",
        "{type: rewrite_span, words: {}}",
        "{type: rewrite_span, words: {'': a}}",
        "{type: safe_mode, bad_words: []}",
        "{type: safe_mode, logit_bias: {1: 1.5}}",
        "{type: safe_mode, logit_bias: {-1: 1}}",
        "{type: safe_mode, logit_bias: {'1': 1, 01: 1}}",
        "{type: safe_mode, temperature: '0.5'}",
        "{type: allow_constrained, json_schema: []}",
        "{type: allow_constrained, grammar: ''}",
        "{type: pseudonymise, style: mask}",
        "{type: pseudonymise, restore: [users]}",
        "{type: pseudonymise, restore: user}",
    ],
)
def test_what_is_no_action_is_refused_and_never_half_read(written: str) -> None:
    found, source = read(written)
    assert found is None
    assert source.faults


@pytest.mark.parametrize("numbers", ["4111111111111111", "0.5", "zero", "true", "[]"])
def test_what_stands_in_place_of_numbers_is_a_short_one(numbers: str) -> None:
    source = read(f"{{type: redact, numbers: {numbers}}}")[1]
    assert source.faults


def test_every_action_can_be_written() -> None:
    names = {action.name for action in AnyAction.__args__}
    assert names == set(action_syntax._FORMS)


@pytest.mark.parametrize(
    "written",
    ["{type: stop, message: '@'}", "{type: adapt_tone, instruction: '@'}", "{type: redact, text: '@'}"],
)
def test_every_text_is_a_template(written: str) -> None:
    assert read(written.replace("@", "{{x}} {model}"))[0] is not None
    found, source = read(written.replace("@", "{modell}"))
    assert found is None
    assert source.faults[0].column == written.index("@") + 4
