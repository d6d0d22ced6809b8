from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from checkstream.audit.chain import Reason
from checkstream.audit.entries import AnyEntry, StopEntry
from checkstream.audit.journal import Journal, JournalSettings
from checkstream.audit.segments import segment_name
from checkstream.audit.verify import verify
from checkstream.control.server.ingest import FORKED, GONE
from checkstream.control.telemetry.composing import Composed, Composer
from checkstream.control.telemetry.delivery import At
from checkstream.control.telemetry.privacy import Privacy
from tests.received import Receiver
from tests.records import CHAIN, KEY, head, seal_all, start, stream, two_segments, write_chain

LATER_MS = 4_000_000_000_000
"""So long after the files were written that no head is waited for."""


class Node:
    """A log, and who sends it."""

    def __init__(self, folder: Path, **limits: int) -> None:
        self.folder = folder
        self.limits = {"most_bytes": 1 << 20, "most_records": 1000, **limits}
        self.spool = self.limits.pop("spool_bytes", 1 << 40)
        self.restart()

    def restart(self) -> None:
        self.composer = Composer(self.folder, Privacy(), (), spool_bytes=self.spool)

    def compose(self, receiver: Receiver, time_ms: int = LATER_MS) -> Composed:
        number = receiver.number + 1
        return self.composer.compose(receiver.positions, number=number, time_ms=time_ms, **self.limits)

    def send(self, receiver: Receiver, time_ms: int = LATER_MS) -> list[Composed]:
        """Send until nothing is left."""
        sent = []
        while (composed := self.compose(receiver, time_ms)).delivery.runs:
            answer = receiver.receive(composed.delivery)
            assert self.composer.taken(composed, answer.positions)
            sent.append(composed)
            assert len(sent) < 1000
        assert not composed.more
        return sent


def journal(folder: Path, segment_bytes: int = 1 << 20) -> Journal:
    settings = JournalSettings(directory=folder, fsync_ms=1.0, head_ms=1.0, segment_bytes=segment_bytes)
    return Journal(settings, KEY, process="p")


def lines(folder: Path) -> list[bytes]:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.jsonl"))).splitlines()


@pytest.mark.parametrize("limits", [{}, {"most_records": 1}, {"most_bytes": 1500}, {"most_bytes": 1}])
def test_a_log_arrives_whole_and_proven_over_rotations_whatever_goes_at_once(
    tmp_path: Path, limits: dict[str, int]
) -> None:
    with_rotations = journal(tmp_path, segment_bytes=5000)
    for number in range(25):
        with_rotations.append(stream(number))
    with_rotations.close()
    receiver, node = Receiver(), Node(tmp_path, **limits)
    node.send(receiver)
    assert [item.line for _, item in sorted(receiver.records.items())] == lines(tmp_path)
    assert all(item.proven for item in receiver.records.values())
    assert (receiver.flaws, receiver.gaps) == ([], [])
    (report,) = verify(tmp_path)
    assert receiver.signed == {report.chain: report.records}
    assert len(list(tmp_path.glob("*.jsonl"))) > 2


def test_chains_of_several_processes_go_in_turns_and_none_waits_for_another(tmp_path: Path) -> None:
    three = [journal(tmp_path) for _ in range(3)]
    for each in three:
        for number in range(10):
            each.append(stream(number))
    for each in three:
        each.close()
    receiver, node = Receiver(), Node(tmp_path, most_records=4)
    for _ in range(3):
        composed = node.compose(receiver)
        assert composed.more
        assert node.composer.taken(composed, receiver.receive(composed.delivery).positions)
    assert {chain: at.seq for chain, at in receiver.positions.items()} == {each.chain: 4 for each in three}
    node.send(receiver)
    assert len(receiver.records) == 30
    assert receiver.flaws == []


def test_what_no_head_vouches_for_waits_until_its_process_must_be_gone(tmp_path: Path) -> None:
    sealed = seal_all(two_segments())
    written = [each.line for each in sealed]
    write_chain(tmp_path, [written[:4], written[4:]], [head(sealed[4])])
    now_ms = int((tmp_path / segment_name(CHAIN, 2)).stat().st_mtime * 1000)
    receiver, node = Receiver(), Node(tmp_path)
    node.send(receiver, now_ms + 9_000)
    assert receiver.positions[CHAIN].seq == 5
    assert receiver.signed == {CHAIN: 5}
    node.send(receiver, now_ms + 11_000)
    assert receiver.positions[CHAIN].seq == 7
    assert receiver.signed == {CHAIN: 5}
    assert receiver.flaws == []


