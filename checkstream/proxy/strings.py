"""Masks the strings of a JSON body one by one, where no channel reads them: ids, names of callers, metadata."""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import cast

from checkstream.core.match.patterns import PatternSet
from checkstream.core.match.scan import Scan
from checkstream.core.policy.program import Signal
from checkstream.core.terms import Finding, Unit
from checkstream.core.wire import sse
from checkstream.core.wire.json_text.spans import NAME, Path
from checkstream.core.wire.surface import Frame
from checkstream.errors import UnmaskableError
from checkstream.proxy.specimens import SPECIMENS

_REMEMBERED = 4096


class Strings:
    """Puts specimens in place of entities. What was masked lately is remembered: events repeat their ids."""

    def __init__(self, entities: PatternSet, signals: tuple[Signal, ...]) -> None:
        """Look for these entities.

        Args:
            entities: What is looked for.
            signals: Of the program that the set belongs to.
        """
        self._entities = entities
        self._signals = signals
        self.text = lru_cache(_REMEMBERED)(self._text)
        """Return a string with specimens in place of entities; of those that overlap the longest speaks."""

    def body(self, body: bytes, unit: Unit) -> dict[str, object]:
        """Return a JSON object masked outside of the texts of its unit.

        Raises:
            UnmaskableError: it is no object.
        """
        return cast("dict[str, object]", self.value(read_object(body), frozenset(delta.path for delta in unit.deltas)))

    def event(self, frame: Frame, unit: Unit) -> bytes:
        """Return an event masked outside of its texts, without comments.

        Raises:
            UnmaskableError: its data is no object.
        """
        if frame.data is None:
            return b""
        name = self.text(frame.event) if frame.event.isprintable() else ""
        bare = unit.terminator and not frame.data.startswith(b"{")
        data = frame.data if bare else json.dumps(self.body(frame.data, unit)).encode()
        return sse.encode(data, name)

    def value(self, value: object, done: AbstractSet[Path], path: Path = ()) -> object:
        """Return a JSON value with every string and number masked that is not at one of the paths `done`."""
        if path in done:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {
                name if (*path, name, NAME) in done else self.text(name): self.value(below, done, (*path, name))
                for name, below in value.items()
            }
        if isinstance(value, list):
            return [self.value(below, done, (*path, place)) for place, below in enumerate(value)]
        if isinstance(value, bool) or value is None:
            return value
        return value if self.text(str(value)) == str(value) else 0

    def _text(self, text: str) -> str:
        scan = Scan(self._entities)
        findings = sorted([*scan.feed(text), *scan.end()], key=lambda finding: finding.span)
        clusters: list[list[Finding]] = []
        end = 0
        for finding in findings:
            if clusters and finding.span.start < end:
                clusters[-1].append(finding)
            else:
                clusters.append([finding])
            end = max(end, finding.span.end)
        out: list[str] = []
        at = 0
        for cluster in clusters:
            longest = max(cluster, key=lambda finding: finding.span.end - finding.span.start)
            out += (text[at : cluster[0].span.start], SPECIMENS[self._signals[longest.signal].name])
            at = max(finding.span.end for finding in cluster)
        return "".join((*out, text[at:]))


def read_object(body: bytes) -> dict[str, object]:
    """Return the JSON object that a body is.

    Raises:
        UnmaskableError: it is none.
    """
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnmaskableError("a body is not JSON") from error
    if not isinstance(value, dict):
        raise UnmaskableError("a body is not an object")
    return value
