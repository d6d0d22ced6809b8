from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from checkstream.audit.chain import Reason, seal
from checkstream.audit.entries import StopEntry
from checkstream.audit.segments import segment_name
from checkstream.audit.verify import verify
from checkstream.errors import AuditError
from tests.records import CHAIN, KEY, OTHER_KEY, TIME, head, seal_all, two_segments, write_chain

SEALED = seal_all(two_segments())
LINES = [sealed.line for sealed in SEALED]
HEADS = [head(SEALED[0]), head(SEALED[3]), head(SEALED[5])]
KEYS = (KEY.public,)


def test_a_good_chain_holds_with_and_without_key(tmp_path: Path) -> None:
    write_chain(tmp_path, [LINES[:4], LINES[4:]], HEADS)
    for keys in ((), KEYS, (OTHER_KEY.public, KEY.public)):
        (report,) = verify(tmp_path, keys=keys)
        assert report.bad is None
        assert (report.records, report.segments, report.signed, report.torn_bytes) == (7, 2, 6, 0)


def test_heads_may_stand_elsewhere(tmp_path: Path) -> None:
    write_chain(tmp_path / "log", [LINES[:4], LINES[4:]])
    write_chain(tmp_path / "heads", [], HEADS)
    (report,) = verify(tmp_path / "log", heads=tmp_path / "heads", keys=KEYS)
    assert (report.bad, report.signed) == (None, 6)
    with pytest.raises(AuditError, match="heads directory"):
        verify(tmp_path / "log", heads=tmp_path / "nowhere")


Parts = list[list[bytes]]


def forged() -> bytes:
    return seal(StopEntry(reason="x"), chain=CHAIN, seq=7, prev=SEALED[5].hash, process="p1", time=TIME).line


@pytest.mark.parametrize(
    ("parts", "heads", "reason", "place"),
    [
        ([[*LINES[:2], LINES[3]], LINES[4:]], HEADS, Reason.MISSING, ("c1-000001.jsonl", 3, 4)),
        ([[LINES[0], LINES[2], LINES[1], LINES[3]], LINES[4:]], HEADS, Reason.SWAPPED, ("c1-000001.jsonl", 2, 3)),
        ([[*LINES[:2], *LINES[1:4]], LINES[4:]], HEADS, Reason.REPEATED, ("c1-000001.jsonl", 3, 2)),
        ([LINES[:4], [*LINES[4:6], b"\xff\n"]], HEADS, Reason.UNREADABLE, ("c1-000002.jsonl", 3, 7)),
        ([LINES[:4], [LINES[4], LINES[5].replace(b"s4", b"s5"), LINES[6]]], HEADS, Reason.HASH,
         ("c1-000002.jsonl", 2, 6)),
        ([LINES[:4]], HEADS[:2], Reason.NO_SEGMENT, ("c1-000002.jsonl", 0, 5)),
        ([LINES[:4]], HEADS, Reason.CUT, ("c1.heads", 3, 6)),
        ([LINES[:3], LINES[4:]], HEADS, Reason.NO_ROTATE, ("c1-000001.jsonl", 0, 3)),
        ([LINES[:4], LINES[4:5]], HEADS, Reason.CUT, ("c1.heads", 3, 6)),
        ([LINES[:4], [*LINES[4:5], LINES[5][:50]]], HEADS, Reason.CUT, ("c1.heads", 3, 6)),
        ([[*LINES[:3], LINES[3][:-1]], LINES[4:]], HEADS[:1], Reason.TRUNCATED, ("c1-000001.jsonl", 4, 4)),
        ([LINES[:4], [*LINES[4:6], LINES[6][:-1] + b"X"]], HEADS, Reason.TRUNCATED, ("c1-000002.jsonl", 3, 7)),
        ([LINES[:4], [*LINES[4:6], forged()]], [*HEADS, head(SEALED[6])], Reason.HEAD_HASH, ("c1.heads", 4, 7)),
        ([LINES[:4], LINES[4:]], [HEADS[1], HEADS[0]], Reason.HEAD_ORDER, ("c1.heads", 2, 1)),
        ([LINES[:4], LINES[4:]], [HEADS[0], b"{}\n"], Reason.HEAD_UNREADABLE, ("c1.heads", 2, 1)),
        ([LINES[:4], LINES[4:]], [head(SEALED[1], OTHER_KEY)], Reason.HEAD_SIGNATURE, ("c1.heads", 1, 2)),
        ([LINES[:4], LINES[4:]], [head(SEALED[1]).replace(b'"sig":"', b'"sig":"0')[:-1] + b"\n"],
         Reason.HEAD_UNREADABLE, ("c1.heads", 1, 1)),
        ([LINES[:4], LINES[4:]], [head(SEALED[1]).replace(b"T03:04:05Z", b"T03:04:06Z")], Reason.HEAD_SIGNATURE,
         ("c1.heads", 1, 2)),
        ([LINES[:4], LINES[4:]], [head(SEALED[1], chain="c2")], Reason.HEAD_UNREADABLE, ("c1.heads", 1, 2)),
        ([LINES[:4], LINES[4:]], None, Reason.NO_HEAD, ("c1.heads", 0, 7)),
        ([], HEADS, Reason.CUT, ("c1.heads", 1, 1)),
        ([[], LINES[4:]], HEADS, Reason.NO_ROTATE, ("c1-000001.jsonl", 0, 0)),
        ([LINES[:4], LINES[4:]], [*HEADS, HEADS[2][:-1] + b"X"], Reason.HEAD_UNREADABLE, ("c1.heads", 4, 6)),
    ],
)  # fmt: skip
def test_g26_the_first_bad_record_is_named(
    tmp_path: Path, parts: Parts, heads: list[bytes] | None, reason: Reason, place: tuple[str, int, int]
) -> None:
    write_chain(tmp_path, parts, heads)
    (report,) = verify(tmp_path, keys=KEYS)
    assert report.bad is not None
    assert report.bad.reason is reason
    assert (report.bad.file, report.bad.line, report.bad.seq) == place
    assert reason.value in report.bad.render()


