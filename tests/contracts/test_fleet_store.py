"""What machines that serve as one rely on in the Redis server between them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import redis

from checkstream.errors import NotReady, VaultFailed
from checkstream.processes.fleet_store import MOST_BYTES, FleetStore
from tests.redis_server import RedisServer

KEEP_S = 3.0


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture
def stores(server: RedisServer) -> Iterator[tuple[FleetStore, FleetStore]]:
    made = FleetStore(server.url, "f"), FleetStore(server.url, "f")
    yield made
    for store in made:
        store.close()


def nonce(memory: int, rest: bytes = b"n") -> bytes:
    return memory.to_bytes(8, "big") + rest


def test_each_hears_of_the_others_what_they_have_said_last(stores: tuple[FleetStore, FleetStore]) -> None:
    one, other = stores
    first = one.exchange("a", b"\x00a:\xff\n", KEEP_S)
    assert first.others == {}
    assert other.exchange("b", b"b", KEEP_S).others == {"a": b"\x00a:\xff\n"}
    assert one.exchange("a", b"", KEEP_S).others == {"b": b"b"}
    again = other.exchange("b", b"b", KEEP_S)
    assert again.others == {"a": b""}
    assert again.memory == first.memory
    assert 0 <= again.now_ms - first.now_ms < 5000


def test_who_says_nothing_is_forgotten_and_so_is_a_fleet_without_machines(
    stores: tuple[FleetStore, FleetStore], server: RedisServer
) -> None:
    one, other = stores
    one.exchange("a", b"a", 0.1)
    time.sleep(0.06)
    assert other.exchange("b", b"b", 0.1).others == {"a": b"a"}
    time.sleep(0.06)
    assert other.exchange("b", b"b", 0.1).others == {}
    time.sleep(0.15)
    client = redis.Redis.from_url(server.url)
    assert client.keys() == [b"checkstream:fleet:f:memory"]
    assert 0 < client.pttl("checkstream:fleet:f:memory") <= 86_400_000
    client.close()


def test_fleets_of_other_names_share_a_server_and_nothing_else(
    stores: tuple[FleetStore, FleetStore], server: RedisServer
) -> None:
    stranger = FleetStore(server.url, "g")
    stores[0].exchange("a", b"a", KEEP_S)
    assert stranger.exchange("s", b"s", KEEP_S).others == {}
    stranger.close()


def test_no_more_is_heard_than_there_is_room_for(stores: tuple[FleetStore, FleetStore]) -> None:
    one, other = stores
    for number in range(40):
        one.exchange(f"n{number}", b"x" * MOST_BYTES, KEEP_S)
    assert other.exchange("b", b"b", KEEP_S).others == {}, "with its time it is too long"
    for number in range(40):
        one.exchange(f"n{number}", b"x" * (MOST_BYTES - 20), KEEP_S)
    heard = other.exchange("b", b"b", KEEP_S).others
    assert len(heard) == 32


def test_a_token_is_spent_once_over_all(stores: tuple[FleetStore, FleetStore]) -> None:
    said = stores[0].exchange("a", b"", KEEP_S)
    expires_ms = said.now_ms + 60_000
    came: list[bool | None] = []

    def spend(store: FleetStore) -> None:
        came.append(store.spend(nonce(said.memory), expires_ms, 0))

    threads = [threading.Thread(target=spend, args=(stores[at % 2],)) for at in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(bool, came)) == [False] * 19 + [True]
    assert stores[1].spend(nonce(said.memory, b"another"), expires_ms, 0)


def test_what_has_expired_on_the_servers_clock_is_good_no_more(
    stores: tuple[FleetStore, FleetStore], server: RedisServer
) -> None:
    said = stores[0].exchange("a", b"", KEEP_S)
    assert stores[0].spend(nonce(said.memory), said.now_ms - 1, said.now_ms - 1000) is None
    assert stores[0].spend(nonce(said.memory), said.now_ms + 10_000, 0)
    client = redis.Redis.from_url(server.url)
    (mark,) = client.keys("*:spent:*")
    assert 60_000 < client.pttl(mark) <= 70_000, "it is remembered longer than anybody takes the token for good"
    client.close()


@pytest.mark.parametrize("lost", ["flushed", "restarted", "overwritten"])
def test_what_was_made_before_the_memory_was_lost_is_good_no_more(
    stores: tuple[FleetStore, FleetStore], server: RedisServer, lost: str
) -> None:
    """A restart counts although this server has written all to disk: others lose what they were told last."""
    one, other = stores
    before = one.exchange("a", b"", KEEP_S)
    far = before.now_ms + 60_000
    assert one.spend(nonce(before.memory, b"spent"), far, 0)
    client = redis.Redis.from_url(server.url)
    if lost == "flushed":
        client.flushall()
    elif lost == "overwritten":
        client.set("checkstream:fleet:f:memory", "x" * 1_000_000)
    else:
        server.kill()
        server.start()
    for token in (b"spent", b"not spent"):
        assert other.spend(nonce(before.memory, token), far, 0) is None
    after = other.exchange("b", b"", KEEP_S)
    assert 0 < after.memory < 10**18
    assert after.memory != before.memory
    assert one.spend(nonce(before.memory, b"not spent"), far, 0) is None
    assert one.spend(nonce(after.memory, b"new"), far, 0)
    assert one.spend(nonce(0), far, 0) is None, "made while nobody knew the store"
    client.close()


def test_a_server_that_comes_back_with_an_older_memory_does_not_have_a_token_spent_twice() -> None:
    """It has the number that it had, and has forgotten what was spent since it was written down."""
    with RedisServer(appendonly="no") as server:
        store = FleetStore(server.url, "f")
        said = store.exchange("a", b"", KEEP_S)
        client = redis.Redis.from_url(server.url)
        assert client.save()
        assert store.spend(nonce(said.memory), said.now_ms + 60_000, 0)
        server.kill()
        server.start()
        assert client.exists("checkstream:fleet:f:memory")
        assert not client.keys("*:spent:*")
        assert store.spend(nonce(said.memory), said.now_ms + 60_000, 0) is None
        client.close()
        store.close()


def test_a_server_that_is_away_is_told_and_not_asked_again_at_once(server: RedisServer) -> None:
    store = FleetStore(server.url, "f")
    said = store.exchange("a", b"", KEEP_S)
    server.kill()
    with pytest.raises(VaultFailed, match="ConnectionError"):
        store.exchange("a", b"", KEEP_S)
    with pytest.raises(NotReady):
        store.spend(nonce(said.memory), said.now_ms + 1000, 0)
    server.start()
    with pytest.raises(NotReady):
        store.spend(nonce(said.memory), said.now_ms + 1000, 0)
    time.sleep(1.1)
    assert store.spend(nonce(said.memory), said.now_ms + 10_000, 0) is None
    store.close()


def test_a_node_of_a_cluster_is_told_by_name() -> None:
    with RedisServer(cluster_enabled="yes") as node:
        store = FleetStore(node.url, "f")
        with pytest.raises(VaultFailed, match="Cluster"):
            store.exchange("a", b"", KEEP_S)
        store.close()


def test_a_user_who_may_not_ask_about_the_server_is_served_all_the_same(server: RedisServer) -> None:
    admin = redis.Redis.from_url(server.url)
    admin.execute_command("ACL", "SETUSER", "default", "-info")  # type: ignore[no-untyped-call]
    store = FleetStore(server.url, "f")
    said = store.exchange("a", b"", KEEP_S)
    assert store.exchange("a", b"", KEEP_S).memory == said.memory
    assert store.spend(nonce(said.memory), said.now_ms + 1000, 0)
    assert store.spend(nonce(said.memory), said.now_ms + 1000, 0) is False
    assert store.weakness == ""
    store.close()
    admin.close()
