from __future__ import annotations

import subprocess
import sys

from bench.policies import with_classifiers
from checkstream.core.match.patterns import Pattern
from checkstream.core.match.scan import Scan
from checkstream.core.match.warm import warming
from checkstream.core.policy.compile import compile_sources
from checkstream.core.terms import Stage
from tests.hostile import common

FIRST = """
import sys
from tests.unit.core.match.test_warm import first_read
print(first_read(sys.argv[1] == "warm"))
"""


def searched() -> frozenset[tuple[Pattern, ...]]:
    return compile_sources([("default.yaml", with_classifiers())]).searched


def first_read(warmed: bool) -> float:
    """Return what the dearest piece of the first random text of a process costs, seconds of CPU."""
    import time

    program = compile_sources([("default.yaml", with_classifiers())])
    for patterns in program.searched if warmed else ():
        assert list(warming(patterns)), "it reads"
    scan, text = Scan(program.scope(Stage.MIDSTREAM, "content").hold), common(4000)["base64"]
    taken = list[float]()
    for at in range(0, len(text), 256):
        began = time.thread_time()
        scan.feed(text[at : at + 256])
        taken.append(time.thread_time() - began)
    return max(taken)


def test_all_that_a_program_searches_for_is_warmed() -> None:
    program = compile_sources([("default.yaml", with_classifiers())])
    hold = program.scope(Stage.MIDSTREAM, "content").hold
    assert hold.patterns in program.searched
    assert all(program.searched)


def test_what_has_read_goes_on_where_it_was_left_and_reads_once() -> None:
    patterns = (Pattern(signal=0, name="CODE", regex="left [0-9]{4}"),)
    reading = warming(patterns)
    next(reading)
    assert warming(patterns) is reading
    rest = len(list(reading))
    assert rest > 30
    assert not list(warming(patterns))


def test_g33_no_piece_of_a_first_text_is_long_where_patterns_are_warm() -> None:
    def taken(how: str) -> float:
        run = subprocess.run([sys.executable, "-c", FIRST, how], capture_output=True, text=True, check=True)
        return float(run.stdout)

    cold = taken("cold")
    assert taken("warm") <= 0.6 * cold
