"""Counting an exchange costs what it did: steps of the interpreter, which no other work of the machine changes."""

from __future__ import annotations

import sys

import pytest

from bench.counting import WRITES, exchange, steps

KEPT, KEPT_A_WRITE = 2388, 121
"""What `python -m bench.counting` says."""


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions of Python take other steps")
def test_counting_an_exchange_and_a_write_takes_no_more_steps() -> None:
    whole = steps(exchange())
    assert whole <= 1.05 * KEPT
    assert (steps(exchange(WRITES + 400)) - whole) / 400 <= 1.05 * KEPT_A_WRITE
