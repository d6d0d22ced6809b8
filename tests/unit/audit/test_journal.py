from __future__ import annotations

import asyncio
import errno
import json
import os
from pathlib import Path

import pytest

from checkstream.audit.chain import MAX_LINE_BYTES
from checkstream.audit.entries import StopEntry
from checkstream.audit.journal import Journal, JournalSettings
from checkstream.audit.segments import segment_name
from checkstream.audit.verify import ChainReport, verify
from checkstream.audit.writer import ChainWriter
from checkstream.errors import AuditError
from tests.records import KEY, noon, start, stream


def settings(directory: Path, **changes: object) -> JournalSettings:
    return JournalSettings(directory=directory, **{"fsync_ms": 5.0, "head_ms": 0.0, **changes})  # type: ignore[arg-type]


def journal(directory: Path, **changes: object) -> Journal:
    return Journal(settings(directory, **changes), KEY, process="p1", now=noon)


def check(directory: Path) -> ChainReport:
    (report,) = verify(directory, keys=(KEY.public,))
    assert report.bad is None, report.bad.render()
    return report


def last(directory: Path, name: str) -> dict[str, object]:
    found = json.loads((directory / name).read_bytes().splitlines()[-1])
    assert isinstance(found, dict)
    return found


async def test_entries_are_numbered_linked_and_verify(tmp_path: Path) -> None:
    log = journal(tmp_path)
    assert [log.append(start()), log.append(stream()), await log.append_durable(stream(2))] == [1, 2, 3]
    await log.flush()
    assert check(tmp_path).records == 3
    await log.aclose()
    report = check(tmp_path)
    assert (report.records, report.signed) == (3, 3)
    assert log.state == "closed"
    assert last(tmp_path, segment_name(log.chain, 1))["time"] == "2026-01-02T12:00:00.000Z"


async def test_strict_is_on_disk_when_it_returns(tmp_path: Path) -> None:
    log = journal(tmp_path, durability="strict", fsync_ms=60_000.0)
    seqs = await asyncio.gather(*(log.append_durable(stream(n)) for n in range(20)))
    assert seqs == list(range(1, 21))
    assert check(tmp_path).records == 20
    log.close()


async def test_group_does_not_wait_and_flush_does(tmp_path: Path) -> None:
    log = journal(tmp_path, fsync_ms=60_000.0)
    assert await log.append_durable(stream()) == 1
    assert (tmp_path / segment_name(log.chain, 1)).stat().st_size == 0
    await log.flush()
    await log.flush()
    assert check(tmp_path).records == 1
    log.close()


async def test_segments_turn_over_with_their_links(tmp_path: Path) -> None:
    log = journal(tmp_path, segment_bytes=2500)
    for number in range(12):
        log.append(stream(number))
        if number % 5 == 0:
            await log.flush()
    await log.aclose()
    report = check(tmp_path)
    assert report.segments > 3
    assert report.records == 12 + report.segments - 1
    first = last(tmp_path, segment_name(log.chain, 1))
    assert first["kind"] == "rotate"
    assert first["body"] == {"next": segment_name(log.chain, 2)}
    with journal_closed(tmp_path, segment_bytes=2500) as again:
        assert again.append(StopEntry(reason="x")) > report.records
    assert check(tmp_path).segments >= report.segments


class journal_closed:  # noqa: N801 - reads as a word of the tests
    def __init__(self, directory: Path, **changes: object) -> None:
        self.log = journal(directory, **changes)

    def __enter__(self) -> Journal:
        return self.log

    def __exit__(self, *_: object) -> None:
        self.log.close()


def test_a_record_larger_than_a_segment_has_one_of_its_own(tmp_path: Path) -> None:
    with journal_closed(tmp_path, segment_bytes=10) as log:
        for number in range(3):
            log.append(stream(number))
    assert check(tmp_path).segments == 3


def test_processes_never_share_a_chain_and_a_restart_takes_up_a_free_one(tmp_path: Path) -> None:
    one, two = journal(tmp_path), journal(tmp_path)
    assert one.chain != two.chain
    for log in (one, two):
        log.append(start())
    one.close()
    three = journal(tmp_path)
    assert three.chain == one.chain
    assert three.append(start()) == 2
    two.close()
    three.close()
    reports = verify(tmp_path, keys=(KEY.public,))
    assert sorted((report.records, report.bad) for report in reports) == [(1, None), (2, None)]


def test_g26_a_torn_tail_is_repaired_and_recorded(tmp_path: Path) -> None:
    with journal_closed(tmp_path) as log:
        log.append(start())
    name = segment_name(log.chain, 1)
    with (tmp_path / name).open("ab") as segment:
        segment.write(b'{"body":{"re')
    with (tmp_path / f"{log.chain}.heads").open("ab") as heads:
        heads.write(b'{"chain')
    with journal_closed(tmp_path) as log:
        assert log.append(stream()) == 3
    repair = json.loads((tmp_path / name).read_bytes().splitlines()[1])
    assert repair["kind"] == "repair"
    assert repair["body"]["segment"] == name
    assert repair["body"]["dropped_bytes"] == 12
    assert (tmp_path / f"{log.chain}-000001.2.torn").read_bytes() == b'{"body":{"re'
    assert check(tmp_path).records == 3


