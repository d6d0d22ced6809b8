"""Audit entries and directories that the tests of several folders need."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from checkstream.audit.chain import GENESIS, Head, Sealed, head_message, seal, write_head
from checkstream.audit.entries import AnyEntry, RescoredEntry, RotateEntry, StartEntry, StopEntry, StreamEntry
from checkstream.audit.keys import AuditKey
from checkstream.audit.segments import segment_name
from checkstream.core.commands import FindingDigest, StreamRecord
from checkstream.core.terms import Channel, Span, Stage, Verdict

KEY = AuditKey(bytes(range(32)))
OTHER_KEY = AuditKey(bytes(range(1, 33)))
TIME = "2026-01-02T03:04:05.678Z"
CHAIN = "c1"


def noon() -> datetime:
    return datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


def verdict(rule: str = "PII-001", spans: int = 1) -> Verdict:
    return Verdict(
        action="redact",
        rule_id=rule,
        confidence=0.93,
        spans=tuple(Span(n, n + 5) for n in range(spans)),
        policy="default",
        version="1.0.0",
        stage=Stage.MIDSTREAM,
        channel=Channel("content"),
        triggers=("entity:EMAIL",),
    )


def record(*, findings: int = 1, verdicts: tuple[Verdict, ...] = (verdict(),), action: str = "redact") -> StreamRecord:
    digest = FindingDigest(
        detector="entity:EMAIL", channel="content/0/0", span=Span(3, 20), view="raw", digest=KEY.digest("a@b.example")
    )
    return StreamRecord(
        surface="openai.chat",
        streaming=True,
        action=action,
        outcome="complete",
        policies=("default@1.0.0",),
        program="0f" * 32,
        scanned=("midstream:content",),
        unscanned=(),
        detectors=("match",),
        findings=(digest,) * findings,
        verdicts=verdicts,
        degradations=(),
        upstream_failure=None,
        held_ms=12.5,
        prompt_chars=10,
        answer_chars=100,
        released_chars=90,
    )


def stream(number: int = 1, route: str = "chat") -> StreamEntry:
    return StreamEntry(stream=f"s{number}", route=route, caller="app1", record=record())


def rescored(
    number: int = 1, route: str = "chat", *, violated: bool = False, cutoff_ms: float | None = None
) -> RescoredEntry:
    return RescoredEntry(
        stream=f"s{number}", route=route, caller="app1", result="violation" if violated else "clean",
        rules=("BLUE-1",) if violated else (), cutoff_ms=cutoff_ms, policies=("strict@1.0.0",),
    )  # fmt: skip


def start() -> StartEntry:
    return StartEntry(version="0.1.0", pid=7, config="ab" * 32, programs=("0f" * 32,), policies=("default@1.0.0",))


def entries(count: int) -> list[AnyEntry]:
    return [start(), *(stream(n) for n in range(count - 2)), StopEntry(reason="SIGTERM")]


def seal_all(items: Sequence[AnyEntry], chain: str = CHAIN) -> list[Sealed]:
    sealed: list[Sealed] = []
    for item in items:
        prev = sealed[-1].hash if sealed else GENESIS
        sealed.append(seal(item, chain=chain, seq=len(sealed) + 1, prev=prev, process="p1", time=TIME))
    return sealed


def head(sealed: Sealed, key: AuditKey = KEY, chain: str = CHAIN) -> bytes:
    bare = Head(chain=chain, hash=sealed.hash, key=key.public.name, seq=sealed.seq, time="2026-01-02T03:04:05Z")
    signed = key.sign(head_message(bare)).hex()
    return write_head(Head(chain=chain, hash=bare.hash, key=bare.key, seq=bare.seq, time=bare.time, sig=signed))


def two_segments(first: int = 4, second: int = 3) -> list[AnyEntry]:
    """Entries of which number `first` is the rotate record."""
    items = entries(first + second)
    items[first - 1] = RotateEntry(next=segment_name(CHAIN, 2))
    return items


def write_chain(directory: Path, segments: list[list[bytes]], heads: list[bytes] | None = None) -> None:
    """Lay a chain out as files: a list of lines for each segment, and its heads."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, lines in enumerate(segments, start=1):
        (directory / segment_name(CHAIN, number)).write_bytes(b"".join(lines))
    if heads is not None:
        (directory / f"{CHAIN}.heads").write_bytes(b"".join(heads))
