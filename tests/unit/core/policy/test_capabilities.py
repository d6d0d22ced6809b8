"""Which action a route can carry out, and what is said where it can't."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from checkstream.core.policy import capabilities
from checkstream.core.policy.action import (
    AdaptTone,
    Allow,
    AllowConstrained,
    AnyAction,
    ConstrainTools,
    LowerTemp,
    Redact,
    SafeMode,
)
from checkstream.core.policy.capabilities import CAN, SURFACE_ACTIONS, UPSTREAM_ACTIONS, Missing, Target, missing
from checkstream.core.terms import Stage
from checkstream.core.wire.surfaces import SURFACES

EVERYTHING = frozenset(CAN)
ANY = {"ingress": Stage.INGRESS, "midstream": Stage.MIDSTREAM, "egress": Stage.EGRESS}


def target(surface: str = "openai.chat", can: frozenset[str] = frozenset()) -> Target:
    return Target("chat", surface, "local", can)


def needs(action: AnyAction, stage: Stage = Stage.INGRESS, to: Target | None = None) -> list[str]:
    return [found.need for found in missing(action, stage, to or target())]


def test_g08_every_action_stands_in_the_matrix_of_surfaces() -> None:
    actions = {action.name: action for action in get_args(AnyAction)}
    assert {entry for entry in SURFACE_ACTIONS if "." not in entry} == actions.keys()
    for entry in [*SURFACE_ACTIONS, *(entry for entry, _ in UPSTREAM_ACTIONS)]:
        name, _, field = entry.partition(".")
        fields = {known.name for known in msgspec.structs.fields(actions[name])}
        assert not field or field in fields, entry


def test_g08_the_matrix_speaks_of_the_surfaces_that_there_are() -> None:
    names = {surface.name for surface in SURFACES.values()}
    assert {*capabilities.SURFACES, *capabilities.PROMPT_ONLY, *capabilities.STORED} == names
    assert {surface for surfaces in SURFACE_ACTIONS.values() for surface in surfaces} == {
        *capabilities.SURFACES,
        capabilities.MCP,
    }
    assert set(UPSTREAM_ACTIONS.values()) == set(CAN)


@pytest.mark.parametrize("stage", ANY.values(), ids=ANY)
def test_what_needs_nothing_runs_everywhere(stage: Stage) -> None:
    for action in (Allow(), Redact(), LowerTemp(), SafeMode() if stage is Stage.INGRESS else Allow()):
        assert needs(action, stage) == needs(action, stage, target("openai.completions")) == []


SAFE = SafeMode(bad_words=("x",), logit_bias=((1, -100),), tools=("a",), instruction="Be safe.")


def test_each_need_of_an_action_is_named() -> None:
    assert needs(SAFE) == ["an upstream that can `bad_words`", "an upstream that can `logit_bias`"]
    assert needs(SAFE, Stage.MIDSTREAM)[0] == "an upstream that can `continue`"
    assert needs(SAFE, Stage.MIDSTREAM, target(can=EVERYTHING)) == []
    assert needs(SAFE, Stage.INGRESS, target("openai.completions", EVERYTHING)) == [
        "the API `anthropic.messages` or `ollama.chat` or `openai.chat` or `openai.responses` for `tools`",
        "the API `anthropic.messages` or `ollama.chat` or `openai.chat` or `openai.responses` for `instruction`",
    ]
    assert needs(SafeMode(tools=()), Stage.INGRESS, target("openai.completions")) == [
        "the API `anthropic.messages` or `ollama.chat` or `openai.chat` or `openai.responses` for `tools`"
    ]
    assert needs(AllowConstrained(json_schema="{}")) == ["an upstream that can `json_schema`"]
    assert needs(AllowConstrained(grammar="g")) == ["an upstream that can `grammar`"]
    assert needs(AllowConstrained(grammar="g"), to=target(can=frozenset({"grammar"}))) == []
    for action in (ConstrainTools(allow=()), AdaptTone("kind")):
        assert needs(action) == []
        assert needs(action, to=target("openai.completions")) == [
            f"the API `anthropic.messages` or `ollama.chat` or `openai.chat` or `openai.responses` for `{action.name}`"
        ]


def test_a_surface_that_nobody_knows_can_do_nothing() -> None:
    assert needs(Allow(), to=target("openai.unknown"))


@pytest.mark.parametrize("surface", sorted(capabilities.PROMPT_ONLY))
@pytest.mark.parametrize("stage", Stage)
def test_where_no_answer_is_text_nothing_of_it_is_asked_for(surface: str, stage: Stage) -> None:
    sent = capabilities.COUNTS.get(surface) if stage is Stage.INGRESS else None  # what is counted is what would be sent
    for action in (SAFE, AdaptTone("kind"), ConstrainTools(allow=()), AllowConstrained(grammar="g"), Redact()):
        assert needs(action, stage, target(surface)) == ([] if sent is None else needs(action, stage, target(sent)))


def test_the_advice_says_which_setting_to_change() -> None:
    assert missing(SafeMode(bad_words=("x",)), Stage.INGRESS, target()) == (
        Missing(
            "an upstream that can `bad_words`",
            "add `can: [bad_words]` to upstream `local` if it does, or remove `bad_words`",
        ),
    )
    (lack,) = missing(SafeMode(), Stage.MIDSTREAM, target())
    assert lack.advice == "add `can: [continue]` to upstream `local` if it does, or run it at `ingress` only"
    (lack,) = missing(AdaptTone("kind"), Stage.INGRESS, target("openai.completions"))
    assert lack.advice == (
        "route `chat` speaks `openai.completions`; leave the policy out there, or remove `adapt_tone`"
    )


def test_why_an_answer_of_generate_can_not_go_on_is_said_where_it_is_refused() -> None:
    where = target("ollama.generate", EVERYTHING)
    (found,) = (each for each in missing(SafeMode(), Stage.MIDSTREAM, where) if "safe_mode" in each.need)
    assert "leaves no place behind the prompt" in found.advice
