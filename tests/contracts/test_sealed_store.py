"""What the vault relies on in a store, whatever keeps it: a SQLite file, a Redis server."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkstream.errors import VaultFailed
from checkstream.sealed.memory_store import MemoryStore
from checkstream.sealed.redis_store import RedisStore
from checkstream.sealed.sqlite_store import SqliteStore
from checkstream.sealed.store import Blob, Share, Store
from tests.redis_server import RedisServer, memory_folder

DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture(params=["sqlite", "redis", "memory"])
def stores(request: pytest.FixtureRequest) -> Iterator[tuple[Store, Store]]:
    """Two openings of one store, as of two processes; the memory of one process has no second."""
    if request.param == "memory":
        memory = Turns()
        yield memory, memory
        return
    if request.param == "sqlite":
        with memory_folder() as folder:
            file = Path(folder) / "var" / "names.db"
            files = SqliteStore(file), SqliteStore(file)
            yield files
            for each in files:
                each.close()
        return
    running: RedisServer = request.getfixturevalue("server")
    prefix = f"{request.node.name}:"
    made = RedisStore(running.url, prefix=prefix), RedisStore(running.url, prefix=prefix)
    yield made
    for store in made:
        store.close()


class Turns(MemoryStore):
    """A memory that is asked on several threads."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def put(self, key: bytes, sealed: bytes, *, seen: int, ttl_ms: int, share: Share | None = None) -> bool:
        with self._lock:
            return super().put(key, sealed, seen=seen, ttl_ms=ttl_ms, share=share)


def test_what_was_kept_is_there_for_the_other_and_nothing_else(stores: tuple[Store, Store]) -> None:
    one, other = stores
    assert one.get(b"a") is None
    assert one.put(b"a", b"\x00first\xff", seen=0, ttl_ms=DAY_MS)
    assert other.get(b"a") == Blob(b"\x00first\xff", 1)
    assert other.get(b"b") is None


def test_only_who_has_seen_what_is_there_replaces_it(stores: tuple[Store, Store]) -> None:
    one, other = stores
    assert one.put(b"a", b"1", seen=0, ttl_ms=DAY_MS)
    assert not other.put(b"a", b"x", seen=0, ttl_ms=DAY_MS)
    assert not other.put(b"a", b"x", seen=2, ttl_ms=DAY_MS)
    assert other.put(b"a", b"2", seen=1, ttl_ms=DAY_MS)
    assert not one.put(b"a", b"x", seen=1, ttl_ms=DAY_MS)
    assert one.get(b"a") == Blob(b"2", 2)


def test_what_is_over_is_gone_and_begun_anew(stores: tuple[Store, Store]) -> None:
    one, other = stores
    assert one.put(b"a", b"1", seen=0, ttl_ms=30)
    assert one.put(b"b", b"1", seen=0, ttl_ms=DAY_MS)
    time.sleep(0.06)
    assert other.get(b"a") is None
    assert not other.put(b"a", b"x", seen=1, ttl_ms=DAY_MS)
    assert other.put(b"a", b"2", seen=0, ttl_ms=DAY_MS)
    assert one.get(b"a") == Blob(b"2", 1)
    assert one.get(b"b") == Blob(b"1", 1)


