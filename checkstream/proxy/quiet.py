"""What was found in texts before, by the keyed hash of caller, policy and text: places and rules, never the text."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict

from checkstream.core.exchange.quiet import Found

MOST = 65_536
"""Texts and findings that are known: some ten megabytes, the history of some thousand long chats."""
_DIGEST_BYTES = 16


class QuietTexts:
    """What this process knows; of the caller that has most, texts that were not seen for longest are given up first."""

    def __init__(self, most: int = MOST) -> None:
        """Know nothing, under a key that this process alone has; keep at most so many texts and findings."""
        self._most = most
        self._key = secrets.token_bytes(32)
        self._callers: dict[str, OrderedDict[bytes, Found]] = {}
        self._sizes: dict[str, int] = {}

    def __len__(self) -> int:
        """Return how many texts and findings are known."""
        return sum(self._sizes.values())

    def of(self, caller: str | None, program: str) -> QuietOfCaller:
        """Return what is known of a caller's texts; `program`: hash of the policies."""
        whose = f"{len(caller or '')}:{caller or ''}:{program}".encode("utf-8", "surrogatepass")
        return QuietOfCaller(self, caller or "", hashlib.blake2b(whose, key=self._key, digest_size=32).digest())

    def found(self, caller: str, key: bytes) -> Found | None:
        """Return what was found in a text; None: it is not known."""
        own = self._callers.get(caller)
        found = None if own is None else own.get(key)
        if own is not None and found is not None:
            own.move_to_end(key)
        return found

    def keep(self, caller: str, key: bytes, found: Found) -> None:
        """Know from now on what was found in a text."""
        own = self._callers.setdefault(caller, OrderedDict())
        old = own.pop(key, None)
        own[key] = found
        self._sizes[caller] = self._sizes.get(caller, 0) + _size(found) - (0 if old is None else _size(old))
        while len(self) > self._most:
            most = max(self._sizes, key=self._sizes.__getitem__)
            texts = self._callers[most]
            self._sizes[most] -= _size(texts.popitem(last=False)[1])
            if not texts:
                del self._callers[most], self._sizes[most]


def _size(found: Found) -> int:
    return 1 + sum(map(len, found))


class QuietOfCaller:
    """The texts of one caller under one policy."""

    def __init__(self, all_: QuietTexts, caller: str, key: bytes) -> None:
        """Look texts up among all, under a key of the caller's own."""
        self._all = all_
        self._caller = caller
        self._key = key
        self.asked = 0
        """Texts that were looked up ..."""
        self.known = 0
        """... and those of them that were there."""

    def found(self, kind: str, text: str) -> Found | None:
        """Return what was found in a text when it was looked through for `kind`; None: it is not known."""
        found = self._all.found(self._caller, self._hash(kind, text))
        self.asked += 1
        self.known += found is not None
        return found

    def keep(self, kind: str, text: str, found: Found = ()) -> None:
        """Note what was found in a text."""
        self._all.keep(self._caller, self._hash(kind, text), found)

    def _hash(self, kind: str, text: str) -> bytes:
        said = f"{kind}:{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(said, key=self._key, digest_size=_DIGEST_BYTES).digest()
