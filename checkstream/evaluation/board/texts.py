"""Rows of the sets of a scoreboard, chosen so that the same ones are read again wherever they stand in their file."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

from checkstream.errors import FileUnreadable
from checkstream.evaluation.board.described import SetDescribed
from checkstream.evaluation.rows import Meant, PairRow, Row, read_file_objects, read_pairs, read_rows, word_of

_SHOWN = 12


def read_texts(path: Path, described: SetDescribed, most: int) -> list[Row]:
    """Return the texts of a set, at most so many, those with the lowest digests; each text once.

    Raises:
        FileUnreadable: the file can't be read, a row is none, or no row is meant.
    """
    found: dict[str, Row] = {}
    for row in read_rows(path, "text", "label", "spans", meant=_meant(described)):
        if row.text.strip():
            found.setdefault(digest(row.text), row)
    if not found:
        raise _nothing(path, described)
    return [found[key] for key in sorted(found)[:most]]


def read_claims(path: Path, described: SetDescribed, most: int) -> list[PairRow]:
    """Return the claims of a set, at most so many, those with the lowest digests; each once with its evidence.

    Raises:
        FileUnreadable: the file can't be read, a row is none, or no row is meant.
    """
    found: dict[str, PairRow] = {}
    for row in read_pairs(path, "premise", "claim", "label", meant=_meant(described)):
        if row.premise.strip() and row.claim.strip() and row.label:
            found.setdefault(digest(row.premise, row.claim), row)
    if not found:
        raise _nothing(path, described)
    return [found[key] for key in sorted(found)[:most]]


def digest(*texts: str) -> str:
    """Return what texts are known by."""
    found = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        found.update(len(data).to_bytes(8, "big"))
        found.update(data)
    return found.hexdigest()


def _meant(described: SetDescribed) -> Meant:
    allowed = {key: frozenset(words) for key, words in described.where.items()}
    return lambda values: all(word_of(values.get(key)) in words for key, words in allowed.items())


def _nothing(path: Path, described: SetDescribed) -> FileUnreadable:
    wanted = ", ".join(f"`{key}` {' or '.join(words)}" for key, words in described.where.items())
    counts: dict[str, Counter[str]] = {key: Counter() for key in described.where}
    for values in (values for _, values in read_file_objects(path)):
        for key, words in counts.items():
            words[word_of(values.get(key))[:40] or "nothing"] += 1
    held = "; ".join(
        f"there `{key}` is {', '.join(word for word, _ in words.most_common(_SHOWN)) or 'nothing'}"
        for key, words in counts.items()
    )
    which = f" with {wanted}; {held}" if wanted else "; it needs lines of JSON"
    return FileUnreadable(f"`{path.name}` has no row{which}")
