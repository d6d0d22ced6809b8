"""How clusters of Elasticsearch are reached, whatever is kept there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from checkstream.errors import StoreUnusable

if TYPE_CHECKING:
    from elasticsearch import AsyncElasticsearch

_TIMEOUT_S = 30.0


def client_of(url: str, *, api_key: str | None, authority: str | None = None) -> tuple[AsyncElasticsearch, str]:
    """Return a client of a cluster, and the name in the address's path; nothing is sent yet.

    Args:
        url: of the cluster; its path, if it has one, names the index.
        api_key: sent with each request.
        authority: file with the certificate of who signed the cluster's, if it is one of your own.

    Raises:
        StoreUnusable: the extra is not installed, or the address is none.
    """
    try:
        from elasticsearch import AsyncElasticsearch  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise StoreUnusable("Elasticsearch needs the extra `checkstream[elasticsearch]`; install it") from error
    options: dict[str, Any] = {} if authority is None else {"ca_certs": authority}
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 9200)
    except ValueError as error:
        raise StoreUnusable(f"`{url}` is no address of a cluster; write `https://host:9200/index`") from error
    client = AsyncElasticsearch(
        f"{parts.scheme}://{parts.hostname}:{port}", api_key=api_key, request_timeout=_TIMEOUT_S, **options
    )
    return client, parts.path.strip("/")


async def make_index(
    client: AsyncElasticsearch, index: str, mappings: Mapping[str, Any], settings: Mapping[str, Any]
) -> None:
    """Make an index, unless it is there; two processes may try at once."""
    from elasticsearch import BadRequestError  # noqa: PLC0415 - of an extra

    try:
        await client.indices.create(index=index, mappings=mappings, settings=settings)
    except BadRequestError as error:
        if error.error != "resource_already_exists_exception":
            raise


async def write(client: AsyncElasticsearch, index: str, documents: Mapping[str, Mapping[str, Any]]) -> None:
    """Write documents by their ids, in place of those of the same ids, in one request.

    Raises:
        StoreUnusable: one is not taken.
    """
    operations: list[Mapping[str, Any]] = []
    for identity, document in documents.items():
        operations += ({"index": {"_id": identity}}, document)
    answer = await client.bulk(index=index, operations=operations)
    if answer["errors"]:
        failed = next(item["index"]["error"] for item in answer["items"] if "error" in item["index"])
        raise StoreUnusable(f"Elasticsearch does not take a document: {str(failed.get('reason'))[:300]}")


@asynccontextmanager
async def told() -> AsyncIterator[None]:
    """Tell the cluster's errors in our own words.

    Raises:
        StoreUnusable: the cluster can't be reached, or refuses.
    """
    from elasticsearch import ApiError, TransportError  # noqa: PLC0415 - of an extra

    try:
        yield
    except (ApiError, TransportError) as error:
        why = (str(error) or type(error).__name__).splitlines()[0][:300]
        raise StoreUnusable(f"Elasticsearch can't be used: {why}; check its address and rights") from error
