"""Where documents are found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from checkstream.errors import DocumentUnreadable, EvidenceError, SourceRefused
from checkstream.evidence.sources import Sources, covers
from checkstream.evidence.web import Web

READER = Sources(web=Web(["docs.example.com"]), max_bytes=1000)


async def names(source: str) -> list[str]:
    return [listed.source async for listed in READER.listed(source)]


async def test_a_folder_is_listed_in_order_without_what_is_hidden_or_no_document(tmp_path: Path) -> None:
    for name in ("b.md", "a/c.txt", "a/d.exe", ".git/e.md", ".hidden.md", "z.HTML"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    root = tmp_path.as_posix()
    assert await names(root) == [f"{root}/a/c.txt", f"{root}/b.md", f"{root}/z.HTML"]
    assert await names(f"file://{root}/b.md") == [f"{root}/b.md"]
    listed = [listed async for listed in READER.listed(f"{root}/b.md")]
    assert (await listed[0].fetch()).data == b"x"


async def test_links_that_lead_out_or_round_and_names_of_no_file_are_left(tmp_path: Path) -> None:
    root, outside = tmp_path / "docs", tmp_path / "secret.md"
    root.mkdir()
    outside.write_text("secret")
    (root / "real.md").write_text("x")
    (root / "inside.md").symlink_to("real.md")
    (root / "out.md").symlink_to(outside)
    (root / "up").symlink_to(tmp_path, target_is_directory=True)
    (root / "round").symlink_to(root, target_is_directory=True)
    (root / "loop.md").symlink_to("loop.md")
    (root / "gone.md").symlink_to("missing.md")
    (root / "folder.md").mkdir()
    os.mkfifo(root / "pipe.md")
    assert await names(root.as_posix()) == [f"{root}/inside.md", f"{root}/real.md"]


async def test_a_file_that_is_too_long_or_none_is_told_and_never_waited_for(tmp_path: Path) -> None:
    (tmp_path / "long.md").write_bytes(b"x" * 1001)
    os.mkfifo(tmp_path / "pipe.md")
    for name, reason in (("long.md", "more than the 1000 bytes"), ("pipe.md", "no file")):
        (listed,) = [listed async for listed in READER.listed(str(tmp_path / name))]
        with pytest.raises(DocumentUnreadable, match=reason):
            await listed.fetch()


async def test_a_folder_that_can_not_be_looked_into_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x")
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(25):  # until its path is longer than any that may be asked for
        os.mkdir("x" * 200, dir_fd=folder)
        below = os.open("x" * 200, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    with pytest.raises(EvidenceError, match="can't be listed"):
        await names(str(tmp_path))


async def test_a_name_that_is_no_text_is_written_out(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff\n.md")).write_bytes(b"x")
    (listed,) = [listed async for listed in READER.listed(str(tmp_path))]
    assert listed.source == f"{tmp_path}/\\xff\n.md"
    assert (await listed.fetch()).data == b"x"
    assert covers(str(tmp_path), listed.source)


async def test_a_file_that_went_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x")
    (listed,) = [listed async for listed in READER.listed(str(tmp_path))]
    (tmp_path / "a.md").unlink()
    with pytest.raises(DocumentUnreadable, match="can't be read"):
        await listed.fetch()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("no/such/folder", "there is no"),
        ("checkstream/__init__.py", "no known kind"),
        ("ftp://host/x.md", "no kind that is read"),
        ("http://docs.example.com/x", "without encryption"),
        ("https://evil.example/x", "nothing is fetched"),
        ("zip://x.md::https://docs.example.com/a.zip", "chain"),
        ("memory://x", "no kind that is read"),
        ("github://a:b@/", "no kind that is read"),
    ],
)
async def test_other_sources_are_refused(source: str, reason: str) -> None:
    with pytest.raises(SourceRefused, match=reason):
        await names(source)


@pytest.mark.parametrize(
    ("source", "document", "so"),
    [
        ("docs", "docs/a.md", True),
        ("docs/", "docs/a/b.md", True),
        ("./docs", "docs/a.md", True),
        ("file:///srv/docs", "/srv/docs/a.md", True),
        ("docs", "docs2/a.md", False),
        ("docs/a.md", "docs/a.md", True),
        (".", "docs/a.md", True),
        (".", "/srv/a.md", False),
        (".", "../a.md", False),
        (".", "https://h/a", False),
        ("https://h/a", "https://h/a", True),
        ("https://h/a", "https://h/ab", False),
        ("s3://b/docs", "s3://b/docs/x.md", True),
        ("s3://b/docs", "s3://b/docs-old/x.md", False),
        ("/", "/srv/a.md", True),
    ],
)
def test_a_source_covers_what_lies_below_it(source: str, document: str, so: bool) -> None:
    assert covers(source, document) is so
