"""Who may do what. Pure: one table, and whoever is not in it may not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from checkstream.config.control import Role
from checkstream.errors import ActForbidden

Act = Literal["view", "allow", "disallow", "rollout", "approve", "promote", "rollback", "silence", "review"]
ACTS: tuple[Act, ...] = get_args(Act)
ROLES: tuple[Role, ...] = get_args(Role)
MAY: Mapping[Act, frozenset[Role]] = {
    "view": frozenset(ROLES),
    "allow": frozenset({"org_admin", "risk_officer"}),
    "disallow": frozenset({"org_admin", "risk_officer"}),
    "rollout": frozenset({"risk_officer", "engineer"}),
    "approve": frozenset({"risk_officer"}),
    "promote": frozenset({"risk_officer", "engineer"}),
    "rollback": frozenset({"org_admin", "risk_officer", "engineer"}),
    "silence": frozenset({"org_admin", "risk_officer", "engineer"}),
    "review": frozenset({"risk_officer", "engineer", "analyst"}),
}
"""To take a rollout back is for many, since it is urgent; to say what may run, for those who answer for it."""


class Asker(NamedTuple):
    """Somebody who asks."""

    name: str
    role: Role


class People:
    """Who there is."""

    def __init__(self, roles: Mapping[str, Role]) -> None:
        """Know people by `name -> role`."""
        self._roles = roles

    def asker(self, name: str | None, act: Act) -> Asker:
        """Return who asks, if they may.

        Raises:
            ActForbidden: they may not.
        """
        if name is None or name not in self._roles:
            raise ActForbidden("nobody without a name may do that")
        return require(name, self._roles[name], act)


def objection(name: str, role: Role | None, act: Act) -> str:
    """Return why somebody may not do something; empty: they may."""
    if role in MAY[act]:
        return ""
    who = " or ".join(f"`{each}`" for each in sorted(MAY[act]))
    return f"`{name}` is `{role}`, and `{act}` is for {who}"


def require(name: str, role: Role | None, act: Act) -> Asker:
    """Let somebody do something; return who asks.

    Raises:
        ActForbidden: the role may not.
    """
    found = objection(name, role, act)
    if found or role is None:
        raise ActForbidden(found)
    return Asker(name, role)


def require_other(asked_by: str, approver: str) -> None:
    """Let somebody approve of what another has asked for.

    Raises:
        ActForbidden: they are one.
    """
    if asked_by == approver:
        raise ActForbidden(f"`{approver}` has asked for this rollout; another risk officer has to approve of it")
