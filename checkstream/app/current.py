"""What is in force now, and what was before and is still used: a stream keeps what it started with (G25)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from checkstream.app.force import InForce, Loaded, put_in_force
from checkstream.app.models import OpenModel
from checkstream.proxy.upstream import UpstreamClient
from checkstream.scoring.scorer import Observer, Scorer


class Current:
    """Holds what is in force."""

    def __init__(self, force: InForce) -> None:
        """Begin with what is in force first."""
        self.force = force
        self._clients: list[UpstreamClient] = []
        self._scorers: list[Scorer] = []

    def replace(self, force: InForce) -> None:
        """Put another in force; what only the old one uses is closed when nobody uses it any more (`free`)."""
        before, self.force = self.force, force
        kept = set(map(id, force.upstreams.values()))
        self._clients += [client for client in before.upstreams.values() if id(client) not in kept]
        if force.scorer is not before.scorer:
            self._scorers.append(before.scorer)

    async def forget(self, force: InForce) -> None:
        """Close what was never in force: as much of it as nothing that is in force uses."""
        kept = set(map(id, self.force.upstreams.values()))
        if force.scorer is not self.force.scorer:
            await force.scorer.close()
        for client in [client for client in force.upstreams.values() if id(client) not in kept]:
            await client.close()

    async def free(self, uses: Callable[[Scorer], bool]) -> None:
        """Close what was in force once and is not used any more; `uses` tells it of scorers."""
        for client in [client for client in self._clients if not client.running]:
            self._clients.remove(client)
            await client.close()
        for scorer in [scorer for scorer in self._scorers if not uses(scorer)]:
            self._scorers.remove(scorer)
            await scorer.close()

    async def close(self) -> None:
        """Close all of it."""
        for scorer in (self.force.scorer, *self._scorers):
            await scorer.close()
        for client in (*self.force.upstreams.values(), *self._clients):
            await client.close()


async def enforced(
    loaded: Loaded, models: tuple[OpenModel, ...], before: InForce | None, observer: Observer
) -> InForce:
    """Return what was loaded, ready to be used, with a scorer of its own unless the models are those of before.

    Raises:
        ConfigError: as `put_in_force`.
    """
    if before is not None and list(map(id, models)) == list(map(id, before.models)):
        return await asyncio.to_thread(put_in_force, loaded, models, before.scorer, before)
    sessions = {model.source.entry.name: model.session for model in models}
    scorer = Scorer([model.model for model in models], lambda model: sessions[model.name], observer=observer)
    try:
        return await asyncio.to_thread(put_in_force, loaded, models, scorer, before)
    except BaseException:
        await scorer.close()
        raise
