"""Who may do what. Pure: one table, and whoever is not in it may not.

People of the configuration have the name and the role that stand there, however they come. Whom the provider alone
knows is called by its address and its name for them, such as `login.example.com#248289761001`, and has the role that
its newest token gives, as far as the token it comes with gives it, too. So nobody is two people, and
none of the provider's can take the name of another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from checkstream.config.control import PROVIDED, Oidc, Role
from checkstream.errors import ActForbidden
from checkstream.listen import Identity
from checkstream.listen.tokens import claimed, words_of

Act = Literal[
    "view", "allow", "disallow", "rollout", "approve", "promote", "rollback", "silence", "review", "tell", "draft",
    "approve_draft", "erase",
]  # fmt: skip
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
    "tell": frozenset({"org_admin", "risk_officer", "engineer"}),
    "draft": frozenset({"org_admin", "risk_officer", "engineer"}),
    "approve_draft": frozenset({"org_admin", "risk_officer"}),
    "erase": frozenset({"org_admin", "risk_officer"}),
}
"""To take a rollout back is for many, since it is urgent; to say what may run, for those who answer for it."""

MOVES: Mapping[str, Act] = {
    "propose": "draft", "withdraw": "draft", "export": "draft", "approve": "approve_draft", "refuse": "approve_draft",
}  # fmt: skip
"""What somebody must be allowed to do for a move of a draft."""


_MOST_MET = 10_000
"""Of people who are not in the configuration; who is forgotten is known again by their next request."""


class Asker(NamedTuple):
    """Somebody who asks."""

    name: str
    role: Role


class People:
    """Who there is."""

    def __init__(self, roles: Mapping[str, Role]) -> None:
        """Know people by `name -> role`."""
        self._roles = roles
        self._met: OrderedDict[str, tuple[float, Role]] = OrderedDict()

    def meet(self, who: Asker, said: float) -> None:
        """Know somebody whom the provider alone knows, as it has spoken of them at a moment; the newest word counts."""
        if who.name in self._roles:
            return
        known = self._met.pop(who.name, None)
        self._met[who.name] = known if known is not None and known[0] > said else (said, who.role)
        if len(self._met) > _MOST_MET:
            self._met.popitem(last=False)

    def asker(self, caller: Identity, act: Act) -> Asker:
        """Return who asks, if they may: by their role, and by that of the token they come with, if that gives another.

        So a newer token takes away what an older one may, and gives it nothing. Who asks has the role of their
        token.

        Raises:
            ActForbidden: they may not.
        """
        name = caller.name
        role = None if name is None else self._roles.get(name) or self._met.get(name, (0.0, None))[1]
        if name is None or role is None:
            raise ActForbidden("nobody without a name may do that")
        asker = require(name, role, act)
        if caller.role in (None, role):
            return asker
        own = next((each for each in ROLES if each == caller.role), None)
        return require(name, own, act)


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


def provided(oidc: Oidc, claims: Mapping[str, object], subjects: Mapping[str, str], roles: Mapping[str, Role]) -> Asker:
    """Return who somebody is by what the provider's token claims.

    Args:
        oidc: What the configuration says of the provider.
        claims: Of a token that counts.
        subjects: Who of the configuration's people they are: `sub` -> name.
        roles: What those people may do, by name.

    Raises:
        ActForbidden: the provider gives them no role that counts here.
    """
    subject = str(claims["sub"])
    words = words_of(claimed(claims, oidc.role_claim))
    role = next((role for word, role in oidc.roles.items() if word in words), None)
    issuer = oidc.issuer.partition("://")[2].rstrip("/")
    name = subjects.get(subject, f"{issuer}{PROVIDED}{subject}")
    if role is None:
        raise ActForbidden(
            f"`{name[:300]}` has no role here: `{oidc.role_claim}` of the token has none of "
            f"{', '.join(f'`{word}`' for word in oidc.roles)}"
        )
    return Asker(name, roles.get(name, role))
