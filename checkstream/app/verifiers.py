"""Opens what judges claims: one verifier for all designs, and the judge of RAG verification."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from checkstream.config import reveal
from checkstream.config.background import VerifierSettings
from checkstream.grounding.chat import ChatModel, ChatSettings
from checkstream.grounding.claim_judge import ClaimJudge
from checkstream.grounding.embedded import EmbeddedVerifier
from checkstream.grounding.judge import LlmJudge
from checkstream.grounding.rag import RagJudge
from checkstream.grounding.terms import Claim, Entailment, Judgement, Passage, Verifier

_THREADS = 2
"""More would only take turns at the interpreter, and make the event loop wait for its own."""
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
async def open_verifiers(settings: VerifierSettings) -> AsyncIterator[Verifiers]:
    """Open the verifier that is configured, and let go of it at the end. It belongs to this event loop.

    Raises:
        ConfigError: the judge's key can't be read.
    """
    async with contextlib.AsyncExitStack() as stack:
        threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="verify")
        stack.callback(threads.shutdown, wait=False, cancel_futures=True)
        embedded = Threaded(EmbeddedVerifier(), threads)
        if settings.kind == "embedded" or settings.url is None or settings.model is None:
            yield Verifiers(embedded, ClaimJudge(embedded))
            return
        key = None if settings.key is None else await asyncio.to_thread(reveal, settings.key)
        asked = ChatSettings(url=settings.url, model=settings.model, timeout_ms=settings.timeout_ms)
        judge = LlmJudge(await stack.enter_async_context(ChatModel(asked, key)), fallback=embedded)
        yield Verifiers(judge, judge)
