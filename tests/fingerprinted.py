"""Texts with fingerprints, and policies that name them, for tests."""

from __future__ import annotations

from collections.abc import Iterable

from checkstream.core.match.fingerprints import checksum
from checkstream.core.match.winnowing import Winnowing
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.nodes import Given
from checkstream.core.policy.program import Program
from checkstream.core.policy.spares_syntax import list_name

KEEPER = (
    "The keeper of the old lighthouse climbed one hundred and twelve steps every evening, lit the great lamp with a "
    "match that he had kept dry in his pocket, and sat down beside the window to count the ships that passed before "
    "the moon went under; nobody had ever asked him how many there were, and nobody was told."
)
"""A text of 59 words."""


def file_of(texts: Iterable[str] = (KEEPER,), least: int = 12) -> bytes:
    """Return the file of fingerprints of some texts."""
    made = Winnowing(least)
    for text in texts:
        assert made.take(text)
    return made.file()


BOOKS = file_of()


def resealed(data: bytes) -> bytes:
    """Return a file of fingerprints with a checksum that is right."""
    return data[:48] + checksum(memoryview(data)).digest() + data[80:]


def sources(rules: str, **files: bytes) -> list[Given]:
    """Return a policy of some rules, with the files beside it: `books` for `books.fp`."""
    given: list[Given] = [("t.yaml", f"pack: {{name: t, version: 1.0.0}}\npolicies:\n{rules}")]
    return given + [
        (list_name("t.yaml", f"{name}.fp"), content) for name, content in ({"books": BOOKS} | files).items()
    ]


def compiled(rules: str, **files: bytes) -> Program:
    """Compile a policy of some rules."""
    return compile_sources(sources(rules, **files))
