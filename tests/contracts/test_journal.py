"""What the request path relies on in a journal, whatever is behind it: the file journal in both durabilities."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

from checkstream.audit.entries import StopEntry
from checkstream.audit.journal import Journal, JournalSettings
from checkstream.audit.verify import verify
from checkstream.errors import AuditError
from tests.records import KEY, start, stream

Open = Callable[[], Journal]


@pytest.fixture(params=["group", "strict"])
def open_journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    durability: Literal["group", "strict"] = request.param
    opened: list[Journal] = []

    def make() -> Journal:
        settings = JournalSettings(directory=tmp_path, durability=durability, fsync_ms=2.0)
        opened.append(Journal(settings, KEY, process="p"))
        return opened[-1]

    yield make
    for journal in opened:
        journal.close()


async def test_numbers_rise_without_a_gap_from_any_mixture_of_calls(open_journal: Open) -> None:
    journal = open_journal()
    assert journal.state == "open"
    seqs = [journal.append(start())]
    seqs += await asyncio.gather(*(journal.append_durable(stream(n)) for n in range(10)))
    seqs.append(journal.append(StopEntry(reason="x")))
    assert seqs == list(range(1, 13))


async def test_what_was_appended_before_a_flush_is_readable_after_it(open_journal: Open, tmp_path: Path) -> None:
    journal = open_journal()
    for number in range(5):
        journal.append(stream(number))
    await journal.flush()
    (report,) = verify(tmp_path, keys=(KEY.public,))
    assert (report.bad, report.records) == (None, 5)


async def test_append_from_threads_keeps_the_chain(open_journal: Open, tmp_path: Path) -> None:
    journal = open_journal()
    await asyncio.gather(*(asyncio.to_thread(journal.append, stream(n)) for n in range(30)))
    await journal.flush()
    (report,) = verify(tmp_path, keys=(KEY.public,))
    assert (report.bad, report.records) == (None, 30)


async def test_a_refused_entry_leaves_no_gap(open_journal: Open) -> None:
    journal = open_journal()
    with pytest.raises(AuditError):
        journal.append(StopEntry(reason="x" * 20_000_000))
    assert journal.append(start()) == 1


async def test_after_close_nothing_is_taken_and_closing_again_is_harmless(open_journal: Open, tmp_path: Path) -> None:
    journal = open_journal()
    journal.append(start())
    await journal.aclose()
    await journal.aclose()
    assert journal.state == "closed"
    with pytest.raises(AuditError):
        journal.append(start())
    (report,) = verify(tmp_path, keys=(KEY.public,))
    assert (report.bad, report.records, report.signed) == (None, 1, 1)


async def test_two_journals_of_one_directory_are_two_chains(open_journal: Open, tmp_path: Path) -> None:
    one, two = open_journal(), open_journal()
    assert one.append(start()) == two.append(start()) == 1
    await one.flush()
    await two.flush()
    assert len(verify(tmp_path, keys=(KEY.public,))) == 2
