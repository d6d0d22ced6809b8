"""Sends what an audit log has to a control server, beside the proxy that writes it.

It keeps nothing: the log is the spool, and where the server stands the server says. So an end at any moment loses
nothing and doubles nothing, and a server that comes back from an older copy gets again what it has lost. The price is
one look through a segment of each chain at the start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

import msgspec

from checkstream.control.telemetry.composing import Composed, Composer
from checkstream.control.telemetry.courier import Courier
from checkstream.control.telemetry.delivery import At, Delivery, Received
from checkstream.control.telemetry.pace import Pace
from checkstream.control.telemetry.packing import packed
from checkstream.errors import AuditError, ControlUnusable

PATH = "/v1/telemetry"
HEADERS = {"content-type": "application/zstd"}
_BEAT_MS = 30_000
"""Where nothing happens, the server hears that nothing does."""
_MOST_PACKED = 1 << 20
"""What a server takes at once."""


class Answer(Protocol):
    """What a server has answered."""

    @property
    def status(self) -> int:
        """Of HTTP."""

    @property
    def body(self) -> bytes:
        """As it came."""

    @property
    def reason(self) -> str:
        """What it says is wrong."""

    @property
    def retry_after_s(self) -> float | None:
        """When to ask again, if it says so."""


class Shipped(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt came to."""

    shipping: Literal["sent", "idle", "unreachable", "refused", "unreadable"]
    """sent: all of it was taken. idle: there was nothing. unreachable: it is tried again. refused: the server doesn't
    take it, which somebody must look at. unreadable: the log can't be read."""
    records: int = 0
    """That were taken."""
    skipped: int = 0
    """That will not be sent, since too much waited or the log has them no more."""
    waiting: int = 0
    """Bytes of the log that are still to be sent."""
    reason: str = ""
    evidence: int = 0
    """Pieces of evidence that were taken beside."""
    evidence_refused: int = 0
    """And such as the server will not have, which are gone."""
    wait_s: float
    """Until the next attempt."""


