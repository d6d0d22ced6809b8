from __future__ import annotations

import os
from pathlib import Path

import pytest

from checkstream.audit import chain
from checkstream.audit.segments import find_tail, last_line, lines, read_name, segment_name, segments
from checkstream.errors import AuditError
from tests.records import CHAIN, head, seal_all, two_segments, write_chain

SEALED = seal_all(two_segments())
LINES = [sealed.line for sealed in SEALED]


def test_names_of_segments_read_back() -> None:
    assert read_name(segment_name("abc9", 12)) == ("abc9", 12)
    assert read_name("c1-1000000.jsonl") == ("c1", 1_000_000)


@pytest.mark.parametrize(
    "name",
    [
        "", "c1.jsonl", "-000001.jsonl", "c1-1.jsonl", "c1-0000001.jsonl", "c1-000001.json", "C1-000001.jsonl",
        "c1-00000x.jsonl", "c1-\u0661\u0661\u0661\u0661\u0661\u0661.jsonl", "../c1-000001.jsonl", "c1-000001.jsonl.gz",
        "c1-" + "9" * 5000 + ".jsonl", "c-1-000001.jsonl",
    ],
)  # fmt: skip
def test_other_names_are_no_segments(name: str) -> None:
    assert read_name(name) is None


def test_garbage_in_the_directory_is_left_alone(tmp_path: Path) -> None:
    write_chain(tmp_path, [LINES[:4], LINES[4:]])
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "c1-000001.torn").write_text("x")
    (tmp_path / "c1-000009.jsonl.swp").mkdir()
    assert segments(tmp_path) == {CHAIN: [1, 2]}
    with pytest.raises(AuditError, match="can't be read"):
        segments(tmp_path / "nowhere")


def test_lines_of_any_length_are_read_in_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "MAX_LINE_BYTES", 10)
    file = tmp_path / "f"
    file.write_bytes(b"a\n\n" + b"b" * 100 + b"\n" + b"c" * 12 + b"\nend")
    found = [(line.number, line.data, line.ended) for line in lines(file)]
    assert found == [
        (1, b"a", True), (2, b"", True), (3, b"b" * 11, True), (4, b"c" * 11, True), (5, b"end", False),
    ]  # fmt: skip
    assert [line.data for line in lines(file, end=2)] == [b"a"]
    file.write_bytes(b"x" * 100)
    with pytest.raises(AuditError, match="too long"):
        last_line(file)


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("pipe", "loop", "nothing"):
        with pytest.raises(AuditError):
            list(lines(tmp_path / name))
        with pytest.raises(AuditError):
            last_line(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", (None, 0, b"")),
        (b"x", (None, 0, b"x")),
        (b"\n", (b"", 1, b"")),
        (b"a\n", (b"a", 2, b"")),
        (b"a\nbc\nd", (b"bc", 5, b"d")),
    ],
)
def test_last_line(tmp_path: Path, content: bytes, expected: object) -> None:
    file = tmp_path / "f"
    file.write_bytes(content)
    assert last_line(file) == expected


def test_a_chain_is_taken_up_where_it_ended(tmp_path: Path) -> None:
    write_chain(tmp_path, [LINES[:4], [*LINES[4:6], LINES[6][:30]]], [head(SEALED[5])])
    tail = find_tail(tmp_path, tmp_path, CHAIN)
    assert (tail.number, tail.seq, tail.hash, tail.torn) == (2, 6, SEALED[5].hash, LINES[6][:30])
    assert tail.size == sum(map(len, LINES[4:6]))


def test_a_segment_that_was_only_made_is_taken_up_or_taken_away(tmp_path: Path) -> None:
    write_chain(tmp_path / "rotated", [LINES[:4], []])
    tail = find_tail(tmp_path / "rotated", tmp_path, CHAIN)
    assert (tail.number, tail.seq, tail.size) == (2, 4, 0)
    write_chain(tmp_path / "before", [[*LINES[:3], LINES[3][:-5]], []])
    tail = find_tail(tmp_path / "before", tmp_path, CHAIN)
    assert (tail.number, tail.seq, tail.torn) == (1, 3, LINES[3][:-5])
    assert not (tmp_path / "before" / segment_name(CHAIN, 2)).exists()
    write_chain(tmp_path / "empty", [[]])
    assert find_tail(tmp_path / "empty", tmp_path, CHAIN).seq == 0


@pytest.mark.parametrize(
    ("parts", "heads"),
    [
        ([[*LINES[:2], b"garbage\n"]], None),
        ([[LINES[0], LINES[1].replace(b"s0", b"s9")]], None),
        ([LINES[:4]], None),  # ends with rotate, and nothing after it
        ([LINES[:2], [b"torn"]], None),
        ([LINES[:3]], [head(SEALED[4])]),
        ([LINES[:3]], [head(SEALED[2]).replace(SEALED[2].hash.encode(), b"0" * 64)]),
        ([LINES[:3]], [b"garbage\n"]),
        ([[LINES[0], b"\x00" * 40 + b"\n"]], None),
    ],
)
def test_a_chain_that_does_not_hold_at_its_end_is_not_taken_up(
    tmp_path: Path, parts: list[list[bytes]], heads: list[bytes] | None
) -> None:
    write_chain(tmp_path, parts, heads)
    with pytest.raises(AuditError):
        find_tail(tmp_path, tmp_path, CHAIN)
