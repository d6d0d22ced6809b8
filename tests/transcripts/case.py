"""One case of the corpus: what an upstream sent, under which policy, and what the caller and the audit log got.

A case is a folder. `case.yaml` says what it shows and how the exchange goes; `policy.yaml` and `request.json` are
what they are called; `upstream.sse`, `upstream.ndjson` or `upstream.json` is the answer's body as it came;
`again.*` is the second answer, of one that is continued; `scores.jsonl` answers the classifiers. The golden files are
`downstream.*` (the caller's bytes), `audit.json` (what the record says, whatever the cuts) and `forwarded.json`: the
last that the upstream got, where it did not get the caller's own body.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from checkstream.app import labels_of
from checkstream.config import bundled
from checkstream.core.commands import Score, StreamRecord
from checkstream.core.events import (
    AnyEvent,
    DownstreamClosed,
    Draining,
    RequestReceived,
    Scored,
    ScoringFailed,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamFailed,
    UpstreamOpened,
)
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.classifiers import labels_of as only_labels
from checkstream.core.policy.compile import compile_sources
from checkstream.core.transcript import Header, Line
from checkstream.core.wire import sse
from checkstream.core.wire.framing import LINES
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.places import surface_at
from checkstream.core.wire.surface import Surface
from checkstream.core.wire.surfaces import spoken
from checkstream.scoring.catalog import load_models
from tests.playbook import Exchange, Played

CORPUS = Path(__file__).parent / "corpus"
SPLITS = 4
"""Random splits of each case, besides whole and byte by byte."""
CUTS = ("whole", "bytes", *(f"split-{number}" for number in range(SPLITS)))
_STEP_S = 0.001
_STARTED_S = 100.0


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`case.yaml`."""

    shows: str
    """What the caller sees and why, for readers."""
    path: str = "/v1/chat/completions"
    surface: str | None = None
    """What is spoken where paths don't tell it."""
    method: str = "POST"
    """Of HTTP."""
    status: int = 200
    """What the upstream answers with."""
    fail_mode: Literal["open", "closed"] = "closed"
    parts: Literal["pass", "refuse"] = "pass"
    unknown_fields: Literal["scan", "refuse"] = "scan"
    tools_changed: Literal["alert", "refuse"] = "alert"
    pins: dict[str, str] = {}
    """Tool -> hash of how it is to be described."""
    event_bytes: int | None = None
    answer_bytes: int | None = None
    held_bytes: int | None = None
    prompt_chars: int | None = None
    ends: Literal["closed", "connect", "first_byte", "idle", "reset", "protocol", "caller_gone", "drain"] = "closed"
    """How the exchange ends after the upstream's bytes."""
    cuts: tuple[str, ...] = CUTS
    """How the bytes are cut. The golden files are those of the first; a cap on what is held counts reads, so
    that one read of all bytes may pass it."""
    overtakes: bool = False
    """One choice may overtake another, so that only the order within each choice is the same for every cut."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of `scores.jsonl`: the first whose `contains` stands in the window answers it."""

    contains: str = ""
    scores: dict[str, float] = {}
    failed: Literal["deadline", "crash", "garbage", "overload"] | None = None


class Audited(msgspec.Struct, frozen=True, kw_only=True):
    """What every cut of the same bytes must come to, besides the bytes: `audit.json`."""

    status: int
    action: str
    retry: bool | None
    closed: bool
    """The stream was ended as HTTP says, or the whole response given."""
    upstream_cancelled: bool
    record: dict[str, object]


