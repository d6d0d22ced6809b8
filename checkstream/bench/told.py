"""One answer on its way: what the model wrote and when, what its caller got and when. Pure."""

from __future__ import annotations

import itertools
import json
from bisect import bisect_left
from collections.abc import Iterator
from typing import Literal

import msgspec

from checkstream.bench.scenario import Script

Outcome = Literal["whole", "edited", "stopped", "refused", "denied", "left", "broken"]
"""whole: the model's own text, to its end. edited: another text, to its end. stopped: by a rule (`content_filter`).
refused: 429. denied: another status of 400 to 499. left: the caller went. broken: all else."""


class Told(msgspec.Struct, kw_only=True):
    """It, as far as it is known."""

    text: list[str]
    """Pieces of what the model says."""
    leaves_behind: int | None = None
    """The caller goes when it has so many characters."""
    asked_s: float = 0.0
    """When it was asked for; this and all times are of one clock, in seconds."""
    wrote_s: list[float] = msgspec.field(default_factory=list)
    """When each piece was written, as far as it was."""
    heard: list[tuple[int, float]] = msgspec.field(default_factory=list)
    """How many characters had come, and when."""
    pieces: list[str] = msgspec.field(default_factory=list)
    """What has come."""
    status: int = 0
    finish: str | None = None
    ended: bool = False
    """The message came to its end."""
    failed: bool = False
    """It said that something failed."""
    left: bool = False

    def hear(self, piece: str, at_s: float) -> None:
        """Note a piece that has come."""
        self.pieces.append(piece)
        self.heard.append(((self.heard[-1][0] if self.heard else 0) + len(piece), at_s))

    def outcome(self) -> Outcome:
        """Return what came of it."""
        if self.left:
            return "left"
        if self.status == 429:
            return "refused"
        if 400 <= self.status < 500:
            return "denied"
        if self.finish == "content_filter":
            return "stopped"
        if self.status != 200 or self.failed or not self.ended or self.finish is None:
            return "broken"
        return "whole" if not self.text or "".join(self.pieces) == "".join(self.text) else "edited"

    def _same_chars(self) -> int:
        """Return how much of the beginning of what came is what the model said, in characters."""
        pairs = zip("".join(self.pieces), "".join(self.text), strict=False)
        return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))

    def delays_s(self) -> Iterator[float]:
        """Yield the delay of each piece, as far as what came is what the model said."""
        same = self._same_chars()
        counts = [count for count, _ in self.heard]
        end = 0
        for piece, wrote_s in zip(self.text, self.wrote_s, strict=False):
            end += len(piece)
            at = bisect_left(counts, end)
            if end > same or at == len(counts):
                return
            yield self.heard[at][1] - wrote_s

    def first_text_s(self) -> float | None:
        """Return what the caller waited for the first text."""
        return self.heard[0][1] - self.asked_s if self.heard else None

    def leaked(self, harm: str) -> int:
        """Return how many pieces came from where the harm begins."""
        begins, came = "".join(self.text).find(harm), self._same_chars()
        if begins < 0:
            return 0
        end = count = 0
        for piece in self.text:
            end += len(piece)
            count += begins < end <= came
        return count


def tell(script: Script, number: int) -> Told:
    """Return what the model says to a request by its number; each begins elsewhere, unless it matters where harm is."""
    scenario, text = script.scenario, script.text
    first = 0 if scenario.harm is not None else number * 31
    said = [text[(first + at) % len(text)] for at in range(scenario.tokens)]
    if scenario.form == "call":
        said = ['{"text":"', *(json.dumps(piece, ensure_ascii=False)[1:-1] for piece in said), '"}']
    goes = int((number + 1) * scenario.leaving) > int(number * scenario.leaving)
    return Told(text=said, leaves_behind=sum(map(len, said)) // 2 if goes else None)
