"""The policies in force, their sources, and what they do to a text that somebody pastes."""

from __future__ import annotations

from aiohttp.web import BaseRequest, StreamResponse

from checkstream.config import policy_file, read_file
from checkstream.console.explaining import MOST_CHARS, Explainer, Explanation
from checkstream.console.facts import Facts, Places, Policies, ProgramFacts
from checkstream.console.pages import Frame, Pages
from checkstream.console.serving.shell import Shell, Topic
from checkstream.console.views.policies import policies_view, source_view

STAGES = ("midstream", "ingress", "egress")


class PolicyPages(Topic):
    """Shows what is in force."""

    def __init__(self, shell: Shell, facts: Facts, places: Places) -> None:
        """Ask nothing yet."""
        self._shell = shell
        self._facts = facts
        self._explainer = Explainer(places)
        self.table = {
            ("GET", "policies"): self._show,
            ("GET", "policies/source"): self._source,
            ("POST", "policies/explain"): self._explain,
        }

    async def close(self) -> None:
        """End what runs."""
        await self._explainer.close()

    async def _show(self, request: BaseRequest, _: str) -> StreamResponse:
        policies = await self._facts.policies()

        def make(pages: Pages, frame: Frame) -> bytes:
            return pages.render(
                "policies", frame, view=policies_view(policies), stages=STAGES, most=MOST_CHARS, said=None
            )

        return await self._shell.page(request, "policies", make)

    async def _source(self, request: BaseRequest, _: str) -> StreamResponse:
        policies = await self._facts.policies()
        number = request.query.get("file", "")
        if not (number.isascii() and number.isdecimal() and int(number[:6]) < len(policies.sources)):
            return await self._shell.missing(request)
        source = policies.sources[int(number[:6])]
        return await self._shell.page(
            request, "policies", lambda pages, frame: pages.render("source", frame, view=source_view(source))
        )

    async def _explain(self, request: BaseRequest, _: str) -> StreamResponse:
        form = await self._shell.form(request)
        policies = await self._facts.policies()
        given = form or {}
        number, stage, text = given.get("program", "0"), given.get("stage", ""), given.get("text", "")
        stale: tuple[str, ...] = ()
        if form is None:
            said = Explanation(failure=f"that is too much; a text has at most {MOST_CHARS:,} characters here")
        elif not (number.isascii() and number.isdecimal() and int(number[:6]) < len(policies.programs)):
            said = Explanation(failure="these policies are not in force any more; load the page anew")
        elif stage not in STAGES:
            said = Explanation(failure=f"there is no stage `{stage[:40]}`; it is {', '.join(STAGES)}")
        elif not text.strip():
            said = Explanation(failure="there is no text; paste one")
        elif len(text) > MOST_CHARS:
            said = Explanation(failure=f"a text has at most {MOST_CHARS:,} characters here; this has {len(text):,}")
        else:
            program = policies.programs[int(number[:6])]
            said = await self._explainer.explain(program.files, stage, text)
            stale = await self._shell.beside(lambda: _stale(policies, program))
        return await self._shell.rendered(request, "explained", "policies", said=said, stage=stage, stale=stale)


def _stale(policies: Policies, program: ProgramFacts) -> tuple[str, ...]:
    """Return the files of policies that are not any more what they were when they came in force. Blocks."""
    known = {source.name: source.text for source in policies.sources}
    return tuple(name for name in program.files if _text(name) != known.get(name))


def _text(name: str) -> str | None:
    try:
        return read_file(policy_file(name)).decode("utf-8", "replace")
    except OSError:
        return None
