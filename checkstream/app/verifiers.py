"""Opens what judges claims: one verifier for all designs, and the judge of RAG verification."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from checkstream.grounding.claim_judge import ClaimJudge
from checkstream.grounding.embedded import EmbeddedVerifier
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
async def open_verifiers() -> AsyncIterator[Verifiers]:
    """Open the embedded verifier, and let go of its threads at the end."""
    threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="verify")
    try:
        verifier = Threaded(EmbeddedVerifier(), threads)
        yield Verifiers(verifier, ClaimJudge(verifier))
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
