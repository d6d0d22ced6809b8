"""Files of policies by their digests: what a draft holds, what it changes, and which names files may have. Pure."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

from checkstream.errors import RequestInvalid

Manifest: TypeAlias = dict[str, str]
"""Path -> SHA-256 of the file, hex."""
Changes: TypeAlias = Mapping[str, str | None]
"""Path -> its new text; None: it goes."""
MOST_BYTES = 256 << 10
"""Of a text that people edit."""
MOST_FILES = 500
_MOST_PATH, _MOST_PART, _MOST_DEPTH = 200, 80, 12
_FORBIDDEN = frozenset('\\:*?"<>|')
"""Characters that some systems read in names as something else."""


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """A file that differs between two manifests."""

    path: str
    change: Literal["added", "changed", "removed"]


def digest_of(content: bytes) -> str:
    """Return the digest of a file."""
    return hashlib.sha256(content).hexdigest()


def content_of(manifest: Manifest) -> str:
    """Return the digest of all files together, which is what people approve of."""
    return digest_of(msgspec.json.encode(dict(sorted(manifest.items()))))


def changed_files(before: Manifest, after: Manifest) -> tuple[Changed, ...]:
    """Return what differs, by path."""
    found: list[Changed] = []
    for path in sorted({*before, *after}):
        if path not in before:
            found.append(Changed(path=path, change="added"))
        elif path not in after:
            found.append(Changed(path=path, change="removed"))
        elif before[path] != after[path]:
            found.append(Changed(path=path, change="changed"))
    return tuple(found)


def with_changes(manifest: Manifest, changes: Changes) -> Manifest:
    """Return a manifest with some files changed.

    Raises:
        RequestInvalid: a name or a text can't be taken, a file that should go is not there, or there are too many.
    """
    if not changes:
        raise RequestInvalid("nothing is changed; give at least one file")
    found = dict(manifest)
    for path, text in changes.items():
        check_path(path)
        if text is None:
            if found.pop(path, None) is None:
                raise RequestInvalid(f"there is no file `{path}` that could go")
        else:
            found[path] = digest_of(checked_text(path, text))
    check_paths(found)
    return found


def checked_text(path: str, text: str) -> bytes:
    """Return a text as UTF-8.

    Raises:
        RequestInvalid: it is too long, or no text.
    """
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise RequestInvalid(f"`{path}` holds half a character at {error.start}; send whole ones") from error
    if len(content) > MOST_BYTES:
        raise RequestInvalid(f"`{path}` has {len(content):,} bytes; a file of a draft has at most {MOST_BYTES:,}")
    if "\0" in text:
        raise RequestInvalid(f"`{path}` holds a NUL at character {text.index(chr(0)) + 1}; it is no text")
    return content


def check_path(path: str) -> None:
    """Take the name of a file.

    Raises:
        RequestInvalid: it leads elsewhere, is hidden, or not every system can have it.
    """
    parts = path.split("/")
    shown = f"`{ascii(path[:100])[1:-1]}`"
    if not path or len(path) > _MOST_PATH or len(parts) > _MOST_DEPTH or max(map(len, parts)) > _MOST_PART:
        raise RequestInvalid(f"{shown} is no name of a file, or too long; write a path such as `shop/policy.yaml`")
    if not path.isprintable() or _FORBIDDEN & set(path) or unicodedata.normalize("NFC", path) != path:
        raise RequestInvalid(f"{shown} has a character that names of files can't have everywhere; use plain ones")
    for part in parts:
        if not part or part.startswith((".", " ")) or part.endswith((".", " ")):
            raise RequestInvalid(
                f"{shown} has the part `{part}`; a path leads down from the sources, through no hidden folder"
            )


def check_paths(paths: Iterable[str]) -> None:
    """Take names beside each other.

    Raises:
        RequestInvalid: there are too many; two differ in case alone, or one is the folder of another.
    """
    seen: dict[str, str] = {}
    every = sorted(paths)
    if len(every) > MOST_FILES:
        raise RequestInvalid(f"there would be {len(every)} files; a draft has at most {MOST_FILES}")
    for path in every:
        twin = seen.setdefault(path.casefold(), path)
        if twin != path:
            raise RequestInvalid(f"`{path}` and `{twin}` differ in case alone, and are one file on some systems")
    for path in every:
        parts = path.casefold().split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if folder in seen:
                raise RequestInvalid(f"`{seen[folder]}` can't be a file and the folder of `{path}`")


def rebased(base: Manifest, ours: Manifest, theirs: Manifest) -> tuple[Manifest, tuple[str, ...]]:
    """Return what a draft would hold on newer sources, and the files that both have changed, each in its own way.

    Of those the draft's are kept.
    """
    merged: Manifest = {}
    both: list[str] = []
    for path in sorted({*base, *ours, *theirs}):
        was, own, new = (each.get(path) for each in (base, ours, theirs))
        kept = new if own == was else own
        if own not in {was, new} and new != was:
            both.append(path)
        if kept is not None:
            merged[path] = kept
    return merged, tuple(both)
