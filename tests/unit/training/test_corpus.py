"""The pool of labelled data, on a small one written here."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from models.training.corpus import RESTRICTED, rows


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(b'{"text": "a"}\n{"text": "b"}\n'))


def test_a_set_is_read_line_by_line(tmp_path: Path) -> None:
    write(tmp_path / "open.jsonl.gz")
    assert list(rows(tmp_path, "open")) == [{"text": "a"}, {"text": "b"}]


def test_a_restricted_set_is_read_for_measuring_alone(tmp_path: Path) -> None:
    write(tmp_path / RESTRICTED / "own.jsonl.gz")
    for folder, name in ((tmp_path, f"{RESTRICTED}/own"), (tmp_path / RESTRICTED, "own")):
        with pytest.raises(ValueError, match="restricted: nothing may learn from it"):
            next(rows(folder, name))
        assert len(list(rows(folder, name, measuring=True))) == 2
