"""`checkstream fingerprint` as a user runs it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from checkstream.cli import main
from checkstream.core.match.fingerprints import Fingerprints
from tests.fingerprinted import KEEPER, file_of

POLICY = """pack: {name: t, version: 1.0.0}
policies:
  - {name: r, id: R-1, stage: [midstream], fingerprints: [{file: books.fp}], actions: [{type: redact}]}
"""
OTHER = " ".join(f"word{number}" for number in range(40))


@pytest.fixture
def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "books"
    (folder / "more").mkdir(parents=True)
    (folder / "keeper.txt").write_text(KEEPER, encoding="utf-8")
    (folder / "more" / "other.md").write_bytes(OTHER.encode("utf-16"))
    return folder


def test_a_folder_becomes_a_file_that_a_policy_can_name(books: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fingerprint", "books", "-o", "books.fp"]) == 0
    out = capsys.readouterr()
    size = f"{Path('books.fp').stat().st_size:,} bytes"
    assert out.out == f"books.fp: 2 texts, 99 words, {size}; finds recitals of 12 words and more\n"
    assert out.err == ""
    assert Path("books.fp").read_bytes() == file_of([KEEPER, OTHER])
    Path("policy.yaml").write_text(POLICY, encoding="utf-8")
    assert main(["policy", "check", "policy.yaml"]) == 0
    assert main(["policy", "explain", "policy.yaml", "--stage", "midstream", "--text", f"So: {KEEPER}"]) == 0
    assert "recital:books.fp" in capsys.readouterr().out
    assert [path.name for path in books.parent.iterdir() if path.name.startswith(".")] == []


def test_the_same_texts_make_the_same_bytes_wherever_they_stand(books: Path) -> None:
    assert main(["fingerprint", "books", "-o", "one.fp"]) == 0
    (books / "keeper.txt").rename(books / "more" / "zz.txt")
    (books / "link").symlink_to(books / "more")
    (books / "link.txt").symlink_to(books / "more" / "zz.txt")
    assert main(["fingerprint", "books", "books/more/zz.txt", "-o", "two.fp"]) == 0
    assert Path("one.fp").read_bytes() == Path("two.fp").read_bytes()


def test_what_is_no_text_is_left_out_and_named(books: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (books / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0" + KEEPER.encode())
    (books / "b.txt").write_bytes(KEEPER.encode() + b"\xff")
    (books / "c\x1b[31m.txt").write_text("a few words", encoding="utf-8")
    (books / ".git").mkdir()
    (books / ".git" / "d.txt").write_text(KEEPER + " and more of it", encoding="utf-8")
    (books / "old.fp").write_bytes(file_of())
    assert main(["fingerprint", "books", "-o", "books/new.fp", "--words", "20"]) == 0
    assert main(["fingerprint", "books", "-o", "books/new.fp", "--words", "20", "--json"]) == 0
    out = capsys.readouterr()
    assert out.err.splitlines() == [
        "left out: books/a.png is no text",
        "left out: books/b.txt is no text in UTF-8",
        "left out: books/c\\x1b[31m.txt has no 20 words in a row",
        "left out: books/old.fp is no text",
    ]
    summary = json.loads(out.out.splitlines()[-1])
    assert (summary["texts"], summary["words"], summary["least"]) == (2, 99, 20)
    assert [each["file"] for each in summary["skipped"]][-2:] == ["books/new.fp", "books/old.fp"]
    known = Fingerprints(Path("books/new.fp").read_bytes())
    assert (known.digest, known.least) == (summary["digest"], 20)


def test_of_very_many_files_that_are_left_out_some_are_named(books: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(30):
        (books / f"{number}.bin").write_bytes(b"\0")
    assert main(["fingerprint", "books", "-o", "books.fp"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 21
    assert lines[-1] == "left out: 10 more files"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere", "-o", "o.fp"], "can't read `nowhere`: no such file or directory; check the path"),
        (["books", "-o", "o.fp", "--words", "5"], "a recital has 6 to 100 words, not 5"),
        (["books", "-o", "o.fp", "--words", "101"], "a recital has 6 to 100 words, not 101"),
        (["empty", "-o", "o.fp"], "no text has 12 words in a row; give longer ones"),
        (["books", "-o", "nowhere/o.fp"], "can't write `nowhere/o.fp`: no such file or directory; check `--output`"),
        (["pipe", "-o", "o.fp"], "can't read `pipe`: it is no file; check the path"),
        (["books", "-o", "empty"], "can't write `empty`: is a directory; check `--output`"),
    ],
)
def test_what_can_not_be_done_is_said(
    books: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    Path("empty").mkdir()
    os.mkfifo("pipe")
    assert main(["fingerprint", *arguments]) == 2
    assert says in capsys.readouterr().err
    assert sorted(path.name for path in books.parent.iterdir()) == ["books", "empty", "pipe"]


@pytest.mark.usefixtures("books")
def test_a_file_that_can_not_be_read_is_told_by_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """It is a file, it opens, and nobody, root neither, can read its beginning."""
    assert main(["fingerprint", "books", "/proc/self/mem", "-o", "books.fp"]) == 1
    assert "left out: /proc/self/mem could not be read: input/output error" in capsys.readouterr().err
    assert Path("books.fp").exists()


def test_a_file_that_is_too_large_is_told_by_the_exit_code(books: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (books / "huge.txt").open("wb") as file:
        file.truncate((64 << 20) + 1)
    assert main(["fingerprint", "books", "-o", "books.fp"]) == 1
    assert "books/huge.txt could not be read: is larger than 64 MB" in capsys.readouterr().err


@pytest.mark.usefixtures("books")
def test_too_many_words_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkstream.core.match.winnowing.MAX_WORDS", 60)
    assert main(["fingerprint", "books", "-o", "books.fp"]) == 2
    assert not Path("books.fp").exists()


def test_a_stored_program_is_listed_beside_its_fingerprints(books: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("policy.yaml").write_text(POLICY, encoding="utf-8")
    assert main(["fingerprint", str(books), "-o", "books.fp"]) == 0
    assert main(["policy", "check", "policy.yaml", "--write", "programs"]) == 0
    (program,) = Path("programs").iterdir()
    assert main(["policy", "disassemble", str(program), "books.fp"]) == 0
    assert "signal 0 = recital:books.fp" in capsys.readouterr().out
    assert main(["policy", "disassemble", str(program)]) == 2
    assert "give that file, too" in capsys.readouterr().err
    assert main(["policy", "disassemble", str(program), "policy.yaml"]) == 2
    assert "`policy.yaml` can't be used: it is no file of fingerprints" in capsys.readouterr().err
    assert main(["policy", "disassemble", str(program), "nowhere.fp"]) == 2
    assert "can't read `nowhere.fp`: no such file or directory" in capsys.readouterr().err
