"""The control server's operations of review: what waits for people's word, what they say, what it comes to."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from checkstream.api.operation import Operation
from checkstream.control.review.judging import Outcome
from checkstream.control.review.terms import Item, Word
from checkstream.control.server.asked import Asked, FlagAsked, LabelAsked
from checkstream.control.server.people import People
from checkstream.control.server.reviewing import Figures, Open, Reviewing
from checkstream.listen import Identity

_SECONDS = 30.0


class ReviewsAsked(Asked, frozen=True, kw_only=True):
    """What waits for the word of who asks."""

    rule: Annotated[str, Meta(max_length=200)] = ""
    """Of this rule; empty: of all."""
    most: Annotated[int, Meta(ge=1, le=200)] = 20


class Reviews(msgspec.Struct, frozen=True, kw_only=True):
    """What waits, the oldest first."""

    items: tuple[Open, ...]


class Flagged(msgspec.Struct, frozen=True, kw_only=True):
    """The item that it became, or was."""

    item: str


class FiguresAsked(Asked, frozen=True, kw_only=True):
    """The query of `GET /v1/reviews/figures`: nothing."""


class SettledAsked(Asked, frozen=True, kw_only=True):
    """The query of `GET /v1/reviews/settled`: nothing."""


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What was settled in the last twelve weeks."""

    items: tuple[Item, ...]
    words: dict[str, dict[str, Word]]
    """Item -> person -> word."""


class ReviewsApi:
    """What people ask of reviews."""

    def __init__(self, reviewing: Reviewing, people: People) -> None:
        """Ask `reviewing`."""
        self._reviewing = reviewing
        self._people = people

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What can be asked."""
        also = {"403": "Who asks may not do this."}
        get = (
            ("/v1/reviews", "What waits for my word?", ReviewsAsked, Reviews, self._open),
            ("/v1/reviews/figures", "How often were rules right?", FiguresAsked, Figures, self._figures),
            ("/v1/reviews/settled", "What has been settled, and by whom?", SettledAsked, Settled, self._settled),
        )
        post = (
            ("/v1/reviews/labels", "Say whether a rule was right.", LabelAsked, Outcome, self._label),
            ("/v1/reviews/flags", "Have people look at what a rule did.", FlagAsked, Flagged, self._flag),
        )
        return (
            *(
                Operation("GET", path, summary, asks, (gives,), work, _SECONDS, also=also)
                for path, summary, asks, gives, work in get
            ),
            *(
                Operation("POST", path, summary, asks, (gives,), work, _SECONDS, also={**also, "409": "It is full."})
                for path, summary, asks, gives, work in post
            ),
        )

    async def _open(self, asked: ReviewsAsked, caller: Identity) -> Reviews:
        who = self._people.asker(caller, "view")
        return Reviews(items=tuple(await self._reviewing.open(who, asked.rule, asked.most)))

    async def _label(self, asked: LabelAsked, caller: Identity) -> Outcome:
        return await self._reviewing.label(self._people.asker(caller, "review"), asked.item, asked.word, asked.note)

    async def _flag(self, asked: FlagAsked, caller: Identity) -> Flagged:
        self._people.asker(caller, "review")
        return Flagged(item=await self._reviewing.flag(asked.stream, asked.rule))

    async def _figures(self, _: FiguresAsked, caller: Identity) -> Figures:
        self._people.asker(caller, "view")
        return await self._reviewing.figures()

    async def _settled(self, _: SettledAsked, caller: Identity) -> Settled:
        self._people.asker(caller, "view")
        items, words = await self._reviewing.settled()
        return Settled(items=tuple(items), words={item.id: words[item.id] for item in items})
