"""A whole body is kept as it comes and handed over without a copy."""

from __future__ import annotations

import time

from checkstream.core.exchange.body import Body
from tests.watchdog import MOST_S, pace

PIECE = b"x" * 16_384


def test_all_that_has_come_is_there_and_can_be_asked_for_again() -> None:
    body = Body()
    assert (len(body), body.data) == (0, b"")
    body.add(b"ab")
    assert body.data == b"ab"
    body.add(b"c")
    assert (len(body), body.data, body.data) == (3, b"abc", b"abc")


def test_g33_a_body_of_many_megabytes_is_handed_over_in_no_time() -> None:
    body = Body()
    for _ in range(4096):
        body.add(PIECE)
    began = time.thread_time()
    data = body.data
    taken = time.thread_time() - began
    assert len(data) == len(body) == 4096 * len(PIECE)
    assert taken <= MOST_S * pace()
