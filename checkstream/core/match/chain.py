"""The views that read one another, beside the raw text: `unescaped`, `folded`, `unmarked`, `spaced`, `leet`.

Each undoes one kind of evasion in what the one before has left, so that evasions within evasions are undone too. The
chain sleeps while all its views equal the raw text; then the raw lane stands for it. It wakes on a
character (or run) that a view would change. Awake, a view has a lane of its own only while it differs
from its source within the text that still matters; else the lane of its source stands for it too.
INVARIANT: what a chain reports does not depend on whether it slept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from checkstream.core.match.apart import Spaced, apart
from checkstream.core.match.escapes import Unescaped
from checkstream.core.match.lane import Lane
from checkstream.core.match.markup import Unmarked, marks_from
from checkstream.core.match.normalise import COMPOSING, Folded, Leet, Reading, View, folds_nowhere
from checkstream.core.match.patterns import PatternSet, Table

_VIEW_TYPES: dict[str, Callable[[str], View]] = {
    "unescaped": lambda _: Unescaped(),
    "folded": Folded,
    "unmarked": Unmarked,
    "spaced": Spaced,
    "leet": Leet,
}
_TAIL_CHARS = 16
"""More than all views but `spaced` leave undecided in text that wakes no chain, as a rule."""


def undecided(text: str) -> tuple[int, ...]:
    """Return where each view stops reading text of which the end is ASCII, and nothing is changed by any; in order."""
    folded = len(text) - (text[-1:] in COMPOSING)
    unmarked = folded if text[folded - 1 : folded].isalpha() and "<" not in text else marks_from(text, folded)
    spaced = apart(text, unmarked, after_word=False)
    return len(text), folded, unmarked, spaced, spaced


class Unread(msgspec.Struct):
    """Source characters that a view has left unread, with their offset map."""

    text: str = ""
    starts: Sequence[int] = ()
    ends: Sequence[int] = ()


class Level:
    """One view of a chain that is awake."""

    __slots__ = ("changed", "lane", "name", "read_to", "table", "unread", "view")

    def __init__(self, name: str, table: Table, before: str, read_to: int, unread: Unread) -> None:
        """Start having read to `read_to`, the original offset at which `unread` begins."""
        self.name = name
        self.table = table
        self.view = _VIEW_TYPES[name](before)
        self.read_to = read_to
        self.unread = unread
        self.lane: Lane | None = None
        self.changed = -1
        """End, in the original, of the last place where the view differs from its source."""


class Chain:
    """The views in the order in which they read one another; one per channel."""

    __slots__ = ("_levels", "_names", "_tables", "_unread", "stops")

    def __init__(self, patterns: PatternSet) -> None:
        """Start asleep."""
        self._names = patterns.chained
        self._tables = patterns.chained_tables
        self._levels: list[Level] = []
        self.stops: list[int] = [0] * len(self._names)
        """Original offset to which each view has read; none further than one that it reads."""
        self._unread = patterns.most_unread

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the views."""
        return self._names

    @property
    def awake(self) -> bool:
        """Whether the views are being read."""
        return bool(self._levels)

    @property
    def due(self) -> int:
        """Return the original offset up to which the views, awake, may be given text at once.

        There one may have waited for too long for what follows (see `read`).
        """
        return self.stops[-1] + self._unread

    def doze(self, raw: Lane) -> int:
        """Note where the views, asleep, have stopped in the raw text; return where the last of them has."""
        if not self._names:
            return raw.read_to
        for number, end in zip(range(len(self.stops)), undecided(raw.text), strict=False):
            self.stops[number] = raw.base + end
        return self.stops[-1]

    def wake(self, raw: Lane) -> None:
        """Start reading: each view from where it has stopped. `raw` holds nothing that came after it last dozed."""
        source_end = raw.base + len(raw.text)
        for name, table, stop in zip(self._names, self._tables, self.stops, strict=True):
            low, high = stop - raw.base, source_end - raw.base
            unread = Unread(raw.text[low:high], range(stop, source_end), range(stop + 1, source_end + 1))
            before = raw.text[low - 1] if low else ""
            self._levels.append(Level(name, table, before, stop, unread))
            source_end = stop

    def read(self, text: str, at: int, raw: Lane, *, ended: bool) -> None:
        """Read the next characters of the raw text, which start at the original offset `at`.

        A character for which a view has waited for so long what follows is read as if nothing did: else a letter, and
        a million characters behind it that nobody sees, would be held to the text's end.

        Args:
            text: What comes, up to `due` at most: where a view stops to wait is in the text, not in how it was cut.
            at: Where it starts.
            raw: The raw lane.
            ended: Nothing comes behind it.
        """
        waited = at + len(text) - self._unread
        starts: Sequence[int] = range(at, at + len(text))
        ends: Sequence[int] = range(at + 1, at + len(text) + 1)
        source_end, parent, behind = at + len(text), raw, len(text)
        for number, level in enumerate(self._levels):
            unread = level.unread
            behind += len(unread.text)
            if unread.text:
                text = unread.text + text
                starts, ends = [*unread.starts, *starts], [*unread.ends, *ends]
            reading = level.view.read(text, starts, ends, ended=ended)
            while reading.used < len(text) and starts[reading.used] <= waited:
                reading = _read_on(level.view, reading, text, starts, ends)
            if reading.changed >= 0:
                level.changed = reading.changed
                if level.lane is None:
                    level.lane = parent.branch(level.table, behind, level.read_to)
            used = reading.used
            level.unread = Unread(text[used:], starts[used:], ends[used:])
            level.read_to = starts[used] if used < len(text) else source_end
            if level.lane is not None:
                level.lane.append(reading.text, reading.starts, reading.ends, level.read_to)
                parent, behind = level.lane, len(reading.text)
            self.stops[number] = source_end = level.read_to
            text, starts, ends = reading.text, reading.starts, reading.ends

    def force(self, raw: Lane) -> None:
        """Give every view its own lane: its source is about to be decided ahead of it."""
        parent = raw
        for level in self._levels:
            if level.lane is None:
                level.lane = parent.branch(level.table, len(level.unread.text), level.read_to)
            parent = level.lane

    def lanes(self) -> Iterator[tuple[Lane, str]]:
        """Yield each lane beside the raw one, with the name of its view."""
        for level in self._levels:
            if level.lane is not None:
                yield level.lane, level.name

    def shadows(self, raw: Lane) -> Iterator[tuple[Lane, int, Table]]:
        """Yield, for each view without a lane, the lane that stands for it, where the view has stopped, its table."""
        lane = raw
        levels: Sequence[Level | None] = self._levels or [None] * len(self.stops)
        for level, stop, table in zip(levels, self.stops, self._tables, strict=True):
            if level is not None and level.lane is not None:
                lane = level.lane
            else:
                yield lane, stop, table

    def settle(self, raw: Lane) -> None:
        """Let go of lanes that equal their source's again; sleep when all do."""
        parent = raw
        for level in self._levels:
            lane = level.lane
            if lane is None:
                continue
            if level.changed <= lane.clean_since() and _same_resume(lane, parent):
                level.lane = None
            else:
                parent = lane
        if all(level.lane is None and level.view.neutral for level in self._levels) and self._found_again(raw):
            self._levels.clear()

    def _found_again(self, raw: Lane) -> bool:
        """Whether what the views have left unread is what `doze` would find."""
        if self._levels[0].unread.text:
            return False
        tail = min(len(raw.text) - _TAIL_CHARS, self._levels[-1].read_to - raw.base)
        if not folds_nowhere(raw.text[max(tail, 0) :]):
            return False
        stops = undecided(raw.text)
        return all(level.read_to == raw.base + stop for level, stop in zip(self._levels, stops, strict=False))


def _read_on(view: View, reading: Reading, text: str, starts: Sequence[int], ends: Sequence[int]) -> Reading:
    """Return what a view made of a text, and of the next character as if nothing followed, and then of the rest."""
    at, after = reading.used, reading.used + 1
    one = view.read(text[at], starts[at:after], ends[at:after], ended=True)
    rest = view.read(text[after:], starts[after:], ends[after:], ended=False)
    return Reading(
        reading.text + one.text + rest.text,
        [*reading.starts, *one.starts, *rest.starts],
        [*reading.ends, *one.ends, *rest.ends],
        after + rest.used,
        max(reading.changed, one.changed, rest.changed),
    )


def _same_resume(lane: Lane, parent: Lane) -> bool:
    known = lane.table.numbers
    return lane.resume == {index: to for index, to in parent.resume.items() if index in known}
