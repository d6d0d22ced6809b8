"""Where rules run: the matrix of actions, stages and channels, and whether a rule keeps to it (G8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from checkstream.core.policy.action import AnyAction, InjectDisclaimer, RemoveMessage, SafeMode
from checkstream.core.policy.fields import did_you_mean
from checkstream.core.policy.nodes import Place, Source, shown
from checkstream.core.policy.syntax import Rule
from checkstream.core.terms import ANSWER_CHANNELS, INGRESS_CHANNELS, STAGE_CHANNELS, Stage

_ALL = (Stage.INGRESS, Stage.MIDSTREAM, Stage.EGRESS)
ACTION_STAGES: Mapping[str, tuple[Stage, ...]] = MappingProxyType(
    {
        "allow": (Stage.INGRESS, Stage.MIDSTREAM),
        "reject": (Stage.INGRESS,),
        "require_confirmation": (Stage.INGRESS,),
        "constrain_tools": (Stage.INGRESS,),
        "redact": (Stage.INGRESS, Stage.MIDSTREAM),
        "pseudonymise": (Stage.INGRESS,),
        "rewrite_span": (Stage.INGRESS, Stage.MIDSTREAM),
        "remove_message": (Stage.INGRESS,),
        "stop": (Stage.MIDSTREAM,),
        "inject_disclaimer": _ALL,
        "require_disclaimer": _ALL,
        "attribute_sources": (Stage.INGRESS, Stage.EGRESS),
        "safe_mode": (Stage.INGRESS, Stage.MIDSTREAM),
        "lower_temp": (Stage.INGRESS,),
        "allow_constrained": (Stage.INGRESS,),
        "adapt_tone": (Stage.INGRESS,),
        "log_event": _ALL,
    }
)
"""The matrix of actions and stages; `inject_disclaimer` as it is with `position: end`."""
POSITION_STAGES: Mapping[str, tuple[Stage, ...]] = MappingProxyType(
    {"start": (Stage.INGRESS,), "end": _ALL, "after_sentence": (Stage.MIDSTREAM,)}
)
DEFAULT_STAGES = (Stage.INGRESS, Stage.MIDSTREAM)
"""Where a rule runs that doesn't say. Egress sees the text that midstream saw: a rule there says so."""
SPAN_ACTIONS = frozenset({"allow", "redact", "pseudonymise", "rewrite_span", "remove_message"})
"""Actions on what was found: a rule without triggers can't have them."""
_CONTENT = ("content",)
_BROUGHT = ("tool_result", "document")
"""Channels of what was brought into a prompt, and can be taken out of it."""


def action_stages(action: AnyAction) -> tuple[Stage, ...]:
    """Return the stages at which an action can be carried out."""
    if isinstance(action, InjectDisclaimer):
        return POSITION_STAGES[action.position]
    return ACTION_STAGES[action.name]


def action_channels(action: AnyAction, stage: Stage) -> tuple[str, ...]:
    """Return the channels of a stage on which an action can be carried out."""
    if isinstance(action, RemoveMessage):
        return _BROUGHT if stage is Stage.INGRESS else ()
    continues = isinstance(action, SafeMode) or (
        isinstance(action, InjectDisclaimer) and action.position == "after_sentence"
    )
    return _CONTENT if continues and stage is Stage.MIDSTREAM else STAGE_CHANNELS[stage]


def stages_of(source: Source, rule: Rule, *, bare: bool) -> frozenset[Stage]:
    """Return the rule's stages; report each action that can't run at one that is named.

    Args:
        source: The rule's file.
        rule: The rule.
        bare: It has no triggers, and runs at ingress unless it says so.
    """
    if rule.stages:
        for placed in rule.stages:
            if bare and placed.value == Stage.MIDSTREAM:
                reason = "a rule without triggers can't run at stage `midstream`"
                source.fault(placed.at, reason, "it runs at `ingress`, on the request, or at `egress`, on the answer")
            for action in rule.actions:
                allowed = action_stages(action.value)
                if placed.value not in allowed:
                    _wrong_stage(source, action.value, action.at, placed.value, allowed)
        return frozenset(Stage(placed.value) for placed in rule.stages)
    default = (Stage.INGRESS,) if bare else DEFAULT_STAGES
    stages = [stage for stage in default if all(stage in action_stages(a.value) for a in rule.actions)]
    if not stages and rule.actions:
        words = ", ".join(f"`{action.value.name}`" for action in rule.actions)
        what = "a rule without triggers" if bare else "no stage"
        reason = f"{what} can't carry out {words} at `ingress`" if bare else f"{what} can carry out {words} together"
        source.fault(rule.actions[0].at, reason, "name another stage" if bare else "make two rules of it")
    given = {placed.value for placed in rule.channels}
    if given:
        stages = [stage for stage in stages if given & set(STAGE_CHANNELS[stage])] or stages
    return frozenset(stages)


