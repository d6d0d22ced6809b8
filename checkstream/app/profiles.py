"""The profiles that score answers in the background, by the names that routes use."""

from __future__ import annotations

import asyncio

import msgspec

from checkstream.errors import JobError
from checkstream.grounding.risk import analyze
from checkstream.jobs import Assessment, Exchange, Scorer


def profiles() -> dict[str, Scorer]:
    """Return every profile that this version has."""
    return {"watchdog": Scorer(version="1", assess=_watchdog)}


async def _watchdog(exchange: Exchange) -> Assessment:
    """Score by the risk engine: the question is what the user said, the evidence what the request brought along.

    Raises:
        JobError: the engine failed; its cautious default is for callers who wait, not for the record.
    """
    prompt = "\n".join(message.text for message in exchange.messages if message.role == "user")
    evidence = [{"content": passage.text, "metadata": dict(passage.metadata)} for passage in exchange.documents]
    analysis = await asyncio.to_thread(analyze, prompt, exchange.answer, evidence or None)
    if analysis.error is not None:
        raise JobError(f"the answer can't be analysed: {analysis.error}")
    return Assessment(risk=float(analysis.risk_score), report=msgspec.json.encode(analysis))
