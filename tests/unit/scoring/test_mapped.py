"""A graph that several processes map says the same as one that has its weights to itself."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from checkstream.config.files import bundled
from checkstream.errors import ModelError
from checkstream.scoring.graph import Graph
from tests import tiny_models


def open_graph(data: bytes, shared: Path | None, **more: int) -> Graph:
    return Graph(data, **({"rank": 2, "columns": 2, "top_id": 20, "longest": 32} | more), shared=shared)


def test_what_is_mapped_scores_as_what_is_not_to_the_last_digit(tmp_path: Path) -> None:
    data = (bundled("models") / "safety" / "model.onnx").read_bytes()
    columns = 12
    try:
        plain = open_graph(data, None, columns=columns, top_id=1000)
    except ModelError as error:  # another model has other columns; it says how many
        columns = int(str(error).split("gives ")[1].split()[0])
        plain = open_graph(data, None, columns=columns, top_id=1000)
    writes, maps = (open_graph(data, tmp_path, columns=columns, top_id=1000) for _ in range(2))
    chance = random.Random(7)
    for length in (1, 3, 17, 32):
        ids = [chance.randrange(1000) for _ in range(length)]
        assert np.array_equal(plain.run(ids), writes.run(ids))
        assert np.array_equal(plain.run(ids), maps.run(ids))
    assert str(tmp_path) in Path("/proc/self/maps").read_text()


def test_it_is_written_once_and_another_graph_apart(tmp_path: Path) -> None:
    data = tiny_models.graph(2)
    for _ in range(2):
        open_graph(data, tmp_path)
    (made,) = tmp_path.iterdir()
    before = {file.name: file.stat().st_mtime_ns for file in made.iterdir()}
    open_graph(data, tmp_path)
    assert {file.name: file.stat().st_mtime_ns for file in made.iterdir()} == before
    open_graph(tiny_models.graph(2, seed=1), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_where_nothing_can_be_written_each_process_has_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tiny_models.graph(2)
    nowhere = tmp_path / "gone"
    assert np.array_equal(open_graph(data, nowhere).run([1, 2, 3]), open_graph(data, None).run([1, 2, 3]))
    assert "not shared" in caplog.text


def test_a_graph_that_is_not_sound_is_refused_before_it_is_shared(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        open_graph(b"\x08\x08 no graph", tmp_path)
    assert not list(tmp_path.iterdir())
