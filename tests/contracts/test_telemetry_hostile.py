"""Deliveries that nobody's shipper makes: each database refuses them as a whole, or keeps them in order."""

from __future__ import annotations

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkstream.control.server.arrivals import receive
from checkstream.control.server.database import Database
from checkstream.control.telemetry.delivery import At, Delivery, Received, Run, Skipped, read_delivery
from checkstream.control.telemetry.privacy import Privacy, run_of
from checkstream.errors import RequestInvalid
from tests.evidence_stores import postgres
from tests.records import CHAIN, seal_all, start, stream
from tests.telemetry_store import AT, KEY_HEX, Kept, database, pairs, raw

__all__ = ["database", "postgres"]


def sound_delivery() -> bytes:
    sealed = seal_all([start(), *(stream(number) for number in range(4))])
    first = run_of(CHAIN, At(), pairs(sealed[:3]), Privacy(), None)
    second = run_of("c2", At(), pairs(sealed[3:]), Privacy(usual="aggregate"), Skipped(since=At(), reason="r"))
    runs = (msgspec.structs.replace(first, heads=raw(sealed[1])), second, Run(chain="c3", after=At(), ends=At(seq=3)))
    return msgspec.json.encode(Delivery(number=1, time_ms=AT, keys=(KEY_HEX,), runs=runs, waiting=7))


SOUND = sound_delivery()
_NUMBERS = st.sampled_from(
    [b"-1", b"0", b"1e400", b"1.5", b"9007199254740993", b"99999999999999999999", b"null", b'""']
)


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_node_sends_is_refused_as_a_whole_or_kept_in_order(database: Database, data: st.DataObject) -> None:
    content = bytearray(SOUND)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[at] = data.draw(st.integers(0, 255))
        else:
            digits = [place for place, byte in enumerate(content) if chr(byte).isdigit()]
            place = data.draw(st.sampled_from(digits))
            content[place : place + 1] = data.draw(_NUMBERS)
    kept = Kept(database)
    before = dict.fromkeys(("c1", "c2", "c3"), 0)
    for number in (2, 3):
        try:
            delivery = msgspec.structs.replace(read_delivery(bytes(content)), number=number)
            answer: Received = kept.do(receive, kept.node, "shop", delivery, AT)
        except (RequestInvalid, msgspec.DecodeError, UnicodeDecodeError):
            assert kept.rows("records", "seq") == []
            return
        for chain, position in answer.positions.items():
            assert position.seq >= before.get(chain, 0)
            before[chain] = position.seq
        seqs = kept.rows("records", "chain, seq")
        assert len(set(seqs)) == len(seqs)
        assert all(seq <= answer.positions[chain].seq for chain, seq in seqs)
