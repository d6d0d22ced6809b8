from __future__ import annotations

from collections.abc import Iterator

import pytest
from blockbuster import blockbuster_ctx


@pytest.fixture(autouse=True)
def _no_blocking() -> Iterator[None]:
    """A blocking call of the server on its loop fails the test."""
    with blockbuster_ctx("checkstream"):
        yield
