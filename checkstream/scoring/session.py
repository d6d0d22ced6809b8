"""What runs a model: windows of text in, scores and entities out. One interface for every kind of model.

A session knows its model's tokens and window; it knows nothing of queues, deadlines or streams. It holds no state
between calls, so one session serves every stream, prompts and answers, and may be run by several threads at once;
only `cut` belongs to the event loop. A session with `inline` set is cheap pure Python and runs there, slice by slice;
every other session releases the GIL while it runs and is run on a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from checkstream.core.events import EntityFound
from checkstream.scoring.among import Among, highest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Word(msgspec.Struct, frozen=True):
    """A word of a window whose tokens are tagged."""

    token: int
    """Position of its first token in the window."""
    start: int
    """Offset in the text that was asked about, code points."""
    end: int


class Window(msgspec.Struct, frozen=True, eq=False):
    """A piece of a text that the model reads at once."""

    text: str
    """The piece itself, for models that read text; empty for those that read tokens."""
    tokens: int
    """Size in the model's tokens, at least 1."""
    ids: Sequence[int] = ()
    """The tokens, with those that mark start and end."""
    cases: Sequence[int] = ()
    """Of each token, how it is written (`tokenizer.Case`); for models that read it."""
    words: Sequence[Word] = ()
    """For models that tag tokens."""
    context: int = 0
    """Ids at its start, behind the mark, that an earlier window has or that were not asked about."""
    begin: int = 0
    """From here on, in the text that was asked about, this window answers for entities ..."""
    stop: int = 0
    """... that start before here."""
    seen: int = 0
    """The window before it ends here: one that starts in that, and goes on behind it, is this window's too."""
    excerpt: Literal["order", "legible"] | None = None
    """It stands in another window too and is read by itself as well: the sentence of a known order, or the words among
    letters that the vocabulary has no words of."""
    among: Among | None = None
    """How its score counts among those of the text's other windows; None: as it is, whatever their number."""
    texts: Sequence[str] = ()
    """Short texts that are shown to a gate together: if it doubts them, each is read by itself (see `Gate.apart`)."""


class Readings(msgspec.Struct, frozen=True, eq=False):
    """What a model says of a batch of windows."""

    scores: NDArray[np.float32]
    """float32[batch, label], every value 0..1."""
    entities: Sequence[Sequence[EntityFound]] = ()
    """For each window, those that it answers for; empty: this kind of model finds none."""


class Reading(msgspec.Struct, frozen=True, eq=False):
    """What a model says of one window, or of a text."""

    scores: NDArray[np.float32]
    """float32[label]; of a text the highest of any window."""
    entities: Sequence[EntityFound] = ()
    """Offsets in the text that was asked about."""


class Gate(Protocol):
    """A small model before a large one: it clears most windows, and the others have to be read."""

    @property
    def model(self) -> Session:
        """The large model, by itself."""

    def glance(self, window: Window) -> Reading | None:
        """Say what can be said of a window in a fraction of a millisecond; None: it is in doubt."""

    def together(self, texts: Sequence[str]) -> Iterable[Window | None]:
        """Cut short texts into windows, several texts in one; None as in `Session.cut`."""

    def apart(self, texts: Sequence[str]) -> Iterable[Window | None]:
        """Cut texts into windows, each for itself; None as in `Session.cut`, and behind each text."""


class Session(Protocol):
    """A model that is loaded and ready to run."""

    @property
    def inline(self) -> bool:
        """True: `run` is pure Python and short enough for the event loop."""

    @property
    def gate(self) -> Gate | None:
        """What may be shown a window first; `run` asks it itself."""

    def cut(self, text: str, fresh_chars: int = 0) -> Iterable[Window | None]:
        """Cut a text into windows, in order; at least one, for the empty text too.

        The windows are made as they are taken, so that a long text can be read in slices.

        Args:
            text: what was asked about.
            fresh_chars: so much at the end must be covered, the rest is context; 0: all of it.

        Returns:
            The windows, and None wherever a good deal was read that fills no window yet: a place to let others run.
        """

    def run(self, windows: Sequence[Window]) -> Readings:
        """Read windows. May be called on several threads at once."""


def windows_of(session: Session, text: str, fresh_chars: int = 0) -> Iterator[Window]:
    """Cut a text into windows here and now; see `Session.cut`."""
    return (window for window in session.cut(text, fresh_chars) if window is not None)


def read_whole(session: Session, text: str) -> Reading:
    """Read a whole text here and now, window by window."""
    windows = list(windows_of(session, text))
    return joined([_read(session, window) for window in windows], [window.among for window in windows])


def _read(session: Session, window: Window) -> Reading:
    readings = session.run([window])
    return Reading(readings.scores[0], readings.entities[0] if readings.entities else ())


def joined(readings: Sequence[Reading], among: Sequence[Among | None] = ()) -> Reading:
    """Join what was said of the windows of one text, at least one: highest scores, every entity once.

    Args:
        readings: of each window.
        among: how its score counts, if that depends on their number.
    """
    if len(readings) == 1:
        return readings[0]
    scores = highest([reading.scores for reading in readings], among)
    return Reading(scores, distinct(entity for reading in readings for entity in reading.entities))


def distinct(entities: Iterable[EntityFound]) -> tuple[EntityFound, ...]:
    """Return entities that don't overlap: of one kind they are joined, else the surer one stays."""
    kept: list[EntityFound] = []
    for entity in sorted(entities, key=lambda entity: (entity.start, -entity.end)):
        if not kept or entity.start >= kept[-1].end:
            kept.append(entity)
            continue
        last = kept[-1]
        if entity.entity == last.entity:
            score = max(entity.score, last.score)
            kept[-1] = EntityFound(last.entity, last.start, max(last.end, entity.end), score)
        elif entity.score > last.score:
            kept[-1] = entity
    return tuple(kept)
