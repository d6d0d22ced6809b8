"""Reads the chains of an audit directory on from a place, while they are being written. Blocks.

Nothing is judged here but where lines are: whether they link is for the receiver to say. What can't be read as a record
is passed over, and the next stretch says so.

INVARIANT: nothing leaves that a power cut could still take back. A head is signed once its record is on the disk, so
all up to the newest head may be read at once; what stands behind it for long is brought to the disk first.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from checkstream.audit import chain as format_
from checkstream.audit.chain import Head, Record
from checkstream.audit.segments import HEADS_SUFFIX, last_line, require_file, segment_name
from checkstream.control.telemetry.delivery import At
from checkstream.errors import AuditError

HEAD_LATE_S = 10.0
"""Records that no head has come for after so long are read without one: the process that wrote them is gone."""
_MARK_BYTES = 512
"""Before a place, by which it is known again: the hash of the record stands in them."""
UNREADABLE = "a line is no record"
REMOVED = "not in the log any more"


class Spot(msgspec.Struct, frozen=True, order=True):
    """A place in the files of a chain."""

    number: int
    """Of the segment."""
    offset: int
    """Of a line's first byte in it."""


class Place(msgspec.Struct, frozen=True):
    """Where a stretch of a chain begins."""

    spot: Spot
    at: At
    """The record before."""
    skipped: str = ""
    """Why others stood between that and what stands here; empty: none did."""
    mark: bytes = b""
    """What stands before, to know it again."""


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """Records that follow each other."""

    after: At
    """The record before the first."""
    skipped: str
    """As in the place where it begins."""
    records: tuple[tuple[bytes, Record], ...]
    """Lines without their LF, and what they say."""
    end: Place
    """Where the next one begins."""


class There(msgspec.Struct, frozen=True, kw_only=True):
    """What there is of a chain."""

    chain: str
    numbers: tuple[int, ...]
    """Of its segments, sorted."""
    last: At
    """Its last record."""
    upto: Spot
    """What stands before may be read now."""
    head: Head | None
    """The newest that is signed."""
    cut: bool
    """The log has no such record as the head speaks of."""
    whole: bool
    """All of it may be read now."""


def marks(directory: Path, chain: str, numbers: Sequence[int]) -> object:
    """Return what changes when a chain does.

    Raises:
        OSError: a file can't be looked at.
    """
    files = [directory / segment_name(chain, numbers[-1]), directory / f"{chain}{HEADS_SUFFIX}"]
    found = [path.stat() for path in files if path.exists()]
    return (*numbers, *((each.st_ino, each.st_size, each.st_mtime_ns) for each in found))


def look(directory: Path, chain: str, numbers: Sequence[int], now_s: float) -> There:
    """Return what there is of a chain; of what no head speaks of for long, once it is on the disk.

    Args:
        directory: Of the log.
        chain: Its name.
        numbers: Of its segments, sorted; at least one.
        now_s: Wall clock, seconds since 1970.

    Raises:
        AuditError: a file can't be read.
    """
    head = _newest_head(directory, chain)
    while (directory / segment_name(chain, numbers[-1] + 1)).exists():  # made since they were listed
        numbers = [*numbers, numbers[-1] + 1]
    newest = Spot(numbers[-1], (directory / segment_name(chain, numbers[-1])).stat().st_size)
    last = next((found for number in reversed(numbers) if (found := _last(directory, chain, number))), At())
    signed = None if head is None else _behind(directory, chain, numbers, At(seq=head.seq, hash=head.hash))
    upto = signed or Spot(numbers[0], 0)
    segment = directory / segment_name(chain, newest.number)
    unsigned = head is None or (last.seq, last.hash) != (head.seq, head.hash)
    if unsigned and upto < newest and abs(now_s - segment.stat().st_mtime) > HEAD_LATE_S:
        _to_disk(segment)
        upto = newest
    return There(
        chain=chain,
        numbers=tuple(numbers),
        last=last,
        upto=upto,
        head=head,
        cut=head is not None and signed is None,
        whole=not unsigned or upto == newest,
    )


