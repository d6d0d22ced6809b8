"""Documents brought into a store, again and again."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from checkstream.core.terms import Span
from checkstream.errors import DocumentUnreadable, SourceRefused
from checkstream.evidence import extraction
from checkstream.evidence.chunking import Cutting, Tokenise, words
from checkstream.evidence.ingest import Change, Ingestion, Step
from checkstream.evidence.kinds import Kind
from checkstream.evidence.sources import Sources
from checkstream.evidence.sqlite_store import SqliteStore
from checkstream.evidence.web import Web
from checkstream.scoring.embedding import HashingEmbedder

EMBEDDER = HashingEmbedder(32)


class InProcess:
    """Reads documents here: the sandbox has tests of its own."""

    async def extract(self, data: bytes, kind: Kind, media_type: str = "") -> str:
        return extraction.extract(data, kind, media_type)


async def ingest(
    folder: Path,
    *sources: str,
    cutting: Cutting | None = None,
    told: Callable[[Step], None] = lambda _: None,
    tokenise: Tokenise = words,
) -> dict[str, Change]:
    store = await SqliteStore.open(str(folder / "evidence.db"), EMBEDDER.name, EMBEDDER.dimensions)
    steps: list[Step] = []
    cutting = cutting or Cutting(size=40, overlap=8)

    def hear(step: Step) -> None:
        steps.append(step)
        told(step)

    ingestion = Ingestion(store, EMBEDDER, extractor=InProcess(), tokenise=tokenise, cutting=cutting, at_once=3)
    try:
        await ingestion.run(sources, Sources(web=Web()), hear)
    finally:
        await store.close()
    assert max(Counter(step.source for step in steps).values(), default=1) == 1
    return {Path(step.source).name: step.change for step in steps}


async def snapshot(folder: Path) -> tuple[int, str]:
    store = await SqliteStore.open(str(folder / "evidence.db"), EMBEDDER.name, EMBEDDER.dimensions)
    found = await store.count(), await store.snapshot()
    await store.close()
    return found


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number}.md").write_text(f"# Part {number}\n\n" + f"Sentence {number} of the part. " * 30)
    return folder


async def test_what_is_new_comes_in_and_what_is_unchanged_is_left(tmp_path: Path, docs: Path) -> None:
    assert set((await ingest(tmp_path, str(docs))).values()) == {Change.ADDED}
    before = await snapshot(tmp_path)
    assert before[0] > 12
    assert set((await ingest(tmp_path, str(docs))).values()) == {Change.UNCHANGED}
    assert await snapshot(tmp_path) == before


async def test_what_changed_is_replaced_what_went_is_removed_and_the_rest_is_left(tmp_path: Path, docs: Path) -> None:
    (tmp_path / "other.md").write_text("Something else.")
    await ingest(tmp_path, str(docs), str(tmp_path / "other.md"))
    (docs / "1.md").write_text("Another text.")
    (docs / "2.md").unlink()
    (docs / "3.md").write_bytes(b"\x00\x01")
    (docs / "new.md").write_text("A new text.")
    found = await ingest(tmp_path, str(docs))
    told = {name: change for name, change in found.items() if change is not Change.UNCHANGED}
    assert told == {"1.md": Change.REPLACED, "2.md": Change.REMOVED, "3.md": Change.FAILED, "new.md": Change.ADDED}
    store = await SqliteStore.open(str(tmp_path / "evidence.db"), EMBEDDER.name, EMBEDDER.dimensions)
    kept = {Path(document.source).name for document in await store.documents()}
    await store.close()
    assert kept == {"other.md", "new.md", *(f"{number}.md" for number in range(12) if number != 2)}


async def test_the_same_documents_make_the_same_snapshot_whatever_came_before(tmp_path: Path, docs: Path) -> None:
    await ingest(tmp_path, str(docs))
    before = await snapshot(tmp_path)
    kept = (docs / "5.md").read_text()
    (docs / "5.md").write_text("x y z")
    await ingest(tmp_path, str(docs))
    assert await snapshot(tmp_path) != before
    (docs / "5.md").write_text(kept)
    await ingest(tmp_path, str(docs))
    assert await snapshot(tmp_path) == before


async def test_documents_that_are_cut_otherwise_are_read_anew(tmp_path: Path, docs: Path) -> None:
    await ingest(tmp_path, str(docs))
    assert set((await ingest(tmp_path, str(docs), cutting=Cutting(size=20, overlap=4))).values()) == {Change.REPLACED}


async def test_a_source_that_is_not_there_removes_nothing(tmp_path: Path, docs: Path) -> None:
    await ingest(tmp_path, str(docs))
    before = await snapshot(tmp_path)
    os.rename(docs, tmp_path / "moved")  # noqa: PTH104 - a path object would be said to block the loop
    with pytest.raises(SourceRefused, match="there is no"):
        await ingest(tmp_path, str(docs))
    assert await snapshot(tmp_path) == before


async def test_a_document_that_fails_is_told_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4 broken")
    assert await ingest(tmp_path, str(tmp_path / "a.pdf")) == {"a.pdf": Change.FAILED}
    with pytest.raises(DocumentUnreadable):
        await InProcess().extract(b"%PDF-1.4 broken", Kind.PDF)


async def test_a_document_of_no_words_and_one_with_a_name_too_long_stop_no_other(tmp_path: Path, docs: Path) -> None:
    (docs / "signs.md").write_text("\u200b")  # of which no tokeniser of a model makes a token
    place = docs
    for _ in range(11):
        place /= "x" * 200
        place.mkdir()
    (place / "deep.md").write_text("Some words.")

    def tokens(text: str) -> list[Span]:
        return [] if text == "\u200b" else words(text)

    found = await ingest(tmp_path, str(docs), tokenise=tokens)
    assert found.pop("deep.md") is Change.FAILED
    assert found.pop("signs.md") is Change.ADDED
    assert set(found.values()) == {Change.ADDED}
    assert len(found) == 12
    assert (await ingest(tmp_path, str(docs), tokenise=tokens))["signs.md"] is Change.UNCHANGED


CHILD = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.unit.evidence.test_ingest import ingest
asyncio.run(ingest(Path({folder!r}), {docs!r}, told=lambda step: print(step.source, flush=True)))
"""


async def test_a_run_that_was_killed_is_gone_on_with(tmp_path: Path, docs: Path) -> None:
    for number in range(200):
        (docs / f"many{number}.md").write_text(f"Text number {number}. " * 200)
    root = str(Path(__file__).parents[3])
    code = CHILD.format(root=root, folder=str(tmp_path), docs=str(docs))
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=root, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    for _ in range(20):
        assert await child.stdout.readline()
    child.kill()
    await child.wait()
    found = Counter((await ingest(tmp_path, str(docs))).values())
    assert found.keys() <= {Change.ADDED, Change.UNCHANGED}
    assert found[Change.UNCHANGED] >= 20
    resumed = await snapshot(tmp_path)
    (tmp_path / "fresh").mkdir()
    await ingest(tmp_path / "fresh", str(docs))
    assert await snapshot(tmp_path / "fresh") == resumed
