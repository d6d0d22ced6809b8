"""What the vault relies on in a store, whatever keeps it: a SQLite file, a Redis server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkstream.errors import VaultFailed
from checkstream.sealed.redis_store import RedisStore
from checkstream.sealed.sqlite_store import SqliteStore
from checkstream.sealed.store import Blob, Store
from tests.redis_server import RedisServer, memory_folder

DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture(params=["sqlite", "redis"])
def stores(request: pytest.FixtureRequest) -> Iterator[tuple[Store, Store]]:
    """Two openings of one store, as of two processes."""
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


def test_a_store_that_can_not_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "names.db").write_bytes(b"no database" * 100)
    with pytest.raises(VaultFailed, match="can't be used"):
        SqliteStore(tmp_path / "names.db")
    with pytest.raises(VaultFailed, match="failed"):
        RedisStore("redis://127.0.0.1:1/0").get(b"a")


def test_a_file_is_its_owners_alone(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "names.db").close()
    assert (tmp_path / "names.db").stat().st_mode & 0o777 == 0o600