def _wrong_stage(source: Source, action: AnyAction, at: Place, stage: str, allowed: Sequence[Stage]) -> None:
    where = ", ".join(f"`{name}`" for name in allowed)
    reason = f"the action `{action.name}` can't run at stage `{stage}`"
    advice = f"it runs at {where}"
    if isinstance(action, InjectDisclaimer) and action.position == "start":
        reason = f"a rule of stage `{stage}` can't put a text before the answer"
        advice = "the answer has begun by then: use `position: end` or `stage: [ingress]`"
    elif isinstance(action, InjectDisclaimer):
        reason = f"a rule of stage `{stage}` can't put a text after a sentence of the answer"
        advice = "use `position: end` or `stage: [midstream]`"
    elif stage == Stage.EGRESS:
        advice += "; egress rules only add text or record"
    source.fault(at, reason, advice)


def channels_of(source: Source, rule: Rule, stages: frozenset[Stage], *, bare: bool) -> frozenset[str]:
    """Return the rule's channels; report those that none of its stages has, and stages left without one."""
    if bare:
        allowed = _CONTENT if Stage.EGRESS in stages else ()
        other = next((placed for placed in rule.channels if placed.value not in allowed), None)
        if other is not None:
            reason = "a rule without triggers is decided on the request, or at the end of `content`"
            source.fault(other.at, reason, "remove `channels`")
        return frozenset(allowed)
    known = {channel for stage in stages for channel in STAGE_CHANNELS[stage]}
    if not rule.channels:
        return frozenset(
            channel
            for stage in stages
            for channel in STAGE_CHANNELS[stage]
            if all(channel in action_channels(action.value, stage) for action in rule.actions)
        )
    _unknown_channels(source, rule, stages, known)
    given = frozenset(placed.value for placed in rule.channels)
    for placed in rule.stages:
        if not given & set(STAGE_CHANNELS[Stage(placed.value)]) and given <= known:
            reason = f"stage `{placed.value}` has none of the rule's channels"
            source.fault(placed.at, reason, "remove the stage or add one of its channels")
    for action in rule.actions:
        for stage in sorted(stages):
            barred = sorted(given & set(STAGE_CHANNELS[stage]) - set(action_channels(action.value, stage)))
            if barred:
                reason = f"the action `{action.value.name}` can't run on channel `{barred[0]}` at stage `{stage}`"
                only = " and ".join(f"`{name}`" for name in action_channels(action.value, stage))
                source.fault(action.at, reason, f"there it runs on {only} only: name that channel, or make two rules")
    return given


def _unknown_channels(source: Source, rule: Rule, stages: frozenset[Stage], known: set[str]) -> None:
    everywhere = (*INGRESS_CHANNELS, *ANSWER_CHANNELS)
    words = " or ".join(f"`{stage}`" for stage in STAGE_CHANNELS if stage in stages)
    for placed in rule.channels:
        if placed.value not in everywhere:
            otherwise = "channels: " + ", ".join(f"`{name}`" for name in everywhere)
            advice = did_you_mean(placed.value, everywhere, otherwise)
            source.fault(placed.at, f"there is no channel {shown(placed.value)}", advice)
        elif placed.value not in known and stages:
            names = ", ".join(f"`{n}`" for stage in STAGE_CHANNELS if stage in stages for n in STAGE_CHANNELS[stage])
            source.fault(placed.at, f"stage {words} has no channel `{placed.value}`", f"it has {names}")
