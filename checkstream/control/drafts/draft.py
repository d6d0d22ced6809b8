"""How a draft goes from the first edit to its approval. Pure: a state, and one function for each act.

INVARIANT: an approval is of one content, by somebody who has written none of it, and ends when the content changes.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from checkstream.config.control import Role
from checkstream.errors import ActConflicts, ActForbidden

Stage = Literal["open", "proposed", "approved", "refused", "withdrawn", "exported"]
OVER: frozenset[Stage] = frozenset({"withdrawn", "exported"})
"""Stages that nothing leads out of."""
ONE, TWO = 1, 2
"""People that must approve: of what changes no enforced rule, and of what does."""


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody has approved of a content."""

    who: str
    role: Role
    digest: str
    """Of the content."""
    at_ms: int
    reason: str = ""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """How a draft stands."""

    title: str
    author: str
    """Who has begun it."""
    base: str
    """Digest of the sources that it began from."""
    digest: str
    """Of its content now: all files, those that are as they were among them."""
    version: int = 1
    """Grows with each change."""
    stage: Stage = "open"
    authors: tuple[str, ...] = ()
    """All who have written of it; none of them approves."""
    needs: int = 0
    """People that must approve; told when it is proposed."""
    approvals: tuple[Approval, ...] = ()
    why: str = ""
    """What was said last of it."""

    @property
    def over(self) -> bool:
        """Nothing more can be done to it."""
        return self.stage in OVER


def begun(title: str, author: str, base: str, digest: str) -> Draft:
    """Return a new draft."""
    return Draft(title=title, author=author, base=base, digest=digest, authors=(author,))


def changed(draft: Draft, who: str, digest: str, base: str | None = None) -> Draft:
    """Return it with another content; what was approved of is void.

    Args:
        draft: As it stands.
        who: Has changed it.
        digest: Of the content.
        base: Digest of the sources that it is held against from now on; None: the same.

    Raises:
        ActConflicts: it is over.
    """
    _require_going_on(draft)
    return msgspec.structs.replace(
        draft,
        digest=digest,
        base=draft.base if base is None else base,
        version=draft.version + 1,
        stage="open",
        authors=draft.authors if who in draft.authors else (*draft.authors, who),
        needs=0,
        approvals=(),
        why="",
    )


def proposed(draft: Draft, digest: str, needs: int, reason: str) -> Draft:
    """Return it waiting for the approval of others.

    Args:
        draft: As it stands.
        digest: Of the content that was checked.
        needs: People that must approve of it.
        reason: For those who approve.

    Raises:
        ActConflicts: it is not open, or its content is another.
    """
    _require_stage(draft, "propose", "open")
    _require_content(draft, digest)
    return msgspec.structs.replace(draft, stage="proposed", needs=max(needs, ONE), approvals=(), why=reason)


def approved(draft: Draft, approval: Approval) -> Draft:
    """Return it with one approval more, which may be the last that it needs.

    Raises:
        ActConflicts: it is not proposed, or its content is not what is approved of.
        ActForbidden: who approves has written of it, or has approved before.
    """
    _require_stage(draft, "approve of", "proposed")
    _require_content(draft, approval.digest)
    if approval.who in draft.authors:
        raise ActForbidden(f"`{approval.who}` has written of this draft; somebody else has to approve of it")
    if any(each.who == approval.who for each in draft.approvals):
        raise ActForbidden(f"`{approval.who}` has approved of this draft already; it needs somebody else")
    approvals = (*draft.approvals, approval)
    stage: Stage = "approved" if enough(draft.needs, approvals) else "proposed"
    return msgspec.structs.replace(draft, approvals=approvals, stage=stage, why=approval.reason)


def enough(needs: int, approvals: tuple[Approval, ...]) -> bool:
    """Tell whether nobody else has to approve: of what is enforced a risk officer is one of the two."""
    return len(approvals) >= needs and (needs < TWO or any(each.role == "risk_officer" for each in approvals))


def refused(draft: Draft, who: str, digest: str, reason: str) -> Draft:
    """Return it refused; a change opens it again.

    Raises:
        ActConflicts: it is neither proposed nor approved, its content is another, or no reason is given.
    """
    _require_stage(draft, "refuse", "proposed", "approved")
    _require_content(draft, digest)
    if not reason.strip():
        raise ActConflicts("say why it is refused; its authors have to know what to change")
    return msgspec.structs.replace(draft, stage="refused", approvals=(), needs=0, why=f"{who}: {reason}")


def withdrawn(draft: Draft, reason: str) -> Draft:
    """Return it withdrawn.

    Raises:
        ActConflicts: it is over.
    """
    _require_going_on(draft)
    return msgspec.structs.replace(draft, stage="withdrawn", approvals=(), needs=0, why=reason)


def exported(draft: Draft, digest: str) -> Draft:
    """Return it exported: somebody has its files, to make a bundle of them. Its approvals stay on record.

    Raises:
        ActConflicts: it is not approved, or its content is another.
    """
    _require_stage(draft, "export", "approved")
    _require_content(draft, digest)
    return msgspec.structs.replace(draft, stage="exported")


def _require_going_on(draft: Draft) -> None:
    if draft.over:
        raise ActConflicts(f"this draft is {draft.stage}; begin another")


def _require_stage(draft: Draft, act: str, *stages: Stage) -> None:
    if draft.stage not in stages:
        raise ActConflicts(f"one can't {act} a draft that is {draft.stage}; it has to be {' or '.join(stages)}")


def _require_content(draft: Draft, digest: str) -> None:
    if draft.digest != digest:
        raise ActConflicts(
            f"the draft has changed: it is {draft.digest[:12]} now, and {digest[:12]} was meant; look at it again"
        )
