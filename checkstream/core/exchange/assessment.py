"""Whether an answer is held against evidence while its caller waits, and what follows from what is said of it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from checkstream.core.events import Assessed
from checkstream.core.exchange.plan import Plan
from checkstream.core.wire.surface import Request

MOST_CHARS = 32_768
"""A longer answer is not held against anything while its caller waits: it would take seconds, and from all streams."""
_RAG = "rag"


class Assessment:
    """The assessment of one answer: wanted or not, asked for, answered."""

    def __init__(self, plan: Plan) -> None:
        """Start before the request, wanting nothing."""
        self.profiles: tuple[str, ...] = ()
        """Who is asked; nobody: nothing is wanted."""
        self.asked = False
        self._settings = plan.assessing
        self._fail_closed = plan.fail_mode == "closed"
        self._said: Assessed | None = None

    def read(self, request: Request) -> None:
        """Settle who is asked about the answer to a request."""
        settings = self._settings
        if settings is None:
            return
        asks = request.extension.verify if request.extension is not None else None
        wanted = settings.always if asks is None or settings.block is not None else asks
        asked = settings.profiles if wanted else ()
        if request.verification and _RAG not in asked:
            asked = (*asked, _RAG)
        elif request.verification is False and settings.block is None:
            asked = tuple(name for name in asked if name != _RAG)
        self.profiles = asked

    @property
    def waits(self) -> bool:
        """An answer is wanted, and has not been asked for."""
        return bool(self.profiles) and not self.asked

    @property
    def blocks(self) -> bool:
        """An answer that is asked for whole may be blocked."""
        return bool(self.profiles) and self._settings is not None and self._settings.block is not None

    @property
    def deadline_ms(self) -> float:
        """How long the caller waits at most."""
        return self._settings.deadline_ms if self._settings is not None else 0.0

    def take(self, said: Assessed) -> None:
        """Take what the profiles said."""
        self.asked = True
        self._said = said

    def drop(self) -> None:
        """Want nothing any more: there is nothing to assess."""
        self.profiles = ()

    @property
    def members(self) -> Mapping[str, msgspec.Raw]:
        """What the reply carries of it."""
        return self._said.members if self._said is not None else {}

    @property
    def risks(self) -> dict[str, float]:
        """Profile -> what it said."""
        return self._said.risks if self._said is not None else {}

    @property
    def failed(self) -> tuple[str, ...]:
        """Profiles that could not say anything."""
        return self._said.failed if self._said is not None else ()

    @property
    def refusal(self) -> str | None:
        """Why a whole answer is blocked; None: it isn't."""
        block = self._settings.block if self._settings is not None else None
        if block is None or not self.profiles:
            return None
        risk = max(self.risks.values(), default=0.0)
        if risk >= block:
            return f"the answer was blocked: its risk is {risk:g} of 100, and this route blocks from {block:g}"
        if self.failed and self._fail_closed:
            return "the answer was blocked: it could not be held against its evidence in time; try again later"
        return None
