"""The client of a cluster, before anything is sent."""

from __future__ import annotations

import pytest

from checkstream.errors import StoreUnusable
from checkstream.evidence.elastic import client_of

pytest.importorskip("elasticsearch")


@pytest.mark.parametrize("host", ["search.example.com:99999", "search.example.com:abc", "[::1", "[]"])
def test_an_address_that_is_none_is_told(host: str) -> None:
    with pytest.raises(StoreUnusable, match="is no address"):
        client_of(f"https://{host}/index", api_key=None)
