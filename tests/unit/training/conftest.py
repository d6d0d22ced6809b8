"""Recipes train on one thread here: tests run beside each other, and threads that wait for a core take it from one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """What trains takes one core, on however many the machine has."""
    try:
        import torch
    except ModuleNotFoundError:
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
