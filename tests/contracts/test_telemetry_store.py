"""What every database does with deliveries, SQLite and PostgreSQL: each record once, held against dictionaries."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkstream.audit.entries import AnyEntry, PassEntry, StreamEntry
from checkstream.control.alerts.facts import Spent
from checkstream.control.server.arrivals import receive
from checkstream.control.server.budgets import read_budgets
from checkstream.control.server.database import Database, Session, open_database
from checkstream.control.server.traffic import (
    Filter,
    chains,
    decisions,
    exchanges,
    forget,
    proofs,
    rates,
    silences,
)
from checkstream.control.telemetry.delivery import At, Count, Delivery, Link, Run, Skipped
from checkstream.control.telemetry.privacy import Privacy, run_of
from checkstream.errors import ControlUnusable, RequestInvalid, ThingUnknown
from tests.evidence_stores import postgres
from tests.received import STEPS, World
from tests.records import CHAIN, OTHER_KEY, head, record, rescored, seal_all, start, stream, verdict
from tests.telemetry_store import AT, KEY_HEX, Kept, database, kept, pairs, raw

__all__ = ["database", "kept", "postgres"]


@given(st.data())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_deliveries_come_to_what_they_come_to_in_dictionaries(database: Database, data: st.DataObject) -> None:
    steps = [step for step in data.draw(STEPS) if step[0] not in ("keep", "restore")]
    kept = Kept(database)
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), kept, keys=(KEY_HEX,))
        world.log.append("c1", start())
        for step in steps:
            world.step(*step)
        world.finish()
        plainly = kept.plainly
        records = kept.rows("records", "chain, seq, hash, digest, proven, content")
        assert records == [
            (chain, seq, item.hash, item.digest, int(item.proven), None if item.line is None else item.line.decode())
            for (chain, seq), item in sorted(plainly.records.items())
        ]
        assert {chain: seq for chain, seq in kept.rows("chains", "chain, signed") if seq} == plainly.signed
        whole = [
            item.record for item in plainly.records.values() if item.record is not None and item.record.kind == "stream"
        ]
        assert len(kept.rows("decisions", "chain, seq, place")) == len(whole)
        counted = {(route, name): count for route, name, count in kept.rows("minutes", "route, name, count")}
        assert counted.get(("chat", "exchanges"), 0) == len(whole)
        assert counted.get(("sums", "exchanges"), 0) == plainly.counts[AT // 60_000, "sums", "exchanges"]
        assert not any(route == "secret" for route, _ in counted)


def test_a_decision_says_how_long_it_took_and_which_model_has_scored(kept: Kept) -> None:
    quick = verdict()
    slow = msgspec.structs.replace(quick, rule_id="TOX-1", latency_ms=31.25, model="toxicity@2.0.1")
    told = record(verdicts=(quick, slow))
    kept.send(seal_all([msgspec.structs.replace(stream(1), record=told)]))
    page, _ = kept.do(decisions, Filter(node=kept.node))
    assert [(one.rule_id, one.latency_ms, one.model, one.probability) for one in page] == [
        ("TOX-1", 31.25, "toxicity@2.0.1", 0.93),
        ("PII-001", 0.0, "", 0.93),
    ]


def test_answers_that_were_judged_again_come_to_budgets_once_by_their_privacy_and_are_no_exchanges(kept: Kept) -> None:
    sealed = seal_all(
        [
            rescored(1, "a"),
            rescored(2, "a", violated=True, cutoff_ms=700.0),
            rescored(3, "b", violated=True, cutoff_ms=20.0),
            rescored(4, "c", violated=True),
        ]
    )
    privacy = Privacy(routes={"b": "aggregate", "c": "none"})
    run = run_of(CHAIN, At(), pairs(sealed), privacy)
    for _ in range(2):
        kept.runs(run)
    violations, cutoff = kept.do(read_budgets, "shop", AT + 60_000)
    assert (violations.source, violations.of, cutoff.of) == ("rescored", "violations", "cutoff")
    assert violations.minutes5 == violations.hour == violations.days3 == Spent(2, 3)
    assert cutoff.minutes5 == cutoff.days3 == Spent(1, 2)
    later, _ = kept.do(read_budgets, "shop", AT + 20 * 60_000)
    assert (later.minutes5, later.minutes30) == (Spent(0, 0), Spent(2, 3))
    assert kept.do(read_budgets, "another", AT) == ()
    assert kept.do(exchanges, Filter(node=kept.node))[0] == []
    assert kept.rows("records", "kind") == [("",), ("",), ("rescored",), ("rescored",)]


def test_an_exchange_is_found_with_what_proves_it(kept: Kept) -> None:
    names = [f"{kept.node}-{number}" for number in (1, 2)]
    sealed = seal_all([start(), *(msgspec.structs.replace(stream(), stream=name) for name in names)])
    kept.send(sealed, heads=raw(sealed[1]))
    first, second = (kept.do(proofs, name)[0] for name in names)
    assert (first.hash, first.prev, first.signed, second.signed) == (sealed[1].hash, sealed[0].hash, True, False)
    assert bytes(first.record) == sealed[1].line[:-1]
    assert first.exchange.proven
    assert (first.exchange.route, first.exchange.caller, first.exchange.held_ms) == ("chat", "app1", 12.5)
    for unknown in ("", f"{kept.node}-9", "\x00"):
        with pytest.raises(ThingUnknown):
            kept.do(proofs, unknown)


def test_pages_of_exchanges_and_decisions_hold_all_of_them_once(kept: Kept) -> None:
    entries: list[AnyEntry] = [stream(n, route=("a", "b")[n % 2]) for n in range(23)]
    kept.send(seal_all(entries))

    def paged(find: Any, **wanted: Any) -> list[Any]:
        found: list[Any] = []
        before = ""
        while True:
            asked = Filter(node=kept.node, before=before, most=4, **wanted)
            page, before = kept.do(find, asked)
            found += page
            if not before:
                return found
            assert len(page) == 4

    everything = paged(exchanges)
    assert [one.seq for one in everything] == list(range(23, 0, -1))
    assert [one.seq for one in paged(decisions)] == list(range(23, 0, -1))
    assert len(paged(exchanges, route="b")) == len(paged(decisions, route="b")) == 11
    assert len(paged(exchanges, rule="PII-001")) == len(paged(decisions, rule="PII-001")) == 23
    for nothing in ({"rule": "no"}, {"action": "stop"}, {"caller": "x"}, {"since_ms": AT + 1}, {"until_ms": AT}):
        assert paged(exchanges, **nothing) == paged(decisions, **nothing) == []
    assert len(paged(exchanges, outcome="complete", action="redact", caller="app1", since_ms=AT, until_ms=AT + 1)) == 23
    (decided,) = kept.do(decisions, Filter(node=kept.node, most=1))[0]
    assert (decided.probability, decided.mode, decided.stage, decided.policy) == (
        0.93,
        "enforce",
        "midstream",
        "default@1.0.0",
    )
    assert kept.do(exchanges, Filter(node="\x00", rule="\x00", before="1~\x00~\x00~1")) == ([], "")
    assert kept.do(chains, "\x00", 9) == []
    for wrong in ("x", "1~2", "1~n~c~x", "1~n~c~" + "9" * 20, "٣~n~c~1"):
        with pytest.raises(RequestInvalid):
            kept.do(exchanges, Filter(before=wrong))


def ended(number: int, outcome: str, held_ms: float) -> StreamEntry:
    told = msgspec.structs.replace(
        record(verdicts=(verdict(),) if outcome == "stopped" else ()),
        outcome=outcome,
        held_ms=held_ms,
        checked_ms=held_ms / 10,
    )
    return StreamEntry(stream=f"e{number}", route="r", caller=None, record=told)


def test_rates_are_of_these_nodes_from_that_minute_on(database: Database) -> None:
    one, two = Kept(database), Kept(database)
    one.send(seal_all([ended(n, "complete", 3.0) for n in range(95)] + [ended(n, "stopped", 700.0) for n in range(5)]))
    passed = PassEntry(stream="p", route="r", caller=None, method="GET", path="/", status=200)
    two.send(seal_all([ended(1, "refused", 0), ended(2, "upstream_failed", 0), passed]))
    found = one.do(rates, [one.node], AT)
    assert (found.exchanges, found.refusals, found.stops, found.failures) == (100, 0, 5, 0)
    assert (found.p95_held_ms, found.p95_latency_ms) == (5.0, 1.0)
    assert found.confidences == {"PII-001": (5, pytest.approx(4.65), pytest.approx(5 * 0.8649))}
    both = one.do(rates, {one.node, two.node}, AT)
    assert (both.exchanges, both.refusals, both.failures) == (102, 1, 1)
    assert one.do(rates, [one.node], AT + 60_000).exchanges == 0
    assert one.do(rates, ["nobody"], 0).p95_held_ms is None
    assert one.do(rates, [], AT).exchanges >= 102


def test_a_clock_that_is_wrong_by_an_hour_is_said_once_and_set_right(kept: Kept) -> None:
    sealed = seal_all([stream(1), stream(2)])
    for one in sealed:
        delivery = Delivery(
            number=one.seq,
            time_ms=AT,
            runs=(
                Run(
                    chain=CHAIN,
                    after=At() if one.seq == 1 else At(seq=1, hash=sealed[0].hash),
                    items=(msgspec.Raw(one.line[:-1]),),
                ),
            ),
        )
        kept.do(receive, kept.node, "shop", delivery, AT + 3_600_000)
    assert [row[0] for row in kept.rows("records", "at_ms")] == [AT + 3_600_000] * 2
    assert {row[0] for row in kept.rows("minutes", "minute")} == {(AT + 3_600_000) // 60_000}
    assert kept.told("clock_wrong") == ["its clock is off by about -60 minutes"]


def test_faults_and_gaps_are_events_at_once_and_said_once(kept: Kept) -> None:
    sealed = seal_all([stream(n) for n in range(6)])
    lines = [one.line[:-1] for one in sealed]
    kept.runs(
        Run(chain=CHAIN, after=At(), items=(msgspec.Raw(lines[0]), msgspec.Raw(lines[1].replace(b'"s1"', b'"sX"'))))
    )
    (told,) = kept.told("chain_broken")
    assert told.startswith("chain c1, seq 2: hash mismatch; ")
    position = kept.plainly.positions[CHAIN]
    after = At(seq=4, hash=sealed[3].hash)
    kept.runs(
        Run(
            chain=CHAIN,
            after=after,
            skipped=Skipped(since=position, reason="too much waited"),
            items=(msgspec.Raw(lines[4]),),
        )
    )
    assert kept.told("chain_gap") == ["chain c1: 2 records from seq 3 on don't come: too much waited"]
    (shown,) = kept.do(chains, kept.node, 10)
    assert (shown.seq, shown.missing, [flaw.reason for flaw in shown.flaws]) == (5, 2, ["hash mismatch"])
    for _ in range(3):
        kept.runs(Run(chain=CHAIN, after=kept.plainly.positions[CHAIN], ends=At(seq=1)))
    assert len(kept.told("chain_broken")) == 2
    (row,) = [row for row in kept.rows("records", "seq, proven") if not row[1]]
    assert row[0] == 2


def test_one_node_does_not_fill_the_list_of_events_that_is_everybody_s(kept: Kept) -> None:
    sealed = seal_all([stream(n) for n in range(120)])
    for start_ in range(0, 120, 20):
        lines = [one.line[:-1].replace(b'"stream":"s', b'"stream":"x') for one in sealed[start_ : start_ + 20]]
        after = kept.plainly.positions.get(CHAIN, At())
        kept.runs(Run(chain=CHAIN, after=after, items=tuple(map(msgspec.Raw, lines))))
    assert len(kept.rows("flaws", "seq")) == 120
    assert len(kept.told("chain_broken")) == 20
    assert len(kept.rows("records", "seq, proven")) == 120


def test_heads_count_that_are_signed_by_a_key_which_the_node_has_named(kept: Kept) -> None:
    sealed = seal_all([stream(n) for n in range(3)])
    forged = (msgspec.Raw(head(sealed[0], OTHER_KEY)[:-1]),)
    kept.send(sealed[:1], heads=forged)
    assert kept.rows("chains", "signed") == [(0,)]
    (told,) = kept.told("chain_broken")
    assert "head signature wrong" in told
    other = OTHER_KEY.public.raw.hex()
    kept.plainly.keys[OTHER_KEY.public.name] = OTHER_KEY.public
    kept.runs(keys=(KEY_HEX, other))
    kept.runs(keys=(KEY_HEX, other))
    assert len(kept.told("audit_key_new")) == 1
    kept.send(sealed[1:], heads=(msgspec.Raw(head(sealed[2], OTHER_KEY)[:-1]),))
    assert kept.rows("chains", "signed") == [(3,)]


def test_a_node_that_attests_and_tells_nothing_is_silent_and_so_is_a_chain_that_nobody_signs(kept: Kept) -> None:
    sealed = seal_all([stream(n) for n in range(3)])
    kept.send(sealed[:2], heads=raw(sealed[0]))

    def look(now_ms: int, attested: bool) -> None:
        def at(session: Session) -> None:
            if attested:
                session.execute(
                    "insert into nodes(node, fleet, sequence, heard_ms, attestation, refused, since_ms) "
                    "values(?, 'shop', 1, ?, '{}', '', 0) on conflict(node) do update set heard_ms = excluded.heard_ms",
                    (kept.node, now_ms),
                )
            silences(session, {kept.node: "shop"}, now_ms, 300_000)

        kept.do(at)

    look(AT + 299_000, attested=True)
    assert kept.told("chain_silent") == []
    look(AT + 301_000, attested=True)
    look(AT + 302_000, attested=True)
    nobody, silent = kept.told("chain_silent")
    assert silent == "it attests, and has told nothing of its audit chains for 5 minutes"
    assert nobody == "chain c1: no signed head has come for what stands behind seq 1"
    kept.now_ms = AT + 400_000
    kept.send(sealed[2:], heads=raw(sealed[2]))
    look(AT + 900_000, attested=False)
    assert len(kept.told("chain_silent")) == 2, "one that attests no more is off"
    look(AT + 900_000, attested=True)
    assert len(kept.told("chain_silent")) == 3


def test_what_is_old_goes_in_small_steps_and_positions_stay(kept: Kept) -> None:
    kept.send(seal_all([stream(n) for n in range(10)]))
    position = kept.plainly.positions
    kept.now_ms = AT + 3_600_000
    kept.runs()  # it is there
    gone = 1
    steps = 0
    while gone:
        gone = kept.do(forget, AT + 3_600_000, 3)
        assert gone <= 10 * 3
        steps += 1
    assert steps > 3
    for table in ("records", "decisions", "minutes", "hours", "heads"):
        assert kept.rows(table, "node") == []
    assert kept.runs().positions == position


def test_a_full_disk_loses_nothing_and_what_was_refused_is_taken_when_there_is_room(tmp_path: Path) -> None:
    database = open_database(f"sqlite:{tmp_path / 'full.db'}")
    kept = Kept(database)
    sealed = seal_all([stream(number) for number in range(400)])
    kept.send(sealed[:50], heads=raw(sealed[49]))
    before = kept.rows("records", "seq"), kept.rows("minutes", "name, count"), dict(kept.plainly.positions)
    ((pages,),) = kept.do(lambda session: session.execute("pragma page_count"))
    kept.do(lambda session: session.execute(f"pragma max_page_count = {pages + 8}"))
    delivery = Delivery(
        number=9, time_ms=AT, runs=(run_of(CHAIN, kept.plainly.positions[CHAIN], pairs(sealed[50:]), Privacy()),)
    )
    for _ in range(3):
        with pytest.raises(ControlUnusable, match="full"):
            kept.do(receive, kept.node, "shop", delivery, AT)
        assert (kept.rows("records", "seq"), kept.rows("minutes", "name, count")) == before[:2]
    kept.do(lambda session: session.execute("pragma max_page_count = 1000000"))
    kept.receive(delivery)
    assert kept.rows("records", "seq") == [(seq,) for seq in range(1, 401)]
    assert ("exchanges", 400) in kept.rows("minutes", "name, count")
    database._close()


def test_links_keep_nothing_but_hashes(kept: Kept) -> None:
    kept.send(seal_all([stream(1)]), Privacy(usual="none"))
    (row,) = kept.rows("records", "kind, stream, route, action, outcome, held_us, checked_us, content")
    assert row == ("", "", "", "", "", 0, 0, None)
    assert kept.rows("minutes", "name") == kept.rows("decisions", "place") == []
    assert kept.do(exchanges, Filter(node=kept.node))[0] == []


@pytest.mark.parametrize("item", [b"{}", b"[]", b'{"body":{}}', b'{"digest":"x","hash":"y","seq":1}', b"1", b'"\xff"'])
def test_what_is_no_record_is_refused_and_leaves_nothing(kept: Kept, item: bytes) -> None:
    sealed = seal_all([stream(1)])
    items = (msgspec.Raw(sealed[0].line[:-1]), msgspec.Raw(item))
    delivery = Delivery(number=1, time_ms=AT, runs=(Run(chain=CHAIN, after=At(), items=items),))
    with pytest.raises(RequestInvalid, match="is no record and no link"):
        kept.do(receive, kept.node, "shop", delivery, AT)
    assert kept.rows("records", "seq") == kept.rows("senders", "number") == []


def test_names_that_no_database_keeps_are_kept_otherwise(kept: Kept) -> None:
    odd = "\x00\ud800" + "é" * 900
    entry = msgspec.structs.replace(stream(1, route=odd), caller=odd, record=record(verdicts=(verdict(odd),)))
    kept.send(seal_all([entry]))
    count = Count(minute=1, route="\x00r", name="\x00", count=3)
    kept.runs(
        Run(
            chain="c9",
            after=At(),
            items=(msgspec.Raw(msgspec.json.encode(Link(digest="0" * 64, hash="1" * 64, seq=1))),),
            counts=(count,),
        )
    )
    (row,) = kept.rows("decisions", "route, caller, rule_id")
    assert all(value.startswith("\ufffd\ufffdéé") for value in row)
    assert [len(value) for value in row] == [200, 259, 200]
    assert ("\ufffdr", "\ufffd", 3) in kept.rows("minutes", "route, name, count")


@pytest.mark.parametrize("most", [1, 5000])
def test_exchanges_of_a_rule_are_found_alike_whether_it_fires_often(
    kept: Kept, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkstream.control.server.traffic._MOST_SELDOM", most)
    kept.send(seal_all([stream(n) for n in range(7)]))
    found, after = kept.do(exchanges, Filter(node=kept.node, rule="PII-001", most=5))
    assert [one.seq for one in found] == [7, 6, 5, 4, 3]
    rest, end = kept.do(exchanges, Filter(node=kept.node, rule="PII-001", most=5, before=after))
    assert ([one.seq for one in rest], end) == ([2, 1], "")
    assert kept.do(exchanges, Filter(node=kept.node, rule="no")) == ([], "")
