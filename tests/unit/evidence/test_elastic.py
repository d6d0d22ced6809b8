"""The client of a cluster, before anything is sent."""

from __future__ import annotations

import pytest

from checkstream.errors import StoreUnusable
from checkstream.evidence.elastic import client_of

pytest.importorskip("elasticsearch")


@pytest.mark.parametrize("port", ["99999", "abc"])
def test_a_port_that_is_none_is_told(port: str) -> None:
    with pytest.raises(StoreUnusable, match="has no port"):
        client_of(f"https://search.example.com:{port}/index", api_key=None)
