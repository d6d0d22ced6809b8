"""Evidence: how quickly documents come in, how quickly claims find theirs, and how alike the stores are.

    python -m bench.evidence [--pages FOLDER]... [--chunks N] [--postgres URL] [--out FILE]

Pages are what Debian's documentation packages install (`python3-doc`, `debian-policy`, `debian-reference-en`,
`developers-reference`, ...); with too few of them for N chunks, they are brought in again under other names. Queries
are sentences of the pages themselves with every second word left out. Vectors are of the hashing embedder with 384
dimensions, as long as a small model's. Figures are CPU time where they say so, else wall-clock.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

from bench.report import machine, table
from checkstream.errors import DocumentUnreadable
from checkstream.evidence.chunking import Cutting, chunks, words
from checkstream.evidence.extraction import extract
from checkstream.evidence.kinds import Kind, named
from checkstream.evidence.opening import open_store
from checkstream.evidence.records import Chunk, Document
from checkstream.evidence.search import DEPTH, Retriever
from checkstream.evidence.store import Store
from checkstream.grounding.sentences import sentences
from checkstream.scoring.embedding import HashingEmbedder

_PAGES = ("/usr/share/doc/python3.11/html", "/usr/share/doc/debian-policy", "/usr/share/debian-reference")
_QUERIES = 200
_TOP = 5


def _read(folders: Sequence[Path]) -> tuple[list[tuple[str, str]], float, int]:
    """Return cleaned pages, the CPU seconds that cleaning took, and the bytes that went in."""
    found: list[tuple[str, str]] = []
    size, began = 0, time.process_time()
    for path in sorted(path for folder in folders for path in folder.rglob("*") if path.is_file()):
        kind = named(path.name)
        if kind not in (Kind.HTML, Kind.MARKDOWN):
            continue
        data = path.read_bytes()
        try:
            found.append((path.as_posix(), extract(data, kind)))
        except DocumentUnreadable:
            continue
        size += len(data)
    return found, time.process_time() - began, size


async def _fill(store: Store, embedder: HashingEmbedder, documents: Sequence[Sequence[Chunk]]) -> tuple[float, float]:
    """Return the CPU seconds of embedding and of keeping all of it."""
    embedding = keeping = 0.0
    for cut in documents:
        began = time.process_time()
        vectors = await embedder.embed([chunk.searched for chunk in cut])
        middle = time.process_time()
        await store.put(Document(source=cut[0].source, digest=""), cut, vectors)
        embedding += middle - began
        keeping += time.process_time() - middle
    return embedding, keeping


def _queries(pages: Sequence[tuple[str, str]]) -> list[str]:
    rng = random.Random(4)
    said = [text[span.start : span.end] for _, text in pages for span in sentences(text)[:60]]
    fit = sorted({each for each in said if 8 <= len(each.split()) <= 30})
    return [" ".join(each.split()[::2]) for each in rng.sample(fit, min(_QUERIES, len(fit)))]


async def run(folders: Sequence[Path], wanted: int, others: Sequence[str]) -> list[str]:
    """Measure, and return the report."""
    pages, cleaning, size = _read(folders)
    if not pages:
        raise SystemExit("none of the documentation packages is installed; name a folder of pages with --pages")
    began = time.process_time()
    cut = [found for source, text in pages if (found := chunks(text, source, words, Cutting()))]
    cutting = time.process_time() - began
    real = sum(map(len, cut))
    copies = [
        chunks(text, f"copy {turn}/{source}", words, Cutting())
        for turn in range(wanted // real)
        for source, text in pages
    ]
    filling: list[list[Chunk]] = [*cut]
    for extra in copies:
        if sum(map(len, filling)) >= wanted:
            break
        filling.append(extra)
    embedder = HashingEmbedder(384)
    queries = _queries(pages)
    with tempfile.TemporaryDirectory() as folder:
        stores = [await open_store(address, embedder) for address in (f"sqlite:{folder}/evidence.db", *others)]
        costs = [await _fill(store, embedder, filling) for store in stores]
        total = await stores[0].count()
        rows = [["cleaning", f"{len(pages) / cleaning:.1f}", f"{size / 1e6 / cleaning:.2f}"]]
        for name, seconds in (
            ("cutting", cutting),
            ("hashing embedder", costs[0][0]),
            ("keeping (SQLite)", costs[0][1]),
        ):
            rows.append([name, f"{len(filling) / seconds if name != 'cutting' else len(pages) / seconds:.1f}", ""])
        lines = [
            f"{len(pages)} pages, {size / 1e6:.1f} MB, {real} chunks; searched: {total}, by {len(queries)} queries.",
            "",
        ]
        lines += ["## Bringing in (CPU time of one core)", "", *table(("step", "documents/s", "MB/s"), rows)]
        lines += ["", "## Searching", "", *await _searching(stores, embedder, queries)]
        for store in stores:
            await store.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return [*lines, "", f"Most memory of the process: {memory:.0f} MB."]


async def _searching(stores: Sequence[Store], embedder: HashingEmbedder, queries: Sequence[str]) -> list[str]:
    vectors = await embedder.embed(queries)
    keyword = [[[hit.chunk.id for hit in await store.keyword(query, _TOP)] for query in queries] for store in stores]
    nearest = [[[hit.chunk.id for hit in await store.vector(row, _TOP)] for row in vectors] for store in stores]
    rows = []
    for place, store in enumerate(stores):
        retriever = Retriever(store, embedder)
        wall, cpu = [], []
        for query in queries:
            began, used = time.perf_counter(), time.process_time()
            await retriever.hybrid(query)
            wall.append((time.perf_counter() - began) * 1e3)
            cpu.append((time.process_time() - used) * 1e3)
        shared = [len({*one} & {*two}) / max(len(two), 1) for one, two in zip(keyword[place], keyword[0], strict=True)]
        same = sum(one == two for one, two in zip(nearest[place], nearest[0], strict=True))
        rows.append(
            [
                type(store).__name__,
                *(f"{figure:.1f}" for times in (wall, cpu) for figure in (median(times), quantiles(times, n=20)[-1])),
                f"{sum(shared) / len(shared):.2f}",
                f"{same}/{len(queries)}",
            ]
        )
    head = (
        "store",
        "hybrid p50, ms",
        "p95, ms",
        "own CPU p50, ms",
        "p95, ms",
        "keyword top-5 as SQLite's",
        "vector top-5 equal",
    )
    return [*table(head, rows), "", f"Hybrid: {DEPTH} by words and {DEPTH} by vector, fused, the best 10."]


def main(given: Sequence[str]) -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.evidence", description=__doc__)
    parser.add_argument("--pages", type=Path, action="append", metavar="FOLDER", help="folders of pages")
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--store", action="append", default=[], metavar="STORE", help="an empty store to compare with")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the report here too")
    args = parser.parse_args(given)
    body = asyncio.run(
        run(args.pages or [Path(each) for each in _PAGES if Path(each).is_dir()], args.chunks, args.store)
    )
    text = "\n".join(["# Evidence", "", *machine(), "", *body]) + "\n"
    sys.stdout.write(text)
    if args.out is not None:
        args.out.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
