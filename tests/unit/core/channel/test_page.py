from __future__ import annotations

import pytest

from checkstream.core.channel.actions import Firing
from checkstream.core.channel.brief import Brief
from checkstream.core.channel.checks import HoldSettings
from checkstream.core.channel.holdback import Holdback
from checkstream.core.channel.json_leaves import JsonLeaves
from checkstream.core.channel.page import Page
from checkstream.core.channel.replacements import Replacement
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.vm import exchange_facts
from checkstream.core.terms import Span, Stage
from tests.playbook import digest

POLICY = """
pack: {name: p, version: 1.2.0}
policies:
  - {name: r, id: R, stage: midstream, entities: [EMAIL], actions: [{type: redact, scope: sentence}]}
  - {name: s, id: S, stage: midstream, phrases: [top secret], enabled_when: context.strict, actions: [{type: stop}]}
  - {name: t, id: T, stage: midstream, phrases: [press office], actions: [{type: allow}]}
  - {name: u, id: U, stage: midstream, mode: shadow, phrases: [shadow word], actions: [{type: stop}]}
  - {name: v, id: V, stage: midstream, phrases: [loud], conditions: ["findings.loud > 1"], actions: [{type: redact}]}
"""
PROGRAM = compile_sources([("p.yaml", POLICY)])
CONTEXT = {
    "user": {"name": "Ann", "age": 7, "vip": True, "none": None, "list": ("a",), "mail": "ann@example.com"},
    "plan": "top secret",
    "office": "press office",
    "quiet": "shadow word",
    "one": "loud",
    "two": "loud and loud",
    "evil": "a\x1b[2J\u202eb\n",
    "long": "x" * 500,
    "strict": True,
}


class Made:
    """A page, with what it noted."""

    def __init__(
        self,
        channel: str = "content",
        holdback: Holdback | None = None,
        *,
        strict: bool = True,
        json: JsonLeaves | None = None,
    ) -> None:
        self.degraded: list[str] = []
        exchange, _ = exchange_facts(
            PROGRAM, {**CONTEXT, "strict": strict}, {"model": "m", "route": "chat"}, who=("c", "u"), fail_mode="closed"
        )
        brief = Brief(
            program=PROGRAM,
            settings=HoldSettings(),
            fail_mode="closed",
            exchange=exchange,
            digest=digest,
            degrade=self.degraded.append,
        )
        self.page = Page(holdback, brief, PROGRAM.scope(Stage.MIDSTREAM, channel), json=json)

    def fill(self, template: str) -> str:
        firing = Firing(rule=PROGRAM.rules[0], signal=PROGRAM.signals[0], span=Span(0, 1), mode="enforce")
        return self.page.fill(template, firing)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain", "plain"),
        ("{{}}", "{}"),
        ("{model} on {route} by {rule_id} of {policy} for {detector}", "m on chat by R of p@1.2.0 for entity:EMAIL"),
        ("{context.user.name}, {context.user.age}, {context.user.vip}", "Ann, 7, true"),
        ("{context.nobody|friend}", "friend"),
        ("{context.user.list|x}{context.user|y}{context.user.none|z}", "xyz"),
        ("{context.user.name.first|deep}", "deep"),
        ("<{context.evil}>", "<a[2Jb>"),
        ("{context.long}", "x" * 200),
        ("{surface|none}", "none"),
    ],
)
def test_variables_are_put_in(template: str, text: str) -> None:
    made = Made()
    assert made.fill(template) == text
    assert made.degraded == []


def test_a_value_that_is_missing_is_written_as_nothing_and_noted() -> None:
    made = Made()
    assert made.fill("Call {context.phone}{context.fax}.") == "Call ."
    assert made.degraded == ["text_variable_missing:R"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("user.mail", "[REDACTED]"),
        ("plan", "[REDACTED]"),
        ("office", "press office"),
        ("quiet", "shadow word"),
        ("one", "loud"),
        ("two", "[REDACTED]"),
    ],
)
def test_g04_a_value_that_an_enforced_rule_condemns_is_not_written(value: str, text: str) -> None:
    assert Made().fill(f"<{{context.{value}}}>") == f"<{text}>"


def test_a_rule_that_is_switched_off_condemns_nothing() -> None:
    assert Made(strict=False).fill("{context.plan}") == "top secret"


def test_a_default_is_the_policy_s_own_and_is_written_as_it_is() -> None:
    assert Made().fill("{context.nobody|top secret}") == "top secret"


def test_a_value_can_put_in_no_variable() -> None:
    made = Made()
    assert made.page.written("{context.user.name}", PROGRAM.rules[0]) == "Ann"
    assert made.fill("{{context.plan}}") == "{context.plan}"


def test_sources_may_be_longer_than_other_values() -> None:
    made = Made()
    assert made.page.written("{sources}", PROGRAM.rules[0], sources="s" * 5000) == "s" * 5000


def held(text: str, grain: str = "sentence") -> Holdback:
    scope = PROGRAM.scope(Stage.MIDSTREAM, "content")
    made = Holdback(scope.hold, checks=False, settings=HoldSettings(), grain=grain)  # type: ignore[arg-type]
    made.feed(text)
    made.end()
    return made


def test_a_page_shows_text_edits_and_what_an_edit_takes() -> None:
    holdback = held("One two. Three four. ")
    page = Made(holdback=holdback).page
    assert page.text(Span(4, 7)) == "two"
    assert page.widen(Span(5, 6), "span") == Span(5, 6)
    assert page.text(page.widen(Span(5, 6), "word")) == "two."
    assert page.text(page.widen(Span(5, 6), "sentence")) == "One two."
    assert list(page.edits(Span(0, 9))) == []
    holdback.replacements.add(Replacement(4, 7, "x"), 0)
    assert [edit.text for edit in page.edits(Span(0, 9))] == ["x"]


def test_in_a_json_string_a_page_shows_what_the_text_says() -> None:
    text, leaves = '{"a": "b\\u0041\\n"}', JsonLeaves()
    leaves.feed(text)
    assert Made("tool_arguments", held(text, "span"), json=leaves).page.text(Span(7, 16)) == "bA\n"
    prose = JsonLeaves()
    prose.feed("b\\u0041\\n")
    assert Made("tool_arguments", held("b\\u0041\\n", "span"), json=prose).page.text(Span(0, 9)) == "b\\u0041\\n"


def test_a_page_without_text_shows_none() -> None:
    page = Made().page
    assert page.text(Span(0, 5)) == ""
    assert page.widen(Span(1, 2), "sentence") == Span(1, 2)
    assert list(page.edits(Span(0, 5))) == []
