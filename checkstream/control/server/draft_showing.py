"""How drafts are shown to people. Pure: of what is kept to what is told."""

from __future__ import annotations

import msgspec

from checkstream.control.drafts.draft import Approval, Stage
from checkstream.control.drafts.files import Changed, Manifest, changed_files
from checkstream.control.server.draft_tables import Held, Kept, Version


class DraftShown(msgspec.Struct, frozen=True, kw_only=True):
    """How a draft stands."""

    id: int
    title: str
    stage: Stage
    author: str
    authors: tuple[str, ...]
    """All who have written of it."""
    version: int
    digest: str
    """Of its content, which is what is approved of."""
    base: str
    """Digest of the sources that it is held against."""
    needs: int
    """People that must approve; 0: it is not proposed."""
    approvals: tuple[Approval, ...]
    why: str
    """What was said last of it."""
    made_ms: int
    changed_ms: int


class FileShown(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a draft."""

    path: str
    digest: str
    before: str = ""
    """Digest that it has in the sources; empty: it is not there."""
    change: str = ""
    """`added`, `changed` or `removed`, held against the sources; empty: it is as it was."""
    editable: bool = True


class DraftWhole(msgspec.Struct, frozen=True, kw_only=True):
    """A draft with its files and versions."""

    draft: DraftShown
    files: tuple[FileShown, ...]
    versions: tuple[Version, ...]
    """The newest first."""
    moved_on: bool
    """The sources have changed since."""


class Rebased(msgspec.Struct, frozen=True, kw_only=True):
    """A draft that has taken the sources over."""

    draft: DraftShown
    both: tuple[str, ...]
    """Files that draft and sources have changed each in its own way; those of the draft stay."""


def shown_files(held: Held, texts: set[str]) -> tuple[FileShown, ...]:
    """Return the files of a version, those that are gone among them; `texts` are the digests of what can be edited."""
    changes: dict[str, Changed] = {each.path: each for each in changed_files(held.base, held.files)}
    every: Manifest = {**held.base, **held.files}
    return tuple(
        FileShown(
            path=path,
            digest=digest,
            before=held.base.get(path, ""),
            change=changes[path].change if path in changes else "",
            editable=digest in texts and path in held.files,
        )
        for path, digest in sorted(every.items())
    )


def shown_draft(kept: Kept) -> DraftShown:
    """Return how a draft is shown."""
    draft = kept.draft
    return DraftShown(
        id=kept.id,
        title=draft.title,
        stage=draft.stage,
        author=draft.author,
        authors=draft.authors,
        version=draft.version,
        digest=draft.digest,
        base=draft.base,
        needs=draft.needs,
        approvals=draft.approvals,
        why=draft.why,
        made_ms=kept.made_ms,
        changed_ms=kept.changed_ms,
    )
