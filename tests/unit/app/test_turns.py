"""Loading beside running streams leaves the interpreter as it was, and what was loaded out of collections."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from checkstream.app.turns import beside_streams, collect_due, settle

_PIECES = """
import ctypes, json
from checkstream.app.turns import large_apart

class Info(ctypes.Structure):  # of malloc.h
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", *"abcdef")]

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p

def by_itself(size):
    before = library.mallinfo2().hblks
    for _ in range(100):  # some have room where others were
        library.malloc(size)
    return library.mallinfo2().hblks > before + 10

if hasattr(library, "mallinfo2"):
    library.mallinfo2.restype = Info
    with large_apart():
        loading = by_itself(40_000)
    print(json.dumps([loading, by_itself(400_000), by_itself(5_000_000)]))
else:
    print("unknown")
"""


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
    assert gc.get_freeze_count() <= frozen  # something of it may have been let go of meanwhile


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


def test_what_is_large_takes_memory_by_itself_while_much_is_loaded() -> None:
    run = subprocess.run([sys.executable, "-c", _PIECES], capture_output=True, text=True, check=True)
    if run.stdout.strip() == "unknown":
        pytest.skip("another allocator than glibc's")
    assert json.loads(run.stdout) == [True, False, True]
