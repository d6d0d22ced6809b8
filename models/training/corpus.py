"""Reads the pool of labelled data: gzip JSON lines, one object a line, one file a source or a group of sources.

Texts may be offensive or be attacks. They are data: nothing here follows what they say.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import orjson

Part = Literal["train", "dev", "test"]

RESTRICTED = "restricted"
"""Folder of sets that only measure: no weight, threshold or calibration may come from them."""


def data_folder() -> Path:
    """Return the folder of the pool: `$CHECKSTREAM_DATA`, else `../shared/data` beside the checkout."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get("CHECKSTREAM_DATA", default))


def rows(folder: Path, name: str, *, measuring: bool = False) -> Iterator[dict[str, object]]:
    """Yield the objects of `name.jsonl.gz`.

    Args:
        folder: of the pool, or of its restricted sets.
        name: of the set; may begin with a folder.
        measuring: a figure is all that comes from it.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the set is restricted, and is read for something else than measuring.
    """
    if not measuring and RESTRICTED in (folder.name, *Path(name).parts[:-1]):
        raise ValueError(f"`{name}` is restricted: nothing may learn from it; say `measuring=True` where nothing does")
    with gzip.open(folder / f"{name}.jsonl.gz", "rb") as lines:
        for line in lines:
            yield orjson.loads(line)


def normalised(text: str) -> str:
    """Return what two copies of one text share: no case, accents, punctuation or spacing."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    return " ".join("".join(sign if sign.isalnum() else " " for sign in folded).split())


def part_of(text: str) -> Part:
    """Return the part that a text belongs to, by its own hash: 80 % train, 10 % dev, 10 % test.

    Copies of a text always fall into one part, whatever file they stand in.
    """
    number = int.from_bytes(hashlib.sha256(normalised(text).encode()).digest()[:4]) % 10
    return "dev" if number == 8 else "test" if number == 9 else "train"


def shingles(text: str, size: int = 5) -> frozenset[int]:
    """Return the hashes of every run of `size` words."""
    words = normalised(text).split()
    runs = [" ".join(words[at : at + size]) for at in range(max(1, len(words) - size + 1))]
    return frozenset(int.from_bytes(hashlib.blake2b(run.encode(), digest_size=8).digest()) for run in runs)


class Seen:
    """Knows the texts that came before, nearly equal ones too."""

    def __init__(self, share: float = 0.5) -> None:
        """A text is known when one before it shares this much of its runs of five words."""
        self._share = share
        self._texts: set[str] = set()
        self._owners: dict[int, list[int]] = {}
        self._count = 0

    def add(self, text: str) -> bool:
        """Add a text; return False when it was known already."""
        key = normalised(text)
        if not key or key in self._texts:
            return False
        own = shingles(text)
        hits: dict[int, int] = {}
        for run in own:
            for owner in self._owners.get(run, ()):
                hits[owner] = hits.get(owner, 0) + 1
        if hits and max(hits.values()) >= self._share * len(own):
            return False
        self._texts.add(key)
        for run in own:
            owners = self._owners.setdefault(run, [])
            if len(owners) < 64:  # a phrase of everybody says nothing
                owners.append(self._count)
        self._count += 1
        return True


def distinct(texts: Iterable[str], seen: Seen | None = None) -> list[str]:
    """Return the texts that are no near copies of one before them."""
    seen = seen or Seen()
    return [text for text in texts if seen.add(text)]
