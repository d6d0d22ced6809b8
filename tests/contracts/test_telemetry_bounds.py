"""What one node can fill of each database has a bound: counts, chains, bundles; and what nobody needs any more goes."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.server import arrivals, tables
from checkstream.control.server.arrivals import folded
from checkstream.control.server.database import Database
from checkstream.control.server.tables import SLOT_MS
from checkstream.control.server.tally import OTHER, Tally
from checkstream.control.server.traffic import forget
from checkstream.control.telemetry.delivery import At, Count, Delivery, Run
from checkstream.errors import RequestInvalid
from tests.evidence_stores import postgres
from tests.records import CHAIN, seal_all, stream
from tests.telemetry_store import AT, Kept, database, kept

__all__ = ["database", "kept", "postgres"]
MINUTE = AT // 60_000
DAY_MS = 86_400_000
KEYS = st.tuples(st.just(7), st.sampled_from("ab"), st.sampled_from("stuvwxyz"))


@given(st.dictionaries(KEYS, st.integers(1, 9)), st.sets(KEYS), st.integers(1, 8))
def test_counts_within_the_room_stay_as_they_are_and_none_is_lost(
    counts: dict[tuple[int, str, str], int], known: set[tuple[int, str, str]], most: int
) -> None:
    found = folded(counts, known, most)
    rest = (7, OTHER, OTHER)
    assert sum(found.values()) == sum(counts.values())
    assert all(found[key] == count for key, count in counts.items() if key in known)
    assert all(count == counts[key] for key, count in found.items() if key != rest)
    assert len(found.keys() - known - {rest}) <= max(most - len(known), 0)
    if len(known | counts.keys()) <= most:
        assert found == counts


def test_a_node_of_many_names_fills_no_more_than_its_minute(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "_MOST_NAMES", 10)
    told = Counter[str]()
    for turn in range(4):
        counts = tuple(Count(minute=MINUTE, route=f"r{turn}", name=f"n{n}", count=1 + n) for n in range(8))
        kept.runs(Run(chain=CHAIN, after=At(), counts=counts))
        told.update({f"r{turn}": sum(each.count for each in counts)})
    rows = kept.rows("minutes", "minute, route, name, count")
    assert len(rows) == 11
    assert sum(row[3] for row in rows) == told.total()
    assert [row[3] for row in rows if row[1:3] == (OTHER, OTHER)] == [told.total() - sum(range(1, 9)) - 1 - 2]


def test_what_is_counted_in_no_minute_that_there_was_is_counted_now(kept: Kept) -> None:
    counts = tuple(Count(minute=m, route="r", name="exchanges", count=1) for m in (MINUTE - 5, MINUTE + 50, 2**32))
    kept.runs(Run(chain=CHAIN, after=At(), counts=counts))
    assert kept.rows("minutes", "minute") == [(MINUTE - 5,), (MINUTE,), (MINUTE + 50,)]


def test_a_node_has_as_many_chains_as_one_may_and_what_it_has_goes_on(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "MOST_CHAINS", 3)

    def tell(number: int, *chains: str) -> None:
        runs = tuple(Run(chain=chain, after=At(), ends=At(seq=1)) for chain in chains)
        kept.do(arrivals.receive, kept.node, "shop", Delivery(number=number, time_ms=AT, runs=runs), AT)

    tell(1, "a", "b", "c")
    with pytest.raises(RequestInvalid, match="more than 3 audit chains"):
        tell(2, "d")
    tell(2, "a", "b")
    with pytest.raises(RequestInvalid):
        tell(3, "c", "e")
    assert kept.rows("chains", "chain") == [("a",), ("b",), ("c",)]


def places(kept: Kept) -> tuple[int, int]:
    return len(kept.rows("chains", "chain")), len(kept.rows("senders", "node"))


def forgotten(kept: Kept, before_ms: int) -> None:
    while kept.do(forget, before_ms, 100):
        pass


def test_where_chains_stood_goes_when_they_and_their_records_are_gone(kept: Kept) -> None:
    kept.send(seal_all([stream(1)]))
    kept.now_ms = AT + 10 * DAY_MS
    last = kept.plainly.positions[CHAIN]
    kept.runs(Run(chain=CHAIN, after=last, ends=At()))
    kept.now_ms = AT + 30 * DAY_MS
    kept.runs()
    forgotten(kept, AT)  # the record is still kept
    assert places(kept) == (1, 1)
    forgotten(kept, AT + 1)
    assert places(kept) == (1, 1), "it was heard of lately"
    forgotten(kept, AT + 11 * DAY_MS)
    assert places(kept) == (0, 1)


def test_a_chain_that_rests_stays_while_its_node_is_there_and_goes_when_that_is_gone(kept: Kept) -> None:
    kept.send(seal_all([stream(1)]))
    kept.now_ms = AT + 30 * DAY_MS
    kept.runs()
    forgotten(kept, AT + 20 * DAY_MS)
    assert places(kept) == (1, 1)
    assert kept.rows("records", "seq") == []
    forgotten(kept, AT + 31 * DAY_MS)
    assert places(kept) == (0, 0)


def test_nodes_that_name_ever_other_bundles_fill_no_more_than_so_many_rows(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_MOST_BUNDLES", 4)
    fleet, now = Kept(database).node, 1000 * SLOT_MS

    def add(digest: str, at_ms: int) -> None:
        database.at_once(lambda session: tables.add_counts(session, fleet, digest, at_ms, Tally(exchanges=1)))

    for number in range(20):
        add(f"{number:064x}", now)
    add(f"{1:064x}", now)
    add(f"{19:064x}", now + SLOT_MS)
    rows = database.at_once(
        lambda session: session.execute("select slot_ms, digest from counts where fleet = ? order by 1, 2", (fleet,))
    )
    here = [(now, f"{number:064x}") for number in range(4)]
    assert sorted(map(tuple, rows)) == sorted([*here, (now, OTHER), (now + SLOT_MS, f"{19:064x}")])
    found = database.at_once(lambda session: tables.minutes(session, fleet, 0))
    assert sum(tally.exchanges for _, tally in found) == 22
    assert msgspec.structs.asdict(found[0][1])["exchanges"] in (1, 2, 16)
