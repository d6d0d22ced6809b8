"""What the embedded store does beside what all stores do."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from checkstream.errors import StoreUnusable
from checkstream.evidence import analysis
from checkstream.evidence.records import Chunk, Document, chunk_id
from checkstream.evidence.sqlite_store import SqliteStore


async def filled(path: Path, count: int) -> SqliteStore:
    store = await SqliteStore.open(str(path), "e", 2)
    texts = [f"the common words and number{number}" for number in range(count)]
    chunks = [Chunk(id=chunk_id(text, "s"), source="s", text=text, start=0, end=9) for text in texts]
    await store.put(Document(source="s", digest="d"), chunks, np.tile(np.array([1, 0], np.float32), (count, 1)))
    return store


async def test_an_index_of_other_terms_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await (await filled(tmp_path / "e.db", 20)).close()
    monkeypatch.setattr(analysis, "VERSION", 99)
    monkeypatch.setattr(analysis, "terms", lambda text: [word[::-1] for word in text.split()])
    store = await SqliteStore.open(str(tmp_path / "e.db"), "e", 2)
    assert (await store.keyword("number7", 1))[0].chunk.text.endswith("number7")
    await store.delete("s")
    assert await store.keyword("number7", 1) == []
    await store.close()


async def test_a_file_that_is_no_store_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    for name, content in (("text.db", b"no database at all, but long enough to be looked at" * 99),):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(StoreUnusable, match="can't be used"):
            await SqliteStore.open(str(tmp_path / name), "e", 2)
        assert (tmp_path / name).read_bytes() == content
    other = sqlite3.connect(tmp_path / "other.db")
    other.executescript("create table meta(key text, value text); create table mine(x)")
    other.close()
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(StoreUnusable, match="another version"):
        await SqliteStore.open(str(tmp_path / "other.db"), "e", 2)
    assert (tmp_path / "other.db").read_bytes() == before


async def test_messages_name_the_file_without_its_place(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_bytes(b"no database at all" * 999)
    await (await filled(tmp_path / "own.db", 1)).close()
    for name, embedder in (("text.db", "e"), ("text.db/below.db", "e"), ("own.db", "f")):
        path = tmp_path / name
        with pytest.raises(StoreUnusable, match=rf"`{path.name}`") as caught:
            await SqliteStore.open(str(path), embedder, 2)
        assert str(tmp_path) not in str(caught.value)


async def test_what_another_process_removes_during_a_search_is_still_found_whole(tmp_path: Path) -> None:
    reader = await filled(tmp_path / "e.db", 3)
    query = np.array([1, 0], np.float32)
    assert len(await reader.vector(query, 3)) == 3
    removed: list[str] = []

    def remove(statement: str) -> None:
        if "where number" in statement and not removed:
            removed.append(statement)
            other = sqlite3.connect(tmp_path / "e.db")
            other.execute("delete from chunks")
            other.commit()
            other.close()

    await reader._run(lambda store: store._db.set_trace_callback(remove))
    assert len(await reader.vector(query, 3)) == 3
    assert removed
    assert await reader.vector(query, 3) == []
    await reader.close()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
async def test_a_file_that_was_cut_off_is_told_as_damaged_and_not_searched_in_part(
    tmp_path: Path, share: float
) -> None:
    path = tmp_path / "e.db"
    await (await filled(path, 500)).close()
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(StoreUnusable, match="can't be used"):
        await SqliteStore.open(str(path), "e", 2)


async def test_a_full_disk_refuses_a_document_and_the_store_goes_on(tmp_path: Path) -> None:
    store = await filled(tmp_path / "e.db", 3)
    await store._run(lambda store: store._db.execute("pragma max_page_count = 1"))  # of the pages that there are
    text = "x" * 500_000
    chunk = Chunk(id=chunk_id(text, "t"), source="t", text=text, start=0, end=9)
    for _ in range(2):
        with pytest.raises(StoreUnusable, match="full"):
            await store.put(Document(source="t", digest="d"), [chunk], np.array([[1, 0]], np.float32))
    assert (await store.count(), len(await store.documents())) == (3, 1)
    await store._run(lambda store: store._db.execute("pragma max_page_count = 1000000"))
    await store.put(Document(source="t", digest="d"), [chunk], np.array([[1, 0]], np.float32))
    assert await store.count() == 4
    await store.close()
