"""`checkstream fingerprint`: make the file by which a policy knows texts that must not be recited."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from checkstream.cli.parser import Parser
from checkstream.cli.progress import Counter
from checkstream.cli.results import counted, safe, write_json
from checkstream.core.match.fingerprints import LEAST_WORDS, MAGIC, MOST_WORDS, Fingerprints
from checkstream.core.match.winnowing import Winnowing
from checkstream.errors import FileUnreadable

_EXAMPLES = """examples:
  checkstream fingerprint books/ -o policies/books.fp
  checkstream fingerprint src/ docs/handbook.md --words 20 -o policies/ours.fp
"""
_MOST_BYTES = 64 << 20
"""Of one text."""
_MOST_FILES = 200_000
_SHOWN = 20
"""Files that were left out of which each is named."""


class Skipped(msgspec.Struct, frozen=True):
    """A file that was left out."""

    file: str
    reason: str
    failed: bool = False
    """It should have been read and could not be."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What was made."""

    file: str
    texts: int
    words: int
    bytes: int
    least: int
    """Words of the shortest recital that is found."""
    digest: str
    skipped: tuple[Skipped, ...]


def add_arguments(parser: Parser) -> None:
    """Say what the command `fingerprint` takes."""
    parser.describe(
        "Read the texts of a folder and of all below it (prose, source code: UTF-8, or UTF-16 with its mark) and write "
        "a file of fingerprints, which a policy's `fingerprints` names. It holds hashes, no text. What is no text is "
        "left out and named; so is what is hidden (`.git`), and links are not followed. The same texts make the same "
        "bytes. Exit 1: a file could not be read; the others are in.",
        examples=_EXAMPLES,
    )
    parser.add_argument("places", metavar="DIR", nargs="+", help="a folder, or a file")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the file to write")
    parser.add_argument(
        "--words",
        metavar="N",
        type=int,
        default=12,
        help=f"words of the shortest recital that rules may ask for, {LEAST_WORDS} to {MOST_WORDS} (default: 12)",
    )
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")


def run(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code.

    Returns:
        0: done; 1: a file could not be read.

    Raises:
        FileUnreadable: a place is not there, there are too many files, or the outcome can't be written.
        FingerprintsInvalid: `--words` is out of range, no text is long enough, or there is too much text.
    """
    winnowing = Winnowing(args.words)
    skipped: list[Skipped] = []
    with Counter() as line:
        for number, path in enumerate(_files(args.places), 1):
            if number > _MOST_FILES:
                raise FileUnreadable(f"there are more than {_MOST_FILES:,} files; name fewer folders")
            line.show(f"{counted(winnowing.texts, 'text')}, {winnowing.words:,} words: {safe(str(path))[-60:]}")
            text = _text(path)
            if isinstance(text, Skipped):
                skipped.append(text)
            elif not winnowing.take(text):
                skipped.append(Skipped(str(path), f"has no {args.words} words in a row"))
        line.show(f"writing {safe(str(args.output))}")
        data = winnowing.file()
        _write(args.output, data)
    summary = Summary(
        file=str(args.output),
        texts=winnowing.texts,
        words=winnowing.words,
        bytes=len(data),
        least=args.words,
        digest=Fingerprints(data).digest,
        skipped=tuple(skipped),
    )
    if args.json:
        write_json(summary)
    else:
        _print(summary)
    return 1 if any(each.failed for each in skipped) else 0


def _files(places: Sequence[str]) -> Iterator[Path]:
    """Yield each file once, in a fixed order.

    Raises:
        FileUnreadable: a place is not there, or a folder can't be listed.
    """
    seen: set[tuple[int, int]] = set()
    for place in places:
        given = Path(place)
        if given.exists() and not given.is_dir() and not given.is_file():  # a pipe that nobody writes to never ends
            raise FileUnreadable(f"can't read `{place}`: it is no file; check the path")
        try:
            for path in _below(given) if given.is_dir() else (given,):
                stat = path.stat()
                if (stat.st_dev, stat.st_ino) not in seen:
                    seen.add((stat.st_dev, stat.st_ino))
                    yield path
        except OSError as error:
            reason = (error.strerror or "it can't be read").lower()
            raise FileUnreadable(f"can't read `{error.filename or place}`: {reason}; check the path") from error


def _below(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise error

    for at, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(at) / name
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _text(path: Path) -> str | Skipped:
    """Return what a file says, or why it is left out."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return Skipped(str(path), f"is larger than {_MOST_BYTES >> 20} MB; cut it into parts", failed=True)
        data = path.read_bytes()
    except OSError as error:
        return Skipped(str(path), (error.strerror or "it can't be read").lower(), failed=True)
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    if data.startswith(MAGIC) or (b"\0" in data and not wide):
        return Skipped(str(path), "is no text")
    try:
        return data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        return Skipped(str(path), "is no text in UTF-8")


def _write(path: Path, data: bytes) -> None:
    """Put a file in its place whole: nobody reads half of it.

    Raises:
        FileUnreadable: it can't be written.
    """
    part: str | None = None
    try:
        descriptor, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        mask = os.umask(0)
        os.umask(mask)
        Path(part).chmod(0o666 & ~mask)
        Path(part).replace(path)
    except OSError as error:
        if part is not None:
            Path(part).unlink(missing_ok=True)
        reason = (error.strerror or "no reason given").lower()
        raise FileUnreadable(f"can't write `{path}`: {reason}; check `--output`") from error


def _print(summary: Summary) -> None:
    for each in summary.skipped[:_SHOWN]:
        sys.stderr.write(f"left out: {safe(each.file)} {'could not be read: ' * each.failed}{safe(each.reason)}\n")
    if len(summary.skipped) > _SHOWN:
        sys.stderr.write(f"left out: {counted(len(summary.skipped) - _SHOWN, 'more file')}\n")
    sys.stdout.write(
        f"{safe(summary.file)}: {counted(summary.texts, 'text')}, {counted(summary.words, 'word')}, "
        f"{summary.bytes:,} bytes; finds recitals of {summary.least} words and more\n"
    )