class Case:
    """A folder of the corpus, read."""

    def __init__(self, folder: Path) -> None:
        """Read the folder's inputs."""
        self.folder = folder
        self.script = msgspec.yaml.decode((folder / "case.yaml").read_bytes(), type=Script)
        self.request = (folder / "request.json").read_bytes()
        self.surface: Surface | Mcp = spoken(self.script.surface or surface_at(self.script.path) or "")
        self.form = "ndjson" if self.surface.framing is LINES else "sse"
        streamed, whole = folder / f"upstream.{self.form}", folder / "upstream.json"
        self.streaming = streamed.exists()
        self.upstream = streamed.read_bytes() if self.streaming else whole.read_bytes() if whole.exists() else None
        self.again = next((path.read_bytes() for path in folder.glob("again.*")), None)
        scores = folder / "scores.jsonl"
        lines = scores.read_text(encoding="utf-8").splitlines() if scores.exists() else []
        self.answers = [msgspec.json.decode(line, type=Answer) for line in lines]

    def plan(self) -> Plan:
        """Return the route's plan: the policy beside the case, and the settings that it names."""
        script = self.script
        source = (str(self.folder / "policy.yaml"), (self.folder / "policy.yaml").read_bytes())
        plan = Plan(
            program=compile_sources([source], _labels()),
            fail_mode=script.fail_mode,
            parts=script.parts,
            unknown_fields=script.unknown_fields,
            tools_changed=script.tools_changed,
            pins=script.pins,
        )
        limits = {name: getattr(script, name) for name in ("event_bytes", "answer_bytes", "held_bytes", "prompt_chars")}
        return msgspec.structs.replace(plan, **{name: value for name, value in limits.items() if value is not None})

    @property
    def replayable(self) -> bool:
        """Whether a transcript's header can say all that the case needs."""
        script = self.script
        bare = Script(shows=script.shows, path=script.path, surface=script.surface, method=script.method)
        return msgspec.structs.replace(
            script, fail_mode="closed", ends="closed", cuts=CUTS, overtakes=False
        ) == msgspec.structs.replace(bare, status=script.status)

    def pieces(self, data: bytes, cut: str) -> list[bytes]:
        """Return bytes of the upstream cut `whole`, in `bytes`, or at random as `split-N` says."""
        if cut == "whole":
            return [data] if data else []
        if cut == "bytes":
            return [data[at : at + 1] for at in range(len(data))]
        chance = random.Random(f"{self.folder.name} {cut}")
        edges = sorted({0, len(data), *(chance.randrange(len(data) + 1) for _ in range(chance.randrange(2, 40)))})
        return [data[a:b] for a, b in itertools.pairwise(edges)]

    def play(self, plan: Plan, cut: str) -> tuple[Played, bytes]:
        """Run the case; return what came of it, and the run as a transcript that `checkstream replay` reads."""
        exchange = _Recorded(self, plan)
        exchange.send(RequestReceived(self.request, method=self.script.method))
        if exchange.out.forwarded is not None:
            if self.upstream is not None:
                exchange.send(UpstreamOpened(self.script.status, self.streaming))
            self._tell(exchange, self.pieces(self.upstream or b"", cut))
            if not exchange.over:
                exchange.send(self._end())
            if self.again is not None and exchange.out.record is None:
                cut_off, exchange.out.cancelled = exchange.out.cancelled, False
                exchange.send(UpstreamOpened(200, self.streaming))
                self._tell(exchange, self.pieces(self.again, cut))
                if not exchange.over:
                    exchange.send(UpstreamClosed())
                exchange.out.cancelled = cut_off or exchange.out.cancelled
        return exchange.out, exchange.transcript()

    def _tell(self, exchange: _Recorded, pieces: Sequence[bytes]) -> None:
        """Have the exchange read what the upstream sends, as long as it wants to."""
        for piece in pieces:
            if not exchange.over:
                exchange.now += _STEP_S
                exchange.send(UpstreamBytes(piece))

    def answer(self, score: Score) -> AnyEvent:
        """Answer a score request as `scores.jsonl` says; what it doesn't speak of is calm."""
        labels = [label.name for label in _labels() if label.name.partition(".")[0] in score.classifiers]
        for answer in self.answers:
            if answer.contains in score.text:
                if answer.failed is not None:
                    return ScoringFailed(score.ticket, answer.failed)
                return Scored(score.ticket, dict.fromkeys(labels, 0.0) | answer.scores)
        return Scored(score.ticket, dict.fromkeys(labels, 0.0))

    def _end(self) -> AnyEvent:
        match self.script.ends:
            case "closed":
                return UpstreamClosed()
            case "caller_gone":
                return DownstreamClosed()
            case "drain":
                return Draining()
            case kind:
                return UpstreamFailed(kind)


class _Recorded(Exchange):
    """An exchange that keeps its events as the lines of a transcript."""

    def __init__(self, case: Case, plan: Plan) -> None:
        super().__init__(case.surface, plan, case.answer)
        self._lines: list[msgspec.Struct] = [Header(surface=case.surface.name, fail_mode=case.script.fail_mode)]

    @property
    def over(self) -> bool:
        """Nothing that the upstream still sends is wanted."""
        return self.out.cancelled or self.out.record is not None

    def send(self, event: AnyEvent) -> None:
        self._lines.append(Line(at=round(self.now - _STARTED_S, 6), event=event))
        super().send(event)

    def transcript(self) -> bytes:
        """Return the run so far, one JSON value a line."""
        return b"".join(msgspec.json.encode(line) + b"\n" for line in self._lines)


@cache
def _labels() -> tuple[ClassifierLabel, ...]:
    return only_labels(labels_of(load_models(bundled("models"))))


def downstream(played: Played) -> bytes:
    """Return all that the caller got as a body."""
    return played.joined + (played.reply.body if played.reply is not None else b"")


def audited(played: Played) -> Audited:
    """Return what does not depend on the cut."""
    reply = played.reply
    return Audited(
        status=reply.status if reply is not None else 200,
        action=reply.action if reply is not None else "",
        retry=reply.retry if reply is not None else None,
        closed=played.closed or reply is not None,
        upstream_cancelled=played.cancelled,
        record=facts(played.record) if played.record is not None else {},
    )


def facts(record: StreamRecord) -> dict[str, object]:
    """Return a record without what another cut or another key may change: times, lengths read, digests, hashes."""
    kept = msgspec.json.decode(msgspec.json.encode(record), type=dict[str, object])
    for name in ("held_ms", "answer_chars", "program"):
        del kept[name]
    kept.pop("checked_ms", None)
    for name in ("confirmed", "removed", "turned_at"):
        if kept[name] in ([], None):
            del kept[name]
    findings = msgspec.convert(kept["findings"], type=list[dict[str, object]])
    kept["findings"] = [{name: value for name, value in row.items() if name != "digest"} for row in findings]
    verdicts = msgspec.convert(kept["verdicts"], type=list[dict[str, object]])
    kept["verdicts"] = [
        {name: value for name, value in row.items() if value not in (None, False) and name != "latency_ms"}
        for row in verdicts
    ]
    return kept


def by_choice(data: bytes) -> dict[tuple[int, ...], list[bytes]]:
    """Return the events of a stream by the choices that they speak of, in order."""
    found: dict[tuple[int, ...], list[bytes]] = {}
    decoder = sse.Decoder(1 << 20)
    for frame in (*decoder.decode(data), *decoder.flush()):
        body = json.loads(frame.data) if frame.data is not None and frame.data.startswith(b"{") else {}
        found.setdefault(tuple(choice["index"] for choice in body.get("choices", ())), []).append(frame.raw)
    return found


def cases() -> Sequence[Path]:
    """Return the folders of the corpus, sorted by name."""
    return sorted(path.parent for path in CORPUS.glob("*/case.yaml"))
