"""What evidence relies on in a store, whatever is behind it: SQLite, PostgreSQL, Elasticsearch (`evidence_stores`)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from checkstream.errors import StoreUnusable
from checkstream.evidence.records import Chunk, Document, chunk_id, snapshot_id
from checkstream.evidence.search import Retriever
from checkstream.evidence.store import COMMON_FROM, Store
from checkstream.evidence.vectors import Matrix
from checkstream.scoring.embedding import HashingEmbedder
from tests.evidence_stores import KINDS, Open, opened, postgres

__all__ = ["postgres"]

EMBEDDER = HashingEmbedder(48)
REFUNDS = ("Refunds are paid within 30 days of a return.", "Shipping is free for orders over 50 euros.")
OFFICES = ("The office in 北京 opened in 1998.", "公司成立于1998年。", "המשרד בתל אביב נפתח בשנת 2004")


@pytest.fixture(params=KINDS)
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Open]:
    async with opened(request.param, tmp_path, request) as open_one:
        yield open_one


@pytest.fixture
async def store(open_store: Open) -> Store:
    return await open_store(EMBEDDER)


def cut(source: str, texts: Sequence[str]) -> list[Chunk]:
    return [
        Chunk(
            id=chunk_id(text, source),
            source=source,
            text=text,
            headings=("Guide", "Part"),
            start=at,
            end=at + len(text),
        )
        for at, text in enumerate(texts)
    ]


async def put(store: Store, source: str, texts: Sequence[str], digest: str = "d") -> list[Chunk]:
    chunks = cut(source, texts)
    vectors = await EMBEDDER.embed([chunk.text for chunk in chunks])
    await store.put(Document(source=source, digest=digest), chunks, vectors)
    return chunks


async def found(store: Store, text: str, size: int = 5) -> list[str]:
    return [hit.chunk.text for hit in await store.keyword(text, size)]


async def test_a_new_store_is_empty_and_finds_nothing(store: Store) -> None:
    assert (await store.count(), await store.documents()) == (0, [])
    assert await store.snapshot() == snapshot_id([], EMBEDDER.name)
    assert await store.keyword("refunds", 5) == []
    assert await store.vector((await EMBEDDER.embed(["refunds"]))[0], 5) == []


async def test_what_is_put_comes_back_as_it_was(store: Store) -> None:
    chunks = await put(store, "guide.md", (*REFUNDS, *OFFICES))
    assert await store.count() == len(chunks)
    assert await store.documents() == [Document(source="guide.md", digest="d", chunks=len(chunks))]
    for chunk in chunks:
        assert (await store.keyword(chunk.text, 1))[0].chunk == chunk
        assert (await store.vector((await EMBEDDER.embed([chunk.text]))[0], 1))[0].chunk == chunk


async def test_putting_again_changes_nothing_and_another_text_replaces(store: Store) -> None:
    await put(store, "a", REFUNDS)
    before = await store.snapshot()
    await put(store, "a", REFUNDS)
    assert (await store.count(), await store.snapshot()) == (2, before)
    await put(store, "a", (REFUNDS[0], "Shipping costs 5 euros."), "e")
    assert await store.count() == 2
    assert await store.snapshot() != before
    assert await found(store, "free orders over 50") == []
    assert await found(store, "shipping costs") == ["Shipping costs 5 euros."]
    assert [document.digest for document in await store.documents()] == ["e"]


async def test_deleting_removes_one_document_and_may_be_repeated(store: Store) -> None:
    await put(store, "a", REFUNDS)
    await put(store, "a/b", OFFICES)
    for _ in range(2):
        await store.delete("a")
        assert [document.source for document in await store.documents()] == ["a/b"]
        assert await found(store, "refunds shipping") == []
    assert await found(store, "office") == [OFFICES[0]]


async def test_a_document_without_chunks_is_kept_as_such(store: Store) -> None:
    await store.put(Document(source="empty", digest="d"), [], np.zeros((0, EMBEDDER.dimensions), np.float32))
    assert await store.documents() == [Document(source="empty", digest="d")]


async def test_the_snapshot_names_the_content_and_not_its_history(store: Store) -> None:
    await put(store, "b", OFFICES)
    await put(store, "a", REFUNDS)
    await store.delete("b")
    assert await store.snapshot() == snapshot_id([chunk.id for chunk in cut("a", REFUNDS)], EMBEDDER.name)


async def test_words_are_found_in_every_script_and_rare_ones_count_more(store: Store) -> None:
    await put(store, "a", (*REFUNDS, *OFFICES))
    assert await found(store, "北京") == [OFFICES[0]]
    assert await found(store, "公司成立") == [OFFICES[1]]
    assert await found(store, "תל אביב") == [OFFICES[2]]
    assert (await found(store, "are refunds free in the office of the guide"))[0] == OFFICES[0]
    assert await found(store, "SHIPPING") == [REFUNDS[1]]


@pytest.mark.parametrize("count", [50, COMMON_FROM + 200])
async def test_words_that_stand_everywhere_don_t_hide_the_rare_ones_and_are_found_alone(
    store: Store, count: int
) -> None:
    chunks = cut("s", [f"the common words and number{number}" for number in range(count)])
    vectors = np.tile(np.eye(1, EMBEDDER.dimensions, dtype=np.float32), (count, 1))
    await store.put(Document(source="s", digest="d"), chunks, vectors)
    assert (await found(store, "the common number7 and words", 3))[0].endswith("number7")
    assert len(await found(store, "the common", 3)) == 3


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "' or 1=1 --",
        "NEAR(x y) OR *",
        "terms:*",
        "{}",
        "x AND NOT y",
        "\x00",
        "\\",
        "x" * 100_000,
        "é" * 9_999,
        "\ud800",
    ],
)
async def test_a_hostile_claim_is_only_words(store: Store, query: str) -> None:
    await put(store, "a", REFUNDS)
    assert await found(store, query) == []
    assert len(await found(store, f"refunds {query}")) == 1


async def test_hostile_texts_and_names_come_back(store: Store) -> None:
    source = "../é'\";drop table chunks;--%s{}"
    texts = ("'; drop table chunks; --", '{"a": "\\u0000"}', "%s %(a)s {0}", "tab\there\\N", "\U0001f600 smile")
    chunks = await put(store, source, texts)
    assert await store.count() == len(chunks)
    assert (await store.keyword("smile", 1))[0].chunk == chunks[-1]
    assert [document.source for document in await store.documents()] == [source]
    await store.delete(source)
    assert await store.count() == 0


async def test_vector_search_is_exact_and_equal_ones_come_by_id(store: Store) -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(300, EMBEDDER.dimensions)).astype(np.float32)
    rows[200:] = rows[:100]  # equal vectors, other ids
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    chunks = cut("v", [f"text {number}" for number in range(300)])
    await store.put(Document(source="v", digest="d"), chunks, rows)
    oracle = Matrix([chunk.id for chunk in chunks], rows)
    for query in rng.normal(size=(20, EMBEDDER.dimensions)).astype(np.float32):
        wanted = [(chunks[place].id, score) for place, score in oracle.nearest(query / np.linalg.norm(query), 7)]
        hits = await store.vector(query / np.linalg.norm(query), 7)
        assert [hit.chunk.id for hit in hits] == [identity for identity, _ in wanted]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in wanted], abs=1e-5)


async def test_a_vector_of_zeros_is_found_by_nothing_and_finds_nothing(store: Store) -> None:
    chunks = cut("z", ("...", "words"))
    await store.put(Document(source="z", digest="d"), chunks, await EMBEDDER.embed([chunk.text for chunk in chunks]))
    assert await store.vector(np.zeros(EMBEDDER.dimensions, np.float32), 5) == []
    hits = await store.vector((await EMBEDDER.embed(["words"]))[0], 5)
    assert [hit.chunk.text for hit in hits] == ["words"]


async def test_what_one_process_puts_another_finds(open_store: Open) -> None:
    writer, reader = await open_store(EMBEDDER), await open_store(EMBEDDER)
    query = (await EMBEDDER.embed([REFUNDS[0]]))[0]
    assert await reader.vector(query, 1) == []
    await put(writer, "a", REFUNDS)
    await writer.snapshot()  # an engine that shows what is written a second later has shown it now
    assert [hit.chunk.text for hit in await reader.vector(query, 1)] == [REFUNDS[0]]
    assert await found(reader, "refunds") == [REFUNDS[0]]


async def test_several_tasks_may_put_and_search_at_once(store: Store) -> None:
    sources = [f"s{number}" for number in range(8)]
    puts = [put(store, source, [f"{text} {source}" for text in REFUNDS]) for source in sources]
    await asyncio.gather(*puts, *(store.keyword("refunds", 3) for _ in sources), store.delete("s99"))
    assert [document.source for document in await store.documents()] == sources
    assert await store.count() == 2 * len(sources)
    for source in sources:
        assert await found(store, source, 2) == [f"{text} {source}" for text in reversed(REFUNDS)]


async def test_two_processes_may_put_the_same_document_at_once(open_store: Open) -> None:
    one, two = await open_store(EMBEDDER), await open_store(EMBEDDER)
    texts = [f"Paragraph {number}" for number in range(60)]
    chunks, _ = await asyncio.gather(put(one, "a", texts), put(two, "a", texts))
    for store in (one, two):
        assert await store.documents() == [Document(source="a", digest="d", chunks=60)]
        assert await store.snapshot() == snapshot_id([chunk.id for chunk in chunks], EMBEDDER.name)


async def test_opened_again_it_holds_what_it_held_and_another_embedder_is_refused(open_store: Open) -> None:
    await put(await open_store(EMBEDDER), "a", REFUNDS)
    assert await (await open_store(EMBEDDER)).count() == 2
    with pytest.raises(StoreUnusable, match="holds the vectors of `hashing-48`"):
        await open_store(HashingEmbedder(32))


async def test_a_document_of_hundreds_of_chunks_is_whole(store: Store) -> None:
    texts = [f"Paragraph {number} about item {random.Random(number).random()}" for number in range(450)]
    await put(store, "long", texts)
    assert await store.count() == 450
    await put(store, "long", texts[:3])
    assert await store.count() == 3


async def test_both_searches_are_fused_by_rank(store: Store) -> None:
    await put(store, "a", (*REFUNDS, *OFFICES))
    retriever = Retriever(store, EMBEDDER)
    both = await retriever.search("Refunds are paid within 30 days")
    assert both.keyword[0].chunk.text == both.vector[0].chunk.text == REFUNDS[0]
    assert both.fused(1)[0].score == pytest.approx(2 / 61)
    passages = both.passages()
    assert passages[0].text == REFUNDS[0]
    assert len({passage.id for passage in passages}) == len(passages)
    assert (await retriever.hybrid("Refunds are paid within 30 days", 3))[0].chunk.text == REFUNDS[0]
    with pytest.raises(ValueError, match="not of `hashing-32`"):
        Retriever(store, HashingEmbedder(32))
