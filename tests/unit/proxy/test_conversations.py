"""What is known of conversations is asked for in time, and without keeping others waiting."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from checkstream.core.commands import Recall, Remember
from checkstream.core.conversation import Conversation, Turn
from checkstream.errors import VaultFailed
from checkstream.proxy.conversations import Memory
from checkstream.sealed.conversations import Conversations
from checkstream.sealed.memory_store import MemoryStore
from checkstream.sealed.sealing import Seal
from checkstream.sealed.store import Share


class Slow:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.threads = set[str]()
        self.remembered: list[str] = []

    def recall(self, caller: str, key: str) -> Conversation | None:
        self.threads.add(threading.current_thread().name)
        self.free.wait(10)
        if caller == "broken":
            raise VaultFailed("no store")
        return Conversation(turns=len(key))

    def remember(self, caller: str, key: str, turn: Turn, on_top_of: Conversation | None = None) -> bool:
        assert (turn, on_top_of) == (Turn(), None)
        self.free.wait(10)
        self.remembered.append(key)
        return caller != "contended"

    def count(self) -> int:
        return 3

    def close(self) -> None:
        self.free.set()


async def test_a_process_that_shares_nothing_answers_at_once() -> None:
    memory = Memory(Conversations(MemoryStore(), Seal(bytes(32)), ttl_s=9, most_bytes=1 << 20), timeout_s=None)
    assert memory.at_once
    assert await memory.remember("a", Remember("k", Turn(refused=True)))
    told = await memory.recall("a", Recall("k"))
    assert told.conversation is not None
    assert (told.conversation.refused, memory.number) == (1, 1)
    memory.close()


async def test_a_store_that_hangs_is_given_up_and_holds_nobody_else() -> None:
    slow = Slow()
    memory = Memory(slow, timeout_s=0.05)
    began = time.perf_counter()
    asked = [asyncio.create_task(memory.recall("a", Recall("k"))) for _ in range(8)]
    turns = 0
    while not all(task.done() for task in asked):
        await asyncio.sleep(0.001)
        turns += 1
    assert all(isinstance(task.exception(), VaultFailed) for task in asked)
    assert turns > 10
    assert time.perf_counter() - began < 2
    with pytest.raises(VaultFailed, match="longer than"):
        await memory.remember("a", Remember("k", Turn()))
    slow.free.set()
    told = await memory.recall("a", Recall("four"))
    assert told.conversation == Conversation(turns=4)
    assert not any("MainThread" in name for name in slow.threads)
    await asyncio.to_thread(memory.close)
    assert "k" in slow.remembered  # what has begun is done


async def test_more_questions_than_a_store_can_answer_are_not_asked() -> None:
    slow = Slow()
    memory = Memory(slow, timeout_s=5)
    asked = [asyncio.create_task(memory.recall("a", Recall("k"))) for _ in range(300)]
    await asyncio.sleep(0.01)
    refused = [task for task in asked if task.done()]
    assert len(refused) == 300 - 256
    assert all(isinstance(task.exception(), VaultFailed) for task in refused)
    slow.free.set()
    known = await asyncio.gather(*(task for task in asked if task not in refused))
    assert all(each.conversation is not None for each in known)
    await asyncio.to_thread(memory.close)


async def test_what_a_store_says_of_its_failure_is_told() -> None:
    slow = Slow()
    slow.free.set()
    memory = Memory(slow, timeout_s=5)
    with pytest.raises(VaultFailed, match="no store"):
        await memory.recall("broken", Recall("k"))
    assert not await memory.remember("contended", Remember("k", Turn()))
    assert memory.number == 3
    await asyncio.to_thread(memory.close)


async def test_a_store_that_keeps_nothing_more_is_as_one_that_can_not_be_read_until_it_does() -> None:
    class Full(Conversations):
        is_full = False

        def remember(self, caller: str, key: str, turn: Turn, on_top_of: Conversation | None = None) -> bool:
            if self.is_full:
                raise VaultFailed("the disk is full")
            return super().remember(caller, key, turn, on_top_of)

    known = Full(MemoryStore(), Seal(bytes(32)), ttl_s=9, most_bytes=1 << 20)
    memory = Memory(known, timeout_s=5)
    assert await memory.remember("a", Remember("k", Turn(refused=True)))
    known.is_full = True
    with pytest.raises(VaultFailed, match="full"):
        await memory.remember("a", Remember("k", Turn(refused=True)))
    for _ in range(2):
        with pytest.raises(VaultFailed, match="full"):
            await memory.recall("b", Recall("other"))
    known.is_full = False
    told = await memory.recall("a", Recall("k"))
    assert told.conversation is not None
    assert (told.conversation.refused, told.conversation.turns) == (1, 0)
    await asyncio.to_thread(memory.close)


async def test_what_was_tried_too_often_to_be_kept_is_lost_and_told_as_such() -> None:
    class Contended(MemoryStore):
        others_put = True

        def put(self, key: bytes, sealed: bytes, *, seen: int, ttl_ms: int, share: Share | None = None) -> bool:
            return not self.others_put and super().put(key, sealed, seen=seen, ttl_ms=ttl_ms, share=share)

    store = Contended()
    memory = Memory(Conversations(store, Seal(bytes(32)), ttl_s=9, most_bytes=1 << 20), timeout_s=5)
    assert not await memory.remember("a", Remember("k", Turn(refused=True)))
    with pytest.raises(VaultFailed, match="too many"):
        await memory.recall("b", Recall("other"))
    store.others_put = False
    assert (await memory.recall("a", Recall("k"))).conversation is not None
    assert (await memory.recall("b", Recall("other"))).conversation is None
    await asyncio.to_thread(memory.close)
