"""Texts in which nothing was found, by the keyed hash of caller, policy and text: never the text."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict

MOST = 65_536
"""Texts that are known: some ten megabytes, the history of some thousand long chats."""
_DIGEST_BYTES = 16


class QuietTexts:
    """What this process knows, texts that were not seen for longest given up first."""

    def __init__(self, most: int = MOST) -> None:
        """Know nothing, under a key that this process alone has; keep at most so many texts."""
        self._most = most
        self._key = secrets.token_bytes(32)
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        """Return how many texts are known."""
        return len(self._known)

    def of(self, caller: str | None, program: str) -> QuietOfCaller:
        """Return what is known of a caller's texts; `program`: hash of the policies."""
        whose = f"{len(caller or '')}:{caller or ''}:{program}".encode("utf-8", "surrogatepass")
        return QuietOfCaller(self, hashlib.blake2b(whose, key=self._key, digest_size=32).digest())

    def knows(self, key: bytes) -> bool:
        """Tell whether a text is known."""
        known = key in self._known
        if known:
            self._known.move_to_end(key)
        return known

    def keep(self, key: bytes) -> None:
        """Know a text from now on."""
        self._known[key] = None
        self._known.move_to_end(key)
        if len(self._known) > self._most:
            self._known.popitem(last=False)


class QuietOfCaller:
    """The texts of one caller under one policy."""

    def __init__(self, all_: QuietTexts, key: bytes) -> None:
        """Look texts up among all, under a key of the caller's own."""
        self._all = all_
        self._key = key

    def knows(self, kind: str, text: str) -> bool:
        """Tell whether nothing was found in a text when it was looked through for `kind`."""
        return self._all.knows(self._hash(kind, text))

    def keep(self, kind: str, text: str) -> None:
        """Note that nothing was found in a text."""
        self._all.keep(self._hash(kind, text))

    def _hash(self, kind: str, text: str) -> bytes:
        said = f"{kind}:{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(said, key=self._key, digest_size=_DIGEST_BYTES).digest()
