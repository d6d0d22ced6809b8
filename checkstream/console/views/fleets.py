"""How fleets stand, and the nodes of one, those first with which something is wrong. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import msgspec

from checkstream.control.server.allowed import KINDS
from checkstream.control.server.showing import FleetShown, NodeShown, RolloutShown

MOST_NODES = 200
Kind = Literal["good", "fair", "bad"]
State = Literal["refused", "drifted", "stale", "unheard", "in order"]
STATES: tuple[State, ...] = get_args(State)
_KINDS: dict[State, Kind] = {
    "refused": "bad", "drifted": "bad", "stale": "fair", "unheard": "fair", "in order": "good"
}  # fmt: skip
_SAYS: dict[State, str] = {
    "refused": "gets no bundle",
    "drifted": "has not what it should have",
    "stale": "not heard of lately",
    "unheard": "never heard of",
    "in order": "in order",
}


class Standing(NamedTuple):
    """How a node stands, the worst first."""

    state: State

    @property
    def kind(self) -> Kind:
        """How it is marked."""
        return _KINDS[self.state]

    @property
    def says(self) -> str:
        """In words."""
        return _SAYS[self.state]


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A node."""

    node: NodeShown
    standing: tuple[Standing, ...]
    told: tuple[tuple[str, str, bool], ...]
    """What it says of itself that is held against the lists: kind, value, and whether that is on the list."""


class FleetRow(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet among others."""

    fleet: str
    bundle: str
    nodes: int
    counts: tuple[tuple[Standing, int], ...]
    """How many nodes stand how, where any do."""
    versions: tuple[tuple[str, int], ...]
    """Bundles in force, and on how many nodes; the most frequent first."""
    rollout: RolloutShown | None


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """What nodes may be, in one respect."""

    kind: str
    any: bool
    """Whatever it is, it may be."""
    file: tuple[str, ...]
    """What stands in the server's file."""
    added: tuple[str, ...]
    """What people have added."""


class FleetView(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet by itself."""

    row: FleetRow
    shown: FleetShown
    rows: tuple[NodeRow, ...]
    more: int
    """Nodes that are wanted and left out."""
    lists: tuple[Listed, ...]


def standing(node: NodeShown) -> tuple[Standing, ...]:
    """Return how a node stands, the worst first."""
    found: list[State] = []
    if node.refused:
        found.append("refused")
    if node.drifted and node.heard_s is not None:
        found.append("drifted")
    if node.heard_s is not None and node.stale:
        found.append("stale")
    if node.heard_s is None:
        found.append("unheard")
    return tuple(Standing(state) for state in found or (STATES[-1],))


def fleet_row(shown: FleetShown) -> FleetRow:
    """Return the row of a fleet."""
    counts = dict.fromkeys(STATES, 0)
    versions: dict[str, int] = {}
    for node in shown.nodes:
        for each in standing(node):
            counts[each.state] += 1
        if node.reported:
            name = node.version or node.reported[:12]
            versions[name] = versions.get(name, 0) + 1
    return FleetRow(
        fleet=shown.fleet,
        bundle=shown.bundle,
        nodes=len(shown.nodes),
        counts=tuple((Standing(state), count) for state, count in counts.items() if count),
        versions=tuple(sorted(versions.items(), key=lambda pair: (-pair[1], pair[0]))),
        rollout=shown.rollout,
    )


def fleet_view(shown: FleetShown, state: str, name: str) -> FleetView:
    """Return the view of a fleet, with the nodes that stand so (empty: all) and have this in their names."""
    lists = tuple(_listed(shown, kind) for kind in KINDS)
    stands = [(node, standing(node)) for node in shown.nodes if name in node.node]
    wanted = [each for each in stands if not state or any(found.state == state for found in each[1])]
    wanted.sort(key=lambda each: STATES.index(each[1][0].state))  # stable: else as configured
    rows = (NodeRow(node=node, standing=found, told=_told(node, lists)) for node, found in wanted[:MOST_NODES])
    return FleetView(
        row=fleet_row(shown),
        shown=shown,
        rows=tuple(rows),
        more=max(len(wanted) - MOST_NODES, 0),
        lists=lists,
    )


def _listed(shown: FleetShown, kind: str) -> Listed:
    file = shown.listed.get(kind, ())
    added: Sequence[str] = shown.allowed.get(kind, ())
    return Listed(kind=kind, any=file == "any", file=() if file == "any" else tuple(file), added=tuple(added))


def _told(node: NodeShown, lists: Sequence[Listed]) -> tuple[tuple[str, str, bool], ...]:
    said = {"package": node.package, "configuration": node.configuration, "image": node.image}
    return tuple(
        (each.kind, said[each.kind], each.any or said[each.kind] in (*each.file, *each.added)) for each in lists
    )