def test_a_crash_between_taking_the_tail_off_and_recording_it_is_recorded_at_the_next_start(tmp_path: Path) -> None:
    with journal_closed(tmp_path) as log:
        log.append(start())
    (tmp_path / f"{log.chain}-000001.tearing").write_bytes(b"torn")
    with journal_closed(tmp_path):
        pass
    assert last(tmp_path, segment_name(log.chain, 1))["kind"] == "repair"
    assert check(tmp_path).records == 2
    assert not list(tmp_path.glob("*.tearing"))


def test_a_chain_that_does_not_hold_is_left_alone_and_a_new_one_begun(tmp_path: Path) -> None:
    with journal_closed(tmp_path) as log:
        log.append(start())
        log.append(stream())
    segment = tmp_path / segment_name(log.chain, 1)
    cut = segment.read_bytes().splitlines(keepends=True)[0]
    segment.write_bytes(cut)  # below what its head was signed for
    with journal_closed(tmp_path) as again:
        assert again.chain != log.chain
        assert log.chain in again.left_alone[0]
        again.append(start())
    assert segment.read_bytes() == cut
    assert sorted(report.bad is None for report in verify(tmp_path, keys=(KEY.public,))) == [False, True]


def test_garbage_named_like_segments_does_not_stop_a_start(tmp_path: Path) -> None:
    (tmp_path / "a-000001.jsonl").write_bytes(b"\x00" * 4096 + b"\n")
    (tmp_path / "b-000001.jsonl").mkdir()
    (tmp_path / "c-000007.jsonl").write_bytes(b"\xff\n")
    os.mkfifo(tmp_path / "d-000001.jsonl")
    with (tmp_path / "e-000001.jsonl").open("wb") as huge:
        huge.truncate(MAX_LINE_BYTES + 10)
    with journal_closed(tmp_path) as log:
        log.append(start())
    assert log.chain.startswith("20260102120000")
    assert len(log.left_alone) == 5


async def test_a_write_error_fails_the_journal_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = journal(tmp_path)
    log.append(start())
    await log.flush()

    def full(_: ChainWriter, data: bytes) -> None:
        assert data
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(ChainWriter, "write", full)
    log.append(stream())
    with pytest.raises(AuditError, match="No space left"):
        await log.flush()
    assert log.state == "failed"
    assert "No space left" in log.failure
    with pytest.raises(AuditError, match="No space left"):
        log.append(stream())
    with pytest.raises(AuditError, match="No space left"):
        await log.append_durable(stream())
    with pytest.raises(AuditError, match="No space left"):
        await log.flush()
    with pytest.raises(AuditError, match="No space left"):
        log.close()
    monkeypatch.undo()
    with journal_closed(tmp_path) as again:
        assert again.append(stream()) == 2
    assert check(tmp_path).records == 2


async def test_a_bug_in_the_writer_fails_the_journal_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = journal(tmp_path, fsync_ms=60_000.0)
    monkeypatch.setattr(ChainWriter, "sync", lambda _: 1 // 0)
    log.append(start())
    with pytest.raises(AuditError, match="bug"):
        await log.flush()
    assert log.state == "failed"


async def test_what_can_not_be_written_down_is_refused_and_the_chain_goes_on(tmp_path: Path) -> None:
    log = journal(tmp_path)
    with pytest.raises(AuditError):
        log.append(StopEntry(reason="x" * (MAX_LINE_BYTES + 1)))
    assert log.append(start()) == 1
    await log.aclose()
    assert check(tmp_path).records == 1
    with pytest.raises(AuditError, match="closed"):
        log.append(start())
    await log.aclose()


async def test_a_disk_that_can_not_keep_up_pushes_back(tmp_path: Path) -> None:
    log = journal(tmp_path, fsync_ms=60_000.0, pending_bytes=1500)
    assert [log.append(stream(number)) for number in (1, 2)] == [1, 2]
    with pytest.raises(AuditError, match="can't keep up"):
        log.append(stream(3))
    await log.flush()
    log.append(stream())
    log.close()
    check(tmp_path)


def test_a_directory_that_can_not_be_made_is_an_audit_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AuditError):
        journal(tmp_path / "file" / "audit")


async def test_a_flush_whose_caller_has_gone_does_not_hurt_the_others(tmp_path: Path) -> None:
    log = journal(tmp_path, fsync_ms=60_000.0)
    log.append(start())
    gone = asyncio.ensure_future(log.flush())
    gone.cancel()
    await log.flush()
    assert log.state == "open"
    log.close()
