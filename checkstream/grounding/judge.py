"""The verifier that asks a language model. A shell: it waits, bounds, degrades; prompts and formulas are elsewhere.

What fails is told in the result: a claim that the judge could not judge goes to the fallback, if there is one, and is
listed as degraded. INVARIANT: control flow depends on the form of a reply alone, never on what an answer or a document
says; a reply that is no verdict is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from checkstream.errors import ChatError
from checkstream.grounding import prompts
from checkstream.grounding.chat import Chat
from checkstream.grounding.entailment import TEXT_ELSE, p_yes, p_yes_of_text
from checkstream.grounding.replies import first_object
from checkstream.grounding.terms import Claim, Entailment, Excerpt, Judgement, Passage, Verdict, Verifier

MAX_CLAIMS = 64
"""Of one answer."""
_SCORES: Mapping[Verdict, float] = {
    Verdict.SUPPORTED: 0.95,
    Verdict.WEAKLY_SUPPORTED: 0.6,
    Verdict.UNSUPPORTED: 0.1,
    Verdict.CONTRADICTED: 0.02,
}
"""A judge's words as scores; it gives no probabilities for them."""
_YES_TOKENS, _VERDICT_TOKENS, _LIST_TOKENS = 4, 400, 2000
_REASON_CHARS = 1000
_Asked = TypeVar("_Asked")
_Said = TypeVar("_Said")


class JudgeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much a judge is shown."""

    evidence_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 6000
    """Of the passages of one question, four characters each; what is behind is not shown, and the result says so.
    Entailment of more is an error: with and without what a claim cites, other parts would be cut off."""


class LlmJudge:
    """Judges claims, asks for entailment, and answers the two questions of RAG verification."""

    def __init__(self, model: Chat, settings: JudgeSettings | None = None, fallback: Verifier | None = None) -> None:
        """Judge with `model`.

        Args:
            model: asked; whoever opened it closes it.
            settings: how much it is shown.
            fallback: judges what the model fails to judge.
        """
        self._model = model
        self._settings = settings or JudgeSettings()
        self._fallback = fallback
        self.name = f"judge:{model.model}"
        self.version = "1"

    async def judge(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Judgement]:
        """Judge claims of one answer against the same passages; without any, nothing is supported."""
        known = [passage for passage in passages if passage.text.strip()]

        async def one(claim: Claim) -> Judgement:
            if claim.not_checkable:
                return Judgement(claim=claim, verdict=Verdict.NOT_CHECKABLE, score=0.5, reason=claim.not_checkable)
            if not known:
                return Judgement(claim=claim, verdict=Verdict.UNSUPPORTED, score=0.0, reason="there is no evidence")
            return await self._judged(claim, known)

        return await _each(claims, one)

    async def entailed(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        """Return for each (context, claim) the chance of YES: by its odds, else by the first word."""

        async def one(pair: tuple[str, str]) -> Entailment:
            context, claim = pair
            if not context.strip():
                return Entailment(low=0.0, high=0.0)
            if len(context) > self._settings.evidence_tokens * prompts.CHARS_PER_TOKEN:
                most = self._settings.evidence_tokens
                return Entailment(
                    low=0.0, high=1.0, error=f"the evidence has over {most} tokens; give fewer or shorter documents"
                )
            prompt = prompts.entailment(context, claim)
            try:
                reply = await self._model.ask(prompt.user, system=prompt.system, max_tokens=_YES_TOKENS, odds=True)
            except ChatError as error:
                return Entailment(low=0.0, high=1.0, error=str(error))
            if not reply.first_words and not reply.text.strip():
                return Entailment(low=0.0, high=1.0, error=f"model `{self._model.model}` said nothing")
            told, by_odds = p_yes_of_text(reply.text), p_yes(reply.first_words)
            unread = by_odds.error and (not reply.first_words or told.low != TEXT_ELSE)
            return told if unread else by_odds

        return await _each(pairs, one)

    async def alignment(self, query: str, answer: str, passages: Sequence[Passage]) -> str | None:
        """Return the reply to how well an answer agrees with passages; None when the model failed."""
        prompt = prompts.alignment(query, answer, passages, self._settings.evidence_tokens)
        return await self._said(prompt, prompts.ALIGNMENT_SCHEMA, _VERDICT_TOKENS)

    async def facts(self, answer: str, passages: Sequence[Passage]) -> str | None:
        """Return the reply to which claims of an answer the passages verify; None when the model failed."""
        prompt = prompts.facts(answer, passages, self._settings.evidence_tokens)
        return await self._said(prompt, prompts.FACTS_SCHEMA, _LIST_TOKENS)

    async def claims(self, answer: str) -> list[Claim]:
        """Return the atomic facts of an answer, in the model's own words; where they stand is found where it can be.

        Raises:
            ChatError: the model failed, or its reply lists nothing that can be read.
        """
        if not answer.strip():
            return []
        prompt = prompts.claims(answer, MAX_CLAIMS)
        reply = await self._model.ask(
            prompt.user, system=prompt.system, max_tokens=_LIST_TOKENS, schema=prompts.CLAIMS_SCHEMA
        )
        said = first_object(reply.text)
        listed = said.get("claims") if said else None
        if not isinstance(listed, list):
            name = self._model.model
            raise ChatError(f"model `{name}` listed no claims; ask another one", reason="garbage")
        texts = [each.get("claim") if isinstance(each, Mapping) else each for each in listed]
        whole = dict.fromkeys(" ".join(text.split()) for text in texts if isinstance(text, str) and text.strip())
        return [_placed(text, answer) for text in list(whole)[:MAX_CLAIMS]]

    async def _said(self, prompt: prompts.Prompt, schema: Mapping[str, object], tokens: int) -> str | None:
        try:
            reply = await self._model.ask(prompt.user, system=prompt.system, max_tokens=tokens, schema=schema)
        except ChatError:
            return None
        return reply.text

    async def _judged(self, claim: Claim, passages: Sequence[Passage]) -> Judgement:
        prompt = prompts.verdict(claim.text, passages, self._settings.evidence_tokens)
        shortened = tuple(f"shortened:{id_}" for id_ in prompt.shortened)
        try:
            reply = await self._model.ask(
                prompt.user, system=prompt.system, max_tokens=_VERDICT_TOKENS, schema=prompts.VERDICT_SCHEMA
            )
        except ChatError as error:
            return await self._without(claim, passages, f"judge:{error.reason}", str(error))
        said = first_object(reply.text) or {}
        verdict = _verdict(said.get("verdict"))
        if verdict is None:
            reason = f"model `{self._model.model}` gave no verdict that can be read"
            return await self._without(claim, passages, "judge:garbage", reason)
        return Judgement(
            claim=claim,
            verdict=verdict,
            score=_SCORES[verdict],
            reason=_reason(said.get("reason")) or f"the judge gave no reason for `{verdict}`",
            excerpts=_excerpts(said.get("passages"), passages),
            degraded=shortened,
        )

    async def _without(self, claim: Claim, passages: Sequence[Passage], what: str, why: str) -> Judgement:
        """Judge without the model: by the fallback, or not at all."""
        if self._fallback is None:
            return Judgement(claim=claim, verdict=Verdict.UNSUPPORTED, score=0.5, reason=why, degraded=(what,))
        (found,) = await self._fallback.judge([claim], passages)
        return msgspec.structs.replace(found, degraded=(what, *found.degraded))


async def _each(asked: Sequence[_Asked], work: Callable[[_Asked], Awaitable[_Said]]) -> list[_Said]:
    """Return what comes of each, in order; how many run at once is the model's to bound."""
    async with asyncio.TaskGroup() as group:

        async def one(item: _Asked) -> _Said:
            return await work(item)

        tasks = [group.create_task(one(item)) for item in asked]
    return [task.result() for task in tasks]


def _verdict(value: Any) -> Verdict | None:
    if not isinstance(value, str):
        return None
    word = value.strip(" `\"'.").casefold().replace(" ", "_").replace("-", "_")
    return Verdict(word) if word in prompts.VERDICTS else None


def _reason(value: Any) -> str:
    return " ".join(value.split())[:_REASON_CHARS] if isinstance(value, str) else ""


def _excerpts(value: Any, passages: Sequence[Passage]) -> tuple[Excerpt, ...]:
    """Return the passages that a judge named by number, whole; numbers of none are ignored."""
    numbers = [each for each in value if type(each) is int] if isinstance(value, list) else []
    named = dict.fromkeys(number for number in numbers if 1 <= number <= len(passages))
    return tuple(
        Excerpt(passage_id=passages[number - 1].id, start=0, end=len(passages[number - 1].text)) for number in named
    )


def _placed(text: str, answer: str) -> Claim:
    """Return a claim with its place in the answer; all of the answer where it stands in other words."""
    start = answer.find(text)
    return Claim(text=text, start=max(start, 0), end=start + len(text) if start >= 0 else len(answer))
