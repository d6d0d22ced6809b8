"""Opens what judges claims: one verifier for all designs, and the judge of RAG verification."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from checkstream.config import bundled, reveal
from checkstream.config.background import VerifierSettings
from checkstream.errors import ConfigError, Fault, ModelError
from checkstream.grounding.chat import ChatModel, ChatSettings
from checkstream.grounding.claim_judge import ClaimJudge
from checkstream.grounding.cross_encoder import CrossEncoderVerifier
from checkstream.grounding.embedded import EmbeddedVerifier
from checkstream.grounding.judge import LlmJudge
from checkstream.grounding.rag import RagJudge
from checkstream.grounding.reader import ReaderVerifier
from checkstream.grounding.terms import Claim, Entailment, Judgement, Passage, Verifier
from checkstream.scoring.catalog import load_models
from checkstream.scoring.manifest import ModelKind
from checkstream.scoring.pairs import PairSession
from checkstream.scoring.provenance import described_models, load_described

_THREADS = 2
"""More would only take turns at the interpreter, and make the event loop wait for its own."""
_READER = "reader"
_Said = TypeVar("_Said")


@dataclass(frozen=True, slots=True)
class Verifiers:
    """What judges claims, ready to be asked; CPU work of it is done off the event loop."""

    verifier: Verifier
    judge: RagJudge


class Threaded:
    """A verifier that reckons and never waits, moved to threads. Implements `grounding.terms.Verifier`."""

    def __init__(self, verifier: Verifier, threads: ThreadPoolExecutor) -> None:
        """Ask `verifier` in `threads`."""
        self._verifier = verifier
        self._threads = threads
        self.name = verifier.name
        self.version = verifier.version

    async def judge(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Judgement]:
        """Judge claims of one answer against the same passages."""
        return await self._away(lambda: self._verifier.judge(claims, passages))

    async def entailed(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        """Return for each (context, claim) the chance that the context says the claim."""
        return await self._away(lambda: self._verifier.entailed(pairs))

    async def _away(self, work: Callable[[], Coroutine[Any, Any, _Said]]) -> _Said:
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: asyncio.run(work()))


@contextlib.asynccontextmanager
async def open_verifiers(
    settings: VerifierSettings, models: str | Path | None = None, *, waiting: bool = False
) -> AsyncIterator[Verifiers]:
    """Open the verifier that is configured, and let go of it at the end. It belongs to this event loop.

    Args:
        settings: which one.
        models: the `models.yaml` of an operator's own models.
        waiting: a reply waits for what it says.

    Raises:
        ConfigError: the judge's key can't be read, or a model is missing or can't be used.
    """
    async with contextlib.AsyncExitStack() as stack:
        threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="verify")
        stack.callback(threads.shutdown, wait=False, cancel_futures=True)
        embedded: Verifier = Threaded(EmbeddedVerifier(), threads)
        if settings.kind == "judge" and settings.url is not None and settings.model is not None:
            key = None if settings.key is None else await asyncio.to_thread(reveal, settings.key)
            asked = ChatSettings(url=settings.url, model=settings.model, timeout_ms=settings.timeout_ms)
            judge = LlmJudge(await stack.enter_async_context(ChatModel(asked, key)), fallback=embedded)
            yield Verifiers(judge, judge)
            return
        verifier = embedded
        if settings.kind == "reader" or (settings.kind is None and not waiting):
            verifier = await asyncio.to_thread(open_reader, settings.timeout_ms / 1e3)
        elif settings.kind == "cross_encoder":
            session = await asyncio.to_thread(_configured, settings.model or "", models)
            verifier = CrossEncoderVerifier(session, embedded, claim_s=settings.timeout_ms / 1e3)
        yield Verifiers(verifier, ClaimJudge(verifier))


def open_reader(claim_s: float = 30.0) -> ReaderVerifier:
    """Load the model that reads claims, and return the verifier that asks it; blocks for a moment.

    Args:
        claim_s: how long it may read one claim.

    Raises:
        ConfigError: it is not there, or can't be used.
    """
    try:
        (model,) = load_models(bundled("models"), (_READER,))
        return ReaderVerifier(PairSession(model), claim_s=claim_s)
    except ModelError as error:
        advice = "`verifier: {kind: embedded}` does without; it compares words"
        raise ConfigError((Fault(file=f"model {_READER}", reason=str(error), advice=advice),)) from error


def _configured(name: str, models: str | Path | None) -> PairSession:
    try:
        return open_pairs(name, models)
    except ModelError as error:
        raise ConfigError((Fault(file=f"model {name}", reason=str(error)),)) from error


def open_pairs(name: str, models: str | Path | None) -> PairSession:
    """Load a model that reads claim and evidence together.

    Raises:
        ConfigError: models.yaml holds faults.
        ModelError: there is no such model, or it can't be used.
    """
    pairs = {each: model for each, model in described_models(models).items() if model.entry.kind is ModelKind.PAIR}
    if name not in pairs:
        known = ", ".join(f"`{each}`" for each in pairs) or "none"
        raise ModelError(f"there is no model `{name}` of the kind `pair`; known: {known}; name one in your models.yaml")
    return PairSession(load_described(pairs[name]))
