from __future__ import annotations

import pytest

from checkstream.core.conversation import Said, Turn
from checkstream.proxy.conversations import Conversations, Memory


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_value_is_put_on_top_of_the_one_that_was_read_alone(clock: Clock) -> None:
    memory = Memory(ttl_s=10, most_bytes=1 << 20, clock=clock)
    assert memory.put("a", "k", b"one", 0)
    assert not memory.put("a", "k", b"two", 0)
    found = memory.get("a", "k")
    assert found is not None
    value, version = found
    assert value == b"one"
    assert memory.put("a", "k", b"two", version)
    assert not memory.put("a", "k", b"three", version)
    assert memory.get("b", "k") is None


def test_what_nobody_puts_anew_is_forgotten(clock: Clock) -> None:
    memory = Memory(ttl_s=10, most_bytes=1 << 20, clock=clock)
    assert memory.put("a", "k", b"v", 0)
    clock.now = 10.0
    assert memory.get("a", "k") is None
    assert memory.put("a", "other", b"v", 0)
    assert memory.size < 1000


def test_the_caller_that_has_most_gives_up_first_what_has_rested_longest(clock: Clock) -> None:
    memory = Memory(ttl_s=10, most_bytes=20_000, clock=clock)
    assert memory.put("small", "k", b"v" * 100, 0)
    for number in range(100):
        assert memory.put("large", str(number), b"v" * 1000, 0)
        assert memory.size <= 20_000
    assert memory.get("small", "k") is not None
    assert memory.get("large", "99") is not None
    assert memory.get("large", "0") is None


def test_exchanges_that_end_at_once_all_count(clock: Clock) -> None:
    class Contended(Memory):
        def put(self, caller: str, key: str, value: bytes, version: int) -> bool:
            if not self.size:  # somebody else was first
                super().put(caller, key, value, version)
            return super().put(caller, key, value, version)

    known = Conversations(Contended(ttl_s=10, most_bytes=1 << 20, clock=clock))
    assert known.remember("a", "k", Turn(said=(Said(b"12345678", {"m.l": 0.5}),), fired=("R-1",)))
    found = known.recall("a", "k")
    assert found is not None
    assert (found.turns, found.fired) == (1, {"R-1": 2})


def test_a_value_of_another_version_is_as_good_as_forgotten(clock: Clock) -> None:
    memory = Memory(ttl_s=10, most_bytes=1 << 20, clock=clock)
    assert memory.put("a", "k", b"\xc1", 0)
    known = Conversations(memory)
    assert known.recall("a", "k") is None
    assert known.remember("a", "k", Turn(refused=True))
    found = known.recall("a", "k")
    assert found is not None
    assert found.refused == 1
