"""The store of the parent, asked by its workers over a real pair of sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from checkstream.core.commands import ConfirmationWanted, Reply
from checkstream.core.conversation import Turn
from checkstream.errors import NotReady, VaultFailed
from checkstream.processes import memory
from checkstream.proxy.confirm import CONFIRM, Asked, Confirmations, Together
from checkstream.proxy.spent import Spent
from checkstream.sealed.conversations import Conversations
from checkstream.sealed.sealing import Seal
from checkstream.sealed.store import Blob, Share


@asynccontextmanager
async def workers(count: int, shared: memory.Shared | None = None) -> AsyncIterator[list[memory.ParentStore]]:
    shared = shared or memory.Shared()

    async def answer(question: memory.Question) -> memory.Answer:
        return shared.answer(question)

    stores, serving = [], []
    for _ in range(count):
        ours, theirs = socket.socketpair()
        stores.append(memory.ParentStore(theirs))
        serving.append(asyncio.create_task(memory.serve(ours, answer)))
    try:
        yield stores
    finally:
        for store in stores:
            store.close()
        await asyncio.wait_for(asyncio.gather(*serving), 5)


async def test_what_one_worker_keeps_another_finds() -> None:
    async with workers(2) as (one, other):

        def both() -> None:
            assert one.get(b"k") is None
            assert one.put(b"k", b"first", seen=0, ttl_ms=60_000, share=Share(b"s", 10_000))
            assert other.get(b"k") == Blob(b"first", 1)
            assert not other.put(b"k", b"late", seen=0, ttl_ms=60_000, share=Share(b"s", 10_000))
            assert other.put(b"k", b"second", seen=1, ttl_ms=60_000, share=Share(b"s", 10_000))
            assert one.get(b"k") == Blob(b"second", 2)
            assert one.count() == other.count() == 1

        await asyncio.to_thread(both)


async def test_turns_of_many_workers_and_threads_all_count() -> None:
    async with workers(2) as stores:
        known = [Conversations(store, Seal(b"k" * 32), ttl_s=60, most_bytes=1_000_000) for store in stores]
        said = [asyncio.to_thread(known[at % 2].remember, "app", "c", Turn(refused=True)) for at in range(24)]
        assert all(await asyncio.gather(*said))
        found = await asyncio.to_thread(known[0].recall, "app", "c")
    assert found is not None
    assert found.refused == 24


async def test_a_confirmation_of_one_worker_is_good_in_another_and_once_in_all() -> None:
    async with workers(2) as stores:
        one, other = (Confirmations(together=Together(b"k" * 32, store, lambda: 7)) for store in stores)
        asked = Asked(caller="a", route="r", program="p", context=None, body=b"{}")
        wanted = ConfirmationWanted(("R-1",), 60, "p")
        token = one.open(asked, ()).respond(Reply(409, b"{}", confirm=wanted), {}).headers[CONFIRM]
        tries = [asyncio.to_thread(each.open, asked, (token,)) for each in (other, one, other, one)]
        assert sorted(done.rules for done in await asyncio.gather(*tries)) == [(), (), (), ("R-1",)]


async def test_a_full_memory_of_spent_tokens_says_so() -> None:
    shared = memory.Shared()
    shared.spent = Spent(most=1)
    async with workers(1, shared) as (store,):
        assert await asyncio.to_thread(store.spend, b"one", 1000, 0)
        assert not await asyncio.to_thread(store.spend, b"one", 1000, 0)
        with pytest.raises(NotReady, match="too many"):
            await asyncio.to_thread(store.spend, b"two", 1000, 0)
        assert await asyncio.to_thread(store.spend, b"two", 2000, 1001)


@pytest.mark.parametrize("gone", [True, False])
async def test_a_parent_that_is_gone_or_hangs_is_told_and_never_answered_for(gone: bool) -> None:
    ours, theirs = socket.socketpair()
    store = memory.ParentStore(theirs, patience_s=0.05)
    if gone:
        ours.close()
    asks: tuple[Callable[[], object], ...] = (
        lambda: store.get(b"k"),
        lambda: store.put(b"k", b"v", seen=0, ttl_ms=1000),
        store.count,
    )
    for ask in asks:
        with pytest.raises(VaultFailed):
            await asyncio.to_thread(ask)
    with pytest.raises(NotReady):
        await asyncio.to_thread(store.spend, b"n", 1, 0)
    store.close()
    ours.close()


async def test_a_parent_that_was_held_up_is_asked_again_when_it_answers() -> None:
    """A machine that was paused, or swapped: nobody is to be replaced for it, and no answer is taken for another's."""
    ours, theirs = socket.socketpair()
    store = memory.ParentStore(theirs, patience_s=0.05)
    shared = memory.Shared()
    large = b"v" * 3_000_000  # more than a socket holds: it stays half sent
    with pytest.raises(VaultFailed):
        await asyncio.to_thread(lambda: store.put(b"large", large, seen=0, ttl_ms=60_000))
    for _ in range(3):
        began = asyncio.get_running_loop().time()
        with pytest.raises(VaultFailed):
            await asyncio.to_thread(store.get, b"k")
        assert asyncio.get_running_loop().time() - began < 0.04, "while one is late nobody waits for another"

    async def answer(question: memory.Question) -> memory.Answer:
        return shared.answer(question)

    serving = asyncio.create_task(memory.serve(ours, answer))

    async def asked() -> Blob | None:
        for _ in range(100):
            try:
                return await asyncio.to_thread(store.get, b"large")
            except VaultFailed:
                await asyncio.sleep(0.02)
        raise AssertionError("it is never asked again")

    assert await asked() == Blob(large, 1), "what was half said has been said to its end"
    assert await asyncio.to_thread(store.get, b"k") is None
    assert await asyncio.to_thread(lambda: store.put(b"k", b"v", seen=0, ttl_ms=60_000))
    assert await asyncio.to_thread(store.get, b"k") == Blob(b"v", 1)
    store.close()
    await asyncio.wait_for(serving, 5)
