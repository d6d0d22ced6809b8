"""What is kept of conversations between their requests: sealed, in turn, within bounds."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from checkstream.core.conversation import Conversation, Said, Turn
from checkstream.errors import VaultFailed
from checkstream.sealed.conversations import Conversations
from checkstream.sealed.memory_store import MemoryStore
from checkstream.sealed.sealing import Owner, Seal
from checkstream.sealed.sqlite_store import SqliteStore
from checkstream.sealed.store import Share, Store

SECRET = bytes(range(32))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def known_in(store: Store, secret: bytes = SECRET) -> Conversations:
    return Conversations(store, Seal(secret), ttl_s=10, most_bytes=1 << 20)


def said(number: int) -> Turn:
    return Turn(said=(Said(number.to_bytes(8, "big"), {"m.l": 0.5}),), fired=("R-1",))


def test_a_blob_is_put_on_top_of_the_one_that_was_read_alone(clock: Clock) -> None:
    memory = MemoryStore(clock=clock)
    assert memory.put(b"k", b"one", seen=0, ttl_ms=10_000)
    assert not memory.put(b"k", b"two", seen=0, ttl_ms=10_000)
    found = memory.get(b"k")
    assert found is not None
    assert memory.put(b"k", b"two", seen=found.version, ttl_ms=10_000)
    assert not memory.put(b"k", b"three", seen=found.version, ttl_ms=10_000)
    assert memory.get(b"other") is None


def test_what_nobody_puts_anew_is_forgotten(clock: Clock) -> None:
    memory = MemoryStore(clock=clock)
    assert memory.put(b"k", b"v", seen=0, ttl_ms=10_000)
    clock.now = 10.0
    assert memory.get(b"k") is None
    assert memory.put(b"other", b"v", seen=0, ttl_ms=10_000, share=Share(b"s", 9999))
    assert (memory.size, memory.count()) == (513, 1)
    assert memory.put(b"k", b"v", seen=0, ttl_ms=10_000)
    memory.close()
    assert memory.count() == 0


def test_exchanges_that_end_at_once_all_count(clock: Clock) -> None:
    class Contended(MemoryStore):
        def put(self, key: bytes, sealed: bytes, *, seen: int, ttl_ms: int, share: Share | None = None) -> bool:
            if not self.size:  # somebody else was first
                super().put(key, sealed, seen=seen, ttl_ms=ttl_ms, share=share)
            return super().put(key, sealed, seen=seen, ttl_ms=ttl_ms, share=share)

    known = known_in(Contended(clock=clock))
    assert known.remember("a", "k", said(1))
    found = known.recall("a", "k")
    assert found is not None
    assert (found.turns, found.fired) == (1, {"R-1": 2})


def test_many_processes_at_one_conversation_lose_nothing_of_each_other(tmp_path: Path) -> None:
    file, number, times = tmp_path / "c.db", 4, 6
    stores = [SqliteStore(file) for _ in range(number)]
    done: list[bool] = []

    def add(store: Store, first: int) -> None:
        known = known_in(store)
        done.extend(known.remember("a", "k", said(first + each)) for each in range(times))

    threads = [threading.Thread(target=add, args=(store, at * 100)) for at, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = known_in(stores[0]).recall("a", "k")
    for store in stores:
        store.close()
    assert all(done)
    assert found is not None
    assert (found.turns, found.fired) == (number * times, {"R-1": number * times})
    alone = Conversation()
    for each in range(number * times):
        alone = alone.after(said(each))
    assert found.risks == pytest.approx(alone.risks)  # equal texts add up to the same in any order


def test_what_another_version_has_kept_is_as_good_as_forgotten(clock: Clock) -> None:
    memory, seal, owner = MemoryStore(clock=clock), Seal(SECRET), Owner("a", "k", "conversations")
    assert memory.put(seal.key(owner), seal.sealed(owner, b"\xc1"), seen=0, ttl_ms=10_000)
    known = known_in(memory)
    assert known.recall("a", "k") is None
    assert known.remember("a", "k", Turn(refused=True))
    found = known.recall("a", "k")
    assert found is not None
    assert found.refused == 1


def test_another_secret_reads_nothing_and_another_callers_blob_is_none_of_ones_own(clock: Clock) -> None:
    memory = MemoryStore(clock=clock)
    assert known_in(memory).remember("a", "k", said(1))
    assert known_in(memory).recall("b", "k") is None
    assert known_in(memory, os.urandom(32)).recall("a", "k") is None
    seal = Seal(SECRET)
    (mine, theirs) = (seal.key(Owner(caller, "k", "conversations")) for caller in ("a", "b"))
    blob = memory.get(mine)
    assert blob is not None
    assert memory.put(theirs, blob.sealed, seen=0, ttl_ms=10_000)  # somebody who writes to the store
    with pytest.raises(VaultFailed):
        known_in(memory).recall("b", "k")


@pytest.mark.parametrize("opened", [lambda _: MemoryStore(), lambda folder: SqliteStore(folder / "c.db")])
def test_one_caller_forgets_its_own_first(tmp_path: Path, opened: Callable[[Path], Store]) -> None:
    known = Conversations(opened(tmp_path), Seal(SECRET), ttl_s=10, most_bytes=20_000)
    assert known.remember("small", "k", said(1))
    for number in range(60):
        assert known.remember("large", str(number), said(1))
    assert known.recall("small", "k") is not None
    assert known.recall("large", "59") is not None
    assert known.recall("large", "0") is None
    assert 10 < known.count() < 40
    known.close()
