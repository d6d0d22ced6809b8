"""What the items of one run gave, kept as they come: a run that was cut off goes on from there."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec

from checkstream.gate.ledger import Ledger
from checkstream.gate.spoken import spoken
from checkstream.gate.terms import Said

_Made = TypeVar("_Made")


class Kept:
    """The memory of one run (`steps.Memory`), in a ledger."""

    def __init__(self, ledger: Ledger, run_id: str, now: float) -> None:
        """Keep what the items of `run_id` give; `now` is when it began, for the search by time."""
        self._ledger = ledger
        self._run_id = run_id
        self._now = now

    async def recall(self, step: str, item: str, kind: type[_Made]) -> _Made | None:
        """Return what an item gave before a cut-off."""
        found = await asyncio.to_thread(self._ledger.recall, self._run_id, step, item)
        return None if found is None else msgspec.json.decode(found, type=kind)

    async def keep(self, step: str, item: str, value: object) -> None:
        """Keep what an item gave, before anything is built on it."""
        made = msgspec.json.encode(value).decode()
        said = [
            Said(run_id=self._run_id, kind=kind, item=name, at=self._now, text=text)
            for kind, name, text in spoken(value)
        ]
        await asyncio.to_thread(self._ledger.keep, (self._run_id, step, item), made, said, self._now)
