from __future__ import annotations

import msgspec
import pytest

from checkstream.demo.script import Breakage, Script


def test_a_fault_stands_at_exactly_one_place() -> None:
    with pytest.raises(msgspec.ValidationError, match="after_events"):
        msgspec.convert({"kind": "reset"}, Breakage)
    with pytest.raises(msgspec.ValidationError, match="after_events"):
        msgspec.convert({"kind": "reset", "after_events": 1, "after_bytes": 1}, Breakage)
    assert msgspec.convert({"kind": "reset", "after_bytes": 0}, Breakage).after_bytes == 0


def test_only_a_stall_has_a_length() -> None:
    with pytest.raises(msgspec.ValidationError, match="stall_ms"):
        msgspec.convert({"kind": "end", "after_events": 1, "stall_ms": 5}, Breakage)
    assert msgspec.convert({"kind": "stall", "after_events": 1, "stall_ms": 5}, Breakage).stall_ms == 5


@pytest.mark.parametrize("tree", [{}, {"choices": [{"content": "x"}], "error": {"status": 500}}])
def test_a_script_answers_or_fails(tree: object) -> None:
    with pytest.raises(msgspec.ValidationError, match="one of `choices` and `error`"):
        msgspec.convert(tree, Script)
