"""The writer of one process's audit chain: entries in, durable records out.

`append` gives an entry its place in the chain at once (number, link) and never waits; a thread writes and
fsyncs what has come together since the last time (group commit), signs heads, and turns segments over. So
the event loop never waits for a disk, and one fsync serves all that wait for one.

INVARIANT: records reach the disk in the order of their numbers, and a head is signed only for records that
are on disk.

Several processes share a directory: each holds a chain of its own under a lock. A process that starts takes
up the first chain (by name) that no process holds, so a restart goes on where the last run ended and
repairs its torn tail; only when all are held, or none can go on, it begins a new chain.

When the disk refuses, the journal has `failed`: it takes no entry any more, and a restart repairs the chain.
After a failed fsync nobody knows what is on disk, so there is no second try. What to do about requests
meanwhile is for the proxy to decide.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from checkstream.audit import chain as format_
from checkstream.audit.entries import AnyEntry, RepairEntry, RotateEntry
from checkstream.audit.keys import AuditKey
from checkstream.audit.segments import segment_name
from checkstream.audit.writer import TornTail, claim
from checkstream.errors import AuditError

State = Literal["open", "failed", "closed"]


class JournalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How an audit directory is written."""

    directory: Path
    heads: Path | None = None
    """Where heads are written; None: beside the segments."""
    durability: Literal["group", "strict"] = "group"
    """strict: `append_durable` returns when the entry is on disk; group: the loss window is `fsync_ms`."""
    fsync_ms: float = 200.0
    """Longest time that an entry waits for its fsync when nobody asks for it."""
    segment_bytes: int = 64 * 1024 * 1024
    """A segment ends before the record that would make it larger than this."""
    head_ms: float = 1000.0
    """Shortest time between two heads; a cut within it doesn't show."""
    pending_bytes: int = 256 * 1024 * 1024
    """Most that waits for the disk; entries beyond are refused."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class _Rotation(msgspec.Struct, frozen=True):
    """Write this last line and turn to the next segment."""

    line: bytes


class Journal:
    """One chain of an audit directory, open for appending. Use from any thread; close it once."""

    def __init__(
        self,
        settings: JournalSettings,
        key: AuditKey,
        *,
        process: str,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        """Take up or begin a chain and repair its torn tail. Blocks until that is on disk.

        Args:
            settings: where and how.
            key: signs heads.
            process: names this process in its records.
            now: wall clock, aware of its zone.

        Raises:
            AuditError: the directory or a file in it can't be written.
        """
        self._settings = settings
        self._key = key
        self._process = process
        self._now = now
        fresh = f"{now().astimezone(UTC):%Y%m%d%H%M%S}{secrets.token_hex(3)}"
        self._writer, torn, self.left_alone = claim(settings.directory, settings.heads or settings.directory, fresh)
        tail = self._writer.tail
        self.chain = tail.chain
        """Name of the chain."""
        self._seq = tail.seq
        self._hash = tail.hash
        self._segment = tail.number
        self._segment_bytes = tail.size
        self._durable = (tail.seq, tail.hash)
        self._headed_seq = 0
        self._headed_at = -math.inf
        self._state: State = "open"
        self._failure = ""
        self._changed = threading.Condition()
        self._pending: list[bytes | _Rotation] = []
        self._pending_bytes = 0
        self._pending_since = 0.0
        self._waiting: list[Future[None]] = []
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"audit-{self.chain}", daemon=True)
        self._repair(torn)

    @property
    def state(self) -> State:
        """`failed` means that entries are refused until the process is started again."""
        return self._state

    @property
    def failure(self) -> str:
        """Why the journal has failed; empty while it has not."""
        return self._failure

    def append(self, entry: AnyEntry) -> int:
        """Give an entry its place in the chain and return its number. It is on disk after at most `fsync_ms`.

        Raises:
            AuditError: the journal has failed, is closed or can't keep up, or the entry has no canonical form.
        """
        return self.placed(entry).seq

    def placed(self, entry: AnyEntry) -> format_.Sealed:
        """Do as `append`, and return the whole record.

        Raises:
            AuditError: as there.
        """
        with self._changed:
            self._require_open()
            sealed = self._seal(entry)
            if self._segment_bytes and self._segment_bytes + len(sealed.line) > self._settings.segment_bytes:
                self._turn_over()
                sealed = self._seal(entry)
            self._put(sealed)
            return sealed

    async def append_durable(self, entry: AnyEntry) -> int:
        """Append an entry with the durability of the settings: `strict` returns when it is on disk.

        Raises:
            AuditError: as `append`, or the disk refused.
        """
        return (await self.placed_durable(entry)).seq

    async def placed_durable(self, entry: AnyEntry) -> format_.Sealed:
        """Do as `append_durable`, and return the whole record.

        Raises:
            AuditError: as there.
        """
        sealed = self.placed(entry)
        if self._settings.durability == "strict":
            await self.flush()
        return sealed

    async def flush(self) -> None:
        """Wait until all that was appended so far is on disk.

        Raises:
            AuditError: the disk refused.
        """
        await asyncio.wrap_future(self._ask())

    def settle(self) -> None:
        """Do as `flush`, on a thread of its own. Blocks.

        Raises:
            AuditError: the disk refused.
        """
        self._ask().result()

    def close(self) -> None:
        """Write what waits, sign a last head and give the chain back. Blocks; a second call does nothing.

        Raises:
            AuditError: the disk refused, now or before.
        """
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify()
        self._thread.join()
        if self._state == "failed":
            raise AuditError(self._failure)

    async def aclose(self) -> None:
        """Do as `close`, without blocking the loop.

        Raises:
            AuditError: the disk refused, now or before.
        """
        await asyncio.to_thread(self.close)

    def _repair(self, torn: TornTail) -> None:
        """Take a torn tail off, start the thread, and put the repair on record.

        Raises:
            AuditError: the disk refused.
        """
        try:
            needed = torn.take_off()
        except OSError as error:
            self._writer.close()
            raise AuditError(f"the torn tail of `{torn.segment}` can't be repaired: {error.strerror}") from error
        self._thread.start()
        if not needed:
            return
        seq = self.append(RepairEntry(segment=torn.segment, dropped_bytes=torn.dropped_bytes, sha256=torn.sha256))
        try:
            self._ask().result()
            torn.recorded(seq)
        except (AuditError, OSError) as error:
            with contextlib.suppress(AuditError):
                self.close()
            raise AuditError(f"the repair of `{torn.segment}` can't be recorded: {error}") from error

    def _require_open(self) -> None:
        if self._state == "failed":
            raise AuditError(self._failure)
        if self._closing:
            raise AuditError("the audit journal is closed; nothing can be appended to it")
        if self._pending_bytes > self._settings.pending_bytes:
            raise AuditError(f"{self._pending_bytes} bytes of audit records wait for the disk; it can't keep up")

    def _seal(self, entry: AnyEntry) -> format_.Sealed:
        now = self._now().astimezone(UTC)
        stamp = f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03d}Z"
        return format_.seal(
            entry, chain=self.chain, seq=self._seq + 1, prev=self._hash, process=self._process, time=stamp
        )

    def _turn_over(self) -> None:
        """End the segment: its last record names the next one."""
        following = segment_name(self.chain, self._segment + 1)
        sealed = self._seal(RotateEntry(next=following))
        self._put(sealed, _Rotation(sealed.line))
        self._segment += 1
        self._segment_bytes = 0

    def _put(self, sealed: format_.Sealed, work: _Rotation | None = None) -> None:
        """Make a sealed record the chain's last, and leave it for the thread."""
        if not self._pending:
            self._pending_since = time.monotonic()
            self._changed.notify()
        self._pending.append(work or sealed.line)
        self._pending_bytes += len(sealed.line)
        self._segment_bytes += len(sealed.line)
        self._seq, self._hash = sealed.seq, sealed.hash

    def _ask(self) -> Future[None]:
        """Return what is done when all that was appended so far is on disk."""
        done: Future[None] = Future()
        with self._changed:
            if self._state == "failed":
                raise AuditError(self._failure)
            if self._durable[0] == self._seq:
                done.set_result(None)
            else:
                self._waiting.append(done)
                self._changed.notify()
        return done

    def _run(self) -> None:
        """Write until closed. The journal's only thread."""
        failure = ""
        try:
            while self._commit():
                pass
        except OSError as error:
            failure = f"the audit chain `{self.chain}` can't be written: {error.strerror}; free the disk and restart"
        except Exception as error:  # noqa: BLE001 - whatever ends this thread must end the journal, or callers wait for ever
            failure = f"the audit chain `{self.chain}` can't be written: {error!r}; this is a bug, please report it"
        with self._changed:
            self._state = "failed" if failure else "closed"
            self._failure = failure
            waiting, self._waiting = self._waiting, []
        self._writer.close()
        for done in waiting:
            _answer(done, failure)

    def _commit(self) -> bool:
        """Wait for work and put it on disk; return False when the journal is closed and nothing is left.

        Raises:
            OSError: the disk refused.
        """
        with self._changed:
            self._await_work()
            work, self._pending, self._pending_bytes = self._pending, [], 0
            waiting, self._waiting = self._waiting, []
            reached = (self._seq, self._hash)
            closing = self._closing
        try:
            self._write(work)
            self._sign(reached, at_once=closing)
        except BaseException:
            with self._changed:
                self._waiting = waiting + self._waiting
            raise
        with self._changed:
            self._durable = reached
        for done in waiting:
            _answer(done, "")
        return not closing

    def _await_work(self) -> None:
        """Return when records are due for the disk, or a head is, or the journal closes. Holds the lock."""
        while not self._closing and not self._waiting:
            now = time.monotonic()
            due = []
            if self._pending:
                due.append(self._pending_since + self._settings.fsync_ms / 1000)
            if self._durable[0] > self._headed_seq:
                due.append(self._headed_at + self._settings.head_ms / 1000)
            if due and min(due) <= now:
                return
            self._changed.wait(min(due) - now if due else None)

    def _write(self, work: list[bytes | _Rotation]) -> None:
        lines: list[bytes] = []
        for item in work:
            if isinstance(item, _Rotation):
                self._writer.write(b"".join(lines))
                lines.clear()
                self._writer.rotate(item.line)
            else:
                lines.append(item)
        if lines:
            self._writer.write(b"".join(lines))
        if work:
            self._writer.sync()

    def _sign(self, reached: tuple[int, str], *, at_once: bool) -> None:
        """Write a head for what is on disk, unless there is one or the last is too recent."""
        seq, digest = reached
        now = time.monotonic()
        if seq == self._headed_seq or (not at_once and now < self._headed_at + self._settings.head_ms / 1000):
            return
        stamp = f"{self._now().astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        head = format_.Head(chain=self.chain, hash=digest, key=self._key.public.name, seq=seq, time=stamp)
        signature = self._key.sign(format_.head_message(head)).hex()
        self._writer.write_head(format_.write_head(msgspec.structs.replace(head, sig=signature)))
        self._headed_seq, self._headed_at = seq, now


def _answer(done: Future[None], failure: str) -> None:
    """Tell one who waits that the disk has it, or why not; one who has gone is passed over."""
    if not done.set_running_or_notify_cancel():
        return
    if failure:
        done.set_exception(AuditError(failure))
    else:
        done.set_result(None)
