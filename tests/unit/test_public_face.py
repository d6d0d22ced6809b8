"""What users may import."""

from __future__ import annotations

import pytest

import checkstream


def test_every_public_name_loads() -> None:
    assert all(getattr(checkstream, name) is not None for name in checkstream.__all__)


def test_nothing_else_is_public() -> None:
    with pytest.raises(AttributeError, match="no attribute `Outbox`"):
        checkstream.__getattr__("Outbox")
