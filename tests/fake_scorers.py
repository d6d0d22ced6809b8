"""Scorers for tests: over the lexicon, over sessions that can be slow, crash or answer garbage, and behind a gate."""

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager

import numpy as np
import pytest

from checkstream.config import bundled
from checkstream.core.events import EntityFound
from checkstream.errors import ScoringError, ScoringReason
from checkstream.scoring import Model, Readings, Scorer, ScorerLimits, Session, Window, load_models, open_session
from checkstream.scoring.manifest import ModelEntry, ModelFile, ModelKind, ModelLimits
from checkstream.scoring.session import Gate, Reading

PATIENT_MS = 20_000.0


def fake_model(name: str = "fake") -> Model:
    file = ModelFile(role="lexicon", path="x", sha256="0" * 64, bytes=1)
    entry = ModelEntry(
        name=name,
        kind=ModelKind.LEXICON,
        version="1.0.0",
        licence="none",
        card="x",
        labels=("a", "b"),
        limits=ModelLimits(window_tokens=8),
        files=(file,),
    )
    return Model(entry=entry, contents={})


class FaultySession:
    """A session that does what its texts say: `crash`, `nan`, `wait`, ...; else scores 0.25 and 0.75."""

    gate: Gate | None = None

    def __init__(self, *, inline: bool) -> None:
        self.inline = inline
        self.batches: list[list[str]] = []
        self.fresh: list[int] = []
        self.go = threading.Event()
        self.started = threading.Event()
        self.around: Callable[[], None] = lambda: None
        self.spells = False
        """Windows have tokens, their letters."""

    def cut(self, text: str, fresh_chars: int = 0) -> Iterator[Window | None]:
        self.fresh.append(fresh_chars)
        if text == "uncuttable":
            raise RuntimeError(text)
        if text == "nothing":
            return
        for piece in text.split("|"):
            if piece == "half":
                raise RuntimeError(text)
            if piece == "slow":
                slowly()
            if piece == "pause":
                yield None
                continue
            yield Window(piece, len(piece) + 1, [*map(ord, piece)] if self.spells else ())

    def run(self, windows: Sequence[Window]) -> Readings:
        texts = [window.text for window in windows]
        self.batches.append(texts)
        self.around()
        if "wait" in texts:
            self.started.set()
            assert self.go.wait(20)
        if "burn" in texts:
            self.started.set()
            while not self.go.is_set():
                pass
        if "crash" in texts:
            raise RuntimeError("crash")
        if "exit" in texts:
            raise SystemExit
        if "shape" in texts:
            return Readings(np.zeros((len(texts), 7), dtype=np.float32))
        if "integers" in texts:
            return Readings(np.zeros((len(texts), 2), dtype=np.int64))
        if "none" in texts:
            return None  # type: ignore[return-value]
        if "entities" in texts:
            return Readings(np.zeros((len(texts), 2), dtype=np.float32), [()] * (len(texts) + 1))
        rows = {
            "nan": (math.nan, 0.5),
            "inf": (0.5, math.inf),
            "over": (1.5, 0.5),
            "under": (-0.1, 0.5),
            "high": (1, 0),
        }
        found = {"Ann": [EntityFound("PERSON", 0, 3, 0.5)], "Sure": [EntityFound("PERSON", 0, 4, 1.5)]}
        scores = np.array([rows.get(text, (0.25, 0.75)) for text in texts], dtype=np.float32)
        return Readings(scores, [found.get(text, []) for text in texts])


class Told:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.checks: list[tuple[str, ScoringReason | None]] = []
        self.states: list[tuple[str, str, str]] = []

    def checked(self, detector: str, seconds: float, failure: ScoringReason | None) -> None:
        assert seconds >= 0
        self.checks.append((detector, failure))

    def breaker(self, detector: str, lane: str, state: str) -> None:
        self.states.append((detector, lane, state))


class Rig:
    """A scorer over faulty sessions."""

    def __init__(self, *, inline: bool, limits: ScorerLimits, models: tuple[str, ...]) -> None:
        self.told = Told()
        self.sessions: list[FaultySession] = []

        def opened(_: Model) -> Session:
            session = FaultySession(inline=inline)
            self.sessions.append(session)
            return session

        self.scorer = Scorer([fake_model(name) for name in models], opened, observer=self.told, limits=limits)

    @property
    def session(self) -> FaultySession:
        return self.sessions[0]

    async def score(
        self, text: str, deadline_ms: float = PATIENT_MS, *, ingress: bool = False, share: str = ""
    ) -> dict[str, float]:
        asked = self.scorer.ask(("fake",), text, deadline_ms, ingress=ingress, share=share)
        return (await asked.answer()).scores

    async def reason(self, text: str, deadline_ms: float = PATIENT_MS, *, ingress: bool = False) -> str:
        with pytest.raises(ScoringError) as caught:
            await self.score(text, deadline_ms, ingress=ingress)
        return caught.value.reason


