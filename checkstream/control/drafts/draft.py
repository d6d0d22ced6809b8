"""How a draft goes from the first edit to its approval. Pure: a state, and one function for each act.

INVARIANT: an approval is of one content, by somebody who has written none of it, and ends when the content changes.
A draft is proposed, approved and exported only while the sources are those that it is held against: what it changes
in rules, and who must approve of that, was told against them.
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


def proposed(draft: Draft, digest: str, needs: int, reason: str, *, sources: str) -> Draft:
    """Return it waiting for the approval of others.

    Args:
        draft: As it stands.
        digest: Of the content that was checked.
        needs: People that must approve of it.
        reason: For those who approve.
        sources: Digest of the sources that it was checked against, which are those of now.

    Raises:
        ActConflicts: it is not open, its content is another, or the sources have changed since it began.
    """
    _require_stage(draft, "propose", "open")
    _require_content(draft, digest)
    require_sources(draft.base, sources)
    return msgspec.structs.replace(draft, stage="proposed", needs=max(needs, ONE), approvals=(), why=reason)


def approved(draft: Draft, approval: Approval, *, sources: str) -> Draft:
    """Return it with one approval more, which may be the last that it needs. `sources`: digest of those of now.

    Raises:
        ActConflicts: it is not proposed, its content is not what is approved of, or the sources have changed since it
            began.
        ActForbidden: who approves has written of it, or has approved before.
    """
    _require_stage(draft, "approve of", "proposed")
    _require_content(draft, approval.digest)
    require_sources(draft.base, sources)
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


def exported(draft: Draft, digest: str, *, sources: str) -> Draft:
    """Return it exported: somebody has its files, to make a bundle of them. Its approvals stay on record.

    `sources` is the digest of those of now.

    Raises:
        ActConflicts: it is not approved, its content is another, or the sources have changed since it began.
    """
    _require_stage(draft, "export", "approved")
    _require_content(draft, digest)
    require_sources(draft.base, sources)
    return msgspec.structs.replace(draft, stage="exported")


def require_sources(base: str, sources: str) -> None:
    """Hold what a draft is held against to the sources as they are now: on older ones it would undo what came since.

    Raises:
        ActConflicts: they differ.
    """
    if base != sources:
        raise ActConflicts(
            "the sources have changed since this draft began; take them over (`rebase`), look at what differs then, "
            "and propose that"
        )


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
