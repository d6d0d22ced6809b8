"""A draft of policies: its files, and what whoever looks may do with it, or why not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from checkstream.console.sessions import Person
from checkstream.control.bundles.difference import Difference
from checkstream.control.drafts.draft import OVER, Stage
from checkstream.control.drafts.found import Found
from checkstream.control.server.draft_showing import DraftShown, DraftWhole, FileShown
from checkstream.control.server.people import MOVES, objection
from checkstream.errors import Fault

STAGES: Mapping[Stage, tuple[str, str]] = {
    "open": ("plain", "being written"),
    "proposed": ("fair", "waits for approval"),
    "approved": ("good", "approved"),
    "refused": ("bad", "refused"),
    "withdrawn": ("plain", "withdrawn"),
    "exported": ("good", "taken out to be signed"),
}
"""Stage -> how it is marked, and in words."""
_FIRST = "bundle.yaml"


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can become of a draft."""

    move: str
    why_not: str = ""
    """Why whoever looks can't do it; empty: they can."""


class DraftView(msgspec.Struct, frozen=True, kw_only=True):
    """A draft by itself."""

    whole: DraftWhole
    draft: DraftShown
    changed: tuple[FileShown, ...]
    """Files that differ from the sources."""
    others: tuple[FileShown, ...]
    chosen: FileShown | None
    """The file that is looked at; None: there is no such file."""
    choices: dict[str, Choice]
    """Those that go with how it stands, by move."""
    why_not_edit: str
    """Why whoever looks can't change it; empty: they can."""


def draft_view(whole: DraftWhole, person: Person | None, file: str) -> DraftView:
    """Return the view of a draft, with a file of it; empty: the first that was changed, or the bundle's own."""
    changed = tuple(each for each in whole.files if each.change)
    others = tuple(each for each in whole.files if not each.change)
    named = {each.path: each for each in whole.files}
    first = next((each for each in changed if each.editable), named.get(_FIRST)) or next(iter(whole.files), None)
    return DraftView(
        whole=whole,
        draft=whole.draft,
        changed=changed,
        others=others,
        chosen=named.get(file) if file else first,
        choices={each.move: each for each in _choices(whole.draft, person)},
        why_not_edit=_why_not_edit(whole.draft, person),
    )


def _why_not_edit(draft: DraftShown, person: Person | None) -> str:
    if draft.stage in OVER:
        return f"the draft is {draft.stage}"
    return "log in first" if person is None else objection(person.name, person.role, "draft")


def _choices(draft: DraftShown, person: Person | None) -> Sequence[Choice]:
    moves = {
        "open": ("propose", "withdraw"),
        "proposed": ("approve", "refuse", "withdraw"),
        "approved": ("refuse", "withdraw"),
        "refused": ("withdraw",),
    }.get(draft.stage, ())
    return [Choice(move=move, why_not=_why_not(move, draft, person)) for move in moves]


def _why_not(move: str, draft: DraftShown, person: Person | None) -> str:
    if person is None:
        return "log in first"
    barred = objection(person.name, person.role, MOVES[move])
    if barred:
        return barred
    if move == "approve" and person.name in draft.authors:
        return "you have written of it, so somebody else has to approve"
    if move == "approve" and any(each.who == person.name for each in draft.approvals):
        return "you have approved already, and it needs somebody else"
    if move == "withdraw" and person.name not in draft.authors and person.role != "org_admin":
        return "only those who have written of it withdraw it, or an org admin"
    return ""


class FoundView(msgspec.Struct, frozen=True, kw_only=True):
    """What a check has found, with what stands in the file that is looked at apart."""

    found: Found
    rules: tuple[Difference, ...]
    """Rules that differ, those first that need approval: of very many a page shows the first."""
    here: tuple[Fault, ...]
    """Faults of the file that is looked at, by line."""
    elsewhere: tuple[Fault, ...]
    cases: int
    unnamed: bool
    """No program names the file that is looked at, and it is no file of cases or lists beside one."""


def found_view(found: Found, path: str) -> FoundView:
    """Return the view of what was found, for who looks at a file."""
    here = sorted((fault for fault in found.faults if fault.file == path), key=lambda fault: (fault.line, fault.column))
    policies = {policy for program in found.programs for policy in program.policies}
    folders = {policy.rpartition("/")[0] for policy in policies}
    folder, _, name = path.rpartition("/")
    needless = name == "policy.yaml" or (name.endswith(".yaml") and name not in {_FIRST, "tests.yaml"})
    return FoundView(
        found=found,
        rules=tuple(sorted(found.differences, key=lambda rule: not rule.needs_approval)),
        here=tuple(here),
        elsewhere=tuple(fault for fault in found.faults if fault.file != path),
        cases=sum(program.cases for program in found.programs),
        unnamed=not found.faults and needless and path not in policies and folder not in folders - {""},
    )