def test_a_line_that_is_being_written_waits_for_its_end(tmp_path: Path) -> None:
    sealed = seal_all([start(), stream(1), stream(2)])
    for cut in (0, 1, len(sealed[2].line) - 1):
        write_chain(tmp_path, [[sealed[0].line, sealed[1].line, sealed[2].line[:cut]]], [head(sealed[1])])
        receiver, node = Receiver(), Node(tmp_path)
        node.send(receiver)
        assert receiver.positions[CHAIN].seq == 2
        write_chain(tmp_path, [[each.line for each in sealed]])
        node.send(receiver)
        assert receiver.positions[CHAIN].seq == 3
        assert receiver.flaws == []


def test_a_repaired_tail_is_no_fault(tmp_path: Path) -> None:
    first = journal(tmp_path)
    first.append(stream(1))
    first.close()
    (file,) = tmp_path.glob("*.jsonl")
    receiver, node = Receiver(), Node(tmp_path)
    node.send(receiver)
    with file.open("ab") as torn:
        torn.write(b'{"body":{"re')
    node.send(receiver)
    again = journal(tmp_path)
    again.append(stream(2))
    again.close()
    node.send(receiver)
    assert [item.line for _, item in sorted(receiver.records.items())] == lines(tmp_path)
    assert (receiver.flaws, receiver.gaps) == ([], [])


def test_who_forgets_everything_goes_on_where_the_receiver_stands(tmp_path: Path) -> None:
    sealed = seal_all([stream(number) for number in range(20)])
    write_chain(tmp_path, [[each.line for each in sealed]], [head(sealed[-1])])
    receiver, node = Receiver(), Node(tmp_path, most_records=3)
    while (composed := node.compose(receiver)).delivery.runs:
        receiver.receive(composed.delivery)
        node.restart()
    assert len(receiver.records) == 20
    assert receiver.flaws == []


def test_a_receiver_that_lost_its_memory_gets_everything_again(tmp_path: Path) -> None:
    sealed = seal_all([stream(number) for number in range(20)])
    write_chain(tmp_path, [[each.line for each in sealed]], [head(sealed[-1])])
    node = Node(tmp_path, most_records=7)
    node.send(Receiver())
    anew = Receiver()
    node.send(anew)
    assert len(anew.records) == 20


def test_when_too_much_waits_the_oldest_is_left_out_and_told(tmp_path: Path) -> None:
    sealed = seal_all([stream(number) for number in range(40)])
    written = [each.line for each in sealed]
    write_chain(tmp_path, [written[:25], written[25:]], [head(sealed[-1])])
    receiver, node = Receiver(), Node(tmp_path, spool_bytes=int(len(b"".join(written[30:])) / 0.9) + 5)
    sent = node.send(receiver)
    ((_, gap),) = receiver.gaps
    assert (gap.first, gap.last) == (1, 30)
    assert "bytes waited" in gap.reason
    assert sum(each.skipped for each in sent) == 30
    assert sorted(receiver.records) == [(CHAIN, seq) for seq in range(31, 41)]
    assert receiver.flaws == []
    assert lines(tmp_path) == [line[:-1] for line in written]


def test_a_log_whose_beginning_was_removed_goes_on_behind_a_gap(tmp_path: Path) -> None:
    sealed = seal_all(two_segments())
    written = [each.line for each in sealed]
    write_chain(tmp_path, [written[:4], written[4:]], [head(sealed[-1])])
    (tmp_path / segment_name(CHAIN, 1)).unlink()
    receiver = Receiver()
    Node(tmp_path).send(receiver)
    ((_, gap),) = receiver.gaps
    assert (gap.first, gap.last, gap.reason) == (1, 4, "not in the log any more")
    assert sorted(seq for _, seq in receiver.records) == [5, 6, 7]


Change = Callable[[list[bytes]], list[bytes]]


@pytest.mark.parametrize(
    ("change", "reasons", "kept"),
    [
        (lambda ls: [*ls[:8], ls[8].replace(b'"s8"', b'"sX"'), *ls[9:]], {Reason.HASH}, 20),
        (lambda ls: [*ls[:8], *ls[9:]], {Reason.MISSING}, 19),
        (lambda ls: [*ls[:8], ls[9], ls[8], *ls[10:]], {Reason.MISSING, Reason.REPEATED}, 19),
        (lambda ls: [*ls[:8], ls[7], *ls[8:]], {Reason.REPEATED}, 20),
        (lambda ls: [*ls[:8], b"{}\n", *ls[8:]], {Reason.UNREADABLE}, 20),
        (lambda ls: [*ls[:8], ls[8][:-9] + b"\n", *ls[9:]], set(), 19),  # a gap says it
        (lambda ls: [*ls[:8], ls[8].replace(b'"c1"', b'"c2"'), *ls[9:]], {Reason.OTHER_CHAIN}, 20),
    ],
)
def test_a_changed_log_is_found_out_and_followed_behind_the_fault(
    tmp_path: Path, change: Change, reasons: set[str], kept: int
) -> None:
    sealed = seal_all([stream(number) for number in range(20)])
    written = [each.line for each in sealed]
    write_chain(tmp_path, [change(written)], [head(sealed[-1])])
    for limits in ({}, {"most_records": 1}):
        receiver = Receiver()
        Node(tmp_path, **limits).send(receiver)
        assert receiver.reasons(CHAIN) == {str(reason) for reason in reasons}
        assert len(receiver.records) == kept
        assert receiver.positions[CHAIN] == At(seq=20, hash=sealed[-1].hash)
        assert bool(receiver.gaps) == (not reasons)


