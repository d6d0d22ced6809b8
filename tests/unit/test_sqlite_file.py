"""SQLite files that several processes share."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from checkstream.sqlite_file import make_private, opened, to_wal, transaction


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    to_wal(connection)
    return connection


def test_a_private_file_is_its_owners_alone_and_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "var" / "x.db"
    make_private(path)
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    with closing(opened(path)) as one:
        one.execute("create table t(a)")
    path.chmod(0o640)
    make_private(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with closing(opened(path)) as one:
        assert one.execute("select count(*) from t").fetchone() == (0,)
    with pytest.raises(OSError, match="File exists"):
        make_private(path / "below")


def test_what_fails_in_a_transaction_leaves_nothing_and_the_next_one_works(tmp_path: Path) -> None:
    one = connect(tmp_path / "x.db")
    one.execute("create table t(a)")
    one.execute("create unique index once on t(a)")
    with pytest.raises(sqlite3.IntegrityError), transaction(one):
        one.executemany("insert into t values(?)", [(1,), (1,)])
    with transaction(one):
        one.execute("insert into t values(2)")
    assert one.execute("select a from t").fetchall() == [(2,)]
    one.close()


def test_a_commit_that_fails_leaves_nothing_and_the_next_one_works(tmp_path: Path) -> None:
    one = connect(tmp_path / "x.db")
    one.executescript("pragma foreign_keys = on; create table p(a primary key);")
    one.execute("create table c(a references p deferrable initially deferred)")
    with pytest.raises(sqlite3.IntegrityError), transaction(one):
        one.execute("insert into c values(1)")
    with transaction(one):
        assert one.execute("select count(*) from c").fetchone() == (0,)
    one.close()


def test_a_reader_sees_one_state_and_keeps_no_writer_waiting(tmp_path: Path) -> None:
    one, two = connect(tmp_path / "x.db"), connect(tmp_path / "x.db")
    one.execute("create table t(a)")
    with transaction(one, writing=False):
        assert one.execute("select count(*) from t").fetchone() == (0,)
        with transaction(two):
            two.execute("insert into t values(1)")
        assert one.execute("select count(*) from t").fetchone() == (0,)
    assert one.execute("select count(*) from t").fetchone() == (1,)
    with transaction(one), pytest.raises(sqlite3.OperationalError, match="locked"), transaction(two):
        pass
    one.close()
    two.close()
