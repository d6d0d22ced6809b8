"""Whatever is sent by whom and how often, each record of a log arrives once, and what was changed is found out."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.audit.chain import read
from checkstream.audit.segments import segment_name
from checkstream.control.telemetry.composing import Composer
from checkstream.control.telemetry.minutes import Minutes, minute_of
from checkstream.control.telemetry.records import exchange_of
from tests.received import NOW_MS, PRIVACY, ROUTES, STEPS, Log, Receiver, World
from tests.records import KEY, start, stream


@given(STEPS)
@settings(max_examples=60, deadline=None)
def test_each_record_arrives_once_whatever_is_lost_repeated_forgotten_or_restored(
    steps: list[tuple[str, Any, Any]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        receiver = Receiver(KEY)
        world = World(Path(folder), receiver)
        world.log.append("c1", start())
        for step in steps:
            world.step(*step)
        world.finish()
        assert isinstance(world.receiver, Receiver)
        receiver, lines = world.receiver, world.log.lines()
        assert receiver.records.keys() == lines.keys()
        assert (receiver.flaws, receiver.gaps) == ([], [])
        expected = Minutes()
        for key, item in receiver.records.items():
            assert item.proven
            record = read(lines[key])
            exchange = exchange_of(record)
            whole = exchange is None or exchange.route == "chat"
            assert item.line == (lines[key] if whole else None)
            assert item.hash == record.hash
            if exchange is not None and exchange.route == "sums":
                expected.add(minute_of(record.time) or 0, exchange)
        assert receiver.counts == Counter({(m, r, n): count for m, r, n, count in expected})


def send(composer: Composer, receiver: Receiver, number: int) -> bool:
    """Send what is next; return whether there was anything."""
    composed = composer.compose(receiver.positions, number=number, time_ms=NOW_MS, most_bytes=1 << 20, most_records=3)
    composer.taken(composed, receiver.receive(composed.delivery).positions)
    return bool(composed.delivery.runs)


def changed(data: st.DataObject, lines: list[bytes], sent: int) -> bytes:
    """Return a log of which something was changed behind so many lines."""
    count = len(lines)
    how = data.draw(st.sampled_from(["byte", "drop", "double", "cut", *(["swap"] if sent < count - 1 else [])]))
    place = data.draw(st.integers(sent, count - 1))
    if how == "byte":
        sound = b"".join(lines)
        at = data.draw(st.integers(len(b"".join(lines[:sent])), len(sound) - 2))
        other = data.draw(st.integers(0, 255).filter(lambda byte: byte != sound[at]))
        return sound[:at] + bytes([other]) + sound[at + 1 :]
    if how == "drop":
        del lines[place]
    elif how == "double":
        lines.insert(data.draw(st.integers(sent, count)), lines[place])
    elif how == "swap":
        other = data.draw(st.integers(sent, count - 1).filter(lambda it: it != place))
        lines[place], lines[other] = lines[other], lines[place]
    else:
        del lines[place:]
    return b"".join(lines)


@given(st.data(), st.integers(2, 8))
@settings(max_examples=80, deadline=None)
def test_a_log_in_which_any_byte_was_changed_or_any_line_moved_is_never_taken_for_sound(
    data: st.DataObject, count: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Log(Path(folder))
        for number in range(count):
            log.append("c1", stream(number, route=data.draw(st.sampled_from(ROUTES))))
        log.sign("c1")
        file = Path(folder) / segment_name("c1", 1)
        lines = file.read_bytes().splitlines(keepends=True)
        receiver = Receiver(KEY)
        composer = Composer(Path(folder), PRIVACY, (), spool_bytes=1 << 40)
        sent = 3 * data.draw(st.integers(0, (count - 1) // 3))
        for number in range(sent // 3):
            send(composer, receiver, number)
        assert (len(receiver.records), receiver.flaws) == (sent, [])
        file.write_bytes(changed(data, lines, sent))
        if data.draw(st.booleans()):
            composer = Composer(Path(folder), PRIVACY, (), spool_bytes=1 << 40)
        for number in range(count, count + 50):
            if not send(composer, receiver, number):
                break
        else:
            raise AssertionError("it never ends")
        assert receiver.flaws or receiver.gaps
