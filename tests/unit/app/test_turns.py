"""Loading beside running streams leaves the interpreter as it was, and what was loaded out of collections."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from checkstream.app.turns import beside_streams, collect_due, settle


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_a_load_takes_short_turns_and_is_not_collected_meanwhile() -> None:
    before = sys.getswitchinterval()
    with beside_streams():
        assert not gc.isenabled()
        assert sys.getswitchinterval() < before
    assert gc.isenabled()
    assert sys.getswitchinterval() == before


def test_a_load_that_fails_leaves_the_interpreter_as_it_was() -> None:
    before = sys.getswitchinterval()
    frozen = gc.get_freeze_count()
    with pytest.raises(ValueError, match="bad file"), beside_streams():
        raise ValueError("bad file")
    assert gc.isenabled()
    assert sys.getswitchinterval() == before
    assert gc.get_freeze_count() == frozen


def test_what_is_settled_is_walked_by_no_collection() -> None:
    kept: list[list[int]] = [[] for _ in range(100)]
    settle()
    assert gc.get_freeze_count() >= len(kept)
    assert not any(each is kept for each in gc.get_objects())


@pytest.mark.parametrize(("young", "collected"), [(9, False), (10, True)])
def test_a_full_collection_comes_when_it_is_due_and_then_only(young: int, collected: bool) -> None:
    gc.collect()
    gc.disable()  # nothing but these
    try:
        for _ in range(young):
            gc.collect(1)
        collect_due()
        assert (gc.get_count()[2] == 0) is collected
    finally:
        gc.enable()


def test_full_collections_wait_while_streams_run_but_not_for_ever() -> None:
    young, middle, _ = gc.get_threshold()
    settle()
    assert gc.get_threshold() == (young, middle, 1000)
