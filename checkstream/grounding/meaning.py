"""The embedded verifier with a model beside it: words that evidence has in other words count too. A shell.

Numbers, names and negation are judged as without the model, which hardly sees them. A model that fails costs its part
alone: the claim is judged without it, and the result says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from checkstream.core.terms import Span
from checkstream.errors import ScoringError
from checkstream.grounding.embedded.nearness import Rows
from checkstream.grounding.embedded.reading import Word
from checkstream.grounding.embedded.verifier import Said, Source, entailment_of, judged, said, sources, whole
from checkstream.grounding.terms import Claim, Entailment, Judgement, Passage


class WordEncoder(Protocol):
    """Says what words mean where they stand; `scoring.sentence_encoder.SentenceEncoder` does."""

    @property
    def name(self) -> str:
        """Which model it is."""

    async def words(self, asked: Sequence[tuple[str, Sequence[Span]]]) -> list[Rows]:
        """Return for each text float32[word, dimension].

        Raises:
            ScoringError: it can't.
        """


class MeaningVerifier:
    """Compares surfaces and meanings. Implements `grounding.terms.Verifier`."""

    def __init__(self, encoder: WordEncoder) -> None:
        """Ask `encoder` what words mean."""
        self._encoder = encoder
        self.name = "embedded+meaning"
        self.version = f"1-{encoder.name}"

    async def judge(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Judgement]:
        """Judge claims of one answer against the same passages; without passages nothing is supported."""
        read, asked = sources(passages), [said(claim) for claim in claims]
        degraded: tuple[str, ...] = ()
        if read:
            try:
                read, asked = await self._meant(read, asked)
            except ScoringError as error:
                degraded = (f"embedding:{error.reason}",)
        found = [judged(each, read) for each in asked]
        return [msgspec.structs.replace(each, degraded=degraded) for each in found] if degraded else found

    async def entailed(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        """Return for each (context, claim) how well the context covers the claim, as if that were a chance."""
        found: dict[int, Entailment] = {}
        for context in dict.fromkeys(context for context, _ in pairs):
            own = [number for number, pair in enumerate(pairs) if pair[0] == context]
            told = await self.judge([whole(pairs[number][1]) for number in own], [Passage(id="", text=context)])
            found |= {number: entailment_of(each) for number, each in zip(own, told, strict=True)}
        return [found[number] for number in range(len(pairs))]

    async def _meant(self, read: Sequence[Source], asked: Sequence[Said]) -> tuple[list[Source], list[Said]]:
        """Have the model read passages and claims, each text once.

        Raises:
            ScoringError: it can't.
        """
        texts = dict.fromkeys(_text(source.passage.text, source.reader.words) for source in read)
        texts |= dict.fromkeys(_text(part.text, part.read.words) for each in asked for part in each.parts)
        rows = dict(zip(texts, await self._encoder.words(list(texts)), strict=True))
        replace = msgspec.structs.replace
        return (
            [replace(source, rows=rows[_text(source.passage.text, source.reader.words)]) for source in read],
            [replace(each, rows=[rows[_text(part.text, part.read.words)] for part in each.parts]) for each in asked],
        )


def _text(text: str, found: Sequence[Word]) -> tuple[str, tuple[Span, ...]]:
    return text, tuple(Span(word.start, word.end) for word in found)
