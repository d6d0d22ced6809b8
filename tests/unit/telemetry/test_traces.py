"""Of which trace an exchange is, and what is told of it."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.telemetry.traces import Context, Span, Trace, begun, read

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = f"00-{TRACE}-{PARENT}-01"


def test_the_caller_says_of_which_trace_its_request_is() -> None:
    context = begun([HEADER], 0, os.urandom)
    assert (context.trace, context.parent, context.sampled) == (TRACE, PARENT, True)
    assert context.span != PARENT
    assert context.header == f"00-{TRACE}-{context.span}-01"
    unsampled = begun([HEADER[:-1] + "0"], 1, os.urandom)
    assert not unsampled.sampled
    assert unsampled.header.endswith("-00")


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00",
        HEADER.upper(),
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[1:]}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE}-{PARENT}-01 ",
        f"00-{TRACE}-{PARENT}-0x",
        f"0\u0661-{TRACE}-{PARENT}-01",
        "-" * 10_000,
    ],
)
def test_what_the_standard_does_not_allow_begins_a_trace(header: str) -> None:
    assert read(header) is None
    context = begun([header], 1, os.urandom)
    assert context.parent == ""
    assert context.trace != TRACE
    assert read(context.header) == Context(context.trace, context.span)


def test_a_later_version_may_say_more_and_several_headers_say_nothing() -> None:
    assert read(f"01-{TRACE}-{PARENT}-03-more") == Context(TRACE, PARENT)
    assert begun([HEADER, HEADER], 1, os.urandom).parent == ""


@given(st.text(max_size=80))
def test_any_header_is_read_or_not(header: str) -> None:
    known = read(header)
    assert known is None or header.startswith(known.header[2:-3], 2)


@given(st.binary(min_size=24, max_size=24), st.floats(0, 1))
def test_a_share_of_the_traces_that_begin_here_is_told(chance: bytes, share: float) -> None:
    some = iter([chance[:8] or b"x", chance[8:]])
    try:
        context = begun([], share, lambda _: next(some))
    except StopIteration:  # all zeros are drawn again
        return
    assert context.sampled == (int.from_bytes(chance[16:]) < share * 2**64)


def test_no_id_is_all_zeros() -> None:
    drawn = iter([bytes(8), b"\1" * 8, bytes(16), b"\2" * 16])
    assert begun([], 1, lambda _: next(drawn)) == Context("02" * 16, "01" * 8)


def test_a_span_is_told_once_with_its_first_events_and_only_if_sampled() -> None:
    told: list[Span] = []
    ticks = iter(range(1000))
    for sampled in (True, False):
        trace = Trace(Context("a" * 32, "b" * 16, sampled=sampled), lambda: next(ticks), told.append)
        for number in range(100):
            trace.happened("verdict", {"n": number})
        trace.ended("chat", {"x": 1}, failed=False)
    (span,) = told
    assert [event.attributes["n"] for event in span.events] == list(range(32))
    assert span.begun_ns < span.events[0].at_ns < span.ended_ns
