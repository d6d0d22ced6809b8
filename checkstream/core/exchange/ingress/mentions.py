"""What was said in earlier requests of a conversation, for triggers that spare it.

Where the provider keeps the history, a request holds only what is new.
It is known by keyed digests alone. Those of words stand in their order, so that a name is found as in the text itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from checkstream.core.conversation import MOST_VALUES, MOST_WORDS, WORD_BYTES, Mentioned, parts_of
from checkstream.core.match.names import APART_DIGEST, word_digest
from checkstream.core.policy.program import Program
from checkstream.core.terms import Delta, Told

_SENT_ONCE = "input"
"""The field that the provider adds to its history; instructions, and documents beside it, are of one request."""
_WORDS_A_STEP = 500
_KEY_CHARS = 64


class Mentions:
    """What one request says that later ones of its conversation don't say again, and what earlier ones said."""

    def __init__(self, program: Program, digest: Callable[[str], str]) -> None:
        """Remember nothing.

        Args:
            program: Its triggers say what they spare.
            digest: Keyed digest of a text.
        """
        self.key = b""
        """Of the digests; empty: nothing is remembered."""
        self._asks = bool(program.remembered or program.worded)
        self._digest = digest
        self._before = Mentioned()
        self._values: dict[str, dict[bytes, None]] = {}
        self._words: dict[str, bytearray] = {}

    def begin(self, caller: str) -> None:
        """Remember for a caller what a request says, if any trigger asks for it."""
        if self._asks:
            self.key = self._digest(f"mentions:{caller}").encode()[:_KEY_CHARS]

    def recall(self, before: Mentioned) -> None:
        """Take what earlier requests said."""
        self._before = before

    def takes(self, delta: Delta) -> bool:
        """Tell whether a text is to be remembered."""
        return bool(self.key) and delta.path[0] == _SENT_ONCE

    def take(self, channel: str, values: Iterable[bytes]) -> None:
        """Take digests of values; of many the latest stay."""
        known = self._values.setdefault(channel, {})
        for value in values:
            known.pop(value, None)
            known[value] = None
            if len(known) > MOST_VALUES:
                del known[next(iter(known))]

    def hear(self, channel: str, words: str) -> Iterator[int]:
        """Take the next words of a text, in steps; yield how many each has taken."""
        known, listed = self._words.setdefault(channel, bytearray()), words.split()
        for at in range(0, len(listed), _WORDS_A_STEP):
            some = listed[at : at + _WORDS_A_STEP]
            known += b"".join(word_digest(word, self.key) for word in some)
            yield len(some)
        del known[: -MOST_WORDS * WORD_BYTES]

    def part(self, channel: str) -> None:
        """End a text: no name reaches into the next one."""
        self._words.setdefault(channel, bytearray()).extend(APART_DIGEST)

    @property
    def new(self) -> Mentioned:
        """What the request has said."""
        return Mentioned(
            values={channel: b"".join(known) for channel, known in self._values.items() if known},
            words={channel: bytes(known) for channel, known in self._words.items() if known},
        )

    def joined(self, told: Told) -> Told:
        """Return what stands in the request, with what earlier ones said."""
        before = self._before
        if not self.key or not (before.values or before.words):
            return told
        values = dict(told.values)
        for channel, said in before.values.items():
            values[channel] = values.get(channel, frozenset()).union(parts_of(said))
        return msgspec.structs.replace(told, values=values, heard=before.words)
