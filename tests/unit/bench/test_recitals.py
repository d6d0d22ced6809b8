"""What recitals cost is measured over texts of a folder."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bench import recitals
from bench.overblocking import REAL
from tests.fingerprinted import KEEPER


def test_the_table_has_a_row_for_each_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = "An answer about the weather, which nobody has written down before and which nobody will read again. " * 4
    for name, text in ((recitals.TEXTS[0], KEEPER * 2), (REAL[0], other), (REAL[1], f"So: {KEEPER * 2}")):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write(json.dumps({"text": text}) + "\n" + json.dumps({"text": "short"}) + "\n")
    recitals.main(tmp_path)
    rows = capsys.readouterr().out.splitlines()[2:]
    assert len(rows) == len(recitals.SIZES_MB)
    assert all(row.endswith(" 2 |") for row in rows)
