"""Which actions a route can carry out: by the API that it speaks, and by what its upstream can do.

An entry of the tables is an action's name, or `action.field` for what one field of it needs besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, get_args

import msgspec

from checkstream.core.policy.action import AllowConstrained, AnyAction, SafeMode
from checkstream.core.terms import Stage

Can = Literal["continue", "bad_words", "logit_bias", "json_schema", "grammar"]
CAN: tuple[str, ...] = get_args(Can)
"""What an upstream is said to support. continue: an answer that was cut off is gone on with. bad_words: texts that are
not written. logit_bias: tokens made more or less likely. json_schema, grammar: answers of a fixed form."""

CHAT, COMPLETIONS, RESPONSES = "openai.chat", "openai.completions", "openai.responses"
MESSAGES = "anthropic.messages"
OLLAMA_CHAT, OLLAMA_GENERATE = "ollama.chat", "ollama.generate"
SURFACES = (CHAT, COMPLETIONS, RESPONSES, MESSAGES, OLLAMA_CHAT, OLLAMA_GENERATE)
"""APIs whose answers are text."""
PROMPT_ONLY = frozenset({
    "openai.embeddings", "openai.moderations", "cohere.rerank", "ollama.embed", "ollama.embeddings",
    "anthropic.count_tokens", "openai.responses.input_tokens",
})  # fmt: skip
"""APIs that answer with figures: the rules of the prompt are carried out, and no answer is there for the others."""
COUNTS: Mapping[str, str] = MappingProxyType(
    {"anthropic.count_tokens": MESSAGES, "openai.responses.input_tokens": RESPONSES}
)
"""API that counts a request -> the one whose request it is: shaped alike, it can carry out what that one can."""
STORED = frozenset({"openai.responses.stored", "openai.responses.cancel"})
"""Answers that were given before: the rules of answers are carried out, and no prompt is there for the others."""
MCP = "mcp"
"""Messages: the rules of the prompt are carried out on those of both sides. None of either side is text that a model
writes while it is sent, so there is nothing for the other rules."""
_ALL = frozenset(SURFACES)
_WITH_MESSAGES = frozenset({CHAT, RESPONSES, MESSAGES, OLLAMA_CHAT})
_CONTINUED = frozenset({CHAT, COMPLETIONS, RESPONSES, MESSAGES, OLLAMA_CHAT})
_OPENAI = frozenset({CHAT, COMPLETIONS})

SURFACE_ACTIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "allow": _ALL | {MCP},
        "reject": _ALL | {MCP},
        "require_confirmation": _ALL | {MCP},
        "constrain_tools": _WITH_MESSAGES,
        "redact": _ALL | {MCP},
        "pseudonymise": _ALL,
        "rewrite_span": _ALL | {MCP},
        "remove_message": _ALL | {MCP},
        "stop": _ALL,
        "inject_disclaimer": _ALL,
        "require_disclaimer": _ALL,
        "attribute_sources": _ALL,
        "safe_mode": _CONTINUED,
        "safe_mode.bad_words": _OPENAI,
        "safe_mode.logit_bias": _OPENAI,
        "allow_constrained.grammar": _OPENAI,
        "safe_mode.instruction": _WITH_MESSAGES & _CONTINUED,
        "safe_mode.tools": _WITH_MESSAGES & _CONTINUED,
        "lower_temp": _ALL,
        "allow_constrained": _ALL - {MESSAGES},
        "adapt_tone": _WITH_MESSAGES,
        "log_event": _ALL | {MCP},
    }
)
"""Action, or field of one -> the surfaces that can carry it out."""

_WHY: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        (
            "safe_mode",
            OLLAMA_GENERATE,
        ): ", whose template leaves no place behind the prompt for the beginning of an answer"
    }
)
"""Action and surface -> why that can't be, where it is not plain."""

UPSTREAM_ACTIONS: Mapping[tuple[str, Stage | None], Can] = MappingProxyType(
    {
        ("safe_mode", Stage.MIDSTREAM): "continue",
        ("safe_mode.bad_words", None): "bad_words",
        ("safe_mode.logit_bias", None): "logit_bias",
        ("allow_constrained.json_schema", None): "json_schema",
        ("allow_constrained.grammar", None): "grammar",
    }
)
"""Action, or field of one, and the stage at which it is asked for (None: any) -> what the upstream must support."""


class Target(msgspec.Struct, frozen=True):
    """One route that a policy is compiled for."""

    route: str
    """Name of the route."""
    surface: str
    """One of `SURFACES`, of `PROMPT_ONLY` or of `STORED`, or `MCP`."""
    upstream: str
    """Name of the upstream, as configured."""
    can: frozenset[str]
    """What it is said to support, of `CAN`."""


class Missing(msgspec.Struct, frozen=True):
    """Something that an action needs and a route has not."""

    need: str
    """What it needs, to be read behind "needs"."""
    advice: str
    """What to do about it."""


def missing(action: AnyAction, stage: Stage, target: Target) -> tuple[Missing, ...]:
    """Return all that `action` needs at `stage` and the target has not."""
    figures = target.surface in PROMPT_ONLY and not (target.surface in COUNTS and stage is Stage.INGRESS)
    if figures or target.surface in STORED or (target.surface == MCP and stage is not Stage.INGRESS):
        return ()
    return tuple(_missing(action, stage, target))


def _missing(action: AnyAction, stage: Stage, target: Target) -> Iterator[Missing]:
    surface = COUNTS.get(target.surface, target.surface)
    for entry in _entries(action):
        said = entry.rpartition(".")[2]
        if entry in SURFACE_ACTIONS and surface not in SURFACE_ACTIONS[entry]:
            surfaces = " or ".join(f"`{name}`" for name in sorted(SURFACE_ACTIONS[entry]))
            why = _WHY.get((entry, surface), "")
            yield Missing(
                f"the API {surfaces} for `{said}`",
                f"route `{target.route}` speaks `{target.surface}`{why}; "
                f"leave the policy out there, or remove `{said}`",
            )
        for at in (stage, None):
            ability = UPSTREAM_ACTIONS.get((entry, at))
            if ability is not None and ability not in target.can:
                way = f"run it at `{Stage.INGRESS}` only" if at is not None else f"remove `{said}`"
                yield Missing(
                    f"an upstream that can `{ability}`",
                    f"add `can: [{ability}]` to upstream `{target.upstream}` if it does, or {way}",
                )


def _entries(action: AnyAction) -> Iterator[str]:
    """Yield the entries of the tables that speak of this action as it is written."""
    yield action.name
    match action:
        case SafeMode():
            fields = {
                "bad_words": bool(action.bad_words),
                "logit_bias": bool(action.logit_bias),
                "tools": action.tools is not None,
                "instruction": action.instruction is not None,
            }
        case AllowConstrained():
            fields = {"json_schema": action.json_schema is not None, "grammar": action.grammar is not None}
        case _:
            return
    yield from (f"{action.name}.{field}" for field, given in fields.items() if given)
