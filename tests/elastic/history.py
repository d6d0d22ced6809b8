"""A history of runs that many machines share: in a cluster where `CHECKSTREAM_ES_URL` names one, else in the fake."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp.test_utils import TestServer

from tests.elastic.fake import FakeElastic


@asynccontextmanager
async def shared_history() -> AsyncIterator[str]:
    """Give the address of an empty one; what asks there asks nothing that Elastic does not specify."""
    index = f"checkstream-test-{uuid.uuid4().hex}"
    if real := os.environ.get("CHECKSTREAM_ES_URL"):
        from elasticsearch import AsyncElasticsearch

        yield f"{real.rstrip('/')}/{index}"
        async with AsyncElasticsearch(real) as admin:
            await admin.indices.delete(index=[f"{index}-runs", f"{index}-said"], ignore_unavailable=True)
        return
    fake = FakeElastic()
    async with TestServer(fake.app()) as server:
        yield f"http://127.0.0.1:{server.port}/{index}"
    assert fake.refused == []
