"""Drafts of policies at the control server: kept by version, tried, proposed, approved, and given to whoever signs.

INVARIANT: what is approved is one content, by its digest, which compiled and did what its cases say when it was
proposed. The server signs nothing: of an approved draft people make a bundle with keys of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from checkstream.audit.entries import ActEntry
from checkstream.control.drafts import draft as moves
from checkstream.control.drafts.draft import ONE, TWO, Approval, Draft
from checkstream.control.drafts.files import Changes, content_of, digest_of, rebased, with_changes
from checkstream.control.drafts.found import Found
from checkstream.control.drafts.sources import Sources
from checkstream.control.drafts.trials import Material, Trials, Tried
from checkstream.control.server import draft_tables as tables
from checkstream.control.server.acts import Acts
from checkstream.control.server.asked import DraftAsked, DraftChanged, DraftMoved, DraftRebased
from checkstream.control.server.database import Database, Session
from checkstream.control.server.draft_showing import DraftShown, DraftWhole, Rebased, shown_draft, shown_files
from checkstream.control.server.draft_tables import Held, Kept
from checkstream.control.server.people import Asker
from checkstream.errors import ActConflicts, ActForbidden, ThingUnknown

MOST_GOING_ON = 20
"""Drafts of one person that are not over."""
MOST_WITHDRAWN = 20
"""That one person has begun: who could keep any number of them could fill the store alone."""
MOST_VERSIONS = 500
MOST_CHARS = 16 << 20
"""Of all versions of a draft together."""
_DAY_MS = 86_400_000


class Drafting:
    """Keeps drafts, and does what people ask for."""

    def __init__(
        self,
        sources: Sources,
        database: Database,
        acts: Acts,
        trials: Trials,
        now_ms: Callable[[], int],
        *,
        keep_days: int,
    ) -> None:
        """Begin drafts from `sources`; put what is done on record by `acts`; those that are over go after some days."""
        self._sources = sources
        self._database = database
        self._acts = acts
        self.trials = trials
        self._now_ms = now_ms
        self._keep_ms = keep_days * _DAY_MS

    # --- what there is

    async def all(self, *, going_on: bool, most: int) -> tuple[DraftShown, ...]:
        """Return drafts, those first that were changed last; those that are over only where they are asked for.

        Raises:
            ControlUnusable: the store can't be used.
        """
        kept = await self._database.ask(lambda session: tables.drafts(session, going_on=going_on, most=most))
        return tuple(map(shown_draft, kept))

    async def whole(self, number: int) -> DraftWhole:
        """Return a draft with its files.

        Raises:
            ThingUnknown: there is none of this number.
            ControlUnusable: the store or the sources can't be used.
        """
        now = await self._base()

        def find(session: Session) -> DraftWhole:
            kept = tables.draft_of(session, number)
            held = tables.held_by(session, number, kept.draft.version)
            return DraftWhole(
                draft=shown_draft(kept),
                files=shown_files(held, tables.has_text(session, number)),
                versions=tuple(tables.versions(session, number)),
                moved_on=kept.draft.base != now,
            )

        return await self._database.ask(find)

    async def text(self, number: int, version: int, path: str, *, before: bool = False) -> str:
        """Return what stands in a file of a version of a draft (0: the newest), or in the sources that it began from.

        Raises:
            ThingUnknown: there is no such draft, version or file, or it is no text.
            ControlUnusable: the store can't be used.
        """

        def find(session: Session) -> str:
            newest = tables.draft_of(session, number).draft.version
            held = tables.held_by(session, number, version or newest)
            digest = (held.base if before else held.files).get(path, "")
            found = tables.texts(session, number, [digest])
            if digest not in found:
                raise ThingUnknown(f"draft {number} has no text `{path[:200]}` in this version")
            return found[digest]

        return await self._database.ask(find)

    # --- writing

    async def begin(self, who: Asker, asked: DraftAsked) -> DraftShown:
        """Begin a draft from the sources as they are now.

        Raises:
            RequestInvalid: a file can't be taken.
            ActConflicts: somebody has too many drafts, or the sources hold too much.
            ControlUnusable: the store, the chain or the sources can't be used.
        """
        snapshot = await asyncio.to_thread(self._sources.snapshot)

        def do(session: Session) -> DraftShown:
            if tables.going_on(session, who.name) >= MOST_GOING_ON:
                raise ActConflicts(
                    f"`{who.name}` has {MOST_GOING_ON} drafts already; withdraw one, or bring it to its end"
                )
            base, now = snapshot.manifest, self._now_ms()
            tables.forget(session, now - self._keep_ms)
            tables.forget_withdrawn(session, who.name, MOST_WITHDRAWN)
            files = with_changes(base, asked.files) if asked.files else base
            draft = moves.begun(asked.title, who.name, content_of(base), content_of(files))
            number = tables.add_draft(session, draft, now)
            tables.add_texts(session, number, {**snapshot.texts, **_texts(asked.files)})
            _require_room(session, number)
            self._record(who, "draft_begin", number, draft, asked.reason)
            held = Held(files=files, base=base)
            tables.add_version(session, number, draft, held, who=who.name, reason=asked.reason, now_ms=now)
            return shown_draft(tables.draft_of(session, number))

        return await self._database.transact(do)

    async def change(self, who: Asker, asked: DraftChanged) -> DraftShown:
        """Change files of a draft; what was approved of is void. What changes nothing is no change.

        Raises:
            RequestInvalid: a file can't be taken.
            ThingUnknown: there is none of this number.
            ActConflicts: somebody has changed it meanwhile, it is over, or it has had too many versions.
            ControlUnusable: the store or the chain can't be used.
        """

        def do(session: Session) -> DraftShown:
            kept, held = _newest(session, asked.draft, asked.version)
            files = with_changes(held.files, asked.files)
            if files == held.files:
                return shown_draft(kept)
            draft = moves.changed(kept.draft, who.name, content_of(files))
            tables.add_texts(session, asked.draft, _texts(asked.files))
            held = Held(files=files, base=held.base)
            return self._changed(session, asked.draft, draft, held, (who, "draft_change", asked.reason))

        return await self._database.transact(do)

    async def rebase(self, who: Asker, asked: DraftRebased) -> Rebased:
        """Have a draft take over what has changed in the sources.

        Raises:
            ThingUnknown: there is none of this number.
            ActConflicts: somebody has changed it meanwhile, it is over, or the sources are as they were.
            ControlUnusable: the store, the chain or the sources can't be used.
        """
        snapshot = await asyncio.to_thread(self._sources.snapshot)

        def do(session: Session) -> Rebased:
            kept, held = _newest(session, asked.draft, asked.version)
            base = content_of(snapshot.manifest)
            if kept.draft.base == base:
                raise ActConflicts("the sources are as they were when this draft began")
            files, both = rebased(held.base, held.files, snapshot.manifest)
            draft = moves.changed(kept.draft, who.name, content_of(files), base)
            tables.add_texts(session, asked.draft, snapshot.texts)
            held = Held(files=files, base=snapshot.manifest)
            said = who, "draft_rebase", "the sources, as they are now, taken over"
            return Rebased(draft=self._changed(session, asked.draft, draft, held, said), both=both)

        return await self._database.transact(do)

    def _changed(
        self, session: Session, number: int, draft: Draft, held: Held, said: tuple[Asker, str, str]
    ) -> DraftShown:
        if draft.version > MOST_VERSIONS:
            raise ActConflicts(f"this draft has had {MOST_VERSIONS} versions; begin another from its files")
        _require_room(session, number)
        (who, act, reason), now = said, self._now_ms()
        self._record(who, act, number, draft, reason)
        tables.add_version(session, number, draft, held, who=who.name, reason=reason, now_ms=now)
        tables.keep_draft(session, number, draft, now)
        return shown_draft(tables.draft_of(session, number))

    # --- what becomes of it

    async def move(self, who: Asker, asked: DraftMoved) -> DraftShown:
        """Propose a draft, approve of it, refuse it, withdraw it, or mark that its files were taken to be signed.

        Raises:
            ThingUnknown: there is none of this number.
            ActForbidden: who asks may not: they have written of it, or it is somebody else's.
            ActConflicts: it doesn't stand so, has changed, can't be used as it is, or the sources have changed.
            ControlUnusable: the store, the chain or the sources can't be used.
        """
        if asked.move == "propose":
            return await self._propose(who, asked)
        # read only where they decide: a draft can be refused or withdrawn though nobody can read the sources
        sources = await self._base() if asked.move in {"approve", "export"} else ""

        def move(draft: Draft) -> Draft:
            if asked.move == "approve":
                now, reason = self._now_ms(), asked.reason
                approval = Approval(who=who.name, role=who.role, digest=asked.digest, at_ms=now, reason=reason)
                return moves.approved(draft, approval, sources=sources)
            if asked.move == "refuse":
                return moves.refused(draft, who.name, asked.digest, asked.reason)
            if asked.move == "export":
                return moves.exported(draft, asked.digest, sources=sources)
            if who.name not in draft.authors and who.role != "org_admin":
                raise ActForbidden(
                    f"`{who.name}` has not written of this draft; its authors or an org admin withdraw it"
                )
            return moves.withdrawn(draft, asked.reason)

        return await self._moved(who, asked, move)

    async def _propose(self, who: Asker, asked: DraftMoved) -> DraftShown:
        material = await self.material(asked.draft)
        if content_of(material.files) != asked.digest:
            raise ActConflicts("the draft has changed meanwhile; look at it again")
        base = content_of(material.base)
        moves.require_sources(base, await self._base())
        needs = needed(await self.trials.check(material))
        moves.require_sources(base, await self._base())  # a check takes long enough for them to change

        def move(draft: Draft) -> Draft:
            return moves.proposed(draft, asked.digest, needs, asked.reason, sources=base)

        return await self._moved(who, asked, move)

    async def _base(self) -> str:
        """Return the digest of the sources as they are now."""
        return content_of((await asyncio.to_thread(self._sources.snapshot)).manifest)

    async def _moved(self, who: Asker, asked: DraftMoved, move: Callable[[Draft], Draft]) -> DraftShown:
        def do(session: Session) -> DraftShown:
            moved = move(tables.draft_of(session, asked.draft).draft)
            self._record(who, f"draft_{asked.move}", asked.draft, moved, asked.reason)
            tables.keep_draft(session, asked.draft, moved, self._now_ms())
            return shown_draft(tables.draft_of(session, asked.draft))

        return await self._database.transact(do)

    def _record(self, who: Asker, act: str, number: int, draft: Draft, reason: str) -> None:
        detail = {
            "draft": str(number), "title": draft.title, "version": str(draft.version), "stage": draft.stage,
            "needs": str(draft.needs),
        }  # fmt: skip
        entry = ActEntry(
            who=who.name, role=who.role, act=act, fleet="", subject=draft.digest, reason=reason, detail=detail
        )
        self._acts.record(entry)

    # --- trying it

    async def material(self, number: int, typed: Changes | None = None) -> Material:
        """Return the files of a draft, with what somebody is typing in place of theirs.

        Raises:
            RequestInvalid: what is typed can't be taken.
            ThingUnknown: there is none of this number.
            ControlUnusable: the store can't be used.
        """

        def find(session: Session) -> Material:
            held = tables.held_by(session, number, tables.draft_of(session, number).draft.version)
            files = with_changes(held.files, typed) if typed else held.files
            texts = tables.texts(session, number, {*files.values(), *held.base.values()})
            return Material(files=files, base=held.base, texts={**texts, **_texts(typed or {})})

        return await self._database.ask(find)

    async def check(self, number: int) -> Found:
        """Say what is wrong with a draft, and how it differs from the sources that it began from.

        Raises:
            ThingUnknown: there is none of this number.
            ActConflicts: it could not be checked; says why.
            ControlUnusable: the store can't be used.
        """
        tried = await self.trials.check(await self.material(number))
        if tried.found is None:
            raise ActConflicts(tried.failure)
        return tried.found


def needed(tried: Tried) -> int:
    """Return how many people must approve of a draft, as a check has found it.

    Raises:
        ActConflicts: it can't be proposed; says why.
    """
    found = tried.found
    if found is None:
        raise ActConflicts(f"it can't be proposed, since {tried.failure}")
    if found.faults:
        first = found.faults[0].render().partition("\n")[0]
        raise ActConflicts(f"it can't be proposed with faults ({len(found.faults)}): {first}")
    if found.failed:
        raise ActConflicts(f"it can't be proposed with failed cases ({found.failed}); mend them, or what they say")
    if not found.texts:
        raise ActConflicts("it changes nothing; there is nothing to propose")
    return TWO if found.weighs else ONE


def _newest(session: Session, number: int, version: int) -> tuple[Kept, Held]:
    kept = tables.draft_of(session, number)
    if kept.draft.version != version:
        raise ActConflicts(
            f"the draft is at version {kept.draft.version}, and version {version} was changed; "
            "look at what has come since, and change that"
        )
    return kept, tables.held_by(session, number, version)


def _require_room(session: Session, number: int) -> None:
    if tables.room(session, number) > MOST_CHARS:
        raise ActConflicts(f"a draft holds at most {MOST_CHARS >> 20} Mi characters in all its versions; begin another")


def _texts(changes: Changes) -> Mapping[str, str]:
    return {digest_of(text.encode()): text for text in changes.values() if text is not None}
