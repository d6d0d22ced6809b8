"""Where the runs of callers are kept: a file and an index for each, and no name leads to another's."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.app.api import GateFolder
from checkstream.listen import Callers

FOLDER = GateFolder(Path("/gate"), Path("/gate/var/gate.db"))


def test_without_names_runs_are_where_the_command_line_looks() -> None:
    assert FOLDER.of(None) == FOLDER
    assert Callers(None).names == (None,)
    assert Callers({"b": "1", "a": "2"}).names == ("b", "a")


@given(st.text(min_size=1), st.text(min_size=1))
def test_each_name_has_a_file_of_its_own_beside_the_others(one: str, two: str) -> None:
    runs = FOLDER.of(one).runs
    assert runs.parent == FOLDER.runs.parent
    assert runs != FOLDER.runs
    assert (runs == FOLDER.of(two).runs) is (one == two)
    assert str(runs).casefold() == str(runs)  # some file systems take letters of either case for one


@pytest.mark.parametrize(
    ("history", "index"),
    [
        ("https://h:9200/gate", "https://h:9200/gate-app1-"),
        ("https://h:9200/gate/", "https://h:9200/gate-app1-"),
        ("https://h:9200", "https://h:9200/checkstream-gate-app1-"),
    ],
)
def test_each_name_has_an_index_of_its_own(history: str, index: str) -> None:
    given = GateFolder(FOLDER.root, FOLDER.runs, history=history)
    assert given.of("App1").history.startswith(index)
    assert given.of("App1").history != given.of("app1").history
    assert given.of(None).history == history
    assert FOLDER.of("app1").history == ""
