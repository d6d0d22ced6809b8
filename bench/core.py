"""One benign event through the guard inside this process: CPU time by stage, no sockets.

Blocks of all stages take turns and the median over the turns counts, since a shared machine's speed changes from
one second to the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from bench.policies import with_classifiers
from bench.scenario import FIRST, answer, event, request
from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamOpened
from checkstream.core.exchange.guard import Guard, Plan
from checkstream.core.match.scan import Scan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.terms import Stage
from checkstream.core.wire.moulds import Moulds
from checkstream.core.wire.sse import Decoder
from checkstream.core.wire.surfaces import SURFACES

_EVENTS = 1500
"""Events of one block."""
_READ = 16
"""Events of one read, where several come together."""


class Cost(msgspec.Struct, frozen=True):
    """What one stage costs."""

    name: str
    event_us: tuple[float, ...]
    """CPU time of one event in each round, microseconds."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a run."""

    event_bytes: float
    """Mean size of an event."""
    patterns: int
    """Patterns that are searched for in the answer's content."""
    whole: Cost
    """`Guard.receive` with one event a read."""
    parts: tuple[Cost, ...]
    """Its stages, each alone."""
    together: Cost
    """`Guard.receive` with many events a read."""


class _Workload:
    """The same events, for every stage."""

    def __init__(self) -> None:
        said = answer("benign.txt")
        self.texts = [said[at % len(said)] for at in range(_EVENTS)]
        self.events = [event({"content": text}) for text in self.texts]
        self.reads = [b"".join(self.events[at : at + _READ]) for at in range(0, _EVENTS, _READ)]
        self.surface = SURFACES["openai.chat"]
        self.plan = Plan(program=compile_sources([("bench.yaml", with_classifiers())]), answer_bytes=1 << 40)
        self.scope = self.plan.program.scope(Stage.MIDSTREAM, "content")
        self.frames = [Decoder().decode(data)[0] for data in self.events]

    def guard(self) -> Guard:
        """Return a guard whose answer has begun."""
        guard = Guard(surface=self.surface, plan=self.plan, digest=lambda _: "")
        guard.receive(RequestReceived(request("m", "hi")), 0.0)
        guard.receive(UpstreamOpened(200, streaming=True), 0.0)
        guard.receive(UpstreamBytes(FIRST), 0.0)
        return guard

    def whole(self) -> Callable[[], None]:
        """Return `Guard.receive`, an event at a time."""
        return self._received([UpstreamBytes(data) for data in self.events])

    def together(self) -> Callable[[], None]:
        """Return `Guard.receive`, many events at a time."""
        return self._received([UpstreamBytes(data) for data in self.reads])

    def _received(self, events: list[UpstreamBytes]) -> Callable[[], None]:
        receive = self.guard().receive

        def run() -> None:
            now = 1.0
            for one in events:
                now += 0.02
                receive(one, now)

        return run

    def read(self) -> Callable[[], None]:
        """Return the finding of the text in the bytes of an event that is like one before."""
        moulds = Moulds()
        moulds.learn(self.frames[0], self.surface.read_event(self.frames[0]))

        def run() -> None:
            for data in self.events:
                moulds.cut(data, 0, Decoder.next_of)

        return run

    def hold(self) -> Callable[[], None]:
        """Return the search for what would be edited or stopped."""
        feed = Scan(self.scope.hold).feed

        def run() -> None:
            for text in self.texts:
                feed(text)

        return run

    def watch(self) -> Callable[[], None]:
        """Return the search for what is only recorded."""
        feed = Scan(self.scope.watch).feed

        def run() -> None:
            for text in self.texts:
                feed(text)

        return run


def run(rounds: int) -> Report:
    """Measure for `rounds` turns, after one that warms up the automata."""
    load = _Workload()
    stages = {
        "read (bytes to text)": load.read,
        "match, rules that hold text": load.hold,
        "match, rules that only record": load.watch,
        "whole": load.whole,
        "together": load.together,
    }
    found: dict[str, list[float]] = {name: [] for name in stages}
    for turn in range(rounds + 1):
        for name, make in stages.items():
            block = make()
            start = time.thread_time_ns()
            block()
            if turn:
                found[name].append((time.thread_time_ns() - start) / _EVENTS / 1000)
    whole, together = tuple(found.pop("whole")), tuple(found.pop("together"))
    parts = [Cost(name, tuple(spent)) for name, spent in found.items()]
    rest = tuple(total - sum(turn) for total, *turn in zip(whole, *(part.event_us for part in parts), strict=True))
    return Report(
        event_bytes=sum(map(len, load.events)) / _EVENTS,
        patterns=len(load.scope.hold) + len(load.scope.watch),
        whole=Cost("`Guard.receive`, one event a read", whole),
        parts=(*parts, Cost("the rest (hold, decide, release)", rest)),
        together=Cost(f"`Guard.receive`, {_READ} events a read", together),
    )
