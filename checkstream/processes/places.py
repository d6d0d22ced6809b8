"""Who serves the callers of each place: its own worker, or while there is none another one besides its own."""

from __future__ import annotations

import contextlib

from checkstream.errors import NotReady
from checkstream.processes.child import Child


class Places:
    """INVARIANT: as long as some worker serves, each place is served, or has been asked for."""

    def __init__(self) -> None:
        """Begin with no places."""
        self.count = 0
        """How many there are: an elder may have had more than there are workers."""
        self._serving: dict[int, Child] = {}
        """Slot -> whose it is."""
        self._adopted: dict[int, Child] = {}
        """Slot whose worker is gone -> who serves its callers meanwhile."""
        self._closed = False

    def able(self) -> list[Child]:
        """Return the workers that callers reach."""
        return [child for child in self._serving.values() if child.serves]

    def close(self) -> None:
        """Give no place to anybody any more: all are to end."""
        self._closed = True

    def take(self, child: Child) -> None:
        """Let a worker that is ready have its place."""
        self._serving[child.slot] = child

    async def share_out(self, child: Child) -> None:
        """Have others leave the place of a worker that has it now, and the rest served."""
        helper = self._adopted.pop(child.slot, None)
        if helper is not None:
            with contextlib.suppress(NotReady):
                await helper.ask("release", child.slot)
        await self._adopt()

    async def leave(self, child: Child) -> None:
        """Have others serve the places of a worker that has ended, or takes nothing new."""
        if self._serving.get(child.slot) is child:
            del self._serving[child.slot]
        for slot in [slot for slot, helper in self._adopted.items() if helper is child]:
            del self._adopted[slot]
        await self._adopt()

    async def _adopt(self) -> None:
        """Have each place served by somebody."""
        for slot in range(self.count):
            able = self.able()
            if slot in self._serving or slot in self._adopted or not able or self._closed:
                continue
            helper = min(able, key=lambda child: sum(each is child for each in self._adopted.values()))
            self._adopted[slot] = helper
            try:
                await helper.ask("adopt", slot)
            except NotReady:  # where it has ended, too, this is done anew
                if self._adopted.get(slot) is helper:
                    del self._adopted[slot]
