"""Claims against passages, by what they share: the embedded verifier. Pure: its async face never waits."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from checkstream.core.terms import Span
from checkstream.grounding.embedded.lexical import SUPPORTED, Conflict, Coverage, Found, Sentence, coverage, prepared
from checkstream.grounding.embedded.reading import words
from checkstream.grounding.embedded.windows import PassageReader
from checkstream.grounding.sentences import sentences
from checkstream.grounding.terms import Claim, Entailment, Excerpt, Judgement, Passage, Verdict

_SILENT = 0.5
"""Up to this share of a claim's words, evidence as good as says nothing: texts of any topic share so much."""
_SILENT_SCORE = 0.05
_WEAKLY = 0.3
"""From this score on a claim is weakly supported."""
_ABOUT = 0.4
"""A stretch that shares less than this with a claim is not about it, and can't contradict it."""
_TELLING = 2.0
"""Words that a sentence has at least to say something by itself; `Yes, I think so.` has not."""
_SHOWN_WORDS = 4
_MOST_SENTENCES, _SENTENCE_WORDS = 32, 256
"""Of one claim; a claim is one statement, and nothing that is longer is read to its end."""


class _Best(msgspec.Struct, frozen=True, eq=False):
    """The best that evidence says of a sentence of a claim."""

    coverage: Coverage
    weight: float
    excerpt: Excerpt | None = None


class Source(msgspec.Struct, frozen=True, eq=False):
    """A passage that claims are compared with."""

    passage: Passage
    reader: PassageReader


class Said(msgspec.Struct, frozen=True, eq=False):
    """A claim, ready to be compared."""

    claim: Claim
    parts: Sequence[Sentence]
    """Its sentences."""


class Compared(msgspec.Struct, frozen=True, eq=False):
    """A claim, judged by its surface."""

    judgement: Judgement
    changed: bool = False
    """Evidence has another number or date in the claim's place; or in an otherwise equal sentence another name, a
    negation that the claim lacks or the other way round, or a word's opposite."""


