"""What metrics say of a store, over every database of the control server."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkstream.config.control import Fleet
from checkstream.control.review.precision import WEEK_S
from checkstream.control.server.database import Session, open_database
from checkstream.control.server.measured import measured
from checkstream.control.server.traffic import forget
from checkstream.control.telemetry.delivery import At
from checkstream.control.telemetry.privacy import Privacy, run_of
from tests.controlled import KINDS, address_of
from tests.evidence_stores import postgres
from tests.records import CHAIN, entries, seal_all
from tests.telemetry_store import Kept, database, kept, pairs

__all__ = ["database", "kept", "postgres"]

NOW_MS = 2951 * WEEK_S * 1000 + 5000
FINDING = '{"finding":{"kind":"node_stale","severity":"page","subject":"s","says":"so"},"since_s":1.0,"seen_s":1.0}'


def _filled(session: Session) -> None:
    for node, chain, seq in (("n1", "c1", 90), ("n2", "c2", 30)):
        session.execute(
            "insert into chains(node, chain, seq, hash, signed, signed_ms, unsigned_ms, heard_ms, told) "
            "values(?, ?, ?, '', 0, 0, 0, 0, 0)",
            (node, chain, seq),
        )
    session.execute("update totals set count = 100")
    session.execute("insert into gaps(node, chain, first, last, reason, at_ms) values('n1', 'c1', 5, 24, 'full', 0)")
    for seq in (7, 9):
        session.execute(
            "insert into flaws(node, chain, seq, reason, detail, at_ms) values('n2', 'c2', ?, 'hash', '', ?)",
            (seq, NOW_MS - 1000),
        )
    for node, waiting in (("n1", 1 << 31), ("n2", 5)):
        session.execute(
            "insert into senders(node, number, heard_ms, skew_ms, waiting, silent) values(?, 1, 0, 0, ?, 0)",
            (node, waiting),
        )
    for tries in (0, 0, 3):
        session.execute(
            "insert into notices(channel, notice, tries, due_ms, failure) values('c', '{}', ?, 0, '')", (tries,)
        )
    session.execute("insert into troubles(name, state) values('node_stale:s', ?)", (FINDING,))
    for number, (week, words) in enumerate(((2949, "rr"), (2950, "ww"), (2950, "rr"), (2950, ""))):
        session.execute(
            "insert into review_items(id, queue, share, node, stream, route, rule, policy, action, stage, probability, "
            "at_ms, taken_ms, settled) values(?, 'sampled', 1, 'n1', ?, 'chat', 'PII-1', 'p@1', 'redact', 'midstream', "
            "1, ?, 0, ?)",
            (f"i{number}", f"s{number}", week * WEEK_S * 1000 + number, int(bool(words))),
        )
        for who, word in zip(("ann", "ben"), words, strict=False):
            said = {"r": "right", "w": "wrong"}[word]
            session.execute(
                "insert into review_labels(item, who, word, at_ms) values(?, ?, ?, 0)", (f"i{number}", who, said)
            )


@pytest.mark.parametrize("kind", KINDS)
async def test_figures_of_a_store_are_what_it_has(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    async with address_of(kind, tmp_path, request) as address:
        times: list[float] = []
        database = open_database(address, took=times.append)
        fleets = {"shop": Fleet(bundle="retail", nodes={"n1": "n1.pub", "n2": "n2.pub"})}
        await database.transact(_filled)
        found = await database.transact(lambda session: measured(fleets, 300, session, NOW_MS))
        await database.close()
    assert (found.records, found.missing, found.waiting_bytes) == (100, 20, (1 << 31) + 5)
    assert (found.chains, found.faults) == ({"broken": 1, "whole": 1}, 2)
    assert (found.troubles, found.notices) == ({"page": 1}, {"waiting": 2, "failing": 1})
    assert [(each.rule, each.week, each.reviewed, each.value) for each in found.precision] == [
        ("PII-1", 2949, 1, 1.0),
        ("PII-1", 2950, 2, 0.5),
    ]
    assert (found.week, found.reviews_waiting) == (2950, 1)
    assert (found.stages, found.exchanges) == ({"shop": ""}, {"shop": (0, 0, 0, 0)})
    assert [each.node for each in found.nodes["shop"]] == ["n1", "n2"]
    assert len(times) == 2
    assert all(0 < took < 60 for took in times)


def test_what_has_arrived_is_counted_once_and_never_less(kept: Kept) -> None:
    def arrived() -> int:
        return int(kept.do(lambda session: measured({}, 60, session, NOW_MS).records))

    before, sealed = arrived(), seal_all(entries(5))
    kept.send(sealed[:3])
    kept.runs(run_of(CHAIN, At(), pairs(sealed), Privacy()))
    assert arrived() == before + 3
    kept.send(sealed[3:])
    assert arrived() == before + 5
    kept.do(lambda session: session.execute("update chains set gone = 1"))
    kept.do(forget, 2**48, 1000)
    assert kept.rows("chains", "seq") == []
    assert arrived() == before + 5
