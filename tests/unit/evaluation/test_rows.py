"""Files of labelled texts, as anybody may have written them."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from checkstream.errors import FileUnreadable
from checkstream.evaluation import rows
from checkstream.evaluation.rows import GoldSpan, Row, read_objects, read_rows


def read(path: Path) -> list[Row]:
    return list(read_rows(path, "text", "label", "spans"))


def test_labels_of_every_form_are_read_as_they_are_written(tmp_path: Path) -> None:
    lines = [
        '{"text": "a", "label": 1}',
        '{"text": "b", "label": true}',
        "",
        '{"text": "c", "label": "toxic", "more": [1, {"x": null}]}',
        '{"text": "d\\ud800"}',
        '{"text": "e", "spans": [{"start": 0, "end": 1, "label": "X", "text": "e"}]}',
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    with gzip.open(tmp_path / "x.jsonl.gz", "wt") as file:
        file.write("\n".join(lines))
    found = read(tmp_path / "x.jsonl")
    assert [(row.text, row.label) for row in found] == [
        ("a", "1"),
        ("b", "true"),
        ("c", "toxic"),
        ("d\ud800", ""),
        ("e", ""),
    ]
    assert found[-1].spans == (GoldSpan(0, 1, "X"),)
    assert read(tmp_path / "x.jsonl.gz") == found


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{", "no JSON"),
        (b"[1]", "no JSON object"),
        (b"\xff\xfe", "no JSON"),
        (b'{"a": ' + b"[" * 500_000, "no JSON"),
        (b'{"label": 1}', "`text`"),
        (b'{"text": 5}', "`text`"),
        (b'{"text": "x", "spans": 5}', "`spans`"),
        (b'{"text": "x", "spans": [{"start": "a"}]}', "`spans`"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, words: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"text": "fine"}\n' + line)
    with pytest.raises(FileUnreadable, match=r"x\.jsonl:2:") as caught:
        read(path)
    assert words in str(caught.value)


def test_a_line_that_never_ends_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_LINE_BYTES", 100)
    with pytest.raises(FileUnreadable, match="more than 100 bytes"):
        list(read_objects(io.BytesIO(b" " * 1_000), "x"))


@pytest.mark.parametrize(
    "content", [b"no gzip", gzip.compress(b'{"text": "x"}', mtime=0)[:-9], b"\x1f\x8b\x08\x00" + b"\0" * 40]
)
def test_a_broken_archive_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(FileUnreadable, match="can't read"):
        read(path)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileUnreadable, match="can't read"):
        read(tmp_path / "none.jsonl")
