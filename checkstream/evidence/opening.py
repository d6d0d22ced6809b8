"""A store by its address."""

from __future__ import annotations

from urllib.parse import urlsplit

from checkstream.errors import StoreUnusable
from checkstream.evidence.elastic_store import ElasticStore
from checkstream.evidence.postgres_store import PostgresStore
from checkstream.evidence.sqlite_store import SqliteStore
from checkstream.evidence.store import Store
from checkstream.scoring.embedding import Embedder

SQLITE = "sqlite:"


async def open_store(
    address: str, embedder: Embedder, *, secret: str | None = None, authority: str | None = None
) -> Store:
    """Open the store at an address, made ready for the vectors of an embedder.

    Args:
        address: `sqlite:FILE`, `https://host:9200/index` (Elasticsearch), `postgresql://user@host/database`.
        embedder: whose vectors it holds.
        secret: Elasticsearch's API key, or PostgreSQL's password.
        authority: file with the certificate that the server's is signed with; by default those of the system.

    Raises:
        StoreUnusable: the address is of no known kind, or the store can't be used.
    """
    name, dimensions = embedder.name, embedder.dimensions
    if address.startswith(SQLITE):
        return await SqliteStore.open(address.removeprefix(SQLITE), name, dimensions)
    scheme = urlsplit(address).scheme
    if scheme in ("http", "https"):
        return await ElasticStore.open(address, name, dimensions, api_key=secret, authority=authority)
    if scheme in ("postgresql", "postgres"):
        return await PostgresStore.open(address, name, dimensions, password=secret)
    raise StoreUnusable(f"`{address}` is no address of a store; write sqlite:FILE, https://... or postgresql://...")
