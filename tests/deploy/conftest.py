from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import POLICY, _no_hang
from tests.e2e.harness import Llm, running

__all__ = ["POLICY", "_no_hang"]


@pytest.fixture(scope="session")
def llm() -> Iterator[Llm]:
    with running(Llm()) as server:
        yield server
