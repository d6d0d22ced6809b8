"""What the console asks of each kind of database: sums by slot, proofs that hold and don't, news, runs of the gate."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkstream.audit.chain import GENESIS, linked, read_head
from checkstream.audit.entries import AnyEntry, StreamEntry
from checkstream.config.control import Fleet
from checkstream.control.server.counted import Scope, counted, routes
from checkstream.control.server.database import Database, Session
from checkstream.control.server.gate_runs import GateRun, GateRuns
from checkstream.control.server.logs import news, rules_of, stand, told, vouched
from checkstream.control.server.people import Asker
from checkstream.control.telemetry.delivery import At, Count, Run, Skipped
from checkstream.control.telemetry.privacy import Privacy, run_of
from checkstream.errors import ActConflicts, ThingUnknown
from tests.evidence_stores import postgres
from tests.records import CHAIN, KEY, OTHER_KEY, head, record, seal_all, start, stream, verdict
from tests.telemetry_store import AT, Kept, database, kept, pairs, raw

__all__ = ["database", "kept", "postgres"]

MINUTE = AT // 60_000
HOUR = MINUTE // 60 * 60
EVE = Asker("eve", "engineer")
RUN = GateRun(
    run_id="r1", target="m", verifier="reader", config_hash="c", snapshot="s", begun=1e9, ended=1e9 + 60.5,
    decision="warn", risk=0.125, total_claims=8, supported=6, weakly_supported=1, unsupported=1,
)  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.integers(-200, 200), st.sampled_from("ab"), st.sampled_from(("exchanges", "held:5")), st.integers(1, 9)
        ),
        max_size=20,
    ),
    st.sampled_from((1, 5, 15, 60, 120)),
    st.integers(-3, 3),
    st.sampled_from(("", "a", "b", "\x00'; drop table minutes; --")),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sums_by_slot_are_those_of_a_dictionary(
    database: Database, items: list[tuple[int, str, str, int]], step: int, first: int, route: str
) -> None:
    kept = Kept(database)
    kept.now_ms = (HOUR + 300) * 60_000  # nothing of it is of a time to come
    counts = tuple(Count(minute=HOUR + at, route=of, name=name, count=many) for at, of, name, many in items)
    kept.runs(Run(chain=CHAIN, after=At(), counts=counts))
    since = HOUR // step * step + first * step if step < 60 else HOUR + first * step
    scope = Scope(node=kept.node, route=route, since=since, until=since + 4 * step, step=step)
    plainly: dict[int, Counter[str]] = {}
    for at, of, name, many in items:
        if route in ("", of) and since <= HOUR + at < since + 4 * step:
            slot = since + (HOUR + at - since) // step * step
            plainly.setdefault(slot, Counter())[name] += many
    assert kept.do(counted, scope) == plainly
    assert kept.do(counted, msgspec.structs.replace(scope, node="")) == {}
    fleet = kept.do(counted, msgspec.structs.replace(scope, node="", fleets=("shop", "none")))
    assert fleet == kept.do(_of_all_nodes, scope)
    assert kept.do(counted, msgspec.structs.replace(scope, node="", fleets=("none",))) == {}
    assert set(kept.do(routes, ["shop"], HOUR)) >= {of for at, of, _, _ in items if at >= 0}
    assert kept.do(routes, ["none"], HOUR) == kept.do(routes, [], HOUR) == []


def _of_all_nodes(session: Session, scope: Scope) -> dict[int, dict[str, int]]:
    total: dict[int, dict[str, int]] = {}
    for (node,) in session.execute("select distinct node from minutes"):
        for at, counts in counted(session, msgspec.structs.replace(scope, node=node)).items():
            slot = total.setdefault(at, {})
            for name, count in counts.items():
                slot[name] = slot.get(name, 0) + count
    return total


def test_a_record_is_told_with_the_way_to_its_head(kept: Kept) -> None:
    sealed = seal_all([start(), *(stream(n) for n in range(4))])
    kept.send(sealed[:3], heads=raw(sealed[2]))
    kept.send(sealed[3:])
    place = kept.node, CHAIN, 2
    found, way = kept.do(told, place), kept.do(vouched, place)
    assert (found.line, found.prev) == (sealed[1].line[:-1].decode(), sealed[0].hash)
    assert linked(found.prev, found.digest) == found.hash
    assert linked(found.hash, way.after[0]) == read_head(way.head.encode()).hash == sealed[2].hash
    assert way.key.encode() == KEY.public.pem()
    assert kept.do(told, (kept.node, CHAIN, 1)).prev == GENESIS
    assert kept.do(vouched, (kept.node, CHAIN, 3)).after == ()
    assert kept.do(vouched, (kept.node, CHAIN, 4)).head == "", "no head has come for it yet"
    for nowhere in ((kept.node, CHAIN, 9), ("\x00", "\x00", 1), (kept.node, "x", 2)):
        assert kept.do(told, nowhere) is None
        assert kept.do(vouched, nowhere).head == ""
    assert kept.do(rules_of, [place, (kept.node, CHAIN, 1)]) == {place: ("PII-001",), (kept.node, CHAIN, 1): ()}


def test_the_way_holds_over_records_that_stay_on_their_node_and_ends_where_one_is_missing(kept: Kept) -> None:
    sealed = seal_all([start(), *(stream(n) for n in range(4))])
    kept.send(sealed, Privacy(usual="none"), heads=raw(sealed[4]))
    found = kept.do(told, (kept.node, CHAIN, 3))
    assert (found.line, found.prev, linked(found.prev, found.digest)) == (None, sealed[1].hash, sealed[2].hash)
    hash_ = found.hash
    for digest in kept.do(vouched, (kept.node, CHAIN, 3)).after:
        hash_ = linked(hash_, digest)
    assert hash_ == sealed[4].hash
    kept.do(lambda s: s.execute("delete from records where node = ? and seq = 4", (kept.node,)))
    assert kept.do(vouched, (kept.node, CHAIN, 2)).gap == "record 4 is missing"
    assert kept.do(told, (kept.node, CHAIN, 5)).prev is None


def test_records_that_the_node_has_said_it_skips_are_no_sign_of_tampering_and_others_are(kept: Kept) -> None:
    sealed = seal_all([start(), *(stream(n) for n in range(8))])
    kept.send(sealed[:3], heads=raw(sealed[1]))
    since, after = (At(seq=one.seq, hash=one.hash) for one in (sealed[2], sealed[5]))
    run = run_of(CHAIN, after, pairs(sealed[6:]), Privacy())
    skipped = Skipped(since=since, reason="too much waited")
    kept.runs(msgspec.structs.replace(run, skipped=skipped, heads=raw(sealed[8])))
    place = kept.node, CHAIN, 3
    way = kept.do(vouched, place)
    assert (way.head, way.after, way.gap) == ("", (), "record 4 was not sent: too much waited")
    assert kept.do(vouched, (kept.node, CHAIN, 2)).gap == ""
    assert kept.do(vouched, (kept.node, CHAIN, 7)).gap == ""
    kept.do(lambda s: s.execute("delete from records where node = ? and seq = 8", (kept.node,)))
    way = kept.do(vouched, place)
    assert (bool(way.head), way.gap) == (True, "record 8 is missing")


def test_a_head_of_a_key_that_nobody_has_named_vouches_for_nothing(kept: Kept) -> None:
    sealed = seal_all([start(), stream()])
    forged = (msgspec.Raw(head(sealed[1], OTHER_KEY)[:-1]),)
    kept.send(sealed, heads=forged)
    assert kept.do(vouched, (kept.node, CHAIN, 1)).head == ""


def test_news_are_what_has_come_since_each_once(kept: Kept) -> None:
    before = kept.do(stand)
    sealed = seal_all([start(), *(stream(n) for n in range(6))])
    kept.send(sealed[:3])
    found, more, now = kept.do(news, before, 10)
    assert [(one.node, one.seq) for one in found] == [(kept.node, 3), (kept.node, 2)]
    assert more == 0
    assert kept.do(news, now, 10)[0] == []
    kept.send(sealed[3:])
    found, more, now = kept.do(news, now, 2)
    assert ([one.seq for one in found], more) == ([7, 6], 1)
    assert kept.do(news, now, 2)[:2] == ([], 0)


def test_what_keeps_text_back_and_what_grounding_says_is_counted(kept: Kept) -> None:
    verdicts = (
        verdict(),
        msgspec.structs.replace(verdict(), mode="shadow"),
        msgspec.structs.replace(verdict(), action="log_event"),
    )
    told = msgspec.structs.replace(record(verdicts=verdicts), risks={"watchdog": 80.5, "quick": 2.0})
    wrong = msgspec.structs.replace(told, risks={"watchdog": 101.0})
    entries: list[AnyEntry] = [
        StreamEntry(stream=f"{kept.node}-{n}", route="chat", caller=None, record=each)
        for n, each in enumerate((told, wrong))
    ]
    kept.send(seal_all(entries))
    scope = Scope(node=kept.node, since=HOUR, until=HOUR + 60, step=60)
    sums: Any = kept.do(counted, scope)[HOUR]
    assert (sums["exchanges"], sums["kept_answers"], "kept_prompts" in sums) == (1, 1, False)
    assert (sums["scored:watchdog"], sums["high:watchdog"], sums["risk:watchdog"]) == (1, 1, 80_500)
    assert (sums["scored:quick"], "high:quick" in sums) == (1, False)


async def test_a_run_of_the_gate_is_told_once_and_not_changed(database: Database) -> None:
    runs = GateRuns(database, {"shop": Fleet(bundle="b")}, lambda: 5)
    said = await runs.tell(EVE, "shop", RUN)
    assert await runs.tell(Asker("ada", "org_admin"), "shop", RUN) == said
    assert (said.who, said.told_ms) == ("eve", 5)
    with pytest.raises(ActConflicts, match="another run `r1`"):
        await runs.tell(EVE, "shop", msgspec.structs.replace(RUN, risk=0.5))
    with pytest.raises(ThingUnknown):
        await runs.tell(EVE, "nowhere", RUN)
    later = msgspec.structs.replace(RUN, run_id="r\x002", target="m2", begun=2e9)
    await runs.tell(EVE, "", later)
    assert [each.run.target for each in await runs.newest("", "", 9)] == ["m2", "m"]
    assert [each.run for each in await runs.newest("shop", "", 9)] == [RUN]
    assert [each.run.run_id for each in await runs.newest("", "m2", 9)] == ["r\ufffd2"]
    assert await runs.newest("\x00", "' or 1=1", 9) == []
