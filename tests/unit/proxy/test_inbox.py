from __future__ import annotations

import asyncio

from checkstream.core.events import AnyEvent, DownstreamClosed, Draining, Scored, UpstreamBytes, UpstreamClosed
from checkstream.proxy.inbox import Inbox


async def test_events_are_taken_in_the_order_in_which_they_came() -> None:
    inbox = Inbox()
    events: list[AnyEvent] = [UpstreamBytes(b"a"), Scored(1, {}), UpstreamClosed()]
    for event in events:
        inbox.put(event)
    assert [inbox.take() for _ in range(len(inbox))] == events
    assert not inbox


async def test_who_waits_is_woken_by_what_comes_and_does_not_wait_for_what_is_there() -> None:
    inbox = Inbox()
    waiting = asyncio.ensure_future(inbox.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    inbox.put(Draining())
    inbox.put(DownstreamClosed())
    await waiting
    assert inbox.take() == Draining()
    left = asyncio.ensure_future(inbox.wait())
    await asyncio.sleep(0)
    assert left.done()
    assert inbox.take() == DownstreamClosed()
    waiting = asyncio.ensure_future(inbox.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    inbox.put(Draining())
    await waiting


async def test_what_is_dropped_is_told_and_the_rest_stays_in_order() -> None:
    inbox = Inbox()
    for event in (UpstreamBytes(b"a"), Draining(), UpstreamBytes(b"b"), DownstreamClosed(), UpstreamClosed()):
        inbox.put(event)
    assert inbox.drop((UpstreamBytes, UpstreamClosed)) == [UpstreamBytes(b"a"), UpstreamBytes(b"b"), UpstreamClosed()]
    assert [inbox.take() for _ in range(len(inbox))] == [Draining(), DownstreamClosed()]