def marked(directory: Path, there: There, place: Place) -> Place:
    """Return a place that is known again (see `stands`).

    Raises:
        AuditError: the segment can't be read.
    """
    return msgspec.structs.replace(place, mark=_before(directory, there.chain, place.spot))


def stands(directory: Path, there: There, place: Place) -> bool:
    """Return whether a marked place is where it was, as it is while nobody writes the log anew.

    Raises:
        AuditError: the segment can't be read.
    """
    return place.spot.number in there.numbers and _before(directory, there.chain, place.spot) == place.mark


def _before(directory: Path, chain: str, spot: Spot) -> bytes:
    """Return the bytes before a place."""
    path = directory / segment_name(chain, spot.number)
    start = max(spot.offset - _MARK_BYTES, 0)
    try:
        with path.open("rb") as stream:
            stream.seek(start)
            return stream.read(spot.offset - start)
    except OSError as error:
        raise AuditError(f"`{path}` can't be read: {error.strerror}") from error


def find(directory: Path, there: There, at: At) -> Place | None:
    """Return where the record behind `at` is to be; None: the chain on disk doesn't reach so far.

    Where it has another record of this number, the place is behind that one, and names it.

    Raises:
        AuditError: a file can't be read.
    """
    if at.seq and (spot := _behind(directory, there.chain, there.numbers, at)) is not None:
        return Place(spot, at)
    before = At()
    first = _segment_of(directory, there.chain, there.numbers, at.seq)
    for spot, _, _, record in _records(directory, there, Spot(first, 0)):
        if record is None:
            continue
        if record.seq > at.seq:
            skipped = REMOVED if record.seq > at.seq + 1 else ""
            return Place(spot, At(seq=record.seq - 1, hash=record.prev), skipped)
        before = At(seq=record.seq, hash=record.hash)
    if before.seq < at.seq:
        return None
    return Place(Spot(there.numbers[-1], _size(directory, there.chain, there.numbers[-1])), before)


def skip(directory: Path, there: There, place: Place, most_bytes: int) -> Place:
    """Return the place itself, or one further on, so that no more than `most_bytes` stand behind it.

    Raises:
        AuditError: a file can't be read.
    """
    excess = waiting(directory, there, place) - most_bytes
    if excess <= 0:
        return place
    number, offset = place.spot.number, place.spot.offset
    while number < there.numbers[-1] and excess > (size := _size(directory, there.chain, number)) - offset:
        excess -= size - offset
        number, offset = number + 1, 0
    for spot, _, _, record in _records(directory, there, Spot(number, offset + excess)):  # from within a line
        if record is not None and record.seq > place.at.seq + 1:
            return Place(spot, At(seq=record.seq - 1, hash=record.prev), f"more than {most_bytes} bytes waited")
    return place


def waiting(directory: Path, there: There, place: Place) -> int:
    """Return how many bytes stand behind a place."""
    sizes = (_size(directory, there.chain, number) for number in there.numbers if number >= place.spot.number)
    return max(sum(sizes) - place.spot.offset, 0)


def read(directory: Path, there: There, place: Place, *, most_bytes: int, most_records: int) -> Stretch:
    """Return the records from a place on that may be read now.

    Args:
        directory: Of the log.
        there: What there is of the chain.
        place: As `find`, or the last stretch, gave it.
        most_bytes: A stretch ends behind the record that reaches this.
        most_records: And behind so many.

    Raises:
        AuditError: a file can't be read.
    """
    after, skipped, last, end = place.at, place.skipped, place.at, place.spot
    records: list[tuple[bytes, Record]] = []
    size = 0
    for spot, behind, line, record in _records(directory, there, place.spot):
        end = spot
        if spot >= there.upto or size >= most_bytes or len(records) >= most_records:
            break
        end = behind
        if record is None:
            if records:  # what follows is another stretch
                return Stretch(after=after, skipped=skipped, records=tuple(records), end=Place(end, last, UNREADABLE))
            skipped = UNREADABLE
            continue
        if skipped and not records:
            last = after = At(seq=max(record.seq - 1, 0), hash=record.prev)
        records.append((line, record))
        size += len(line)
        if record.seq > last.seq:  # else it stands there again, and is passed over
            last = At(seq=record.seq, hash=record.hash)
    end_of = Place(end, last, "" if records else skipped)
    return Stretch(after=after, skipped=skipped, records=tuple(records), end=end_of)


