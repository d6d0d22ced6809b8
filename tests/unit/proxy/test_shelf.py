from __future__ import annotations

import datetime as dt
import errno
import os
from pathlib import Path

import pytest

from checkstream.proxy.shelf import Shelf

NOW = dt.datetime(2026, 11, 22, 5, 18, 49, 123456, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


def shelf(folder: Path, *, max_bytes: int = 1000) -> Shelf:
    return Shelf(folder / "record", keep=7 * DAY, max_bytes=max_bytes)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "record").glob("[!.]*"))


def test_a_recording_is_written_whole_under_its_time_and_stream_for_its_owner_alone(tmp_path: Path) -> None:
    os.umask(os.umask(0o000))  # whatever the umask
    kept = shelf(tmp_path)
    kept.tidy(NOW)
    path = kept.put(NOW, "4f0c", b"data")
    assert names(tmp_path) == ["20261122T051849123456Z-4f0c.jsonl"]
    assert path.read_bytes() == b"data"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_others_could_read_is_closed(tmp_path: Path) -> None:
    (tmp_path / "record").mkdir(mode=0o755)
    shelf(tmp_path).tidy(NOW)
    assert (tmp_path / "record").stat().st_mode & 0o777 == 0o700


def test_what_is_old_is_removed_and_nothing_else(tmp_path: Path) -> None:
    kept = shelf(tmp_path)
    kept.put(NOW - 8 * DAY, "aa", b"old")
    kept.put(NOW - 6 * DAY, "bb", b"new")
    folder = tmp_path / "record"
    for name in ("notes.txt", "20200101T000000000000Z.jsonl", "yesterday-cc.jsonl", "20200101T000000000000Z-..jsonl"):
        (folder / name).write_text("not ours")
    (folder / "20261122T030000000000Z-dd.jsonl.unfinished").write_text("of a process that has ended")
    (folder / "20261122T051000000000Z-ee.jsonl.unfinished").write_text("just begun")
    assert kept.tidy(NOW) == 1
    assert "20261116T051849123456Z-bb.jsonl" in names(tmp_path)
    assert [name for name in names(tmp_path) if "aa" in name or "dd" in name] == []
    assert len(names(tmp_path)) == 6


def test_the_oldest_go_when_all_is_too_much(tmp_path: Path) -> None:
    kept = shelf(tmp_path, max_bytes=25)
    for hour in range(5):
        kept.put(NOW + hour * dt.timedelta(hours=1), f"a{hour}", b"x" * 10)
    assert [name[-8:] for name in names(tmp_path)] == ["a3.jsonl", "a4.jsonl"]
    again = shelf(tmp_path, max_bytes=15)
    again.tidy(NOW)
    assert [name[-8:] for name in names(tmp_path)] == ["a4.jsonl"]


def test_the_bound_is_of_all_that_fill_the_directory_whoever_else_empties_it(tmp_path: Path) -> None:
    several = [shelf(tmp_path) for _ in range(4)]
    put = 0
    for number in range(400):
        before = set(names(tmp_path))
        for place, one in enumerate(several):
            one.put(NOW + number * dt.timedelta(seconds=1), f"p{place}", b"x" * 15)
            put += 1
        held = sum(path.stat().st_size for path in (tmp_path / "record").glob("*.jsonl"))
        assert held <= 1000
        if number == 200:  # it is sent, and none of that is counted as dropped
            for name in before & set(names(tmp_path)):
                (tmp_path / "record" / name).unlink()
                put -= 1
    assert len(names(tmp_path)) == put - sum(one.dropped for one in several)
    assert held > 850
    assert [name[-8:] for name in names(tmp_path)][-4:] == [f"p{place}.jsonl" for place in range(4)]


def test_a_full_directory_is_not_counted_for_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0
    scandir = os.scandir

    def counting(path: Path) -> object:
        nonlocal counted
        counted += 1
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counting)
    kept = shelf(tmp_path)
    for number in range(1000):
        kept.put(NOW + number * dt.timedelta(seconds=1), "aa", b"x")
    assert counted == 1  # nothing was known
    for number in range(1000, 2000):
        kept.put(NOW + number * dt.timedelta(seconds=1), "aa", b"x")
    assert counted == 11


@pytest.mark.parametrize("told", [b"", b"0", b"-0000000000000000001", b"x" * 20, b"00000000000000000000 more"])
def test_what_stands_of_the_bytes_is_counted_anew_or_right(tmp_path: Path, told: bytes) -> None:
    (tmp_path / "record").mkdir()
    total = tmp_path / "record" / ".bytes-of-jsonl"
    total.write_bytes(told)
    kept = shelf(tmp_path)
    kept.put(NOW, "aa", b"x" * 10)
    assert total.read_bytes().startswith(b"00000000000000000010")


def test_what_is_too_much_by_itself_is_refused_and_costs_nothing_that_is_there(tmp_path: Path) -> None:
    kept = shelf(tmp_path, max_bytes=25)
    kept.put(NOW, "aa", b"x" * 10)
    with pytest.raises(OSError, match="more than all"):
        kept.put(NOW, "bb", b"x" * 26)
    assert [name[-8:] for name in names(tmp_path)] == ["aa.jsonl"]


def test_of_a_write_that_fails_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = shelf(tmp_path)
    kept.put(NOW, "aa", b"x")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space"):
        kept.put(NOW, "bb", b"y")
    assert len(names(tmp_path)) == 1


def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    kept = shelf(tmp_path)
    kept.tidy(NOW)
    target = tmp_path / "elsewhere"
    target.write_text("mine")
    (tmp_path / "record" / "20261122T051849123456Z-aa.jsonl.unfinished").symlink_to(target)
    with pytest.raises(FileExistsError):
        kept.put(NOW, "aa", b"x")
    assert target.read_text() == "mine"


def test_a_link_in_place_of_the_count_is_not_followed(tmp_path: Path) -> None:
    kept = shelf(tmp_path)
    kept.tidy(NOW)
    target = tmp_path / "elsewhere"
    target.write_text("mine")
    total = tmp_path / "record" / ".bytes-of-jsonl"
    total.unlink()
    total.symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        kept.put(NOW, "aa", b"x")
    assert (target.read_text(), names(tmp_path)) == ("mine", [])


def test_a_directory_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "record").write_text("")
    with pytest.raises(FileExistsError):
        shelf(tmp_path).tidy(NOW)
