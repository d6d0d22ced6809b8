"""Cases of the corpus through the pump, from socket to socket: the caller gets the bytes of the golden files."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from checkstream.core import commands as do
from checkstream.core.events import Scored
from checkstream.core.exchange.guard import Guard
from checkstream.errors import ScoringError
from checkstream.scoring import Asked, Checked
from tests.playbook import digest
from tests.relayed import SURFACE, Rig, model
from tests.transcripts.case import Audited, Case, cases


class Answering:
    """Classifiers that answer as the case says: at once, or each when the loop has been round."""

    def __init__(self, case: Case, *, later: bool) -> None:
        self.case = case
        self.later = later

    def wait_s(self, share: str, chars: int) -> float:  # noqa: ARG002 - nobody is asked that here
        raise AssertionError

    def ask(self, classifiers: tuple[str, ...], text: str, deadline_ms: float, **more: Any) -> Asked:  # noqa: ARG002
        said = self.case.answer(do.Score(1, classifiers, text, deadline_ms))
        if isinstance(said, Scored):
            return Answered(Checked(said.scores), later=self.later)
        raise ScoringError("as the case says", reason="crash")


class Answered(Asked):
    def __init__(self, checked: Checked, *, later: bool) -> None:
        super().__init__(())
        self.checked = checked
        self.later = later

    @property
    def settled(self) -> bool:
        return not self.later

    def answered(self) -> Checked:
        return self.checked

    async def answer(self) -> Checked:
        await asyncio.sleep(0)
        return self.checked


def streamed() -> list[Case]:
    """Return the cases that are one stream to its end over the API that the rig speaks."""
    found = []
    for folder in cases():
        case = Case(folder)
        plain = case.script.ends == "closed" and not case.script.overtakes and case.again is None
        failing = any(answer.failed is not None for answer in case.answers)
        chat = case.surface.name == SURFACE.name and case.script.method == "POST" and case.script.status == 200
        if plain and chat and case.streaming and not failing:
            found.append(case)
    return found


CASES = streamed()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.folder.name)
async def test_g02_g03_the_caller_gets_the_golden_bytes_however_they_come(case: Case) -> None:
    (golden,) = case.folder.glob("downstream.*")
    audited = msgspec.json.decode((case.folder / "audit.json").read_bytes(), type=Audited)
    cuts = [cut for cut in case.script.cuts if cut in {"split-0", "split-1"}]
    for later, cut in enumerate(cuts or case.script.cuts[:1]):
        pieces = case.pieces(case.upstream or b"", cut)

        async def answer(request: web.Request, pieces: list[bytes] = pieces) -> web.StreamResponse:
            response = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await response.prepare(request)
            for piece in pieces:
                await response.write(piece)
                await asyncio.sleep(0)
            return response

        rig = Rig(lambda _: [])
        guard: Any = Guard(surface=SURFACE, plan=case.plan(), digest=digest)
        rig.guard, rig.scorer = guard, Answering(case, later=bool(later))  # type: ignore[assignment]
        async with (
            model(answer) as upstream,
            rig.serving(upstream) as url,
            aiohttp.ClientSession() as session,
            session.post(url, data=case.request) as response,
        ):
            assert await response.read() == golden.read_bytes(), cut
        (record,) = rig.ledger.records
        assert record.outcome == audited.record["outcome"], cut


def test_the_corpus_has_cases_for_the_pump() -> None:
    assert len(CASES) > 80
