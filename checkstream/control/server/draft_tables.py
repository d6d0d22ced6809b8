"""The rows of drafts: read and written inside a transaction of the control server's database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from checkstream.control.drafts.draft import OVER, Draft
from checkstream.control.drafts.files import Manifest
from checkstream.control.server.database import Row, Session
from checkstream.errors import ThingUnknown

_DRAFT = msgspec.json.Decoder(Draft)
_FILES = msgspec.json.Decoder(dict[str, str])
_COLUMNS = "id, made_ms, changed_ms, state"
_AT_ONCE = 500
"""Values of one statement."""
_GOING_ON = "stage not in ({})".format(", ".join(f"'{stage}'" for stage in sorted(OVER)))


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A draft, as it is kept."""

    id: int
    made_ms: int
    changed_ms: int
    draft: Draft


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a draft."""

    number: int
    digest: str
    who: str
    reason: str
    at_ms: int


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a version holds, and what it is held against."""

    files: Manifest
    base: Manifest


def add_draft(session: Session, draft: Draft, now_ms: int) -> int:
    """Keep a new draft, and return its number."""
    rows = session.execute(
        "insert into drafts(author, stage, made_ms, changed_ms, state) values(?, ?, ?, ?, ?) returning id",
        (draft.author, draft.stage, now_ms, now_ms, msgspec.json.encode(draft).decode()),
    )
    return int(rows[0][0])


def keep_draft(session: Session, number: int, draft: Draft, now_ms: int) -> None:
    """Keep how a draft stands now."""
    session.execute(
        "update drafts set stage = ?, changed_ms = ?, state = ? where id = ?",
        (draft.stage, now_ms, msgspec.json.encode(draft).decode(), number),
    )


def draft_of(session: Session, number: int) -> Kept:
    """Return a draft.

    Raises:
        ThingUnknown: there is none of this number.
    """
    rows = session.execute(f"select {_COLUMNS} from drafts where id = ?", (number,))  # noqa: S608
    if not rows:
        raise ThingUnknown(f"there is no draft {number}; `checkstream control drafts` shows those that there are")
    return _kept(rows[0])


def drafts(session: Session, *, going_on: bool, most: int) -> list[Kept]:
    """Return drafts, those first that were changed last; those that are over only where they are asked for."""
    where = _GOING_ON if going_on else "1 = 1"
    rows = session.execute(
        f"select {_COLUMNS} from drafts where {where} order by changed_ms desc, id desc limit ?",  # noqa: S608
        (most,),
    )
    return [_kept(row) for row in rows]


def going_on(session: Session, author: str) -> int:
    """Return how many drafts of somebody are not over."""
    rows = session.execute(f"select count(*) from drafts where author = ? and {_GOING_ON}", (author,))  # noqa: S608
    return int(rows[0][0])


def add_version(session: Session, number: int, draft: Draft, held: Held, *, who: str, reason: str, now_ms: int) -> None:
    """Keep what the present version of a draft holds."""
    session.execute(
        "insert into draft_versions(draft, number, digest, files, base, who, reason, at_ms) "
        "values(?, ?, ?, ?, ?, ?, ?, ?)",
        (number, draft.version, draft.digest, _json(held.files), _json(held.base), who, reason, now_ms),
    )


def held_by(session: Session, number: int, version: int) -> Held:
    """Return what a version of a draft holds.

    Raises:
        ThingUnknown: there is no such version.
    """
    rows = session.execute("select files, base from draft_versions where draft = ? and number = ?", (number, version))
    if not rows:
        raise ThingUnknown(f"there is no version {version} of draft {number}")
    return Held(files=_FILES.decode(rows[0][0]), base=_FILES.decode(rows[0][1]))


def versions(session: Session, number: int) -> list[Version]:
    """Return the versions of a draft, the newest first."""
    rows = session.execute(
        "select number, digest, who, reason, at_ms from draft_versions where draft = ? order by number desc", (number,)
    )
    return [Version(number=int(row[0]), digest=row[1], who=row[2], reason=row[3], at_ms=int(row[4])) for row in rows]


def add_texts(session: Session, number: int, texts: Mapping[str, str]) -> None:
    """Keep texts by their digests; those that are there stay."""
    for digest, content in texts.items():
        session.execute(
            "insert into draft_texts(draft, digest, content) values(?, ?, ?) on conflict do nothing",
            (number, digest, content),
        )


def texts(session: Session, number: int, digests: Iterable[str]) -> dict[str, str]:
    """Return texts of a draft by their digests: of those that are named what is there."""
    wanted = sorted(set(digests))
    found: dict[str, str] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        places = ", ".join("?" * len(some))
        rows = session.execute(
            f"select digest, content from draft_texts where draft = ? and digest in ({places})",  # noqa: S608
            (number, *some),
        )
        found |= dict(rows)
    return found


def has_text(session: Session, number: int) -> set[str]:
    """Return the digests of all texts of a draft."""
    return {str(row[0]) for row in session.execute("select digest from draft_texts where draft = ?", (number,))}


def room(session: Session, number: int) -> int:
    """Return how many characters of text a draft holds, all versions together."""
    rows = session.execute("select coalesce(sum(length(content)), 0) from draft_texts where draft = ?", (number,))
    return int(rows[0][0])


def forget(session: Session, before_ms: int) -> None:
    """Let go of drafts that have been over since before a moment."""
    rows = session.execute(f"select id from drafts where changed_ms < ? and not ({_GOING_ON})", (before_ms,))  # noqa: S608
    _remove(session, rows)


def forget_withdrawn(session: Session, author: str, most: int) -> None:
    """Let go of what somebody has begun and withdrawn, the newest left out: nobody else had to agree to those."""
    rows = session.execute(
        "select id from drafts where author = ? and stage = 'withdrawn' order by changed_ms desc, id desc", (author,)
    )
    _remove(session, rows[most:])


def _remove(session: Session, rows: Sequence[Row]) -> None:
    for row in rows:
        for statement in (
            "delete from draft_texts where draft = ?",
            "delete from draft_versions where draft = ?",
            "delete from drafts where id = ?",
        ):
            session.execute(statement, (int(row[0]),))


def _json(manifest: Manifest) -> str:
    return msgspec.json.encode(manifest).decode()


def _kept(row: Row) -> Kept:
    number, made_ms, changed_ms, state = row
    return Kept(id=int(number), made_ms=int(made_ms), changed_ms=int(changed_ms), draft=_DRAFT.decode(state))
