from __future__ import annotations

import threading
from collections.abc import Sequence

from checkstream.app.verifiers import Threaded, open_verifiers
from checkstream.grounding.claims import claims
from checkstream.grounding.terms import Claim, Entailment, Judgement, Passage, Verdict

ANSWER = "Goods can be returned within 30 days of delivery."


async def test_the_embedded_verifier_judges_and_answers_for_rag_verification() -> None:
    async with open_verifiers() as verifiers:
        (found,) = await verifiers.verifier.judge(claims(ANSWER), [Passage(id="p", text=ANSWER)])
        (chance,) = await verifiers.verifier.entailed([(ANSWER, ANSWER)])
        reply = await verifiers.judge.alignment("q", ANSWER, [Passage(id="p", text=ANSWER)])
    assert (found.verdict, chance.low > 0.9, reply is not None) == (Verdict.SUPPORTED, True, True)


class Where:
    name, version = "where", "7"

    def __init__(self) -> None:
        self.threads: list[int] = []

    async def judge(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Judgement]:
        del claims, passages
        self.threads.append(threading.get_ident())
        return []

    async def entailed(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        del pairs
        self.threads.append(threading.get_ident())
        return []


async def test_the_event_loop_does_none_of_the_work() -> None:
    from concurrent.futures import ThreadPoolExecutor

    where = Where()
    with ThreadPoolExecutor(1) as threads:
        moved = Threaded(where, threads)
        assert (moved.name, moved.version) == ("where", "7")
        await moved.judge([], [])
        await moved.entailed([])
    assert len(where.threads) == 2
    assert threading.get_ident() not in where.threads
