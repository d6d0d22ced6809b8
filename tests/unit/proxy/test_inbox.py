from __future__ import annotations

from checkstream.core.events import AnyEvent, DownstreamClosed, Draining, Scored, UpstreamBytes, UpstreamClosed
from checkstream.proxy.inbox import Inbox


def test_events_are_taken_in_the_order_in_which_they_came() -> None:
    inbox = Inbox()
    events: list[AnyEvent] = [UpstreamBytes(b"a"), Scored(1, {}), UpstreamClosed()]
    for event in events:
        inbox.put(event)
    assert [inbox.take() for _ in range(len(inbox))] == events
    assert not inbox


def test_who_listens_is_told_of_the_next_event_in_the_same_turn_and_of_no_further_one() -> None:
    inbox, told = Inbox(), list[int]()
    inbox.listen(lambda: told.append(len(inbox)))
    inbox.put(Draining())
    inbox.put(DownstreamClosed())
    assert told == [1]
    inbox.listen(lambda: told.append(len(inbox)))
    inbox.listen(None)
    inbox.put(UpstreamClosed())
    assert told == [1]
    assert [inbox.take() for _ in range(len(inbox))] == [Draining(), DownstreamClosed(), UpstreamClosed()]


def test_what_is_dropped_is_told_and_the_rest_stays_in_order() -> None:
    inbox = Inbox()
    for event in (UpstreamBytes(b"a"), Draining(), UpstreamBytes(b"b"), DownstreamClosed(), UpstreamClosed()):
        inbox.put(event)
    assert inbox.drop((UpstreamBytes, UpstreamClosed)) == [UpstreamBytes(b"a"), UpstreamBytes(b"b"), UpstreamClosed()]
    assert [inbox.take() for _ in range(len(inbox))] == [Draining(), DownstreamClosed()]
