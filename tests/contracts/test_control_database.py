"""What every database of the control server does, SQLite and PostgreSQL: whole transactions, one writer, migrations."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from checkstream.control.server.database import Database, Session, open_database
from checkstream.control.server.migrations import MIGRATIONS
from checkstream.control.server.migrations.change import Migration
from checkstream.errors import ControlUnusable, TookTooLong
from tests.controlled import KINDS, address_of
from tests.evidence_stores import postgres  # noqa: F401 - a fixture

NOTES = Migration(
    number=1, name="notes", statements=("create table notes(id {id}, said text not null, size {real}, raw {bytes})",)
)
MORE = Migration(number=2, name="more", statements=("create table more(number {int} not null)",))
BROKEN = Migration(number=2, name="broken", statements=("create table half(number {int})", "create nonsense"))


@pytest.fixture(params=KINDS)
async def address(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    async with address_of(request.param, tmp_path, request) as found:
        yield found


async def opened(address: str, *migrations: Migration) -> Database:
    return await asyncio.to_thread(open_database, address, migrations=migrations)


async def said(database: Database) -> list[tuple[object, ...]]:
    return await database.ask(lambda s: s.execute("select said from notes"))


async def test_values_come_back_as_they_went_and_rows_are_numbered(address: str) -> None:
    database = await opened(address, NOTES)
    put = "insert into notes(said, size, raw) values(?, ?, ?) returning id"
    values = [("é\u0301 'quoted' ? %s", 0.5, b"\0\xff"), ("", -1e300, b"")]
    numbers = await database.transact(lambda s: [s.execute(put, value)[0][0] for value in values])
    assert numbers == sorted(set(numbers))
    rows = await database.transact(lambda s: s.execute("select said, size, raw from notes order by id"))
    assert [(row[0], row[1], bytes(row[2])) for row in rows] == values
    await database.close()


async def test_work_is_done_whole_or_not_at_all(address: str) -> None:
    database = await opened(address, NOTES)

    def half(session: Session) -> None:
        session.execute("insert into notes(said) values(?)", ("half",))
        raise RuntimeError("in the midst")

    with pytest.raises(RuntimeError, match="in the midst"):
        await database.transact(half)
    with pytest.raises(ControlUnusable):
        await database.transact(lambda s: [s.execute("insert into notes(said) values('x')"), s.execute("nonsense")])
    assert await database.transact(lambda s: s.execute("select * from notes")) == []
    await database.close()


async def test_two_servers_never_write_between_each_other(address: str) -> None:
    """Each reads, and writes what follows from it: were they to meet, one of two would be lost."""
    databases = [await opened(address, MORE) for _ in range(2)]
    await databases[0].transact(lambda s: s.execute("insert into more values(0)"))

    def add(session: Session) -> None:
        ((number,),) = session.execute("select number from more")
        session.execute("update more set number = ?", (number + 1,))

    await asyncio.gather(*(database.transact(add) for database in databases for _ in range(25)))
    assert await databases[1].transact(lambda s: s.execute("select number from more")) == [(50,)]
    for database in databases:
        await database.close()


SLOW = {
    "sqlite": "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
    "postgres": "select pg_sleep(100)",
}


async def test_what_is_written_waits_for_no_question(address: str) -> None:
    database = await opened(address, NOTES)
    begun, written = threading.Event(), threading.Event()

    def slow(session: Session) -> bool:
        session.execute("select said from notes")
        begun.set()
        return written.wait(30)

    question = asyncio.get_running_loop().create_task(database.ask(slow))
    await asyncio.to_thread(begun.wait, 30)
    await database.transact(lambda s: s.execute("insert into notes(said) values('kept')"))
    assert not question.done()
    written.set()
    assert await question
    await database.close()


async def test_a_question_that_takes_too_long_ends_and_the_next_is_answered(address: str) -> None:
    slow = SLOW["sqlite" if address.startswith("sqlite:") else "postgres"]
    database = await asyncio.to_thread(open_database, address, migrations=(NOTES,), question_s=0.05)
    with pytest.raises(TookTooLong, match="ask for less time at once"):
        await database.ask(lambda s: s.execute(slow))
    assert await said(database) == []
    await database.close()


async def test_a_question_sees_one_moment_and_writes_nothing(address: str) -> None:
    database = await opened(address, NOTES)
    put = "insert into notes(said) values('later')"

    def twice(session: Session) -> tuple[int, int]:
        before = len(session.execute("select said from notes"))
        database.at_once(lambda s: s.execute(put))
        return before, len(session.execute("select said from notes"))

    assert await database.ask(twice) == (0, 0)
    assert await said(database) == [("later",)]
    for statement in (put, "delete from notes", "update notes set said = 'x'", "drop table notes"):
        with pytest.raises(ControlUnusable):
            await database.ask(lambda s, wanted=statement: s.execute(wanted))  # type: ignore[misc]
    with pytest.raises(ZeroDivisionError):
        await database.ask(lambda _: 1 // 0)
    assert await said(database) == [("later",)]
    await database.close()


async def test_changes_are_made_once_each_in_their_order_and_a_broken_one_leaves_nothing(address: str) -> None:
    await (await opened(address, NOTES)).close()
    with pytest.raises(ControlUnusable):
        await opened(address, NOTES, BROKEN)
    again = await opened(address, NOTES, MORE)
    made = await again.transact(lambda s: s.execute("select number, name from migrations order by number"))
    assert made == [(1, "notes"), (2, "more")]
    await again.close()
    together = await asyncio.gather(*(opened(address, NOTES, MORE) for _ in range(3)))
    for database in together:
        await database.close()


async def test_a_newer_store_is_refused_by_the_name_of_its_change(address: str) -> None:
    await (await opened(address, NOTES, MORE)).close()
    with pytest.raises(ControlUnusable, match=r"the change 2 `more`, which this version does not know; use the newer"):
        await opened(address, NOTES)


async def test_the_real_tables_can_be_made(address: str) -> None:
    await (await asyncio.to_thread(open_database, address)).close()
    assert [each.number for each in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


async def test_a_connection_that_was_lost_is_made_anew(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    import psycopg

    async with address_of("postgres", tmp_path, request) as address:
        database = await opened(address, NOTES)
        put = "insert into notes(said) values('kept')"
        await database.transact(lambda s: s.execute(put))
        assert await said(database) == [("kept",)]
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as admin:
            await admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where pid <> pg_backend_pid() and datname = current_database()"
            )
        with pytest.raises(ControlUnusable):
            await database.transact(lambda s: s.execute(put))
        with pytest.raises(ControlUnusable):
            await said(database)
        assert await database.transact(lambda s: s.execute("select said from notes")) == [("kept",)]
        assert await said(database) == [("kept",)]
        await database.close()


async def test_a_file_of_another_program_and_a_database_that_is_not_there_are_refused(tmp_path: Path) -> None:
    import sqlite3

    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("create table theirs(x)")
    connection.close()
    with pytest.raises(ControlUnusable, match="another program's database"):
        await opened(f"sqlite:{other}")
    (tmp_path / "text.db").write_bytes(b"no database" * 100)
    with pytest.raises(ControlUnusable, match="can't be used"):
        await opened(f"sqlite:{tmp_path / 'text.db'}")
    with pytest.raises(ControlUnusable, match="the database can't be used"):
        await opened("postgresql://127.0.0.1:1/none")
