"""A process that writes audit records without pause is killed with SIGKILL, again and again, and its chain holds."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from checkstream.audit.keys import load_key, load_public_key
from checkstream.audit.verify import ChainReport, verify

WRITER = """
import asyncio, sys
from pathlib import Path
from checkstream.audit.journal import Journal, JournalSettings
from checkstream.audit.keys import load_key
from tests.records import start, stream

async def main() -> None:
    directory = Path(sys.argv[1])
    settings = JournalSettings(
        directory=directory, durability="strict", fsync_ms=1.0, head_ms=1.0, segment_bytes=30_000
    )
    journal = Journal(settings, load_key(directory.parent / "audit.key"), process=sys.argv[2])
    journal.append(start())
    number = 0
    while number != int(sys.argv[3]):
        number += 1
        for _ in range(20):
            journal.append(stream(number))
        print(await journal.append_durable(stream(number)), flush=True)

asyncio.run(main())
"""
FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from checkstream.audit.journal import Journal, JournalSettings
from checkstream.audit.keys import load_key
from checkstream.errors import AuditError
from tests.records import stream

async def main() -> None:
    directory = Path(sys.argv[1])
    key = load_key(directory.parent / "audit.key")
    journal = Journal(JournalSettings(directory=directory, durability="strict"), key, process="p")
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    for number in range(100):
        try:
            seq = await journal.append_durable(stream(number))
        except AuditError as error:
            print(seq, journal.state, error)
            return

asyncio.run(main())
"""
ROOT = Path(__file__).parents[2]


def write_and_kill(directory: Path, name: str, acknowledged: int) -> int:
    """Let a process write until it has been told of so many durable records; return the last number it was told."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory), name, "-1"], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as writer:
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(acknowledged)]
        writer.send_signal(signal.SIGKILL)
        told += [int(line) for line in writer.stdout if line.endswith("\n")]
        writer.wait()
    assert writer.returncode == -signal.SIGKILL
    return told[-1]


def check(directory: Path) -> ChainReport:
    (report,) = verify(directory, keys=(load_public_key(directory.parent / "audit.key.pub"),))
    assert report.bad is None, report.bad.render()
    return report


def test_g26_kill_9_while_writing_then_verify_restart_verify(tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    records = 0
    for turn, acknowledged in enumerate((1, 7, 30)):
        told = write_and_kill(directory, f"p{turn}", acknowledged)
        report = check(directory)
        assert report.records >= told > records, "a record that was reported as durable is gone"
        records = report.records
    assert report.segments > 3
    assert load_key(tmp_path / "audit.key").public.name


def test_g26_verify_while_another_process_writes(tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory), "p", "80"], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as writer:
        assert writer.stdout is not None
        seen = []
        for _ in range(12):
            told = int(writer.stdout.readline())
            seen.append(check(directory).records)
            assert seen[-1] >= told
        writer.communicate()
    assert writer.returncode == 0
    assert seen == sorted(seen)
    assert seen[-1] > seen[0]


def test_g26_a_disk_that_is_full_fails_the_journal_and_a_restart_repairs_it(tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(directory)], capture_output=True, text=True, cwd=ROOT, check=True
    )
    told, state, message = run.stdout.split(" ", 2)
    assert state == "failed"
    assert "can't be written: File too large" in message
    report = check(directory)
    assert report.records == int(told)
    assert report.torn_bytes > 0
    write_and_kill(directory, "p2", 1)
    assert check(directory).records > int(told)
    (torn,) = directory.glob("*.torn")
    assert torn.stat().st_size == report.torn_bytes