def test_a_first_segment_that_is_gone_is_named(tmp_path: Path) -> None:
    write_chain(tmp_path, [LINES[:4], LINES[4:]], HEADS)
    (tmp_path / segment_name(CHAIN, 1)).unlink()
    (report,) = verify(tmp_path)
    assert report.bad is not None
    assert report.bad.reason in {Reason.NO_SEGMENT, Reason.CUT}


def test_a_write_in_progress_is_no_fault(tmp_path: Path) -> None:
    write_chain(tmp_path, [LINES[:4], [*LINES[4:6], LINES[6][:40]]], [*HEADS, head(SEALED[6])[:50]])
    (report,) = verify(tmp_path, keys=KEYS)
    assert (report.bad, report.torn_bytes, report.records) == (None, 40, 6)


@pytest.mark.parametrize("parts", [[LINES[:3], []], [[*LINES[:3], LINES[3][:60]], []], [LINES[:4], []]])
def test_a_crash_in_a_rotation_is_no_fault(tmp_path: Path, parts: Parts) -> None:
    write_chain(tmp_path, parts, HEADS[:1])
    (report,) = verify(tmp_path, keys=KEYS)
    assert report.bad is None


def test_each_chain_is_judged_apart(tmp_path: Path) -> None:
    write_chain(tmp_path, [LINES[:4], LINES[4:]], HEADS)
    other = seal_all(two_segments()[:3], chain="c0")
    (tmp_path / "c0-000001.jsonl").write_bytes(b"".join(sealed.line for sealed in other[1:]))
    reports = verify(tmp_path)
    assert [(report.chain, report.bad is None) for report in reports] == [("c0", False), ("c1", True)]


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.mkdir(),
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to("nowhere"),
    ],
)
def test_what_is_no_file_in_a_segments_place_is_an_error_and_never_blocks(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    make(tmp_path / segment_name(CHAIN, 1))
    try:
        (report,) = verify(tmp_path)
    except AuditError:
        return
    assert report.bad is not None
