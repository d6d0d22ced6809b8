"""Policies: drafts of them, edited with the checker beside, tried on texts and recordings, proposed and approved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from aiohttp.web import BaseRequest, Response, StreamResponse
from msgspec import Meta

from checkstream.console.explaining import MOST_CHARS, Explanation, said
from checkstream.console.pages import Frame, Pages
from checkstream.console.serving.forms import Again, Form, Given, read_form, sent
from checkstream.console.serving.policies import STAGES as TEXT_STAGES
from checkstream.console.serving.shell import Shell, Topic, number_of, see_other
from checkstream.console.views.drafts import STAGES, draft_view, found_view
from checkstream.control.drafts.files import MOST_BYTES, check_path
from checkstream.control.drafts.trials import Material, Tried, without_texts
from checkstream.control.server.asked import Asked, DraftAsked, DraftChanged, DraftMoved, DraftRebased
from checkstream.control.server.drafting import Drafting
from checkstream.control.server.people import MOVES, Asker, objection
from checkstream.errors import ActConflicts, ActForbidden, RequestInvalid, ThingUnknown

_MOST = 200
_FORM_BYTES = 4 * MOST_BYTES
"""Of a form with a file in it: what is no letter takes three bytes for one there."""
_DONE: Mapping[str, str] = {
    "begun": "The draft has begun. Nothing of it is in force, and the sources stay as they are.",
    "saved": "It is saved.",
    "removed": "The file is gone from the draft.",
    "rebased": "The draft stands on the sources as they are now.",
    "propose": "It is proposed. Others can approve of just this content now.",
    "approve": "You have approved of it.",
    "refuse": "It is refused. A change opens it again.",
    "withdraw": "It is withdrawn.",
}
_VIEWS = ("edit", "diff", "what-if", "history")
_Number = Annotated[int, Meta(ge=1, le=2**53 - 1)]
_Path = Annotated[str, Meta(min_length=1, max_length=200)]


class _Saved(Asked, frozen=True, kw_only=True):
    """A file of a draft, as somebody has it in the editor."""

    draft: _Number
    version: _Number
    path: _Path
    text: str = ""
    reason: Annotated[str, Meta(max_length=1000)] = ""


class _Removed(Asked, frozen=True, kw_only=True):
    """A file that goes."""

    draft: _Number
    version: _Number
    path: _Path


class _Looked(Asked, frozen=True, kw_only=True):
    """What is to be tried: a draft, with what somebody is typing in one of its files."""

    draft: _Number
    version: int = 0
    path: str = ""
    text: str = ""
    typed: bool = False
    """The text is to be looked at in place of the file's."""
    reason: str = ""
    part: Literal["found", "diff", "what-if"] = "found"


class _Explained(Asked, frozen=True, kw_only=True):
    """A text that is to be explained."""

    draft: _Number
    program: str = ""
    stage: str = "midstream"
    text: str = ""


