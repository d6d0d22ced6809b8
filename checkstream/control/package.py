"""What this installation is: the hash of its package's files, and the image that it came in."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import checkstream

IMAGE = "CHECKSTREAM_IMAGE_DIGEST"
"""Environment variable with the digest of the container image, which the image can't know itself."""


def package_hash(folder: Path = Path(checkstream.__file__).parent) -> str:
    """Return SHA-256 of the code of an installed package, hex: of each `.py` file's path and hash. Blocks on files."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).as_posix()):
        name = path.relative_to(folder).as_posix().encode()
        found.update(b"%d:%b%b" % (len(name), name, hashlib.sha256(path.read_bytes()).digest()))
    return found.hexdigest()


def image_digest() -> str:
    """Return the digest of the container image; empty: nobody has told it."""
    said = os.environ.get(IMAGE, "").strip()
    return said if said.isascii() and said.isprintable() and len(said) <= 200 else ""
