"""The control server's operations of drafts: policies that are being changed, until they are approved."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from checkstream.api.operation import Operation
from checkstream.control.drafts.found import Found
from checkstream.control.server.asked import Asked, DraftAsked, DraftChanged, DraftMoved, DraftRebased
from checkstream.control.server.draft_showing import DraftShown, DraftWhole, Rebased
from checkstream.control.server.drafting import Drafting
from checkstream.control.server.people import MOVES, People
from checkstream.errors import ThingUnknown
from checkstream.listen import Identity

_Number = Annotated[int, Meta(ge=1, le=2**53 - 1)]
_SECONDS, _CHECK_SECONDS = 30.0, 90.0
_VIEW = {"403": "Who asks may not do this."}
_ALSO = {"403": "Who asks may not do this.", "409": "It doesn't go with how things stand."}


class DraftsAsked(Asked, frozen=True, kw_only=True):
    """Which drafts."""

    over: bool = False
    """Also those that are withdrawn or exported."""
    most: Annotated[int, Meta(ge=1, le=1000)] = 100


class DraftWanted(Asked, frozen=True, kw_only=True):
    """Which draft."""

    draft: _Number


class DraftTextAsked(Asked, frozen=True, kw_only=True):
    """Which file of a draft."""

    draft: _Number
    path: Annotated[str, Meta(min_length=1, max_length=200)]
    version: Annotated[int, Meta(ge=0, le=2**53 - 1)] = 0
    """0: the newest."""
    of: Literal["draft", "sources"] = "draft"
    """`sources`: as it stood in the sources that the draft is held against."""


class Drafts(msgspec.Struct, frozen=True, kw_only=True):
    """Drafts, those first that were changed last."""

    drafts: tuple[DraftShown, ...]


class DraftText(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in a file."""

    text: str


class DraftsApi:
    """What people ask for."""

    def __init__(self, drafting: Drafting | None, people: People) -> None:
        """Carry it out by `drafting`; None: this server has no sources to draft from."""
        self._drafting = drafting
        self._people = people

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What can be asked."""
        checked = "What is wrong with a draft, and how does it differ from the sources?"
        seen = (
            ("/v1/drafts", "Which drafts are there?", DraftsAsked, Drafts, self._list, _SECONDS, _VIEW),
            ("/v1/drafts/{draft}", "How does a draft stand?", DraftWanted, DraftWhole, self._whole, _SECONDS, _VIEW),
            (
                "/v1/draft-texts",
                "What stands in a file?",
                DraftTextAsked,
                DraftText,
                self._text,
                _SECONDS,
                _VIEW,
            ),
            ("/v1/draft-checks", checked, DraftWanted, Found, self._check, _CHECK_SECONDS, _ALSO),
        )
        done = (
            ("/v1/drafts", "Begin a draft.", DraftAsked, DraftShown, self._begin),
            ("/v1/draft-changes", "Change files of a draft.", DraftChanged, DraftShown, self._change),
            ("/v1/draft-rebases", "Take the sources over as they are now.", DraftRebased, Rebased, self._rebase),
            ("/v1/draft-moves", "Propose, approve, refuse, withdraw or export.", DraftMoved, DraftShown, self._move),
        )
        return (
            *(
                Operation("GET", path, summary, asks, (gives,), work, seconds, also=also)
                for path, summary, asks, gives, work, seconds, also in seen
            ),
            *(
                Operation("POST", path, summary, asks, (gives,), work, _CHECK_SECONDS, also=_ALSO)
                for path, summary, asks, gives, work in done
            ),
        )

    @property
    def _drafts(self) -> Drafting:
        if self._drafting is None:
            raise ThingUnknown("this server drafts no policies; name their folder as `policies.sources` in its file")
        return self._drafting

    async def _list(self, asked: DraftsAsked, caller: Identity) -> Drafts:
        self._people.asker(caller, "view")
        return Drafts(drafts=await self._drafts.all(going_on=not asked.over, most=asked.most))

    async def _whole(self, asked: DraftWanted, caller: Identity) -> DraftWhole:
        self._people.asker(caller, "view")
        return await self._drafts.whole(asked.draft)

    async def _text(self, asked: DraftTextAsked, caller: Identity) -> DraftText:
        self._people.asker(caller, "view")
        drafts, before = self._drafts, asked.of == "sources"
        return DraftText(text=await drafts.text(asked.draft, asked.version, asked.path, before=before))

    async def _check(self, asked: DraftWanted, caller: Identity) -> Found:
        self._people.asker(caller, "view")
        return await self._drafts.check(asked.draft)

    async def _begin(self, asked: DraftAsked, caller: Identity) -> DraftShown:
        return await self._drafts.begin(self._people.asker(caller, "draft"), asked)

    async def _change(self, asked: DraftChanged, caller: Identity) -> DraftShown:
        return await self._drafts.change(self._people.asker(caller, "draft"), asked)

    async def _rebase(self, asked: DraftRebased, caller: Identity) -> Rebased:
        return await self._drafts.rebase(self._people.asker(caller, "draft"), asked)

    async def _move(self, asked: DraftMoved, caller: Identity) -> DraftShown:
        return await self._drafts.move(self._people.asker(caller, MOVES[asked.move]), asked)
