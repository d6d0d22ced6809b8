"""Why a prompt is not forwarded, and what of a request is refused whatever the policy says."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import msgspec

from checkstream.core.channel.actions import Refusing
from checkstream.core.commands import ConfirmationWanted
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.ingress.joined import PLACES_A_STEP, PLACES_WORK
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.action import Reject, RequireConfirmation
from checkstream.core.policy.program import RuleMeta
from checkstream.core.wire.surface import Request

_MAX_NAMED = 10
"""Unknown fields that a refusal names."""


NO_VERDICTS = frozenset({"detector_failed", "overloaded", "work_exceeded"})
"""Kinds of refusals that say nothing of the text."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a prompt is not forwarded."""

    status: int
    kind: str
    message: str
    rule_id: str | None = None
    confirm: ConfirmationWanted | None = None
    """The request is let through when it comes again with a token."""
    param: str | None = None
    """The place in the request that it is about, as callers write it: `messages[3]`."""


class Objections:
    """What rules have against a prompt, each with the place that it is about."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.rejects: list[tuple[Refusing, str | None]] = []
        self.confirmations: list[tuple[Refusing, str | None]] = []
        """What has to be confirmed before it is let through."""
        self.confirmed: tuple[str, ...] = ()
        """Rules to which the caller has consented."""
        self.failed: tuple[RuleMeta, str | None] | None = None
        """A rule whose detector has failed."""

    def refusal(self, policy: str) -> Refusal | None:
        """Return why the prompt is refused by a policy with this hash; None when it may be forwarded."""
        if self.rejects:
            (rule, action, _), place = self.rejects[0]
            status = action.status if isinstance(action, Reject) else 400
            return Refusal(status, "request_blocked", action.message, rule.id, param=place)
        if self.failed is not None:
            rule, place = self.failed
            message = f"a detector of rule {rule.id} failed, so the prompt can't be checked; try again"
            return Refusal(503, "detector_failed", message, rule.id, param=place)
        if self.confirmations:
            (rule, action, _), place = self.confirmations[0]
            rules = tuple(dict.fromkeys(each.rule.id for each, _ in self.confirmations))
            asked = (each.action for each, _ in self.confirmations)
            expires_s = min(each.expires_s for each in asked if isinstance(each, RequireConfirmation))
            wanted = ConfirmationWanted(rules, expires_s, policy)
            return Refusal(409, "request_needs_confirmation", action.message, rule.id, wanted, place)
        return None


def _too_large(what: str, count: int, limit: int, setting: str) -> Refusal:
    """Return the refusal of a prompt with more than `limit` of something, which names the operator's setting."""
    message = f"the prompt has {count} {what}, the limit is {limit} (`{setting}`); send less"
    return Refusal(413, "prompt_too_large", message)


def refused(
    request: Request, plan: Plan, checking: Checking, strange: Sequence[str]
) -> Generator[None, None, Refusal | None]:
    """Return, in steps, why the request may not be forwarded, whatever the policy says; None: it may.

    Args:
        request: What was read.
        plan: What the route asks for.
        checking: Takes notes.
        strange: Names of the parameters of the query that nobody knows.
    """
    chars, limit, found = 0, plan.prompt_chars, set[tuple[str, int]]()
    for place, delta in enumerate(request.unit.deltas):
        chars += len(delta.text)
        found.add((delta.channel.kind, delta.channel.choice))
        if place % PLACES_A_STEP == 0:
            checking.meter.spend(PLACES_WORK)
            yield
    if chars > limit:
        return _too_large("characters", chars, limit, "server.limits.prompt_chars")
    if len(found) > plan.prompt_messages:
        return _too_large("messages and fields", len(found), plan.prompt_messages, "server.limits.prompt_messages")
    ledger = checking.ledger
    parameters = tuple(f"query.{name}" for name in strange)
    fields = [name for name in request.unknown_fields if name not in plan.known_fields]
    unknown = (*fields, *parameters)
    if unknown and plan.unknown_fields == "refuse":
        for name in unknown:
            ledger.unscanned(f"ingress:{name}")
        named = ", ".join(f"`{name}`" for name in unknown[:_MAX_NAMED])
        more = f" and {rest} more" if (rest := len(unknown) - _MAX_NAMED) > 0 else ""
        message = f"fields that this route does not know: {named}{more}; leave them out"
        return Refusal(400, "unknown_field", message, param=unknown[0])
    ledger.removed(parameters)
    ledger.read_besides(fields)
    for name in request.unit.sealed:
        ledger.unscanned(f"ingress:{name}")
    for name in request.unit.unscanned:
        if plan.parts == "refuse":
            message = f"`{name}` can't be checked and this route refuses it; send text only"
            return Refusal(400, "unsupported_part", message, param=name)
        ledger.unscanned(f"ingress:{name}")
    return None
