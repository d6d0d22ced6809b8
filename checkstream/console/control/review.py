"""Review: what waits for somebody's word, what they say, how often rules were right, and what is taken home of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from aiohttp import hdrs
from aiohttp.web import BaseRequest, Response, StreamResponse
from msgspec import Meta

from checkstream.console.pages import Frame, Pages
from checkstream.console.serving.forms import Form, Given, sent
from checkstream.console.serving.shell import Shell, Topic, see_other
from checkstream.console.views.review import FORMS, MOST, export, labels, review
from checkstream.control.review.exporting import texts_of
from checkstream.control.server.asked import Asked, FlagAsked, LabelAsked
from checkstream.control.server.people import Asker
from checkstream.control.server.reviewing import Reviewing
from checkstream.errors import RequestInvalid

_DONE: Mapping[str, str] = {
    "labelled": "Your word is kept. It is settled when another says the same; you can say otherwise until then.",
    "flagged": "It waits here now, for two people to say whether the rule was right.",
    "settled": "Two people say the same now, so it is settled.",
}
_SPOKEN = 20


class FlagForm(FlagAsked, frozen=True, kw_only=True):
    """A finding to be looked at, and the page that it was seen on."""

    back: Annotated[str, Meta(max_length=200, pattern=r"\A[a-z0-9.~/-]*\Z")] = ""
    """`NODE/CHAIN/NUMBER` of its record."""


class ExportForm(Asked, frozen=True, kw_only=True):
    """What is to be made of settled items."""

    form: Literal["cases", "rows"]
    texts: Annotated[str, Meta(min_length=1, max_length=250_000)]
    """Lines of JSON with `stream` and `text`."""


class ReviewPages(Topic):
    """Shows what waits, and takes what people say."""

    def __init__(self, shell: Shell, reviewing: Reviewing) -> None:
        """Ask nothing yet."""
        self._shell = shell
        self._reviewing = reviewing
        self.table = {
            ("GET", "review"): self._show,
            ("GET", "review/labels.jsonl"): self._labels,
            ("POST", "labels"): self._label,
            ("POST", "flags"): self._flag,
            ("POST", "exports"): self._export,
        }

    async def _show(self, request: BaseRequest, _: str) -> StreamResponse:
        return await self._page(request)

    async def _page(
        self, request: BaseRequest, fault: str = "", given: Given | None = None, status: int = 200
    ) -> Response:
        rule, done = request.query.get("rule", "").strip()[:200], _DONE.get(request.query.get("done", ""), "")
        who = self._shell.asker(request, "view")
        waiting = await self._reviewing.open(who, rule, MOST)
        figures, spoken = await self._reviewing.figures(), await self._reviewing.spoken(_SPOKEN)

        def make(pages: Pages, frame: Frame) -> bytes:
            view = review(rule, waiting, figures, spoken)
            return pages.render("control/review", frame, view=view, fault=fault, done=done, given=given or {})

        return await self._shell.page(request, "review", make, status)

    async def _label(self, request: BaseRequest, _: str) -> StreamResponse:
        async def do(who: Asker, asked: LabelAsked) -> Response:
            come = await self._reviewing.label(who, asked.item, asked.word, asked.note)
            return see_other("review", {"done": "settled" if come.state == "settled" else "labelled"})

        async def again(fault: str, given: Given, status: int) -> Response:
            return await self._page(request, fault, given, status)

        return await sent(self._shell, request, Form("review", LabelAsked, do), again)

    async def _flag(self, request: BaseRequest, _: str) -> StreamResponse:
        async def do(_: Asker, asked: FlagForm) -> Response:
            await self._reviewing.flag(asked.stream, asked.rule)
            return see_other(f"exchanges/{asked.back}" if asked.back else "review", {"done": "flagged"})

        async def again(fault: str, _: Given, status: int) -> Response:
            return await self._shell.error(request, status, fault)

        return await sent(self._shell, request, Form("review", FlagForm, do), again)

    async def _labels(self, request: BaseRequest, _: str) -> StreamResponse:
        self._shell.asker(request, "view")
        items, words = await self._reviewing.settled()
        body = await self._shell.beside(lambda: labels(items, words))
        return _download(body, "labels.jsonl", "application/jsonl")

    async def _export(self, request: BaseRequest, _: str) -> StreamResponse:
        async def do(_: Asker, asked: ExportForm) -> Response:
            items, words = await self._reviewing.settled()
            made = await self._shell.beside(lambda: export(asked.form, items, words, texts_of(asked.texts)))
            if not made.kept:
                raise RequestInvalid(
                    f"nothing can be made of it: {made.left_out} settled findings are unsure, or of exchanges that are "
                    "not among the texts"
                )
            return _download(made.content, *FORMS[asked.form])

        async def again(fault: str, given: Given, status: int) -> Response:
            return await self._page(request, fault, given, status)

        return await sent(self._shell, request, Form("view", ExportForm, do), again)


def _download(body: bytes, name: str, kind: str) -> Response:
    headers = {hdrs.CONTENT_TYPE: f"{kind}; charset=utf-8", hdrs.CONTENT_DISPOSITION: f'attachment; filename="{name}"'}
    return Response(body=body, headers=headers)
