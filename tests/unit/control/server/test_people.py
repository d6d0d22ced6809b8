"""Who may do what: every cell of the table, and whoever is not in it."""

from __future__ import annotations

import pytest

from checkstream.control.server.people import ACTS, MAY, ROLES, Act, Asker, People, require_other
from checkstream.errors import ActForbidden
from checkstream.listen import Identity

TABLE = """
act        org_admin  risk_officer  engineer  analyst  auditor
view       yes        yes           yes       yes      yes
allow      yes        yes           no        no       no
disallow   yes        yes           no        no       no
rollout    no         yes           yes       no       no
approve    no         yes           no        no       no
promote    no         yes           yes       no       no
rollback   yes        yes           yes       no       no
silence    yes        yes           yes       no       no
review     no         yes           yes       yes      no
tell       yes        yes           yes       no       no
draft      yes        yes           yes       no       no
approve_draft yes     yes           no        no       no
erase      yes        yes           no        no       no
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]
CELLS = [(row[0], role, cell == "yes") for row in ROWS[1:] for role, cell in zip(ROWS[0][1:], row[1:], strict=True)]


@pytest.mark.parametrize(("act", "role", "may"), CELLS)
def test_each_role_may_what_the_table_says(act: str, role: str, may: bool) -> None:
    people = People({"ann": role})  # type: ignore[dict-item]
    if may:
        assert people.asker(Identity("ann"), act) == Asker("ann", role)  # type: ignore[arg-type]
    else:
        with pytest.raises(ActForbidden, match=f"`ann` is `{role}`, and `{act}` is for "):
            people.asker(Identity("ann"), act)  # type: ignore[arg-type]


def test_the_table_is_whole() -> None:
    assert {(act, role) for act, role, _ in CELLS} == {(act, role) for act in ACTS for role in ROLES}
    assert set(MAY) == set(ACTS)


def test_whoever_has_no_name_may_nothing() -> None:
    for act in ACTS:
        for name in (None, "", "bob"):
            with pytest.raises(ActForbidden):
                People({"ann": "org_admin"}).asker(Identity(name), act)


@pytest.mark.parametrize("act", ACTS)
def test_a_token_does_what_both_it_and_the_newest_may(act: Act) -> None:
    for newest in ROLES:
        for own in ROLES:
            people = People({})
            people.meet(Asker("x#1", newest), 2.0)
            people.meet(Asker("x#1", own), 1.0)
            caller = Identity("x#1", "authorization", role=own)
            if newest in MAY[act] and own in MAY[act]:
                assert people.asker(caller, act) == Asker("x#1", own)
            else:
                with pytest.raises(ActForbidden):
                    people.asker(caller, act)


def test_nobody_approves_of_what_they_have_asked_for() -> None:
    require_other("ann", "bob")
    with pytest.raises(ActForbidden, match="another risk officer"):
        require_other("ann", "ann")
