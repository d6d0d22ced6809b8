"""What it costs to tell a control server of every exchange: on the request's path, beside the proxy, and on the server.

On the path nothing is added but whose digests a record has; the record's own cost stands beside it. The rest is done by
another process, of which the figures are CPU time.

    python -m bench.telemetry
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import msgspec

from bench.report import machine
from checkstream.audit.entries import StreamEntry
from checkstream.audit.journal import Journal, JournalSettings
from checkstream.control.server.arrivals import receive
from checkstream.control.server.database import open_database
from checkstream.control.telemetry.composing import Composer
from checkstream.control.telemetry.delivery import At, Delivery, read_delivery
from checkstream.control.telemetry.packing import packed, unpacked
from checkstream.control.telemetry.privacy import Privacy
from checkstream.proxy.ids import new_id
from tests.records import KEY, stream

_EXCHANGES = 20_000
_TURNS = 9
_TEXT = "mary.jones@example.com"


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured, microseconds of CPU time for one exchange unless it says otherwise."""

    record: float
    """Its record appended to the audit log; the thread that writes it to the disk included."""
    whose: float
    """Whose digests it has."""
    digest: tuple[float, float]
    """One digest of a finding: by the node's key, by the caller's."""
    shipped: float
    bytes: tuple[float, float]
    """Of its record in the log, and packed."""
    arrived: float
    """Unpacked, verified and kept by the control server, in SQLite."""
    linked: float
    """The same where its content stays on the node."""


def run() -> Figures:
    """Measure in a folder for temporary files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        of = KEY.by_tenant(b"s" * 32)
        record = _written(folder / "audit") / _EXCHANGES * 1e6
        deliveries, shipped, packed_bytes = _shipped(folder / "audit", Privacy())
        links, _, _ = _shipped(folder / "audit", Privacy(usual="none"))
        size = sum(path.stat().st_size for path in (folder / "audit").glob("*.jsonl"))
        return Figures(
            record=record,
            whose=_each(lambda: of("app1")),
            digest=(_each(lambda: KEY.digest(_TEXT)), _each(lambda: of("app1")(_TEXT))),
            shipped=shipped / _EXCHANGES * 1e6,
            bytes=(size / _EXCHANGES, packed_bytes / _EXCHANGES),
            arrived=_arrived(folder / "whole.db", deliveries) / _EXCHANGES * 1e6,
            linked=_arrived(folder / "links.db", links) / _EXCHANGES * 1e6,
        )


def _each(work: Callable[[], object]) -> float:
    """Return the CPU time of one call, microseconds: the median of some turns."""
    took = []
    for _ in range(_TURNS):
        begin = time.process_time()
        for _ in range(20_000):
            work()
        took.append((time.process_time() - begin) / 20_000 * 1e6)
    return median(took)


def _entry(number: int) -> StreamEntry:
    """Return what an exchange leaves in the log, with all in it that no other exchange has."""
    record = stream(number).record
    digest = msgspec.structs.replace(record.findings[0], digest=KEY.digest(str(number)))
    told = msgspec.structs.replace(record, findings=(digest,), held_ms=number % 977 / 7)
    return StreamEntry(stream=new_id(), route="chat", caller="app1", record=told)


def _written(folder: Path) -> float:
    entries = [_entry(number) for number in range(_EXCHANGES)]
    journal = Journal(JournalSettings(directory=folder), KEY, process="bench")
    begin = time.process_time()
    for entry in entries:
        journal.append(entry)
    journal.close()
    return time.process_time() - begin


def _shipped(folder: Path, privacy: Privacy) -> tuple[list[bytes], float, int]:
    """Return the deliveries of a log, the CPU time that making them took, and their bytes."""
    composer = Composer(folder, privacy, (KEY.public.raw.hex(),), spool_bytes=1 << 40)
    bodies: list[bytes] = []
    positions: dict[str, At] = {}
    number = 0
    begin = time.process_time()
    while True:
        number += 1
        composed = composer.compose(positions, number=number, time_ms=number, most_bytes=1 << 20, most_records=1000)
        if not composed.delivery.runs:
            return bodies, time.process_time() - begin, sum(len(body) for body in bodies)
        bodies.append(packed(msgspec.json.encode(composed.delivery)))
        positions = {chain: end.at for chain, end in composed.ends.items()}
        composer.taken(composed, positions)


def _arrived(store: Path, bodies: list[bytes]) -> float:
    database = open_database(f"sqlite:{store}")

    def kept(delivery: Delivery) -> None:
        database.at_once(lambda session: receive(session, "n1", "shop", delivery, 0))

    begin = time.process_time()
    for body in bodies:
        kept(read_delivery(unpacked(body, 1 << 24)))
    return time.process_time() - begin


def lines(figures: Figures) -> list[str]:
    """Return the report, as lines of Markdown."""
    here, there = figures.bytes
    node, caller = figures.digest
    return [
        "## Telemetry",
        "",
        f"CPU time for one exchange with one finding and one verdict, of {_EXCHANGES:,}.",
        "",
        "| where | what | µs |",
        "|---|---|---:|",
        f"| the proxy | its record in the audit log, with or without telemetry | {figures.record:.1f} |",
        f"| the proxy | whose digests it has: all that telemetry adds | {figures.whose:.2f} |",
        f"| the proxy | a digest by the caller's key, in place of one by the node's of {node:.2f} | {caller:.2f} |",
        "| the proxy | a token | 0 |",
        f"| the process beside it | {here:,.0f} bytes of log read, packed to {there:,.0f} | {figures.shipped:.1f} |",
        f"| the control server | unpacked, verified, kept in SQLite | {figures.arrived:.1f} |",
        f"| the control server | the same of a record whose content stays on its node | {figures.linked:.1f} |",
        "",
    ]


if __name__ == "__main__":
    figures = run()
    sys.stdout.write(
        "\n".join(["Made by `python -m bench.telemetry`.", "", *machine(), "", *lines(figures)]).rstrip() + "\n"
    )