@asynccontextmanager
async def rig(
    *, inline: bool, limits: ScorerLimits | None = None, models: tuple[str, ...] = ("fake",)
) -> AsyncIterator[Rig]:
    made = Rig(inline=inline, limits=limits or ScorerLimits(breaker_failures=1_000), models=models)
    try:
        yield made
    finally:
        for session in made.sessions:
            session.go.set()
        await made.scorer.close()
    for thread in threading.enumerate():
        if thread.name.startswith("score-"):  # one that was given up ends by itself
            thread.join(20)
            assert not thread.is_alive()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    for lane in made.scorer._lanes.values():
        assert not lane._tickets
        assert not lane._cutting
        assert not lane._first.waiting
        assert not lane._line.waiting


both = pytest.mark.parametrize("inline", [True, False], ids=["inline", "thread"])


@asynccontextmanager
async def lexicon() -> AsyncIterator[Scorer]:
    scorer = Scorer(load_models(bundled("models"), ("lexicon",)), open_session)
    try:
        yield scorer
    finally:
        await scorer.close()


class GatedFake(FaultySession):
    """A gate that clears what begins with `calm`, crashes at `broken`, and doubts the rest."""

    def __init__(self) -> None:
        super().__init__(inline=False)
        self.glances: list[str] = []
        self.threads: set[int] = set()
        self.shown = threading.Event()
        self.hold: threading.Event | None = None
        self.model = self
        self.gate = self

    def together(self, texts: Sequence[str]) -> Iterator[Window | None]:
        for at in range(0, len(texts), 3):
            some = texts[at : at + 3]
            if len(some) == 1:
                yield from self.apart(some)
            else:
                text = "\n".join(some)
                yield Window(text, len(text) + 1, [*map(ord, text)], texts=some)
            yield None

    def apart(self, texts: Sequence[str]) -> Iterator[Window | None]:
        for text in texts:
            yield from self.cut(text)
            yield None

    def glance(self, window: Window) -> Reading | None:
        if window.texts:
            calm = all(text.startswith("calm") for text in window.texts)
            return Reading(np.array([0.01, 0.02], np.float32)) if calm else None
        self.glances.append(window.text)
        self.threads.add(threading.get_ident())
        if window.text == "broken":
            raise RuntimeError(window.text)
        if window.text == "calm last":
            self.shown.set()
        if window.text == "calm held" and self.hold is not None:
            assert self.hold.wait(20)
        return Reading(np.array([0.01, 0.02], np.float32)) if window.text.startswith("calm") else None


@asynccontextmanager
async def gated(
    limits: ScorerLimits | None = None, observer: Told | None = None
) -> AsyncIterator[tuple[GatedFake, Scorer]]:
    session = GatedFake()
    scorer = Scorer([fake_model()], lambda _: session, limits=limits, observer=observer)
    try:
        yield session, scorer
    finally:
        session.go.set()
        await scorer.close()
    assert all(not lane._tickets for lane in scorer._lanes.values())


async def hang(session: GatedFake, scorer: Scorer, *, failures: int, ingress: bool) -> None:
    """Let a model behind a gate hang for good, `failures` times, while the gate goes on clearing."""
    for _ in range(failures):
        session.started.clear()
        asked = scorer.ask(("fake",), "wait", PATIENT_MS, ingress=ingress)
        await asyncio.to_thread(session.started.wait, 20)
        assert (await scorer.score(("fake",), "calm", PATIENT_MS, ingress=ingress)).scores
        with pytest.raises(ScoringError) as caught:
            await asked.answer()
        assert caught.value.reason == "deadline"
        assert (await scorer.score(("fake",), "calm", PATIENT_MS, ingress=ingress)).scores


def slowly() -> None:
    """Use up a slice of the loop: by work, since a busy machine lets time pass without any."""
    until = time.thread_time() + 0.0011
    while time.thread_time() < until:
        pass
