"""Law: whatever stands in a policy file, reading it gives a program or a `PolicyError` with places in the file."""

from __future__ import annotations

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.policy.compile import compile_sources
from checkstream.errors import Fault, PolicyError

GOOD = """pack: {name: good, version: 1.0.0}
policies:
  - name: one
    id: G-1
    stage: [midstream]
    phrases: [zero risk, "can't lose"]
    match: any
    actions:
      - {type: redact, text: "[cut]"}
      - {type: log_event, severity: low}
    metadata: {regulation: none}
"""
KEYS = st.sampled_from(
    [
        "pack",
        "policies",
        "name",
        "id",
        "stage",
        "channels",
        "mode",
        "phrases",
        "entities",
        "patterns",
        "actions",
        "type",
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(["redact", "midstream", "EMAIL", "all", "shadow", "group:pii", "content"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def compiles_or_says_where(content: str | bytes) -> None:
    faults: tuple[Fault, ...] = ()
    try:
        compile_sources([("f.yaml", content)])
    except PolicyError as error:
        faults = error.faults or (Fault(file="", reason=""),)
    text = content if isinstance(content, str) else content.decode("utf-8", errors="replace")
    lines = len(text.splitlines()) + 1
    for fault in faults:
        assert fault.file == "f.yaml"
        assert 0 <= fault.line <= lines
        assert fault.reason


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    compiles_or_says_where(content)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text(content: str) -> None:
    compiles_or_says_where(content)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_any_yaml_value(value: object) -> None:
    compiles_or_says_where(yaml.safe_dump(value))


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=8))
def test_any_rule(rule: dict[str, object]) -> None:
    tree = {"pack": {"name": "p", "version": "1"}, "policies": [{"name": "n", "id": "X-1", **rule}]}
    compiles_or_says_where(yaml.safe_dump(tree))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(GOOD)), st.integers(0, 12), st.text(max_size=6))
def test_a_good_file_with_a_hole_or_a_patch(start: int, length: int, patch: str) -> None:
    compiles_or_says_where(GOOD[:start] + patch + GOOD[start + length :])
