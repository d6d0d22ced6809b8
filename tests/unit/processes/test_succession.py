"""One keeper at every moment: what an elder was asked and has not answered, its heir answers itself."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from typing import cast

from checkstream.listen import board
from checkstream.processes import frames
from checkstream.processes.memory import Answer, Count, Get, Put, Shared, Spend
from checkstream.processes.succession import Elder, Estate, Heir
from checkstream.sealed.store import Blob, Share
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.totals import figures, told


class Pair:
    """An elder's end and an heir's, over a real pair of sockets."""

    def __init__(self) -> None:
        self.kept, self.inherited, self.counted = Shared(), Shared(), Metrics()
        ours, theirs = socket.socketpair()
        memory, listening, admin = board.make(), socket.socket(), socket.socket()
        estate = Estate(b"s" * 32, 5.0, 0, "127.0.0.1:1", 1, "127.0.0.1:2", 1)
        with listening, admin:
            frames.send_with(ours, estate, [memory, listening.fileno(), admin.fileno()])
        os.close(memory)
        self.elder = Elder(theirs.detach())
        nobody = cast("subprocess.Popen[bytes]", None)  # the process itself is the end-to-end tests'
        self.heir = Heir(ours, nobody, self.kept, self._count)
        self.serving = asyncio.create_task(self.heir.serve())
        self.hearing = asyncio.create_task(self.elder.hear(self.inherited))

    async def _count(self) -> bytes:
        return told(self.counted)

    async def end(self) -> bool:
        complete = await asyncio.wait_for(self.hearing, 5)
        await asyncio.wait_for(self.serving, 5)
        for each in (*self.elder.group[0], *self.elder.admin):
            each.close()
        os.close(self.elder.board)
        return complete


async def test_an_heir_has_what_there_is_and_asks_as_long_as_the_elder_keeps_it() -> None:
    pair = Pair()
    assert (pair.elder.estate.secret, pair.elder.estate.began) == (b"s" * 32, 5.0)
    assert len(pair.elder.group) == len(pair.elder.admin) == 1
    assert await pair.elder.answer(Put(7, b"k", b"v", 0, 60_000, Share(b"s", 1000))) == Answer(7, number=1)
    assert await pair.elder.answer(Spend(8, b"n", 10**9, 0)) == Answer(8, number=1)
    assert pair.kept.blobs.get(b"k") == Blob(b"v", 1)
    assert await pair.elder.answer(Get(9, b"k")) == Answer(9, Blob(b"v", 1))
    assert pair.inherited.blobs.get(b"k") is None, "one keeper at a time"
    pair.counted.requests.of("chat", "200").inc(3)
    await pair.elder.count()
    assert pair.elder.figures == figures(pair.counted)

    pair.elder.take()
    await asyncio.wait_for(pair.heir.took.wait(), 5)
    pair.counted.requests.of("chat", "200").inc()
    await pair.heir.leave_all()
    assert await pair.end()
    assert pair.elder.figures == figures(pair.counted)
    assert await pair.elder.answer(Count(10)) is None
    assert pair.inherited.answer(Get(11, b"k")).blob == Blob(b"v", 1)
    assert pair.inherited.answer(Spend(12, b"n", 10**9, 0)).number == 0, "spent stays spent"
    assert pair.inherited.blobs.count() == 1


async def test_every_question_around_the_last_word_is_carried_out_once() -> None:
    pair = Pair()
    await asyncio.sleep(0.01)

    async def spend(number: int) -> int:
        question = Spend(number, str(number).encode(), 10**9, 0)
        answer = await pair.elder.answer(question) or pair.inherited.answer(question)
        return answer.number

    asking = [asyncio.create_task(spend(number)) for number in range(200)]
    await asyncio.sleep(0)
    leaving = asyncio.create_task(pair.heir.leave_all())
    asking += [asyncio.create_task(spend(number)) for number in range(200, 400)]
    assert await asyncio.gather(*asking) == [1] * 400
    await leaving
    assert await pair.end()
    assert [pair.inherited.answer(Spend(0, str(number).encode(), 10**9, 0)).number for number in range(400)] == [
        0
    ] * 400


async def test_an_elder_without_a_last_word_is_noticed_and_nobody_waits_for_it() -> None:
    pair = Pair()
    await asyncio.sleep(0.01)
    pair.serving.cancel()
    await asyncio.wait({pair.serving})
    assert await pair.elder.answer(Get(1, b"k")) is None
    assert not await asyncio.wait_for(pair.hearing, 5)
    for each in (*pair.elder.group[0], *pair.elder.admin):
        each.close()
    os.close(pair.elder.board)
