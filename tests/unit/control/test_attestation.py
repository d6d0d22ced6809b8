"""What nodes and the control server tell each other: a candidate needs a base, and others can read what has none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.attestation import Candidate, Desired, Running, RunningCandidate

ONE, TWO, THREE = "1" * 64, "2" * 64, "3" * 64
GOOD: dict[str, Any] = {"bundle": TWO, "share": 10, "salt": "ab"}


class Before(msgspec.Struct, forbid_unknown_fields=True):
    """What a version before this one takes for what it is to have."""

    bundle: str = ""
    version: str = ""


def test_a_version_that_knows_no_candidates_reads_what_has_none_and_nothing_else() -> None:
    """What it can't read it doesn't follow, so it keeps what it was told last: never the base of somebody's half."""
    plain = msgspec.json.encode(Desired(bundle=ONE, version="1"))
    assert msgspec.json.decode(plain, type=Before) == Before(ONE, "1")
    both = msgspec.json.encode(Desired(bundle=ONE, candidate=Candidate(**GOOD)))
    with pytest.raises(msgspec.ValidationError, match="unknown field `candidate`"):
        msgspec.json.decode(both, type=Before)
    assert msgspec.json.decode(both, type=Desired).candidate == Candidate(**GOOD)


@pytest.mark.parametrize(
    "desired",
    [
        {"candidate": GOOD},
        {"bundle": "", "candidate": GOOD},
        {"bundle": TWO, "candidate": GOOD},
        {"bundle": ONE, "candidate": {**GOOD, "share": 0}},
        {"bundle": ONE, "candidate": {**GOOD, "share": 100}},
        {"bundle": ONE, "candidate": {**GOOD, "share": 10.5}},
        {"bundle": ONE, "candidate": {**GOOD, "salt": "x"}},
        {"bundle": ONE, "candidate": {**GOOD, "salt": "a" * 65}},
        {"bundle": ONE, "candidate": {**GOOD, "bundle": ""}},
        {"bundle": ONE, "candidate": {**GOOD, "callers": ["app"]}},
        {"bundle": ONE, "candidate": [TWO, 10]},
    ],
)
def test_what_is_no_candidate_beside_a_base_is_refused(desired: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(desired), type=Desired)


DIGESTS = st.sampled_from([ONE, TWO])
BESIDE = st.none() | st.builds(
    Candidate, bundle=st.just(THREE), version=st.sampled_from(["", "3"]), share=st.sampled_from([10, 50]), salt=DIGESTS
)


@given(DIGESTS, BESIDE, DIGESTS, BESIDE)
def test_a_node_has_what_it_should_have_where_each_caller_is_answered_by_the_right_bundle(
    base: str, mine: Candidate | None, wanted: str, theirs: Candidate | None
) -> None:
    beside = None if mine is None else RunningCandidate(wanted=mine)
    running = Running(bundle=base, configuration=ONE, candidate=beside)
    desired = Desired(bundle=wanted, candidate=theirs)
    same = [None if each is None else (each.bundle, each.share, each.salt) for each in (mine, theirs)]
    assert running.has(desired) == (base == wanted and same[0] == same[1])
    assert running.has(Desired())  # what it has, whatever that is
