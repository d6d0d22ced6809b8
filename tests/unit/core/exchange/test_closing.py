from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.channel.actions import Ask, Firing
from checkstream.core.channel.brief import Brief
from checkstream.core.channel.checks import HoldSettings
from checkstream.core.channel.page import Page
from checkstream.core.exchange.closing import Closing, Said, closing_of, required
from checkstream.core.policy.action import (
    AnyAction,
    AttributeSources,
    InjectDisclaimer,
    LowerTemp,
    RequireDisclaimer,
)
from checkstream.core.policy.compile import compile_sources
from checkstream.core.terms import ExchangeFacts, Span, Stage
from checkstream.core.wire.surface import Document
from tests.playbook import digest

PROGRAM = compile_sources(
    [
        (
            "p.yaml",
            (
                "pack: {name: p, version: 1.0.0}\npolicies:\n"
                "  - {name: r, id: R, stage: midstream, entities: [EMAIL], actions: [{type: redact}]}\n"
            ),
        )
    ]
)
PAGE = Page(
    None,
    Brief(
        program=PROGRAM,
        settings=HoldSettings(),
        fail_mode="closed",
        exchange=ExchangeFacts(context={"name": "Ann", "mail": "ann@example.com"}, request={"model": "m"}),
        digest=digest,
        degrade=lambda _: None,
    ),
    PROGRAM.scope(Stage.MIDSTREAM, "content"),
)
DOCUMENTS = (
    Document(text="a", title="Rates", url="https://a.io/1"),
    Document(text="b", id="b-7"),
    Document(text="c", url="https://c.io"),
    Document(text="d"),
)


def ask(action: AnyAction) -> Ask:
    return Ask(Firing(rule=PROGRAM.rules[0], signal=PROGRAM.signals[0], span=Span(0, 1), mode="enforce"), action)


@pytest.mark.parametrize(
    ("action", "closing"),
    [
        (InjectDisclaimer(text="Mind, {context.name}."), Closing("\n\nMind, Ann.")),
        (InjectDisclaimer(text="x", position="start"), None),
        (InjectDisclaimer(text="x", position="after_sentence"), None),
        (RequireDisclaimer(text="By {model}."), Closing("\n\nBy m.", unless_said=True)),
        (LowerTemp(), None),
        (InjectDisclaimer(text="Mail {context.mail}."), Closing("\n\nMail [REDACTED].")),
    ],
)
def test_what_actions_ask_for_at_the_end(action: AnyAction, closing: Closing | None) -> None:
    assert closing_of(ask(action), PAGE, ()) == closing


def test_sources_are_named_by_what_they_have() -> None:
    closing = closing_of(ask(AttributeSources()), PAGE, DOCUMENTS)
    assert closing == Closing("\n\nSources: Rates (https://a.io/1), b-7, https://c.io, document 4")


def test_no_more_sources_are_named_than_the_rule_says_and_none_where_there_are_none() -> None:
    action = AttributeSources(text="See {sources}!", max_sources=1)
    assert closing_of(ask(action), PAGE, DOCUMENTS) == Closing("\n\nSee Rates (https://a.io/1)!")
    assert closing_of(ask(action), PAGE, ()) is None


def test_a_source_whose_name_a_rule_condemns_is_not_written() -> None:
    closing = closing_of(ask(AttributeSources()), PAGE, [Document(text="", title="ann@example.com")])
    assert closing == Closing("\n\nSources: [REDACTED]")


WANTED = ("Capital at risk.", "ΟΔΟΣ", "Straße", "İ", "x", "aab")


@given(
    st.lists(
        st.sampled_from((*WANTED, "capital AT RISK.", "οδος", "STRASSE", "aa", " ", "Cap", "ital", "Σ", "b")),
        max_size=8,
    ),
    st.lists(st.integers(0, 80), max_size=20),
)
def test_what_an_answer_says_does_not_depend_on_its_cut(parts: list[str], points: list[int]) -> None:
    text = "".join(parts)
    edges = [0, *sorted({point % (len(text) + 1) for point in points}), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(edges)]
    found = []
    for reading in ([text], pieces, list(text)):
        said = Said()
        for wanted in WANTED:
            said.look_for(required(wanted))
        for piece in reading:
            said.feed(piece)
        found.append([said.has(required(wanted)) for wanted in WANTED])
    assert found[0] == found[1] == found[2]
    assert found[0] == [wanted.casefold() in text.casefold() for wanted in WANTED]


def test_a_text_that_is_added_in_any_case_is_never_said() -> None:
    said = Said()
    closing = Closing("\n\nMind.")
    said.look_for(closing)
    said.feed("Mind.")
    assert not said.has(closing)
    assert said.has(required("mind."))