def test_of_many_at_once_each_change_is_made_once(stores: tuple[Store, Store]) -> None:
    def add(store: Store, each: int) -> None:
        while True:
            known = store.get(b"sum")
            before, seen = (0, 0) if known is None else (int(known.sealed), known.version)
            if store.put(b"sum", str(before + each).encode(), seen=seen, ttl_ms=DAY_MS):
                return

    threads = [threading.Thread(target=add, args=(stores[n % 2], n)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].get(b"sum") == Blob(str(sum(range(20))).encode(), 20)


def test_shares_have_their_room_and_the_largest_gives_up_first_what_has_rested_longest(
    stores: tuple[Store, Store],
) -> None:
    one, other = stores
    small, large = Share(b"small", 10_000), Share(b"large", 10_000)
    assert one.put(b"free", b"v" * 20_000, seen=0, ttl_ms=DAY_MS)
    assert one.put(b"s", b"v" * 100, seen=0, ttl_ms=DAY_MS, share=small)
    for number in range(20):
        assert one.put(b"l%d" % number, b"v" * 1000, seen=0, ttl_ms=DAY_MS + number, share=large)
    assert other.put(b"l14", b"v" * 1000, seen=1, ttl_ms=DAY_MS + 100, share=large)
    assert other.put(b"l20", b"v" * 1000, seen=0, ttl_ms=DAY_MS + 101, share=large)
    kept = [number for number in range(21) if one.get(b"l%d" % number) is not None]
    assert kept == [14, 16, 17, 18, 19, 20]
    assert one.get(b"s") is not None
    assert one.get(b"free") is not None
    assert one.count() >= 7


def test_what_is_over_leaves_its_room(stores: tuple[Store, Store]) -> None:
    one, _ = stores
    share = Share(b"mine", 10_000)
    for number in range(3):
        assert one.put(b"%d" % number, b"v" * 1000, seen=0, ttl_ms=30, share=share)
    time.sleep(0.06)
    for number in range(6):
        assert one.put(b"n%d" % number, b"v" * 1000, seen=0, ttl_ms=DAY_MS, share=share)
    assert all(one.get(b"n%d" % number) is not None for number in range(6))
    assert one.count() == 6


def test_a_file_of_an_earlier_version_is_used(tmp_path: Path) -> None:
    file = tmp_path / "names.db"
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as old:
        old.execute(
            "CREATE TABLE states (id BLOB PRIMARY KEY, version INTEGER NOT NULL, sealed BLOB NOT NULL, "
            "expires_ms INTEGER NOT NULL) WITHOUT ROWID"
        )
        old.execute("INSERT INTO states VALUES (?, 3, ?, ?)", (b"a", b"old", 1 << 50))
    store = SqliteStore(file)
    assert store.get(b"a") == Blob(b"old", 3)
    assert store.put(b"a", b"new", seen=3, ttl_ms=DAY_MS, share=Share(b"s", 10_000))
    assert (store.get(b"a"), store.count()) == (Blob(b"new", 4), 1)
    store.close()


def test_a_store_that_can_not_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "names.db").write_bytes(b"no database" * 100)
    with pytest.raises(VaultFailed, match="can't be used"):
        SqliteStore(tmp_path / "names.db")
    with pytest.raises(VaultFailed, match="failed"):
        RedisStore("redis://127.0.0.1:1/0").get(b"a")


def test_a_file_is_its_owners_alone(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "names.db").close()
    assert (tmp_path / "names.db").stat().st_mode & 0o777 == 0o600


def test_what_is_kept_for_ever_is_kept(stores: tuple[Store, Store]) -> None:
    one, other = stores
    assert one.put(b"a", b"1", seen=0, ttl_ms=100 * 365 * DAY_MS)
    assert other.get(b"a") == Blob(b"1", 1)
    assert other.put(b"a", b"2", seen=1, ttl_ms=100 * 365 * DAY_MS)
    assert one.get(b"a") == Blob(b"2", 2)


def test_a_node_of_a_cluster_is_refused_by_name() -> None:
    """It would keep some blobs, and say of others that they are elsewhere."""
    with RedisServer(cluster_enabled="yes") as node:
        store = RedisStore(node.url, "pseudonyms")
        for asked in (store.look, lambda: store.get(b"a"), store.count):
            with pytest.raises(VaultFailed, match="of pseudonyms is a node of a Redis Cluster"):
                asked()
        store.close()


def test_a_server_that_is_down_at_the_start_is_looked_at_when_it_answers() -> None:
    with RedisServer() as server:
        store = RedisStore(server.url)
        server.kill()
        store.look()
        server.start()
        assert store.put(b"a", b"x", seen=0, ttl_ms=DAY_MS)
        store.close()
