"""Names of sessions and events go on only from who has got them (G11)."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from checkstream.core.events import Envelope, RequestReceived, Said, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.wire import sse
from checkstream.core.wire.mcp.bound import EVENT, SESSION, Bound
from checkstream.core.wire.mcp.surface import MCP
from checkstream.errors import SessionUnknown
from checkstream.proxy.sessions import Sessions
from tests import mcp
from tests.mcp import PLAN, call, event, said
from tests.playbook import Exchange
from tests.playbook import digest as exchange_digest


def digest(text: str) -> str:
    return hashlib.sha256(b"key" + text.encode()).hexdigest()


NAMES = st.text(st.sampled_from("ab1~-"), min_size=1, max_size=4)
PEOPLE = st.sampled_from(["app", "app1", "a"])


def marked(by: Bound, number: str, session: str) -> str:
    [frame] = sse.Decoder(events=frozenset({"message"}), ids=True).decode(event(b"{}", number))
    assert frame.raw.startswith(b"event: message\nid: ")
    bound = by.event(frame, session)
    assert (bound.data, bound.event) == (frame.data, frame.event)
    head, own, *rest = bound.raw.split(b"\n")
    assert [head, *rest] == [b"event: message", b"data: {}", b"", b""]
    return own.removeprefix(b"id: ").decode()


@given(NAMES, PEOPLE, PEOPLE, st.sampled_from(["one", "two"]), st.sampled_from(["one", "two"]))
def test_g11_a_session_is_known_to_its_caller_and_before_its_server_alone(
    name: str, mine: str, theirs: str, here: str, there: str
) -> None:
    given_ = Bound(digest, here, mine).session(name)
    opened = Bound(digest, there, theirs).opened(SESSION, given_, ())
    assert opened == (name if (mine, here) == (theirs, there) else None)
    assert Bound(digest, here, mine).opened(SESSION, name, ()) is None
    assert Bound(digest, here, mine).opened(EVENT, given_, (name, "")) is None


@given(NAMES, st.sampled_from(["", "s", "t"]), st.sampled_from(["", "s", "t"]), PEOPLE, PEOPLE)
def test_g11_a_stream_is_resumed_by_its_caller_in_its_session_alone(
    number: str, of: str, within: str, mine: str, theirs: str
) -> None:
    """What came before there was a session is of no session."""
    given_ = marked(Bound(digest, "one", mine), number, of)
    opened = Bound(digest, "one", theirs).opened(EVENT, given_, [within])
    assert opened == (number if mine == theirs and of in ("", within) else None)


@pytest.mark.parametrize("frame", [b"data: {}\n\n", b"event: message\ndata: id: 1\n\n", b": keep\n\n", b"id: \n\n"])
def test_what_has_no_id_stays_as_it_is(frame: bytes) -> None:
    for each in sse.Decoder(events=frozenset({"message"}), ids=True).decode(frame):
        assert Bound(digest, "s", "c").event(each, "x").raw == each.raw


def test_headers_that_servers_could_take_for_each_other_are_opened_alike() -> None:
    sessions = Sessions(digest, "s", "c")
    answered = CIMultiDict({"Mcp-Session-Id": "abc"})
    sessions.bind(answered)
    mine = answered["mcp-session-id"]
    assert sessions.opened([("MCP_Session-ID", mine), ("x", "y")]) == [("MCP_Session-ID", "abc"), ("x", "y")]
    for wrong in ("abc", mine + "x", "", "~", mine.upper()):
        with pytest.raises(SessionUnknown):
            sessions.opened([("mcp_session_id", mine), ("mcp-session-id", wrong)])


@pytest.mark.parametrize("caller", [None, "app"])
def test_g11_events_leave_with_a_mark_of_their_caller(caller: str | None) -> None:
    exchange, one, two = _asked(caller), b"id: e-1\n\n", event(said("x"), "e-2")
    for each in (UpstreamOpened(200, True), UpstreamBytes(one + two), UpstreamClosed()):
        exchange.send(each)
    opened = [Bound(exchange_digest, PLAN.upstream, caller).opened(EVENT, each, ["s-1"]) for each in _ids(exchange)]
    assert opened == ["e-1", "e-2"]
    assert mcp.events(exchange.out)[0]["result"]["content"][0]["text"] == "x"


@given(st.text(st.sampled_from(sorted(sse.OF_IDS)), min_size=4, max_size=sse.MOST_OF_AN_ID), st.booleans())
def test_g34_the_name_of_an_event_says_nothing_to_who_gets_it(name: str, alone: bool) -> None:
    exchange, named = _asked(None), f"id: {name}\n".encode()
    for each in (
        UpstreamOpened(200, True),
        UpstreamBytes(named + (b"\n" if alone else event(said("x")))),
        UpstreamClosed(),
    ):
        exchange.send(each)
    [given_] = _ids(exchange)
    letters, _, mark = given_.partition("~")
    assert (letters + mark).isalpha()
    assert len(letters) == 2 * len(name)
    assert Bound(exchange_digest, PLAN.upstream, None).opened(EVENT, given_, ["s-1"]) == name


@given(st.text(st.characters(max_codepoint=255), max_size=60))
def test_what_was_never_the_name_of_an_event_is_none(text: str) -> None:
    assert Bound(digest, "s", None).opened(EVENT, text, ["", "t"]) is None


def _asked(caller: str | None) -> Exchange:
    exchange = Exchange(MCP, PLAN)
    exchange.send(RequestReceived(call(), caller, envelope=Envelope((Said("header", SESSION, "s-1"),))))
    return exchange


def _ids(exchange: Exchange) -> list[str]:
    return [line[4:] for line in exchange.out.joined.decode().splitlines() if line.startswith("id: ")]