class Shipper:
    """Ships the log of one node."""

    def __init__(
        self,
        composer: Composer,
        post: Callable[[str, bytes, dict[str, str]], Awaitable[Answer]],
        *,
        now_ms: Callable[[], int],
        draw: Callable[[], float],
        batch_ms: int = 1000,
        batch_bytes: int = 1 << 20,
        batch_records: int = 1000,
        courier: Courier | None = None,
    ) -> None:
        """Send nothing yet.

        Args:
            composer: Makes deliveries of the log.
            post: Sends a signed body to a path; raises `ControlUnusable`.
            now_ms: Wall clock.
            draw: Random, 0..1.
            batch_ms: The oldest record of a delivery waits for it no longer than this, if all goes well.
            batch_bytes: Of the log, in one delivery.
            batch_records: In one delivery.
            courier: Sends evidence between deliveries; None: there is none.
        """
        self._courier = courier
        self._composer = composer
        self._post = post
        self._now_ms = now_ms
        self._draw = draw
        self._records = batch_records
        self._pace = Pace(idle_s=batch_ms / 1000, most_bytes=batch_bytes)
        self._evidence = Pace(idle_s=batch_ms / 1000, most_bytes=batch_bytes)
        """Its own: records that go well say nothing of evidence that there is no room for."""
        self._kept_back = ""
        self._kept_ms, self._wait_s = 0, 0.0
        self._positions: dict[str, At] | None = None
        self._number = 0
        self._told_ms = 0

    async def run(self, say: Callable[[Shipped], None]) -> None:
        """Ship for ever; `say` hears what each attempt came to."""
        while True:
            shipped = await self.step()
            say(shipped)
            await asyncio.sleep(shipped.wait_s)

    async def step(self) -> Shipped:
        """Send once what there is: records, then some evidence."""
        shipped = await self._ship()
        if self._courier is None or shipped.shipping not in ("sent", "idle"):
            return shipped
        since_ms = self._now_ms() - self._kept_ms
        if self._kept_back and 0 <= since_ms < self._wait_s * 1000:
            return msgspec.structs.replace(shipped, shipping="unreachable", reason=self._kept_back)
        try:
            carried = await self._courier.round()
        except OSError as error:
            return msgspec.structs.replace(shipped, shipping="unreadable", reason=f"evidence can't be read: {error}")
        self._kept_back, self._kept_ms = carried.reason, self._now_ms()
        if carried.reason:
            self._wait_s = self._evidence.failed(self._draw())
        else:
            self._evidence.went(more=carried.more)
        moved = carried.sent + carried.refused
        return msgspec.structs.replace(
            shipped,
            shipping="unreachable" if carried.reason else "sent" if moved else shipped.shipping,
            reason=shipped.reason or carried.reason,
            evidence=carried.sent,
            evidence_refused=carried.refused,
            wait_s=0.0 if carried.more else shipped.wait_s,
        )

    async def _ship(self) -> Shipped:
        """Send records."""
        try:
            composed = await asyncio.to_thread(self._composed)
        except (AuditError, OSError) as error:
            return self._failed("unreadable", str(error))
        delivery = composed.delivery
        if not delivery.runs and self._positions is not None and self._now_ms() - self._told_ms < _BEAT_MS:
            wait_s = self._pace.went(more=False)
            return self._with_faults(Shipped(shipping="idle", waiting=delivery.waiting, wait_s=wait_s), composed)
        body = await asyncio.to_thread(lambda: packed(msgspec.json.encode(delivery)))
        if len(body) > _MOST_PACKED:
            return Shipped(shipping="idle", waiting=delivery.waiting, wait_s=self._pace.too_large(self._draw()))
        try:
            answer = await self._post(PATH, body, HEADERS)
        except ControlUnusable as error:
            return self._failed("unreachable", str(error), delivery)
        if answer.status == 413:
            return Shipped(
                shipping="refused", reason=answer.reason, waiting=delivery.waiting,
                wait_s=self._pace.too_large(self._draw()),
            )  # fmt: skip
        if answer.status in {408, 425, 429} or answer.status >= 500:
            return self._failed("unreachable", answer.reason, delivery, answer.retry_after_s)
        if answer.status != 200:
            return self._failed("refused", answer.reason, delivery)
        return self._answered(composed, answer.body)

    def _composed(self) -> Composed:
        """Return the next delivery; the first asks where the server stands."""
        number = max(self._number + 1, self._now_ms())
        if self._positions is None:
            empty = Delivery(number=number, time_ms=self._now_ms())
            return Composed(delivery=empty, ends={}, more=True, left=0, skipped=0, faults={})
        return self._composer.compose(
            self._positions,
            number=number,
            time_ms=self._now_ms(),
            most_bytes=self._pace.bytes,
            most_records=self._records,
        )

    def _answered(self, composed: Composed, body: bytes) -> Shipped:
        delivery = composed.delivery
        try:
            received = msgspec.json.decode(body, type=Received)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return self._failed("unreachable", f"the control server's answer can't be read: {error}", delivery)
        before = self._positions
        self._positions, self._told_ms = received.positions, self._now_ms()
        self._number = max(delivery.number, received.number)
        if before is not None and not self._composer.taken(composed, received.positions):
            reason = "the control server stands elsewhere than was thought; does another process ship this log, too?"
            return self._failed("unreachable", reason, delivery)
        shipped = Shipped(
            shipping="sent",
            records=sum(len(run.items) for run in delivery.runs),
            skipped=composed.skipped,
            waiting=composed.left,
            wait_s=self._pace.went(more=composed.more),
        )
        return self._with_faults(shipped, composed)

    def _with_faults(self, shipped: Shipped, composed: Composed) -> Shipped:
        """Return what is said where some chains can't be read, though others were sent."""
        if not composed.faults:
            return shipped
        chain, reason = next(iter(composed.faults.items()))
        return msgspec.structs.replace(shipped, shipping="unreadable", reason=f"chain {chain}: {reason}")

    def _failed(
        self,
        how: Literal["unreachable", "refused", "unreadable"],
        reason: str,
        delivery: Delivery | None = None,
        asked_s: float | None = None,
    ) -> Shipped:
        waiting = 0 if delivery is None else delivery.waiting
        return Shipped(shipping=how, reason=reason, waiting=waiting, wait_s=self._pace.failed(self._draw(), asked_s))