class EmbeddedVerifier:
    """Compares surfaces: words in order, numbers and dates, names, polarity. No model, no waiting, any language.

    INVARIANT: a passage more never lowers a score. Each is compared by itself and the best decides; sentences are taken
    from several only where each says its sentence outright, so texts about something else add nothing to a claim of
    several sentences, and to one of a single sentence as much as they share of it.
    """

    name = "embedded"
    version = "1"

    async def judge(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Judgement]:
        """Judge claims of one answer against the same passages; without passages nothing is supported."""
        read = sources(passages)
        return [judged(said(claim), read) for claim in claims]

    async def entailed(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        """Return for each (context, claim) how well the context covers the claim, as if that were a chance."""
        known: dict[str, Sequence[Source]] = {}
        found = []
        for context, claim in pairs:
            read = known.setdefault(context, sources([Passage(id="", text=context)]) if context not in known else ())
            found.append(entailment_of(judged(said(whole(claim)), read)))
        return found


def sources(passages: Sequence[Passage]) -> list[Source]:
    """Return the passages that hold something, read."""
    return [Source(passage, PassageReader(passage.text)) for passage in passages if passage.text.strip()]


def said(claim: Claim) -> Said:
    """Return a claim, ready to be compared."""
    return Said(claim, () if claim.not_checkable else _parts(claim.text))


def whole(text: str) -> Claim:
    """Return a text as one claim."""
    return Claim(text=text, start=0, end=len(text))


def entailment_of(judgement: Judgement) -> Entailment:
    """Return a judgement's score as if it were a chance."""
    return Entailment(low=judgement.score, high=judgement.score)


def score_of(share: float) -> float:
    """Return the score of what share of a claim is said: 0.5 at `SUPPORTED`, next to nothing up to `_SILENT`."""
    if share <= _SILENT:
        return _SILENT_SCORE * share / _SILENT
    if share <= SUPPORTED:
        return _SILENT_SCORE + (0.5 - _SILENT_SCORE) * (share - _SILENT) / (SUPPORTED - _SILENT)
    return 0.5 + 0.5 * (share - SUPPORTED) / (1 - SUPPORTED)


def judged(said: Said, read: Sequence[Source]) -> Judgement:
    """Judge one claim against passages."""
    return compared(said, read).judgement


def compared(said: Said, read: Sequence[Source]) -> Compared:
    """Judge one claim against passages, and tell what speaks against it."""
    claim = said.claim
    if claim.not_checkable:
        return _plain(claim, Verdict.NOT_CHECKABLE, 0.5, claim.not_checkable)
    if not any(part.weight for part in said.parts):
        return _plain(claim, Verdict.NOT_CHECKABLE, 0.5, "the claim has no words")
    if not read:
        return _plain(claim, Verdict.UNSUPPORTED, 0.0, "there is no evidence")
    told = [_best(part, read) for part in said.parts if part.weight]
    best = _told(told)
    worst = _worst(best)
    # A sentence is denied wherever it is denied, also by a passage that adds nothing to the score.
    against = [each for each in map(_top, told) if _against(each)]
    score = min(1.0, score_of(_share(best)))
    found = [finding for each in against for finding in _against(each)]
    judgement = Judgement(
        claim=claim,
        verdict=_verdict(score, found),
        score=score,
        reason=_reason(score, found, worst.coverage),
        excerpts=tuple(dict.fromkeys(each.excerpt for each in (*best, *against) if each.excerpt is not None)),
    )
    denied = judgement.verdict is Verdict.CONTRADICTED
    return Compared(judgement, changed=denied and any(_changed(each.coverage) for each in against))


def _plain(claim: Claim, verdict: Verdict, score: float, reason: str) -> Compared:
    return Compared(Judgement(claim=claim, verdict=verdict, score=score, reason=reason))


def _parts(text: str) -> list[Sentence]:
    """Return the sentences of a claim; questions say nothing, unless there is nothing else."""
    spans = sentences(text)[:_MOST_SENTENCES] or [Span(0, len(text))]
    said = [span for span in spans if not text[span.start : span.end].rstrip("\"'”)] ").endswith(("?", "？", "؟"))]
    found = []
    for span in said or spans:
        part = text[span.start : span.end]
        found.append(prepared(part, words(part)[:_SENTENCE_WORDS]))
    return found


def _best(part: Sentence, read: Sequence[Source]) -> list[_Best]:
    """Return the best that each passage says of a sentence."""
    lacking = tuple(word.form for word in part.read.words if not word.function)
    told = []
    for source in read:
        found = _Best(Coverage(0.0, missing=lacking), part.weight)
        for stretch in source.reader.stretches(part):
            covered = coverage(part, stretch, source.reader.whole)
            if covered.score > found.coverage.score:
                found = _Best(covered, part.weight, _excerpt(source.passage, stretch))
        told.append(found)
    return told


def _told(found: Sequence[Sequence[_Best]]) -> list[_Best]:
    """Return the most that evidence says of a claim: one passage, and what others say outright beside it.

    What a passage half says counts with the rest of that passage alone, and nothing is added to a passage that says no
    sentence outright: halves of a claim that stand in texts about something else don't make a whole.

    Args:
        found: of each sentence of the claim, the best of each passage.
    """
    outright = [_outright(_top(each)) for each in found]
    options = []
    for own in zip(*found, strict=True):
        speaks = any(_outright(each) for each in own)
        options.append([other if speaks and other else each for each, other in zip(own, outright, strict=True)])
    return max(options, key=_share)


def _top(found: Sequence[_Best]) -> _Best:
    """Return the best that any passage says of a sentence; of two alike, the one that speaks against it."""
    return max(found, key=lambda each: (each.coverage.score, any(finding.there for finding in _against(each))))


def _against(best: _Best) -> Sequence[Found]:
    """Return what speaks against a sentence, if the stretch is about it."""
    return best.coverage.found if _shared(best.coverage) >= _ABOUT else ()


def _changed(covered: Coverage) -> bool:
    """Tell whether one fact of a sentence has another in its place.

    A name may be another one's where only names are missing; in a sentence that says other things it often is the same
    person's, who is `he` in the evidence.
    """
    lacking = len(covered.missing)
    for each in covered.found:
        match each.conflict:
            case Conflict.NUMBER:
                changed = bool(each.there)
            case Conflict.NAME:
                changed = each.exchanged and all(word[:1].isupper() for word in covered.missing)
            case Conflict.NEGATION:
                changed = not lacking
            case Conflict.OPPOSITE:
                changed = lacking <= 1  # the word itself
        if changed:
            return True
    return False


def _outright(best: _Best) -> _Best | None:
    """Return what says a sentence, if that sentence says something by itself."""
    return best if best.weight >= _TELLING and best.coverage.score >= SUPPORTED else None


def _worst(best: Sequence[_Best]) -> _Best:
    telling = [each for each in best if each.weight >= _TELLING] or best
    return min(telling, key=lambda each: each.coverage.score)


def _share(best: Sequence[_Best]) -> float:
    """Return what share of a claim is said; one false sentence makes it false, however much else is said."""
    total = sum(each.weight for each in best)
    share = sum(each.coverage.score * each.weight for each in best) / total
    return (share + _worst(best).coverage.score) / 2


def _excerpt(passage: Passage, stretch: Sentence) -> Excerpt:
    inside = stretch.read.words
    return Excerpt(passage_id=passage.id, start=inside[0].start, end=inside[-1].end)


def _shared(covered: Coverage) -> float:
    """Return the share of a sentence's words that evidence has, whatever speaks against it."""
    known = len(covered.matched)
    return known / max(1, known + len(covered.missing))


def _verdict(score: float, found: Sequence[Found]) -> Verdict:
    if score >= 0.5:
        return Verdict.SUPPORTED
    contradicted = [each for each in found if each.there or each.conflict is not Conflict.NAME]
    if any(each.there for each in contradicted):
        return Verdict.CONTRADICTED
    return Verdict.WEAKLY_SUPPORTED if score >= _WEAKLY else Verdict.UNSUPPORTED


_WORDING = {
    Conflict.NUMBER: "the claim says `{said}`, the evidence `{there}`",
    Conflict.NAME: "the claim names `{said}`, the evidence `{there}`",
    Conflict.NEGATION: "claim and evidence differ in whether `{said}` is denied",
    Conflict.OPPOSITE: "the claim says `{said}`, the evidence its opposite `{there}`",
}


def _reason(score: float, found: Sequence[Found], worst: Coverage) -> str:
    if found:
        first = found[0]
        wording = _WORDING[first.conflict] if first.there else "the evidence does not have `{said}`"
        return wording.format(said=first.said, there=first.there)
    if score >= 0.5:
        return "the evidence says it in nearly the same words"
    if worst.missing:
        shown = ", ".join(f"`{word}`" for word in worst.missing[:_SHOWN_WORDS])
        return f"the evidence does not have {shown}"
    return "the evidence has the words in another order"
