"""The verifier that reads: a small model looks at claim and evidence together, beside the embedded verifier. A shell.

Each sees what the other is blind to. The model knows other words for the same, and who does what to whom; the embedded
verifier sees each number, name and date, gives the reason, and has a veto: where the evidence has another number or
name in the claim's place, no model talks it away. What the model fails is judged by the embedded verifier alone.

Of a passage that is longer than the model's window, the sentences are read that have most to do with the claim
(`joined`); of several passages, those that share most words with it, and the best one counts.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import threading
from collections.abc import Sequence

import msgspec

from checkstream.errors import ScoringError
from checkstream.grounding.cross_encoder import PairReader
from checkstream.grounding.embedded.verifier import (
    Compared,
    Said,
    Source,
    compared,
    entailment_of,
    said,
    sources,
    whole,
)
from checkstream.grounding.joined import joined, room_beside, shared, text_of
from checkstream.grounding.terms import Claim, Entailment, Excerpt, Judgement, Passage, Verdict
from checkstream.scoring.manifest import PAIR_LABELS

_ENTAILMENT, _, _CONTRADICTION = PAIR_LABELS
SUPPORTED, WEAKLY = 0.5, 0.3
"""From these scores on."""
READ, DENIED, SURFACE, BIAS = 1.0, -0.15, 0.85, 4.75
"""Of the logits of what the model says for and against a claim, and of the embedded verifier's score; what is added.
Chosen on premises that were held out of training, so that one true claim in five at most falls below `SUPPORTED`."""
VETOED = 0.49
"""What a veto leaves of a score."""
SURELY = 0.7
"""From this probability on the model has a veto too: of held-out true claims it denies one in seventy so surely, of
others one in eight. But not over what the evidence says in the claim's own words."""
_LITERAL = 0.95
"""From this score of the embedded verifier on it does."""
_SURE = 0.01
"""A share nearer to 0 or 1 counts as this near."""
MOST_READ = 3
"""Passages that are read with a claim."""
_NEARLY = 0.8
"""A passage that shares less with a claim than this share of what the best one does is not read."""


class Read(msgspec.Struct, frozen=True):
    """What a model says of a claim, of the evidence that speaks most for it."""

    supported: float
    denied: float
    excerpt: Excerpt
    windows: int
    """That were read in all."""


