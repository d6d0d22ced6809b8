from __future__ import annotations

import pytest

from checkstream.core.policy.json_values import MAX_JSON_CHARS, read_json
from checkstream.core.policy.nodes import Source, open_source, read_nodes


def read(content: str) -> tuple[str | None, Source]:
    source = open_source("f.yaml", content)
    root = read_nodes(source)
    assert root is not None
    return read_json(source, root, "`json_schema`"), source


def test_a_schema_is_json_in_the_order_of_the_file() -> None:
    written, source = read(
        "type: object\nrequired: [z, a]\nproperties:\n  z: {type: string, const: 'yes', maxLength: 5}\n"
        "  a: {type: [number, 'null'], minimum: -1.5, default: null}\nadditionalProperties: false\n"
    )
    assert not source.faults
    assert written == (
        '{"type":"object","required":["z","a"],"properties":{"z":{"type":"string","const":"yes","maxLength":5},'
        '"a":{"type":["number","null"],"minimum":-1.5,"default":null}},"additionalProperties":false}'
    )


@pytest.mark.parametrize(
    "value", ["yes", "No", "TRUE", "010", "0x1f", "1_000", "1:30", "2024-01-01", "~", ".inf", ".nan", ""]
)
def test_what_yaml_would_read_in_a_surprising_way_is_refused(value: str) -> None:
    written, source = read(f"const: {value}\n")
    assert written is None
    assert len(source.faults) == 1
    assert source.faults[0].advice


@pytest.mark.parametrize("content", ["[a]\n", "word\n", "'{}'\n"])
def test_only_a_mapping_is_a_schema(content: str) -> None:
    written, source = read(content)
    assert written is None
    assert len(source.faults) == 1


def test_a_schema_is_bounded() -> None:
    written, source = read(f"description: {'x' * MAX_JSON_CHARS}\n")
    assert written is None
    assert source.faults[0].reason == f"`json_schema` is longer than {MAX_JSON_CHARS} characters"


@pytest.mark.parametrize("number", ["12345678901234567", "-5", "0.1", "0", "-0.25"])
def test_numbers_keep_their_values(number: str) -> None:
    assert read(f"a: {number}\n")[0] == f'{{"a":{number}}}'
