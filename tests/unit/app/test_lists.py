"""Files that a policy's `allow` names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from checkstream.app.lists import lists_beside
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.nodes import Given
from checkstream.errors import PolicyError
from tests.fingerprinted import BOOKS

POLICY = b"""pack: {name: t, version: 1.0.0}
policies:
  - {name: m, id: M-1, stage: [midstream], entities: [EMAIL], allow: {file: people.txt}, actions: [{type: redact}]}
"""


def given(folder: Path) -> list[Given]:
    lists = lists_beside("p.yaml", folder / "p.yaml", POLICY)
    return [("p.yaml", POLICY), *((name, content) for name, _, content in lists)]


def test_a_file_of_fingerprints_stays_what_it_was_though_it_is_written_over(tmp_path: Path) -> None:
    """One that was mapped itself would end the process where it has become shorter."""
    policy = POLICY.replace(b"entities: [EMAIL], allow: {file: people.txt}", b"fingerprints: [{file: books.fp}]")
    (tmp_path / "books.fp").write_bytes(BOOKS * 40)  # some pages
    ((_, path, content),) = lists_beside("p.yaml", tmp_path / "p.yaml", policy)
    path.write_bytes(b"")
    assert content == BOOKS * 40


def test_a_file_of_fingerprints_is_mapped_and_stays_what_it_was(tmp_path: Path) -> None:
    policy = POLICY.replace(b"entities: [EMAIL], allow: {file: people.txt}", b"fingerprints: [{file: books.fp}]")
    (tmp_path / "books.fp").write_bytes(BOOKS)
    ((name, path, content),) = lists_beside("p.yaml", tmp_path / "p.yaml", policy)
    assert path == tmp_path / "books.fp"
    assert isinstance(content, memoryview)
    (tmp_path / "new.fp").write_bytes(BOOKS[:-8])
    (tmp_path / "new.fp").replace(path)
    assert content == BOOKS
    compile_sources([("p.yaml", policy), (name, content)])
    ((name, _, content),) = lists_beside("p.yaml", tmp_path / "p.yaml", policy)
    with pytest.raises(PolicyError, match="it is torn"):
        compile_sources([("p.yaml", policy), (name, content)])


def test_a_list_that_is_a_file_of_fingerprints_is_refused(tmp_path: Path) -> None:
    (tmp_path / "people.txt").write_bytes(BOOKS)
    with pytest.raises(PolicyError, match="is not UTF-8"):
        compile_sources(given(tmp_path))


def test_a_file_beside_the_policy_is_read_also_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("bob@example.com\n")
    (tmp_path / "people.txt").symlink_to(tmp_path / "real.txt")
    assert given(tmp_path)[1][1] == b"bob@example.com\n"
    compile_sources(given(tmp_path))


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_regular_file_is_refused_and_never_waited_for(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "people.txt")
    with pytest.raises(PolicyError, match=r"people\.txt` is not there, or can't be read"):
        compile_sources(given(tmp_path))
