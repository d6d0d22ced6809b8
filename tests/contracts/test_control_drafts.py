"""Drafts over every database of the control server: versions, approvals, the chain, and who is refused."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from checkstream.app.parts import open_journal
from checkstream.config import AuditSettings
from checkstream.control.drafts.draft import ONE, TWO
from checkstream.control.drafts.found import FailedCase, Found, ProgramFound, TextDiff
from checkstream.control.drafts.sources import Sources
from checkstream.control.drafts.trials import Trials, Tried
from checkstream.control.server import drafting as module
from checkstream.control.server.acts import Acts
from checkstream.control.server.asked import DraftAsked, DraftChanged, DraftMoved, DraftRebased
from checkstream.control.server.database import Database, Session, open_database
from checkstream.control.server.draft_showing import DraftShown
from checkstream.control.server.drafting import Drafting, needed
from checkstream.control.server.people import Asker
from checkstream.errors import ActConflicts, ActForbidden, Fault, RequestInvalid, ThingUnknown
from tests.bundled import STOPS
from tests.controlled import KINDS, address_of
from tests.evidence_stores import postgres  # noqa: F401 - a fixture

EVE, ELI, ROB, RITA, ADA = (
    Asker("eve", "engineer"), Asker("eli", "engineer"), Asker("rob", "risk_officer"), Asker("rita", "risk_officer"),
    Asker("ada", "org_admin"),
)  # fmt: skip
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
BUNDLE = "bundle: retail\nversion: '1.0'\nprograms:\n  chat: {policies: [ours.yaml]}\n"
POLICY = f"pack: {{name: ours, version: 1.0.0}}\npolicies:\n  - {STOPS}\n"


class World:
    """A server with a folder of sources, a chain, and drafts."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.database = database
        self.now_ms = 1_790_000_000_000
        self.folder = folder / "src"
        self.folder.mkdir()
        for name, text in (("bundle.yaml", BUNDLE), ("ours.yaml", POLICY)):
            (self.folder / name).write_text(text)
        self.audit = folder / "audit"
        _, self.journal = open_journal(AuditSettings(dir=str(self.audit)), "control")
        acts = Acts({}, database, self.journal, lambda: self.now_ms)
        sources = Sources(self.folder)
        self.says = folder / "says.json"
        """What the command says that looks at drafts; tests/unit/cli/test_bundle_check.py has the true one."""
        self.check()
        trials = Trials(("sh", "-c", 'cat "$0"', str(self.says)), sources)
        self.drafting = Drafting(sources, database, acts, trials, lambda: self.now_ms, keep_days=90)

    def check(self, **found: object) -> None:
        said = {"texts": [{"path": "notes.md", "change": "added", "lines": []}], "weighs": False, **found}
        self.says.write_bytes(msgspec.json.encode(said))

    async def begin(self, who: Asker = EVE, **files: str | None) -> DraftShown:
        named = {name.replace("_", "."): text for name, text in files.items()}
        return await self.drafting.begin(who, DraftAsked(title="stricter", reason="they ask", files=named))

    async def change(self, draft: DraftShown, who: Asker = EVE, **files: str | None) -> DraftShown:
        named = {name.replace("_", "."): text for name, text in files.items()}
        return await self.drafting.change(who, DraftChanged(draft=draft.id, version=draft.version, files=named))

    async def move(self, who: Asker, move: str, draft: DraftShown, reason: str = "so") -> DraftShown:
        asked = DraftMoved(draft=draft.id, move=move, digest=draft.digest, reason=reason)  # type: ignore[arg-type]
        return await self.drafting.move(who, asked)

    def acts(self) -> list[str]:
        said = b"".join(file.read_bytes() for file in sorted(self.audit.rglob("*.jsonl"))).decode()
        return [line.partition('"act":"')[2].partition('"')[0] for line in said.splitlines() if '"kind":"act"' in line]


