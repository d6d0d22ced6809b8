"""The demo's page: raw and guarded side by side, as lines of text for a terminal. Pure.

INVARIANT: text from outside can't steer the terminal: what isn't printable is shown as an escape.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import msgspec

from checkstream.demo.conversations import Conversation
from checkstream.demo.heard import Heard

MIN_COLUMNS, MAX_COLUMNS = 80, 120
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


class Fired(msgspec.Struct, frozen=True):
    """A rule that fired, as the audit log has it."""

    rule: str
    action: str
    detectors: tuple[str, ...]
    mode: str = "enforce"


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation and what came of it."""

    number: int
    conversation: Conversation
    raw: Heard
    guarded: Heard
    fired: tuple[Fired, ...]
    held_ms: float | None
    """Longest time that text which was then sent had been held; None: there is no audit entry."""
    faults: tuple[str, ...]
    saw: str = ""
    """What the model got of it through checkstream, where that is to be shown."""
    reason: str = "finish_reason"
    """What the API calls why an answer has ended."""


class Page:
    """Lays conversations out for one width, with colours or without."""

    def __init__(self, columns: int, *, colours: bool) -> None:
        """Take the terminal's width; it is kept between 80 and 120 columns."""
        self._columns = min(max(columns, MIN_COLUMNS), MAX_COLUMNS)
        self._half = (self._columns - 3) // 2
        self._colours = colours

    def paint(self, colour: str, text: str) -> str:
        """Return the text in a colour, where colours are wanted."""
        return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if self._colours and colour and text else text

    def conversation(self, shown: Shown) -> Iterator[str]:
        """Yield the lines of one conversation."""
        title = f"{shown.number}. {shown.conversation.title} "
        yield ""
        yield self.paint("bold", title) + self.paint("dim", "─" * max(self._columns - len(title), 0))
        yield from self._entry("asked", printable(shown.conversation.prompt))
        if shown.saw:
            yield from self._entry("saw", printable(shown.saw) + "  (what the model got)", "green")
        yield from self._sides(
            self._side("straight from the model", shown.raw, shown.reason),
            self._side("through checkstream", shown.guarded, shown.reason),
        )
        yield from self._entry("fired", self._fired(shown))
        yield from self._entry("held", held(shown))
        yield from self._entry("took", took(shown.raw, shown.guarded))
        for claim in shown.guarded.claims:
            colour = {"contradicted": "red", "supported": "green"}.get(claim["verdict"], "yellow")
            yield from self._entry("claim", printable(f"{claim['verdict']}: {claim['text']}"), colour)
            if claim["verdict"] != "supported":
                yield from self._entry("", printable(f"because {claim['reason']}"))
                for found in claim["evidence"]:
                    yield from self._entry("", printable(f'{found["source"] or found["id"]}: "{found["text"]}"'))
        if shown.guarded.judged_ms is not None:
            yield from self._entry("told", f"{shown.guarded.judged_ms:.0f} ms after the last text, in the last event")
        if shown.conversation.note:
            yield from self._entry("note", shown.conversation.note, "yellow")
        for fault in shown.faults:
            yield from self._entry("WRONG", printable(fault), "red")

    def _side(self, head: str, heard: Heard, reason: str) -> list[tuple[str, str]]:
        """Return (colour, line) pairs of one column."""
        lines = [("dim", head)]
        for index, text in enumerate(heard.choices):
            mark = f"[{index}] " if len(heard.choices) > 1 else ""
            lines += [("", line) for line in self._wrap(mark + printable(text), self._half)]
        if heard.failure:
            refused = f"{heard.status}: {heard.failure}" if heard.status != 200 else heard.failure
            lines += [("red", line) for line in self._wrap(printable(refused), self._half)]
        if heard.finishes:
            lines.append(("dim", f"{reason}: " + ", ".join(printable(finish) for finish in heard.finishes)))
        return lines

    def _sides(self, left: Sequence[tuple[str, str]], right: Sequence[tuple[str, str]]) -> Iterator[str]:
        for (one, text), (other, more) in zip_longest(left, right, fillvalue=("", "")):
            padded = self.paint(one, text) + " " * (self._half - len(text))
            yield f"{padded} {self.paint('dim', '│')} {self.paint(other, more)}".rstrip()

    def _fired(self, shown: Shown) -> str:
        if not shown.fired:
            kept = (
                "every event of the model is as it sent it"
                if shown.guarded.claims
                else "every event is as the model sent it"
            )
            return f"nothing; {kept}" if not shown.faults else "nothing"
        return "; ".join(
            f"{fired.rule} {fired.action} ({', '.join(fired.detectors)})"
            + (" in shadow mode" if fired.mode == "shadow" else "")
            for fired in shown.fired
        )

    def _entry(self, name: str, text: str, colour: str = "") -> Iterator[str]:
        first, *rest = self._wrap(text, self._columns - 8) or [""]
        yield f"{self.paint(colour or 'dim', name.ljust(7))} {self.paint(colour, first)}"
        for line in rest:
            yield " " * 8 + self.paint(colour, line)

    def _wrap(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(text, width, break_on_hyphens=False)


def printable(text: str) -> str:
    """Return text in which nothing can steer a terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def held(shown: Shown) -> str:
    """Return how long text was held."""
    if shown.held_ms is None:
        return "no audit entry"
    if shown.guarded.status != 200:
        return "nothing was sent"
    return f"{shown.held_ms:.1f} ms at the longest, for text that was then sent"


def took(raw: Heard, guarded: Heard) -> str:
    """Return the latencies of both sides and their differences."""
    if guarded.status != 200:
        return f"refused after {guarded.total_ms:.1f} ms"
    parts = []
    if raw.ttft_ms is not None and guarded.ttft_ms is not None:
        added = guarded.ttft_ms - raw.ttft_ms
        parts.append(f"first text {raw.ttft_ms:.1f} -> {guarded.ttft_ms:.1f} ms ({added:+.1f})")
    added = guarded.total_ms - raw.total_ms
    parts.append(f"whole answer {raw.total_ms:.1f} -> {guarded.total_ms:.1f} ms ({added:+.1f})")
    return "; ".join(parts)
