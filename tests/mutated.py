"""JSON with something hostile in the place of each of its parts."""

from __future__ import annotations

HOSTILE: list[object] = [
    None, True, -1, 2**62, 2**70, 1.5, "s", "", [], {}, [[]], [None], ["x"], {"a": {}}, {"index": "x"}, {"type": []},
]  # fmt: skip


def mutations(value: object) -> list[object]:
    """Return copies of `value` with a hostile value in the place of each of its parts."""
    out = list(HOSTILE)
    if isinstance(value, dict):
        out += [value | {key: new} for key in value for new in mutations(value[key])]
    if isinstance(value, list):
        out += [[*value[:i], new, *value[i + 1 :]] for i in range(len(value)) for new in mutations(value[i])]
    return out
