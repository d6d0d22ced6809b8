"""Rollouts: who asks for which bundle, who approves, how it goes round, and whether it does harm."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from aiohttp.web import BaseRequest, Response, StreamResponse

from checkstream.console.pages import Frame, Pages
from checkstream.console.serving.forms import Form, Given, sent
from checkstream.console.serving.shell import Handler, Shell, Topic, see_other
from checkstream.console.views.rollouts import choices_of, rollout_view
from checkstream.control.server.acts import Acts
from checkstream.control.server.asked import RolloutAsked, RolloutMoved
from checkstream.control.server.fleets import Fleets
from checkstream.control.server.people import Act, Asker
from checkstream.control.server.showing import RolloutShown

_MOST = 50
_DONE: Mapping[str, str] = {
    "rollout": "It is asked for. Nothing changes before another person has approved of it.",
    "approve": "It is approved, and has begun.",
    "promote": "It goes on to the next ring.",
    "rollback": "It is taken back.",
}


class RolloutPages(Topic):
    """Shows rollouts, and takes what people decide of them."""

    def __init__(self, shell: Shell, fleets: Fleets, acts: Acts) -> None:
        """Ask nothing yet."""
        self._shell = shell
        self._fleets = fleets
        self._acts = acts
        self.table = {
            ("GET", "rollouts"): self._list,
            ("GET", "rollouts/"): self._show,
            ("POST", "proposals"): self._propose,
            ("POST", "approvals"): self._moving("approve", acts.approve),
            ("POST", "promotions"): self._moving("promote", acts.promote),
            ("POST", "rollbacks"): self._moving("rollback", acts.roll_back),
        }

    async def _list(self, request: BaseRequest, _: str) -> StreamResponse:
        names = self._fleets.names
        if len(names) == 1:
            return see_other(f"rollouts/{names[0]}")
        newest = [(name, await self._fleets.rollouts(name, 1)) for name in names]
        rows = sorted(newest, key=lambda row: not (row[1] and row[1][0].stage in ("proposed", "running")))
        return await self._shell.rendered(request, "control/rollouts", "rollouts", rows=rows)

    async def _show(self, request: BaseRequest, name: str) -> StreamResponse:
        return await self._page(request, name)

    async def _page(
        self, request: BaseRequest, name: str, fault: str = "", given: Given | None = None, status: int = 200
    ) -> Response:
        if name not in self._fleets.names:
            return await self._shell.missing(request)
        shown, history = await self._fleets.shown(name), await self._fleets.rollouts(name, _MOST)
        compared = await self._acts.compared(name)
        done = _DONE.get(request.query.get("done", ""), "")

        def make(pages: Pages, frame: Frame) -> bytes:
            acts: tuple[Act, ...] = ("approve", "promote", "rollback")
            who = "" if frame.person is None else frame.person.name
            choices = choices_of(shown.rollout, who, {act: frame.why_not(act) for act in acts})
            view = rollout_view(shown, history, compared, choices)
            return pages.render("control/rollout", frame, view=view, fault=fault, done=done, given=given or {})

        return await self._shell.page(request, "rollouts", make, status)

    async def _propose(self, request: BaseRequest, _: str) -> StreamResponse:
        async def do(who: Asker, asked: RolloutAsked) -> Response:
            await self._acts.propose(who, asked.fleet, asked.version, asked.reason)
            return see_other(f"rollouts/{asked.fleet}", {"done": "rollout"})

        async def again(fault: str, given: Given, status: int) -> Response:
            return await self._again(request, given.get("fleet", ""), fault, given, status)

        return await sent(self._shell, request, Form("rollout", RolloutAsked, do), again)

    def _moving(self, act: Act, move: Callable[[Asker, int, str], Awaitable[RolloutShown]]) -> Handler:
        async def do(who: Asker, asked: RolloutMoved) -> Response:
            moved = await move(who, asked.rollout, asked.reason)
            return see_other(f"rollouts/{moved.fleet}", {"done": act})

        async def handle(request: BaseRequest, _: str) -> StreamResponse:
            async def again(fault: str, given: Given, status: int) -> Response:
                return await self._again(request, request.query.get("fleet", ""), fault, given, status)

            return await sent(self._shell, request, Form(act, RolloutMoved, do), again)

        return handle

    async def _again(self, request: BaseRequest, fleet: str, fault: str, given: Given, status: int) -> Response:
        if fleet not in self._fleets.names:
            return await self._shell.error(request, status, fault)
        return await self._page(request, fleet, fault, given, status)