class ReaderVerifier:
    """Judges by what a model reads and by what surfaces show. Implements `grounding.terms.Verifier`."""

    def __init__(self, reader: PairReader, *, claim_s: float = 30.0) -> None:
        """Ask `reader`.

        Args:
            reader: of two texts.
            claim_s: how long one claim may take, with all passages.
        """
        self._reader = reader
        self._claim_s = claim_s
        self._lock = threading.Lock()
        """Of the reader, which is for one thread."""
        self.name = reader.name
        self.version = reader.version

    async def judge(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Judgement]:
        """Judge claims of one answer against the same passages; without passages nothing is supported."""
        read = await asyncio.to_thread(sources, passages)
        return [await self._judge(claim, read) for claim in claims]

    async def entailed(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        """Return for each (context, claim) the score of the claim, as a chance."""
        found = []
        for context, claim in pairs:
            (told,) = await self.judge([whole(claim)], [Passage(id="", text=context)])
            found.append(entailment_of(told))
        return found

    async def _judge(self, claim: Claim, read: Sequence[Source]) -> Judgement:
        """Judge a claim on a thread: both ways of reading take a while."""
        asked = await asyncio.to_thread(said, claim)
        surface = await asyncio.to_thread(compared, asked, read)
        if surface.judgement.verdict is Verdict.NOT_CHECKABLE or not read:
            return surface.judgement
        try:
            async with asyncio.timeout(self._claim_s):
                best = await asyncio.to_thread(self._best, asked, read)
        except TimeoutError:
            return _without(surface, "deadline")
        except ScoringError as error:
            return _without(surface, error.reason)
        return surface.judgement if best is None else _judgement(surface, best)

    def _best(self, asked: Said, read: Sequence[Source]) -> Read | None:
        with self._lock:
            return reading(asked, read, self._reader)


def reading(asked: Said, read: Sequence[Source], reader: PairReader) -> Read | None:
    """Have a model read a claim with the evidence that is nearest to it; None where it can read nothing.

    Raises:
        ScoringError: it failed.
    """
    claim = asked.claim.text
    found: list[Read] = []
    for source in _nearest(claim, read):
        stretches = joined(source.reader, claim, room_beside(claim))
        excerpt = Excerpt(passage_id=source.passage.id, start=stretches[0].start, end=stretches[-1].end)
        for told in reader.read(text_of(source.reader, stretches), claim):
            supported, denied = told.scores[_ENTAILMENT], told.scores.get(_CONTRADICTION, 0.0)
            found.append(Read(supported, denied, excerpt, len(found) + 1))
    if not found:
        return None
    return msgspec.structs.replace(max(found, key=_leaning), windows=len(found))


def _nearest(claim: str, read: Sequence[Source]) -> list[Source]:
    """Return the passages that are read: those that share most words with a claim, in their order."""
    if len(read) == 1:
        return list(read)
    shares = [shared(source.reader, claim) for source in read]
    enough = _NEARLY * max(shares)
    near = [at for at, share in enumerate(shares) if share >= enough]
    return [read[at] for at in sorted(heapq.nlargest(MOST_READ, near, key=lambda at: (shares[at], -at)))]


def together(supported: float, denied: float, surface: float) -> float:
    """Return the score of a claim: 0 to 1.

    Args:
        supported: probability by the model that the evidence says it.
        denied: the same that the evidence denies it.
        surface: the embedded verifier's score.
    """
    total = READ * logit(supported) + DENIED * logit(denied) + SURFACE * logit(surface) + BIAS
    return 1 / (1 + math.exp(-total))


def _leaning(read: Read) -> float:
    return READ * logit(read.supported) + DENIED * logit(read.denied)


def logit(share: float) -> float:
    """Return ln(p / (1 - p)), of shares that are held away from 0 and 1."""
    held = min(max(share, _SURE), 1 - _SURE)
    return math.log(held / (1 - held))


def denies(denied: float, surface: float) -> bool:
    """Tell whether the model has a veto: it is sure, and the claim isn't there word by word."""
    return denied >= SURELY and surface < _LITERAL


def held_down(score: float) -> float:
    """Return the score of a claim that is vetoed: below `SUPPORTED`, in the order that the claims had."""
    return score * VETOED


def _judgement(surface: Compared, best: Read) -> Judgement:
    own = surface.judgement
    score = together(best.supported, best.denied, own.score)
    if surface.changed:
        return msgspec.structs.replace(own, score=held_down(score))
    if denies(best.denied, own.score):
        denied = f"read together, the evidence denies it (probability {best.denied:.2f})"
        return msgspec.structs.replace(
            own,
            verdict=Verdict.CONTRADICTED,
            score=held_down(score),
            reason=own.reason if own.verdict is Verdict.CONTRADICTED else denied,
            excerpts=(best.excerpt,),
        )
    shown = own.excerpts or (best.excerpt,)
    if score >= SUPPORTED:
        reason = own.reason
        if own.verdict is not Verdict.SUPPORTED:
            reason, shown = f"read together, the evidence says it (probability {best.supported:.2f})", (best.excerpt,)
        return msgspec.structs.replace(own, verdict=Verdict.SUPPORTED, score=score, reason=reason, excerpts=shown)
    if own.verdict is Verdict.CONTRADICTED:
        return msgspec.structs.replace(own, score=score)
    reason = f"read together, the evidence does not say it (probability {best.supported:.2f})"
    if own.verdict is not Verdict.SUPPORTED:
        reason = f"{own.reason}; {reason}"
    verdict = Verdict.WEAKLY_SUPPORTED if score >= WEAKLY else Verdict.UNSUPPORTED
    return msgspec.structs.replace(own, verdict=verdict, score=score, reason=reason, excerpts=shown)


def _without(surface: Compared, why: str) -> Judgement:
    """Return what the embedded verifier says alone."""
    return msgspec.structs.replace(surface.judgement, degraded=(f"reader:{why}",))
