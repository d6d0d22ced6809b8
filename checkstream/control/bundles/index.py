"""What a bundle says of itself: which programs it has, of which files, and for which models they were compiled.

`bundle.json` is canonical JSON, so that who builds a bundle from the same files gets the same bytes. INVARIANT: a
reader takes it as hostile: each path stays below the bundle's folder, and each file is named with its hash and length.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from checkstream.core.policy.program import Digest, Word
from checkstream.errors import BundleRefused

MAX_INDEX_BYTES = 4 << 20
MAX_FILE_BYTES = 256 << 20
MAX_BUNDLE_BYTES = 512 << 20
INDEX = "bundle.json"
MODELS = "models.json"
"""What the manifests said of the models that the programs ask."""

Name = Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9-]{0,62}\Z")]
"""Of a bundle, a program or a role: it stands in paths and in addresses."""
Path = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\A[A-Za-z0-9_.+-]+(/[A-Za-z0-9_.+-]+)*\Z")]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys that are not known are refused."""


class BundledFile(_Strict, frozen=True, kw_only=True):
    """A file of a bundle."""

    sha256: Digest
    bytes: Annotated[int, Meta(ge=0, le=MAX_FILE_BYTES)]


class BundledCases(_Strict, frozen=True, kw_only=True):
    """Cases that policies must pass."""

    policies: Annotated[tuple[Path, ...], Meta(min_length=1, max_length=64)]
    """Compiled together for them."""
    cases: Path


class BundledProgram(_Strict, frozen=True, kw_only=True):
    """Policies that are in force together."""

    policies: Annotated[tuple[Path, ...], Meta(min_length=1, max_length=64)]
    """In their order."""
    tests: Annotated[tuple[BundledCases, ...], Meta(max_length=65)] = ()
    hash: Digest
    """Of the program that they compile to."""


class Index(_Strict, frozen=True, kw_only=True):
    """The whole of `bundle.json`."""

    format: Literal["checkstream.bundle.1"] = "checkstream.bundle.1"
    name: Name
    version: Word
    package: Word
    """Version of the package that compiled it."""
    programs: Annotated[dict[Name, BundledProgram], Meta(min_length=1, max_length=64)]
    files: Annotated[dict[Path, BundledFile], Meta(max_length=10_000)]

    def encode(self) -> bytes:
        """Return it as canonical JSON."""
        return msgspec.json.encode(self, order="deterministic")


def file_of(content: bytes | memoryview) -> BundledFile:
    """Return how an index names a content."""
    return BundledFile(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))


def read_index(data: bytes) -> Index:
    """Return what a `bundle.json` says.

    Raises:
        BundleRefused: it is none, or contradicts itself.
    """
    if len(data) > MAX_INDEX_BYTES:
        raise BundleRefused(f"the bundle's `{INDEX}` has {len(data)} bytes; the limit is {MAX_INDEX_BYTES}")
    try:
        index = msgspec.json.decode(data, type=Index)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BundleRefused(f"the bundle's `{INDEX}` can't be read: {error}; build it again") from error
    if index.encode() != data:
        raise BundleRefused(f"the bundle's `{INDEX}` is not in canonical form; build it again")
    for fault in _contradictions(index):
        raise BundleRefused(f"the bundle's `{INDEX}` is wrong: {fault}; build it again")
    return index


def _contradictions(index: Index) -> Iterator[str]:
    folders = {folder for path in index.files for folder in _folders(path)}
    lower = {path.lower() for path in index.files}
    for path in index.files:
        if {".", ".."} & set(path.split("/")) or path in folders or path.partition("/")[0] == INDEX:
            yield f"no file can be called `{path}`"
    if len(lower) < len(index.files):  # a folder on some machines would have one of the two
        yield "two of its files differ in capitals only"
    if sum(file.bytes for file in index.files.values()) > MAX_BUNDLE_BYTES:
        yield f"its files have more than {MAX_BUNDLE_BYTES} bytes"
    for name, program in index.programs.items():
        cases = (path for test in program.tests for path in (*test.policies, test.cases))
        for path in (*program.policies, *cases, program_path(program.hash)):
            if path not in index.files:
                yield f"program `{name}` needs `{path}`, which is not among its files"
    if MODELS not in index.files:
        yield f"it has no `{MODELS}`"


def _folders(path: str) -> Iterator[str]:
    parts = path.split("/")
    for size in range(1, len(parts)):
        yield "/".join(parts[:size])


def program_path(digest: str) -> str:
    """Return where a compiled program stands in its bundle."""
    return f"programs/{digest}.json"