@pytest.fixture(params=KINDS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with address_of(request.param, tmp_path, request) as address:
        made = await asyncio.to_thread(lambda: World(tmp_path, open_database(address)))
        yield made
        await made.drafting.trials.close()
        await made.database.close()
        await made.journal.aclose()


async def test_a_draft_from_its_first_edit_to_who_signs_it(world: World) -> None:
    begun = await world.begin(ours_yaml=POLICY.replace("zero risk", "no risk"))
    assert (begun.stage, begun.version, begun.authors) == ("open", 1, ("eve",))
    with pytest.raises(ActConflicts, match="has to be proposed"):
        await world.move(ROB, "approve", begun)
    world.check(faults=[{"file": "ours.yaml", "line": 3, "reason": "no"}])
    with pytest.raises(ActConflicts, match="with faults"):
        await world.move(EVE, "propose", begun)
    world.check(weighs=True)
    assert (await world.drafting.check((await world.begin()).id)).weighs
    with pytest.raises(ActConflicts, match="with faults"):
        await world.move(EVE, "propose", begun)  # what was found of this content is remembered
    begun = await world.change(begun, ours_yaml=POLICY.replace("zero risk", "little risk"))
    proposed = await world.move(EVE, "propose", begun)
    assert (proposed.stage, proposed.needs) == ("proposed", TWO)
    with pytest.raises(ActForbidden, match="written of this draft"):
        await world.move(EVE, "approve", proposed)
    assert (await world.move(ADA, "approve", proposed)).stage == "proposed"
    approved = await world.move(ROB, "approve", proposed)
    assert (approved.stage, [each.who for each in approved.approvals]) == ("approved", ["ada", "rob"])
    assert (await world.move(EVE, "export", approved)).stage == "exported"
    with pytest.raises(ActConflicts, match="is exported; begin another"):
        await world.change(approved, ours_yaml="x")
    acts = ["begin", "begin", "change", "propose", "approve", "approve", "export"]
    assert world.acts() == [f"draft_{act}" for act in acts]


async def test_a_change_voids_what_was_approved_and_whoever_made_it_approves_no_more(world: World) -> None:
    draft = await world.move(EVE, "propose", await world.begin(notes_md="hello"))
    assert draft.needs == ONE
    await world.move(ROB, "approve", draft)
    changed = await world.change(draft, ROB, notes_md="hello, all")
    assert (changed.stage, changed.approvals, changed.authors, changed.version) == ("open", (), ("eve", "rob"), 2)
    with pytest.raises(ActConflicts, match="has changed"):
        await world.move(EVE, "propose", draft)
    again = await world.move(EVE, "propose", changed)
    with pytest.raises(ActConflicts, match=r"and .* was meant"):
        await world.move(RITA, "approve", draft)
    with pytest.raises(ActForbidden):
        await world.move(ROB, "approve", again)
    assert (await world.move(RITA, "approve", again)).stage == "approved"


async def test_nobody_overwrites_what_somebody_else_has_just_written(world: World) -> None:
    draft = await world.begin(notes_md="one")
    await world.change(draft, ELI, notes_md="two")
    with pytest.raises(ActConflicts, match="is at version 2, and version 1 was changed"):
        await world.change(draft, EVE, notes_md="three")
    whole = await world.drafting.whole(draft.id)
    assert [(each.path, each.change) for each in whole.files] == [
        ("bundle.yaml", ""), ("notes.md", "added"), ("ours.yaml", ""),
    ]  # fmt: skip
    assert [(each.number, each.who) for each in whole.versions] == [(2, "eli"), (1, "eve")]
    texts = [await world.drafting.text(draft.id, version, "notes.md") for version in (0, 1, 2)]
    assert texts == ["two", "one", "two"]
    assert await world.drafting.text(draft.id, 0, "ours.yaml", before=True) == POLICY
    same = await world.change(whole.draft, ELI, notes_md="two")
    assert (same.version, same.stage) == (2, "open")
    with pytest.raises(ThingUnknown, match=r"no text `notes\.md`"):
        await world.drafting.text(draft.id, 0, "notes.md", before=True)


async def test_newer_sources_are_taken_over_beside_what_was_changed(world: World) -> None:
    draft = await world.begin(ours_yaml=POLICY.replace("zero", "any"), notes_md="n")
    with pytest.raises(ActConflicts, match="as they were"):
        await world.drafting.rebase(EVE, DraftRebased(draft=draft.id, version=1))
    (world.folder / "bundle.yaml").write_text(BUNDLE.replace("1.0", "1.1"))
    (world.folder / "ours.yaml").write_text(POLICY.replace("zero", "some"))
    assert (await world.drafting.whole(draft.id)).moved_on
    rebased = await world.drafting.rebase(EVE, DraftRebased(draft=draft.id, version=1))
    assert rebased.both == ("ours.yaml",)
    whole = await world.drafting.whole(draft.id)
    assert (whole.moved_on, whole.draft.version) == (False, 2)
    assert "1.1" in await world.drafting.text(draft.id, 0, "bundle.yaml")
    assert "any risk" in await world.drafting.text(draft.id, 0, "ours.yaml")


async def test_on_older_sources_nothing_is_proposed_approved_or_exported(world: World) -> None:
    def move_on(version: str) -> None:
        (world.folder / "bundle.yaml").write_text(BUNDLE.replace("1.0", version))

    async def taken_over(draft: DraftShown) -> DraftShown:
        return (await world.drafting.rebase(EVE, DraftRebased(draft=draft.id, version=draft.version))).draft

    draft = await world.begin(notes_md="hello")
    move_on("1.1")
    with pytest.raises(ActConflicts, match="take them over"):
        await world.move(EVE, "propose", draft)
    draft = await world.move(EVE, "propose", await taken_over(draft))
    move_on("1.2")
    with pytest.raises(ActConflicts, match="take them over"):
        await world.move(ROB, "approve", draft)
    draft = await world.move(EVE, "propose", await taken_over(draft))
    draft = await world.move(ROB, "approve", draft)
    move_on("1.3")
    with pytest.raises(ActConflicts, match="take them over"):
        await world.move(EVE, "export", draft)
    shutil.rmtree(world.folder)  # what ends a draft needs no sources
    assert (await world.move(ROB, "refuse", draft)).stage == "refused"


async def test_sources_that_change_during_the_check_of_a_proposal_are_noticed(world: World) -> None:
    draft = await world.begin(notes_md="hello")
    newer = f"echo '# newer' >> {world.folder / 'bundle.yaml'}; cat {world.says}"
    world.drafting.trials = Trials(("sh", "-c", newer), Sources(world.folder))
    with pytest.raises(ActConflicts, match="take them over"):
        await world.move(EVE, "propose", draft)


async def test_what_is_too_much_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_GOING_ON", 2)
    first = await world.begin(notes_md="x")
    await world.begin()
    with pytest.raises(ActConflicts, match="has 2 drafts already"):
        await world.begin()
    await world.begin(ELI)
    await world.move(EVE, "withdraw", first)
    await world.begin()
    monkeypatch.setattr(module, "MOST_CHARS", 1000)
    second = (await world.drafting.all(going_on=True, most=10))[0]
    with pytest.raises(ActConflicts, match="in all its versions"):
        await world.change(second, notes_md="y" * 1000)
    monkeypatch.setattr(module, "MOST_VERSIONS", 1)
    with pytest.raises(ActConflicts, match="has had 1 versions"):
        await world.change(second, notes_md="y")
    for path in ("../x", "a/../../x", "/etc/passwd", ".git/hooks/x"):
        with pytest.raises(RequestInvalid):
            await world.drafting.change(EVE, DraftChanged(draft=second.id, version=1, files={path: "x"}))
    assert (await world.drafting.whole(second.id)).draft == second


async def test_whoever_begins_and_withdraws_again_and_again_fills_no_store(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_WITHDRAWN", 2)
    await world.move(ELI, "withdraw", await world.begin(ELI))
    for n in range(5):
        world.now_ms += 1
        await world.move(EVE, "withdraw", await world.begin(notes_md=str(n)))
    begun = await world.begin()
    drafts = await world.drafting.all(going_on=False, most=50)
    assert [(each.author, each.id) for each in drafts if each.stage == "withdrawn"] == [
        ("eve", begun.id - 1), ("eve", begun.id - 2), ("eli", begun.id - 6),
    ]  # fmt: skip

    def kept(session: Session) -> list[set[int]]:
        tables = ("draft_texts", "draft_versions")
        return [{int(row[0]) for row in session.execute(f"select draft from {table}")} for table in tables]

    assert await world.database.transact(kept) == [{each.id for each in drafts}] * 2


async def test_refused_withdrawn_and_forgotten(world: World) -> None:
    draft = await world.move(EVE, "propose", await world.begin(notes_md="x"))
    refused = await world.move(ROB, "refuse", draft, "no reason is given in it")
    assert (refused.stage, refused.why) == ("refused", "rob: no reason is given in it")
    assert (await world.change(refused, notes_md="because")).stage == "open"
    with pytest.raises(ActForbidden, match="or an org admin"):
        await world.move(ELI, "withdraw", draft)
    await world.move(ADA, "withdraw", draft)
    assert await world.drafting.all(going_on=True, most=10) == ()
    assert [each.stage for each in await world.drafting.all(going_on=False, most=10)] == ["withdrawn"]
    world.now_ms += 91 * DAY_MS
    await world.begin()
    assert [each.stage for each in await world.drafting.all(going_on=False, most=10)] == ["open"]
    with pytest.raises(ThingUnknown, match="no draft"):
        await world.drafting.whole(draft.id)
    rows = await world.database.transact(lambda s: s.execute("select distinct draft from draft_texts"))
    assert len(rows) == 1


def test_what_is_not_sound_is_not_proposed() -> None:
    text = TextDiff(path="a", change="added", lines=())
    failed = FailedCase(file="t", line=1, name="n", lines=())
    program = ProgramFound(name="p", policies=(), hash="", rules=1, enforced=1, failed=(failed,))
    assert needed(Tried(found=Found(texts=(text,), weighs=False))) == ONE
    assert needed(Tried(found=Found(texts=(text,)))) == TWO
    for tried, said in (
        (Tried(failure="it took too long"), "it took too long"),
        (
            Tried(found=Found(faults=(Fault(file="a", line=3, reason="`x` is no word"),), texts=(text,))),
            "a:3: `x` is no",
        ),
        (Tried(found=Found(programs=(program,), texts=(text,))), "1"),
        (Tried(found=Found()), "changes nothing"),
    ):
        with pytest.raises(ActConflicts, match=said):
            needed(tried)
