"""A candidate beside the bundle that a node is at: it never comes without a base, and goes whatever is away."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as given_settings
from hypothesis import strategies as st

from checkstream.app.following import Beside, Follower, Found, Pointer, current
from checkstream.app.force import InForce, load, put_in_force
from checkstream.config import BundleSettings, Config
from checkstream.config.servers import Upstream
from checkstream.config.settings import Match, RouteSettings
from checkstream.control.attestation import Candidate, Offered
from checkstream.errors import BundleRefused, BundleUnreachable, ConfigError
from checkstream.scoring.scorer import Scorer
from tests.bundled import LOGS, STOPS, World
from tests.unit.app.test_following import put

ONE, TWO, THREE = "1" * 64, "2" * 64, "3" * 64


def found(digest: str) -> Found:
    return Found(pointer=Pointer(digest=digest, weight="0" * 64), version=digest[0], folder=Path())


def wanted(digest: str, share: int = 10, salt: str = "ab") -> Candidate:
    return Candidate(bundle=digest, version=digest[0], share=share, salt=salt)


class Node:
    """A node's folder, a repository that has everything or is away, and bundles that don't fit."""

    def __init__(self, folder: Path) -> None:
        (folder / "bundles").mkdir(parents=True)
        self.settings = BundleSettings(source="s", root="r", name="retail", dir=str(folder))
        self.away, self.bad, self.withdrawn = False, set[str](), set[str]()
        self.accepted: list[str] = []
        self.newest: tuple[Offered, ...] = ()
        self.begin()

    def begin(self) -> None:
        """Start anew: all but the folder is forgotten."""
        self.follower = Follower(self.settings, self.fetch, self.accept)

    def fetch(self, _: BundleSettings, __: Collection[str], digest: str) -> Found:
        if self.away:
            raise BundleUnreachable("away")
        if digest in self.withdrawn:
            raise BundleRefused("it was withdrawn")
        return msgspec.structs.replace(found(digest or THREE), offered=self.newest)

    def accept(self, found: Found) -> None:
        if found.pointer.digest in self.bad:
            raise BundleRefused("its case `x` fails")
        self.accepted.append(found.pointer.digest)

    @property
    def has(self) -> tuple[str, str, int]:
        """Digests of the base and of the candidate, and the share of that."""
        here = current(self.settings)
        if here is None:
            return "", "", 0
        beside = here.candidate
        return here.digest, "" if beside is None else beside.digest, 0 if beside is None else beside.share


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "node")


def test_a_candidate_comes_grows_and_becomes_the_base(node: Node) -> None:
    assert node.follower.step(ONE).outcome == "accepted"
    look = node.follower.step(ONE, wanted(TWO))
    assert (look.outcome, look.version, node.has) == ("accepted", "2", (ONE, TWO, 10))
    assert (node.follower.step(ONE, wanted(TWO)).outcome, node.accepted) == ("same", [ONE, TWO])
    assert (node.follower.step(ONE, wanted(TWO, 50)).outcome, node.has) == ("accepted", (ONE, TWO, 50))
    assert node.accepted == [ONE, TWO]  # it is the same bundle
    node.begin()
    assert (node.follower.step(ONE, wanted(TWO, 50)).outcome, node.has) == ("same", (ONE, TWO, 50))
    assert (node.follower.step(TWO).outcome, node.has) == ("accepted", (TWO, "", 0))


def test_a_candidate_goes_though_the_repository_is_away(node: Node) -> None:
    node.follower.step(ONE, wanted(TWO))
    node.away = True
    assert (node.follower.step(ONE, wanted(TWO)).outcome, node.has) == ("unreachable", (ONE, TWO, 10))
    assert (node.follower.step(ONE).outcome, node.has) == ("unreachable", (ONE, "", 0))


def test_a_candidate_stays_until_its_successor_is_there(node: Node) -> None:
    """Callers who have it are not to go back for the time that it takes to fetch it as the base."""
    node.follower.step(ONE, wanted(TWO))
    node.away = True
    assert (node.follower.step(TWO).outcome, node.has) == ("unreachable", (ONE, TWO, 10))
    assert (node.follower.step("", take=False).outcome, node.has) == ("unreachable", (ONE, TWO, 10))


def test_a_candidate_that_does_not_fit_leaves_the_base_alone(node: Node) -> None:
    node.bad = {TWO}
    look = node.follower.step(ONE, wanted(TWO))
    assert (look.outcome, look.reason, look.digest) == ("refused", "its case `x` fails", TWO)
    assert node.has == (ONE, "", 0)
    node.follower.step(ONE, wanted(THREE))
    node.withdrawn = {THREE}
    assert (node.follower.step(ONE, wanted(THREE)).outcome, node.has) == ("refused", (ONE, "", 0))


def test_a_node_whose_own_version_is_not_signed_any_more_hears_of_newer_ones(node: Node) -> None:
    node.follower.step(ONE)
    node.withdrawn = {ONE}
    node.newest = (Offered(digest=THREE, version="3"),)
    assert (node.follower.step(ONE).outcome, node.has) == ("refused", (ONE, "", 0))
    assert node.follower.offered == node.newest
    node.withdrawn = {ONE, ""}
    assert (node.follower.step(ONE).outcome, node.follower.offered) == ("refused", node.newest)


def test_a_node_that_no_control_server_leads_any_more_has_no_candidate(node: Node) -> None:
    node.follower.step(ONE, wanted(TWO))
    node.follower.step()
    assert node.has == (THREE, "", 0)


DIGESTS = st.sampled_from([ONE, TWO, THREE])
STEPS = st.lists(
    st.tuples(
        DIGESTS,
        st.none() | st.tuples(DIGESTS, st.integers(1, 99)),
        st.booleans(),
        st.sets(DIGESTS),
        st.sets(DIGESTS),
        st.booleans(),
    ),
    max_size=12,
)


@given(STEPS)
@given_settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_order_of_events_leaves_a_candidate_without_a_base_or_one_that_nobody_wants(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    node, asked = Node(tmp_path_factory.mktemp("node")), set[tuple[str, str, int]]()
    for base, beside, node.away, node.bad, node.withdrawn, anew in steps:
        before = node.has
        if anew:
            node.begin()
        candidate = None if beside is None or beside[0] == base else wanted(*beside)
        asked.add((base, "" if candidate is None else candidate.bundle, 0 if candidate is None else candidate.share))
        look = node.follower.step(base, candidate)
        now = node.has
        assert now == before or now[0] == base  # nothing but what is wanted comes
        assert not now[1] or now in asked
        assert now[0] or not now[1]
        if look.outcome in {"same", "accepted"}:
            assert now == (base, *((candidate.bundle, candidate.share) if candidate else ("", 0)))
        if candidate is None and before[0] == base:
            assert now == (base, "", 0)  # whatever is away, refused or withdrawn


BASE = {"digest": ONE, "weight": TWO}
GOOD = {"digest": THREE, "weight": TWO, "share": 10, "salt": ""}


@pytest.mark.parametrize(
    "written",
    [
        {**BASE, "candidate": {}},
        {"candidate": GOOD},
        {**BASE, "candidate": {**GOOD, "share": 100}},
        {**BASE, "candidate": {**GOOD, "digest": "x"}},
        {**BASE, "candidate": {**GOOD, "candidate": GOOD}},
    ],
)
def test_what_can_not_be_read_is_written_anew(node: Node, written: dict[str, Any]) -> None:
    path = Path(node.settings.dir, "current")
    path.write_bytes(msgspec.json.encode(written))
    with pytest.raises(ConfigError, match="remove it"):
        current(node.settings)
    node.follower.step(ONE, wanted(TWO))
    assert node.has == (ONE, TWO, 10)
    Path(node.settings.dir, "current").unlink()
    node.follower.step(ONE)
    assert b"candidate" not in path.read_bytes()  # so that a version before this one can read it


def config_of(settings: BundleSettings) -> Config:
    route = RouteSettings(name="c", match=Match(path="/v1/completions"), upstream="llm", policies=("bundle:chat",))
    return Config(bundles=settings, routes=(route,), upstreams={"llm": Upstream(url="http://127.0.0.1:1")})


def in_force(config: Config, before: InForce | None = None) -> InForce:
    scorer = Scorer([], lambda _: None)  # type: ignore[arg-type,return-value]
    return put_in_force(load(lambda: config), (), scorer, before)


def test_both_are_in_force_and_one_that_is_damaged_is_left_out(tmp_path: Path) -> None:
    settings = BundleSettings(source="s", root="r", name="retail", dir=str(tmp_path / "node"))
    world = World(tmp_path)
    base, beside = put(world, settings, STOPS, version="1"), put(world, settings, STOPS, LOGS, version="2")
    both = {"1": base, "2": beside}
    follower = Follower(
        settings, lambda _, __, digest: both["1" if digest == base.pointer.digest else "2"], lambda _: None
    )
    follower.step(base.pointer.digest, wanted(beside.pointer.digest, 50))
    force = in_force(config_of(settings))
    (route,) = force.routes
    assert force.candidate is not None
    (other,) = force.candidate.routes
    assert (route.candidate, other.candidate, force.candidate.chosen.share) == (False, True, 50)
    assert route.plan is not None
    assert other.plan is not None
    assert force.loaded.hashes == (route.plan.program.hash, other.plan.program.hash)
    assert (route.upstream, route.scorer) == (other.upstream, other.scorer)
    assert Path(settings.dir, "current") in force.loaded.files
    (beside.folder / "chat/00-ours/policy.yaml").write_text("broken")
    alone = in_force(config_of(settings), force)
    assert (alone.candidate, alone.loaded.hashes) == (None, (route.plan.program.hash,))
    assert "the candidate can't be used" in alone.warnings[-1]
    pointer = msgspec.structs.replace(base.pointer, candidate=Beside(digest=ONE, weight=TWO, share=1, salt=""))
    Path(settings.dir, "current").write_bytes(msgspec.json.encode(pointer))
    assert in_force(config_of(settings)).candidate is None  # of one that was never fetched
