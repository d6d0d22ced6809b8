"""The static files: loaded once, each under a name that has its hash, so that browsers may keep it for ever."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Asset(msgspec.Struct, frozen=True, kw_only=True):
    """One file."""

    name: str
    """With its hash: `console.1f2e3d4c5b6a.css`."""
    type: str
    body: bytes


class Assets:
    """All of them."""

    def __init__(self, folder: Path = _FOLDER) -> None:
        """Read them. Blocks."""
        self._hashed: dict[str, str] = {}
        self._files: dict[str, Asset] = {}
        for path in sorted(folder.iterdir()):
            if path.suffix in _TYPES:
                body = path.read_bytes()
                name = f"{path.stem}.{hashlib.sha256(body).hexdigest()[:12]}{path.suffix}"
                self._hashed[path.name] = name
                self._files[name] = Asset(name=name, type=_TYPES[path.suffix], body=body)

    def named(self, name: str) -> str:
        """Return a file's name with its hash.

        Raises:
            KeyError: there is no such file: a bug of a template.
        """
        return self._hashed[name]

    def get(self, hashed: str) -> Asset | None:
        """Return the file of a name with its hash; None: there is none, or it has another hash."""
        return self._files.get(hashed)