def _records(directory: Path, there: There, spot: Spot) -> Iterator[tuple[Spot, Spot, bytes, Record | None]]:
    """Yield the whole lines from a place on, through all segments: from where to where, and what they say.

    Raises:
        AuditError: a file can't be read.
    """
    offset = spot.offset
    for number in (number for number in there.numbers if number >= spot.number):
        path = directory / segment_name(there.chain, number)
        require_file(path)
        try:
            with path.open("rb") as stream:
                stream.seek(offset)
                while line := stream.readline(format_.MAX_LINE_BYTES + 2):
                    ended = line.endswith(b"\n")
                    if not ended and len(line) <= format_.MAX_LINE_BYTES and not _followed(directory, there, number):
                        break  # it is being written, or was torn, which the next start repairs
                    data = line[:-1] if ended else line
                    behind = offset + len(line)
                    yield Spot(number, offset), Spot(number, behind), data, _record(data) if ended else None
                    offset = behind
        except OSError as error:
            raise AuditError(f"`{path}` can't be read: {error.strerror}") from error
        offset = 0


def _followed(directory: Path, there: There, number: int) -> bool:
    """Return whether a segment is over: the next one, which is made before that, has something in it."""
    return any(each > number and _size(directory, there.chain, each) for each in there.numbers)


def _segment_of(directory: Path, chain: str, numbers: Sequence[int], seq: int) -> int:
    """Return the segment in which a record should stand, if anywhere."""
    for number in reversed(numbers):
        path = directory / segment_name(chain, number)
        require_file(path)
        with path.open("rb") as stream:
            record = _record(stream.readline(format_.MAX_LINE_BYTES + 2).removesuffix(b"\n"))
        if record is not None and record.seq <= seq:
            return number
    return numbers[0]


def _record(line: bytes) -> Record | None:
    try:
        return format_.read(line)
    except AuditError:
        return None


def _last(directory: Path, chain: str, number: int) -> At | None:
    line, _, _ = last_line(directory / segment_name(chain, number))
    record = None if line is None else _record(line)
    return None if record is None else At(seq=record.seq, hash=record.hash)


def _behind(directory: Path, chain: str, numbers: Sequence[int], at: At) -> Spot | None:
    """Return the place behind a record, wherever it stands; None: it doesn't."""
    wanted = _spelled(at)
    first = _segment_of(directory, chain, numbers, at.seq)
    for number in (number for number in reversed(numbers) if number >= first):
        with _mapped(directory / segment_name(chain, number)) as content:
            found = content.rfind(wanted)
            while found >= 0:
                start, end = content.rfind(b"\n", 0, found) + 1, content.find(b"\n", found)
                record = _record(content[start:end]) if end >= 0 else None
                if record is not None and (record.seq, record.hash) == (at.seq, at.hash):
                    return Spot(number, end + 1)
                found = content.rfind(wanted, 0, found)
    return None


def _spelled(at: At) -> bytes:
    """Return how a record says its hash."""
    return b'"hash":"%b"' % at.hash.encode()


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap | bytes]:
    """Give a file's content."""
    require_file(path)
    try:
        with path.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size == 0:
                yield b""
                return
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
                yield content
    except OSError as error:
        raise AuditError(f"`{path}` can't be read: {error.strerror}") from error


def _newest_head(directory: Path, chain: str) -> Head | None:
    path = directory / f"{chain}{HEADS_SUFFIX}"
    if not path.exists():
        return None
    line, _, _ = last_line(path)
    try:
        return None if line is None else format_.read_head(line)
    except AuditError:
        return None


def _size(directory: Path, chain: str, number: int) -> int:
    try:
        return (directory / segment_name(chain, number)).stat().st_size
    except OSError:
        return 0


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