class DraftPages(Topic):
    """Shows drafts, and does what people ask for."""

    def __init__(self, shell: Shell, drafting: Drafting | None) -> None:
        """Ask nothing yet. None: the server has no sources to draft from."""
        self._shell = shell
        self._drafting = drafting
        self.table = {("GET", "policies"): self._list}
        if drafting is not None:
            self._drafts = drafting
            self.table |= {
                ("GET", "policies/"): self._show,
                ("POST", "drafts"): self._begin,
                ("POST", "draft-files"): self._save,
                ("POST", "draft-removals"): self._remove,
                ("POST", "draft-rebases"): self._rebase,
                ("POST", "draft-moves"): self._move,
                ("POST", "draft-checks"): self._check,
                ("POST", "draft-explanations"): self._explain,
            }

    # --- looking

    async def _list(self, request: BaseRequest, _: str, fault: str = "", status: int = 200) -> Response:
        if self._drafting is None:
            return await self._shell.rendered(request, "control/no_drafts", "policies")
        every = request.query.get("all") == "1"
        drafts = await self._drafting.all(going_on=not every, most=_MOST)
        return await self._shell.rendered(
            request, "control/drafts", "policies", status, drafts=drafts, every=every, stages=STAGES, fault=fault
        )

    async def _show(self, request: BaseRequest, rest: str) -> StreamResponse:
        number = number_of(rest)
        return await (self._shell.missing(request) if not number else self._page(request, number))

    async def _page(
        self, request: BaseRequest, number: int, fault: str = "", given: Given | None = None, status: int = 200
    ) -> Response:
        whole, query = await self._drafts.whole(number), request.query
        view = draft_view(whole, self._shell.access.person(request), (given or query).get("path", "")[:200])
        version = number_of(query.get("version", "")) or whole.draft.version
        text = "" if given is None else given.get("text", "")
        if given is None and view.chosen is not None and view.chosen.editable:
            text = await self._drafts.text(number, version, view.chosen.path)
        shown = query.get("view", "") if query.get("view", "") in _VIEWS else "edit"
        past = version if version != whole.draft.version else 0
        # what was not saved since somebody else had saved is not to overwrite that at the next try
        at = whole.draft.version if given is None else number_of(given.get("version", ""))
        done, recordings = _DONE.get(query.get("done", ""), ""), self._drafts.trials.has_recordings

        def make(pages: Pages, frame: Frame) -> bytes:
            return pages.render(
                "control/draft", frame, view=view, text=text, at=at, shown=shown, past=past, views=_VIEWS,
                stages=STAGES, most=MOST_CHARS, fault=fault, done=done, recordings=recordings,
                both=query.get("both", "")[:2000],
            )  # fmt: skip

        return await self._shell.page(request, "policies", make, status)

    # --- writing

    async def _begin(self, request: BaseRequest, _: str) -> StreamResponse:
        async def do(who: Asker, asked: DraftAsked) -> Response:
            return see_other(f"policies/{(await self._drafts.begin(who, asked)).id}", {"done": "begun"})

        async def again(fault: str, _: Given, status: int) -> Response:
            return await self._list(request, "", fault, status)

        return await sent(self._shell, request, Form("draft", DraftAsked, do), again)

    async def _save(self, request: BaseRequest, _: str) -> StreamResponse:
        async def do(who: Asker, asked: _Saved) -> Response:
            text = await self._as_it_ends_lines(asked.draft, asked.path, asked.text)
            changes = DraftChanged(
                draft=asked.draft, version=asked.version, files={asked.path: text}, reason=asked.reason
            )
            await self._drafts.change(who, changes)
            return see_other(f"policies/{asked.draft}", {"path": asked.path, "done": "saved"})

        return await sent(self._shell, request, Form("draft", _Saved, do), self._again(request), most=_FORM_BYTES)

    async def _as_it_ends_lines(self, draft: int, path: str, text: str) -> str:
        """Return a text of a form, which ends lines by CR LF whatever stood there, as its file ends them."""
        plain = text.replace("\r\n", "\n")
        try:
            before = await self._drafts.text(draft, 0, path)
        except ThingUnknown:
            return plain
        return plain.replace("\n", "\r\n") if "\r\n" in before else plain

    async def _remove(self, request: BaseRequest, _: str) -> StreamResponse:
        async def do(who: Asker, asked: _Removed) -> Response:
            changes = DraftChanged(draft=asked.draft, version=asked.version, files={asked.path: None})
            await self._drafts.change(who, changes)
            return see_other(f"policies/{asked.draft}", {"done": "removed"})

        return await sent(self._shell, request, Form("draft", _Removed, do), self._again(request))

    async def _rebase(self, request: BaseRequest, _: str) -> StreamResponse:
        async def do(who: Asker, asked: DraftRebased) -> Response:
            found = await self._drafts.rebase(who, asked)
            told = {"done": "rebased", "both": ", ".join(found.both)[:1000]}
            return see_other(f"policies/{asked.draft}", {name: value for name, value in told.items() if value})

        return await sent(self._shell, request, Form("draft", DraftRebased, do), self._again(request))

    async def _move(self, request: BaseRequest, _: str) -> StreamResponse:
        async def do(_: Asker, asked: DraftMoved) -> Response:
            await self._drafts.move(self._shell.asker(request, MOVES[asked.move]), asked)
            return see_other(f"policies/{asked.draft}", {"done": asked.move})

        return await sent(self._shell, request, Form("view", DraftMoved, do), self._again(request))

    def _again(self, request: BaseRequest) -> Again:
        async def again(fault: str, given: Given, status: int) -> Response:
            number = number_of(given.get("draft", ""))
            if not number or status == 404:
                return await self._shell.error(request, status, fault)
            return await self._page(request, number, fault, given if "text" in given else None, status)

        return again

    # --- trying

    async def _check(self, request: BaseRequest, _: str) -> StreamResponse:
        """Say what is wrong with a draft as somebody types it: what can't be said is said in the same place."""
        asked, tried = _Looked(draft=1), Tried()
        try:
            who = self._shell.asker(request, "view")
            asked = read_form(await self._shell.form(request, _FORM_BYTES), _Looked)
            tried = await self._tried(who, asked)
        except (RequestInvalid, ActForbidden, ThingUnknown, ActConflicts) as error:
            tried = Tried(failure=str(error))
        view = None if tried.found is None else found_view(tried.found, asked.path)
        name = {"found": "found", "diff": "differing", "what-if": "what_if"}[asked.part]
        return await self._shell.rendered(
            request, f"control/{name}", "policies", view=view, failure=tried.failure, draft=asked.draft
        )

    async def _tried(self, who: Asker, asked: _Looked) -> Tried:
        typed: dict[str, str | None] | None = None
        if asked.typed and asked.path and not objection(who.name, who.role, "draft"):
            check_path(asked.path)
            typed = {asked.path: await self._as_it_ends_lines(asked.draft, asked.path, asked.text)}
        material = await self._drafts.material(asked.draft, typed)
        if asked.part == "what-if":
            tried = await self._drafts.trials.what_if(material)
            return without_texts(tried) if objection(who.name, who.role, "draft") else tried
        trials = self._drafts.trials
        return await (trials.check_typed(who.name, material) if typed else trials.check(material))

    async def _explain(self, request: BaseRequest, _: str) -> StreamResponse:
        try:
            self._shell.asker(request, "view")
            asked = read_form(await self._shell.form(request), _Explained)
            explanation = await self._explained(asked)
        except (RequestInvalid, ActForbidden, ThingUnknown, ActConflicts) as error:
            asked, explanation = _Explained(draft=1), Explanation(failure=str(error))
        return await self._shell.rendered(
            request, "explained", "policies", said=explanation, stage=asked.stage, stale=()
        )

    async def _explained(self, asked: _Explained) -> Explanation:
        if asked.stage not in TEXT_STAGES:
            return Explanation(failure=f"there is no stage `{asked.stage[:40]}`; it is {', '.join(TEXT_STAGES)}")
        if not asked.text.strip() or len(asked.text) > MOST_CHARS:
            return Explanation(failure=f"paste a text of at most {MOST_CHARS:,} characters")
        material: Material = await self._drafts.material(asked.draft)
        tried = await self._drafts.trials.check(material)
        if tried.found is None or tried.found.faults:
            return Explanation(failure=tried.failure, faults=() if tried.found is None else tried.found.faults)
        programs = {program.name: program.policies for program in tried.found.programs}
        if asked.program and asked.program not in programs:
            return Explanation(failure=f"there is no program `{asked.program[:100]}` in this draft")
        policies = programs[asked.program or min(programs)]
        return await said(await self._drafts.trials.explain(material, policies, asked.stage, asked.text))
