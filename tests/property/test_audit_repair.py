"""Law: whatever byte a crash cut the log at, the next start repairs it, and the chain verifies before and after."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.audit.entries import StopEntry
from checkstream.audit.journal import Journal, JournalSettings
from checkstream.audit.segments import segment_name
from checkstream.audit.verify import ChainReport, verify
from tests.chance import examples
from tests.records import CHAIN, KEY, head, noon, seal_all, start, two_segments, write_chain

SEALED = seal_all(two_segments(3, 4))
LINES = [sealed.line for sealed in SEALED]
FIRST, SECOND = b"".join(LINES[:3]), b"".join(LINES[3:])
HEADS = [head(SEALED[3])]
SIGNED = len(LINES[3])
"""Bytes of the second segment that a head was signed for: no crash loses them."""


def check(directory: Path) -> ChainReport:
    (report,) = verify(directory, keys=(KEY.public,))
    assert report.bad is None, report.bad.render()
    return report


def restart(directory: Path) -> str:
    log = Journal(JournalSettings(directory=directory, fsync_ms=1.0), KEY, process="p2", now=noon)
    log.append(StopEntry(reason="test"))
    log.close()
    return log.chain


def test_g26_repair_after_a_cut_at_every_byte_of_the_tail() -> None:
    last = len(SECOND) - len(LINES[-1])
    ends = [SIGNED, SIGNED + len(LINES[4]), last]
    around = {end + step for end in ends for step in (-1, 0, 1, 9, 10, 200)} - {SIGNED - 1}
    for cut in sorted(around | set(range(last, len(SECOND) + 1))):
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            write_chain(directory, [LINES[:3], [SECOND[:cut]]], HEADS)
            before = check(directory)
            assert restart(directory) == CHAIN
            torn = cut - SECOND[:cut].rfind(b"\n") - 1
            assert before.torn_bytes == torn
            assert check(directory).records == before.records + 1 + (torn > 0)
            kept = list(directory.glob("*.torn"))
            assert [file.read_bytes() for file in kept] == ([SECOND[cut - torn : cut]] if torn else [])


@settings(max_examples=examples(60), deadline=None)
@given(cut=st.integers(0, len(FIRST)), made=st.booleans())
def test_g26_repair_after_a_crash_in_the_first_segment_or_its_rotation(cut: int, made: bool) -> None:
    rotated = cut == len(FIRST)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_chain(directory, [[FIRST[:cut]], []] if made or rotated else [[FIRST[:cut]]])
        assert restart(directory) == CHAIN
        report = check(directory)
        assert report.segments == (2 if rotated else 1)


@settings(max_examples=examples(25), deadline=None)
@given(
    runs=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 200)), min_size=1, max_size=4),
    segment_bytes=st.sampled_from([1, 1200, 100_000]),
)
def test_g26_rotation_and_repair_over_many_restarts(runs: list[tuple[int, int]], segment_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        chain = ""
        for count, torn in runs:
            log = Journal(
                JournalSettings(directory=directory, fsync_ms=1.0, segment_bytes=segment_bytes),
                KEY,
                process="p",
                now=noon,
            )
            assert chain in {"", log.chain}
            chain = log.chain
            for _ in range(count):
                log.append(start())
            log.close()
            last = directory / segment_name(chain, check(directory).segments)
            with last.open("ab") as segment:
                segment.write(LINES[0][:torn])
            check(directory)