def other(count: int, same: int) -> list[AnyEntry]:
    """Entries of which the first are those of `stream`, and the others different ones."""
    return [stream(n) if n < same else StopEntry(reason=f"forged {n}") for n in range(count)]


def test_a_log_that_was_written_anew_is_a_fork_and_followed_from_where_it_is_longer(tmp_path: Path) -> None:
    first = seal_all([stream(number) for number in range(10)])
    write_chain(tmp_path, [[each.line for each in first]], [head(first[-1])])
    receiver, node = Receiver(), Node(tmp_path)
    node.send(receiver)
    forged = seal_all(other(14, 6))
    write_chain(tmp_path, [[each.line for each in forged]], [head(forged[-1])])
    node.send(receiver)
    assert receiver.reasons(CHAIN) == {FORKED}
    assert receiver.positions[CHAIN] == At(seq=14, hash=forged[-1].hash)
    assert receiver.records[CHAIN, 8].hash == first[7].hash, "what came first is kept"
    assert node.send(receiver) == []


def test_a_log_that_was_cut_is_told_once_and_followed_when_it_is_longer(tmp_path: Path) -> None:
    first = seal_all([stream(number) for number in range(10)])
    write_chain(tmp_path, [[each.line for each in first]], [head(first[-1])])
    receiver, node = Receiver(), Node(tmp_path)
    node.send(receiver)
    write_chain(tmp_path, [[each.line for each in first[:7]]], [head(first[6])])
    node.send(receiver)
    node.restart()
    node.send(receiver)  # it may say so again
    assert receiver.reasons(CHAIN) == {Reason.CUT.value}
    assert {flaw.seq for _, flaw in receiver.flaws} == {7}
    anew = seal_all(other(12, 7))
    write_chain(tmp_path, [[each.line for each in anew]], [head(anew[-1])])
    node.send(receiver)
    assert receiver.reasons(CHAIN) == {Reason.CUT.value, FORKED}
    assert receiver.positions[CHAIN].seq == 12


def test_a_tail_that_was_cut_below_a_head_before_it_was_sent_is_told(tmp_path: Path) -> None:
    sealed = seal_all([stream(number) for number in range(10)])
    write_chain(tmp_path, [[each.line for each in sealed[:7]]], [head(sealed[6]), head(sealed[-1])])
    receiver, node = Receiver(), Node(tmp_path)
    node.send(receiver)
    assert receiver.reasons(CHAIN) == {Reason.CUT.value}
    assert receiver.positions[CHAIN].seq == 7


def test_a_chain_whose_files_are_gone_is_told_once(tmp_path: Path) -> None:
    sealed = seal_all([stream(1)])
    write_chain(tmp_path, [[sealed[0].line]], [head(sealed[0])])
    receiver, node = Receiver(), Node(tmp_path)
    node.send(receiver)
    (tmp_path / segment_name(CHAIN, 1)).unlink()
    node.send(receiver)
    assert receiver.reasons(CHAIN) == {GONE}
    assert node.send(receiver) == []


@pytest.mark.parametrize("forged", [b"{}", b'{"chain":"c1"'])
def test_heads_that_are_none_are_passed_over(tmp_path: Path, forged: bytes) -> None:
    sealed = seal_all([stream(1)])
    write_chain(tmp_path, [[sealed[0].line]], [forged + b"\n"])
    receiver = Receiver()
    Node(tmp_path).send(receiver)
    assert (receiver.signed, len(receiver.records)) == ({}, 1)


def test_a_chain_that_can_t_be_read_doesn_t_stop_the_others(tmp_path: Path) -> None:
    sealed = seal_all([stream(1)])
    write_chain(tmp_path, [[sealed[0].line]], [head(sealed[0])])
    (tmp_path / "c0-000001.jsonl").mkdir()
    receiver, node = Receiver(), Node(tmp_path)
    (sent,) = node.send(receiver)
    assert list(sent.faults) == ["c0"]
    assert receiver.positions[CHAIN].seq == 1
