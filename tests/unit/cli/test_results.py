from __future__ import annotations

import json

import msgspec
import pytest

from checkstream.cli.results import counted, safe, write_json


class Named(msgspec.Struct):
    file: str


@pytest.mark.parametrize("file", ["ours.yaml", "a\nb", "\x1b[2J", "é\u2028", "\udcff.yaml"])
def test_every_value_is_one_line_of_json(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"faults": (Named(file),)})
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    assert json.loads(line) == {"faults": [{"file": file}]}


@pytest.mark.parametrize(("count", "said"), [(0, "0 faults"), (1, "1 fault"), (2, "2 faults")])
def test_one_is_no_plural(count: int, said: str) -> None:
    assert counted(count, "fault") == said


def test_nothing_steers_the_terminal() -> None:
    assert safe("a\x1b[2J\r\u202e\x9bé 字") == "a\\x1b[2J\\r\\u202e\\x9bé 字"
