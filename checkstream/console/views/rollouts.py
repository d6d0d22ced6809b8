"""How a new bundle goes round: rings, what nodes do under it beside what they did before, who has a say. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from checkstream.control.attestation import Offered
from checkstream.control.server.judging import Compared, interval
from checkstream.control.server.people import Act
from checkstream.control.server.showing import FleetShown, RolloutShown

_WHAT = {
    "refusals": "prompts refused",
    "stops": "answers stopped",
    "failures": "exchanges ended by a failure",
    "time of `policy`": "the guard slower over an exchange than 19 in 20 were before",
    "time of `check`": "checks slower than 19 in 20 were before",
}


class RingRow(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that get the bundle together."""

    name: str
    nodes: int
    have: int
    """Those that have said that they have it in force."""
    state: Literal["has it", "gets it now", "waits", "goes back"]
    share: float | None
    """How much of the time that it is watched for is over; None: it is not watched."""


class ShareRow(msgspec.Struct, frozen=True, kw_only=True):
    """A share under the new bundle, and under the one before, with the ends between which each is."""

    what: str
    now: str
    before: str
    says: Literal["too much", "not worse", "too few to say"]


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can be done with a rollout."""

    act: Act
    path: str
    name: str
    says: str
    """What comes of it."""
    why_not: str
    """Why who looks may not; empty: they may."""


class RolloutView(msgspec.Struct, frozen=True, kw_only=True):
    """The rollouts of a fleet."""

    fleet: str
    newest: RolloutShown | None
    rings: tuple[RingRow, ...]
    compared: Compared | None
    enough: bool
    """There are exchanges enough to say anything."""
    shares: tuple[ShareRow, ...]
    choices: tuple[Choice, ...]
    offered: tuple[Offered, ...]
    """Versions that can be asked for."""
    before: tuple[RolloutShown, ...]
    """Older ones, the newest first."""


def rollout_view(
    shown: FleetShown, history: Sequence[RolloutShown], compared: Compared | None, choices: Sequence[Choice]
) -> RolloutView:
    """Return the view of a fleet's rollouts; `history` has the newest first."""
    newest = shown.rollout
    return RolloutView(
        fleet=shown.fleet,
        newest=newest,
        rings=() if newest is None else rings_of(shown, newest),
        compared=compared,
        enough=compared is not None and is_enough(compared),
        shares=() if compared is None else shares_of(compared),
        choices=tuple(choices),
        offered=shown.offered,
        before=tuple(each for each in history if newest is None or each.id != newest.id),
    )


def rings_of(shown: FleetShown, rollout: RolloutShown) -> tuple[RingRow, ...]:
    """Return how far a rollout has come, ring by ring."""
    come = rollout.rings.index(rollout.ring) if rollout.ring in rollout.rings else -1
    rows = []
    for place, name in enumerate(rollout.rings):
        nodes = [node for node in shown.nodes if node.ring == name]
        reached = place <= come or rollout.stage == "done"
        state: Literal["has it", "gets it now", "waits", "goes back"] = "has it" if reached else "waits"
        if rollout.stage == "rolled_back":
            state = "goes back" if reached else "waits"
        elif rollout.stage == "running" and place == come:
            state = "gets it now"
        watched = state == "gets it now" and rollout.soak_s > 0
        rows.append(
            RingRow(
                name=name,
                nodes=len(nodes),
                have=sum(node.reported == rollout.digest for node in nodes),
                state=state,
                share=min(rollout.soaked_s / rollout.soak_s, 1.0) if watched else None,
            )
        )
    return tuple(rows)


def shares_of(compared: Compared) -> tuple[ShareRow, ...]:
    """Return the shares as people read them."""
    enough = is_enough(compared)
    return tuple(
        ShareRow(
            what=_WHAT.get(each.what, each.what),
            now=_said(each.some, each.of),
            before=_said(each.others, each.of_others),
            says="too few to say" if not enough else "too much" if each.too_much else "not worse",
        )
        for each in compared.shares
    )


def is_enough(compared: Compared) -> bool:
    """Tell whether there are exchanges enough, under both bundles, to say anything."""
    return min(compared.exchanges, compared.exchanges_before) >= compared.least


def _said(some: int, of: int) -> str:
    if not of:
        return "nothing yet"
    low, high = interval(some, of)
    return f"{some:,} of {of:,}: {100 * some / of:.1f} % ({100 * low:.1f} to {100 * high:.1f} %)"


def choices_of(rollout: RolloutShown | None, name: str, why_not: dict[Act, str]) -> tuple[Choice, ...]:
    """Return what can be done with the newest rollout of a fleet.

    Args:
        rollout: As it stands; None: there has been none.
        name: Of who looks.
        why_not: Why their role may not do something, by act; empty where it may.
    """
    if rollout is None or rollout.stage == "rolled_back":
        return ()
    found: list[tuple[Act, str, str, str, str]] = []
    if rollout.stage == "proposed":
        own = (
            f"you, `{name}`, have asked for it: another risk officer has to approve" if rollout.asked_by == name else ""
        )
        says = "It begins: the first ring is told to take it."
        found.append(("approve", "approvals", "Approve", says, why_not["approve"] or own))
    elif rollout.stage == "running":
        says = "It goes on to the next ring at once, however little was seen of it."
        found.append(("promote", "promotions", "Promote", says, why_not["promote"]))
    says = {
        "proposed": "It is withdrawn; nothing was changed.",
        "running": "All rings are told to go back to the bundle before.",
        "done": "All nodes are told to go back to the bundle before.",
    }[rollout.stage]
    found.append(("rollback", "rollbacks", "Roll back", says, why_not["rollback"]))
    return tuple(
        Choice(act=act, path=path, name=label, says=says, why_not=why) for act, path, label, says, why in found
    )
