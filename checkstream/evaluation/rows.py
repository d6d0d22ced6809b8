"""Labelled texts from files of JSON lines, plain or gzip, as anybody may have written them."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, cast

import msgspec

from checkstream.errors import FileUnreadable

MAX_LINE_BYTES = 1 << 25
"""A longer line is no text of a data set."""


class GoldSpan(msgspec.Struct, frozen=True):
    """A stretch of a text and what it is."""

    start: int
    end: int
    label: str


class Row(msgspec.Struct, frozen=True):
    """One text."""

    text: str
    label: str
    """As it is written in JSON: `1`, `true`, `toxic`; empty when there is none."""
    spans: tuple[GoldSpan, ...] = ()


class PairRow(msgspec.Struct, frozen=True):
    """A claim and what it is held against."""

    premise: str
    claim: str
    label: str
    """As it is written in JSON; empty when there is none."""
    split: str = ""
    """Which part of its set it is of, if the file says so."""


Meant = Callable[[Mapping[str, object]], bool]
"""Says of the values of a line whether it is one of the rows that are wanted."""


def read_pairs(
    path: Path, premise_key: str, claim_key: str, label_key: str, *, meant: Meant | None = None
) -> Iterator[PairRow]:
    """Yield the rows of a file of claims.

    Args:
        path: `.jsonl`, or `.jsonl.gz`.
        premise_key: key of the evidence.
        claim_key: key of the claim.
        label_key: key of the label; it may be missing.
        meant: which lines are wanted; None: every one.

    Raises:
        FileUnreadable: the file can't be read, or a row has no such texts; names the line.
    """
    for number, values in read_file_objects(path):
        if meant is not None and not meant(values):
            continue
        premise, claim = values.get(premise_key), values.get(claim_key)
        if not isinstance(premise, str) or not isinstance(claim, str):
            raise FileUnreadable(
                f"{path.name}:{number}: `{premise_key}` or `{claim_key}` is missing or no text; name the keys"
            )
        yield PairRow(premise, claim, word_of(values.get(label_key)), word_of(values.get("split")))


def read_objects(file: IO[bytes], name: str) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield each line that is not empty, with its number from 1, as a JSON object.

    Lone surrogates are read, as they may stand in what a model said.

    Raises:
        FileUnreadable: a line is too long or no JSON object; names file and line.
    """
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise FileUnreadable(f"{name}:{number}: the line has more than {MAX_LINE_BYTES} bytes; one text a line")
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FileUnreadable(f"{name}:{number}: no JSON ({error}); write one object a line") from error
        if not isinstance(values, dict):
            raise FileUnreadable(f"{name}:{number}: no JSON object; write one a line")
        yield number, values


def read_rows(
    path: Path, text_key: str, label_key: str, spans_key: str, *, meant: Meant | None = None
) -> Iterator[Row]:
    """Yield the rows of a file.

    Args:
        path: `.jsonl`, or `.jsonl.gz`.
        text_key: key of the text.
        label_key: key of the label; it may be missing.
        spans_key: key of a list of `{start, end, label}`; it may be missing.
        meant: which lines are wanted; None: every one.

    Raises:
        FileUnreadable: the file can't be read, or a row has no such text; names the line.
    """
    for number, values in read_file_objects(path):
        if meant is not None and not meant(values):
            continue
        try:
            text = msgspec.convert(values.get(text_key), str)
            spans = msgspec.convert(values.get(spans_key, ()), tuple[GoldSpan, ...])
        except msgspec.ValidationError as error:
            reason = f"`{text_key}` or `{spans_key}` is missing or of another form ({error}); name the keys"
            raise FileUnreadable(f"{path.name}:{number}: {reason}") from error
        yield Row(text, word_of(values.get(label_key)), spans)


def read_file_objects(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield each line of a file that is not empty, with its number, as a JSON object.

    Args:
        path: `.jsonl`, or `.jsonl.gz`.

    Raises:
        FileUnreadable: the file can't be read, or a line is no object; names it.
    """
    try:
        with path.open("rb") as raw, _plain(path, raw) as file:
            yield from read_objects(file, path.name)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileUnreadable(f"can't read `{path}`: {reason.lower()}; give a file of JSON lines") from error


def _plain(path: Path, raw: IO[bytes]) -> IO[bytes]:
    if path.suffix != ".gz":
        return raw
    return cast("IO[bytes]", io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=raw))))


def word_of(value: object) -> str:
    """Return a JSON value as one word: a string as it is, nothing as nothing, anything else as JSON writes it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
