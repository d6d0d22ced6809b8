"""What ships a log and what keeps it are killed with SIGKILL at any step: nothing that was acknowledged is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from checkstream.audit.chain import read
from checkstream.audit.journal import Journal, JournalSettings
from checkstream.control.server.database import open_database
from checkstream.control.server.traffic import chains
from tests.records import KEY, stream

BOTH = """
import sys, time
from pathlib import Path
from checkstream.control.server.arrivals import receive
from checkstream.control.server.database import open_database
from checkstream.control.telemetry.composing import Composer
from checkstream.control.telemetry.privacy import Privacy

composer = Composer(Path(sys.argv[1]), Privacy(), (sys.argv[3],), spool_bytes=1 << 30)
database = open_database("sqlite:" + sys.argv[2])
number, positions = time.time_ns() // 1000, {}
while True:
    number += 1
    composed = composer.compose(
        positions, number=number, time_ms=time.time_ns() // 1_000_000, most_bytes=1 << 20, most_records=3
    )
    received = database.at_once(lambda session: receive(session, "n1", "shop", composed.delivery, number // 1000))
    composer.taken(composed, received.positions)
    positions = received.positions
    print(max(at.seq for at in positions.values()), flush=True)
    if not composed.delivery.runs:
        break
"""
ROOT = Path(__file__).parents[2]
_EXCHANGES = 600
_LEAST = (1, 7, 40, 3, 90)
"""Acknowledgements that are waited for before each kill."""


def begun(audit: Path, store: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BOTH, str(audit), str(store), KEY.public.raw.hex()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def test_what_was_acknowledged_is_there_once_whenever_both_ends_are_killed(tmp_path: Path) -> None:
    audit, store = tmp_path / "audit", tmp_path / "control.db"
    settings = JournalSettings(directory=audit, fsync_ms=1.0, head_ms=1.0, segment_bytes=100_000)
    journal = Journal(settings, KEY, process="p")
    for number in range(_EXCHANGES):
        journal.append(stream(number))
    journal.close()
    for least in _LEAST:
        with begun(audit, store) as both:
            assert both.stdout is not None
            told = [int(both.stdout.readline()) for _ in range(least)]
            both.send_signal(signal.SIGKILL)
            told += [int(line) for line in both.stdout if line.endswith("\n")]
            both.wait()
        database = open_database(f"sqlite:{store}")
        ((kept,),) = database.at_once(lambda session: session.execute("select seq from chains"))
        ((count, last),) = database.at_once(lambda session: session.execute("select count(*), max(seq) from records"))
        database._close()
        assert kept >= told[-1]
        assert count == last == kept
    with begun(audit, store) as both:
        assert both.stdout is not None
        both.stdout.read()
    assert both.returncode == 0
    database = open_database(f"sqlite:{store}")
    lines = [line for path in sorted(audit.glob("*.jsonl")) for line in path.read_bytes().splitlines()]
    rows = database.at_once(
        lambda session: session.execute("select seq, hash, proven, content from records order by seq")
    )
    assert [(row[1], row[2], row[3].encode()) for row in rows] == [(read(line).hash, 1, line) for line in lines]
    counted = database.at_once(
        lambda session: session.execute("select sum(count) from minutes where name = 'exchanges'")
    )
    assert counted == [(_EXCHANGES,)]
    (chain,) = database.at_once(lambda session: chains(session, "n1", 9))
    assert (chain.seq, chain.signed, chain.missing, chain.flaws) == (len(lines), len(lines), 0, ())
    database._close()
