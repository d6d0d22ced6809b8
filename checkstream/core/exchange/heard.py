"""What the caller has got of an answer's content, kept where something later depends on it."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping

from checkstream.core.steps import joining


class Spoken:
    """Tells a text again that comes in other pieces, and with other white space: clients trim what they send again."""

    __slots__ = ("_hash", "empty")

    def __init__(self) -> None:
        """Start before the first piece."""
        self.empty = True
        self._hash = hashlib.blake2b(digest_size=16)

    def feed(self, text: str) -> None:
        """Take the next piece."""
        said = "".join(text.split())
        if said:
            self.empty = False
            self._hash.update(said.encode("utf-8", "surrogatepass"))

    @property
    def digest(self) -> bytes:
        """Of all that was said so far."""
        return self._hash.digest()


class Heard:
    """Collects the content of every choice. INVARIANT: unless all of it is kept, never more than `most_chars`."""

    __slots__ = ("_room", "_texts", "_whole")

    def __init__(self, *, whole: bool = False, most_chars: int = 0) -> None:
        """Start before the answer.

        Args:
            whole: Keep all of it: the upstream may have to go on from it.
            most_chars: Else keep an answer of so many characters; of a longer one nothing.
        """
        self._whole = whole
        self._room = most_chars
        self._texts: dict[int, list[str]] = {}

    def feed(self, number: int, text: str) -> None:
        """Take the next piece of a choice, as the caller gets it."""
        self._room -= len(text)
        if self._whole or self._room >= 0:
            self._texts.setdefault(number, []).append(text)
        elif self._texts:
            self._texts.clear()

    def text(self, number: int) -> str:
        """Return what was kept of a choice."""
        return "".join(self._texts.get(number, ()))

    def telling(self, number: int) -> Generator[None, None, str]:
        """Return what was kept of a choice, in steps."""
        return joining(self._texts.get(number, ()))

    @property
    def too_long(self) -> bool:
        """The answer passed `most_chars`."""
        return self._room < 0

    @property
    def answers(self) -> Mapping[int, str]:
        """Choice -> what was kept of it, without choices that have said nothing."""
        texts = {number: self.text(number) for number in sorted(self._texts)}
        return {number: text for number, text in texts.items() if text.strip()}
