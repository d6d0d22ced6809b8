"""A sequence classifier behind a gate: a small graph of the same vocabulary, which clears most windows.

The gate reads a window in parts of its own size. One part that it doubts sends the whole window to the model; a
cleared window scores by the gate's own doubt, below every threshold of the manifest.

Where the manifest says how (`joint`), both have a say in the score of a window that both have read, and each is asked
about what it can judge: the gate alone about letters that the model has no words for, the model alone about what is
too short for the gate and about excerpts.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from checkstream.errors import ModelError
from checkstream.scoring.among import Among
from checkstream.scoring.catalog import Model
from checkstream.scoring.excerpts import Legible, Orders
from checkstream.scoring.graph import Graph
from checkstream.scoring.manifest import Curve
from checkstream.scoring.sequence import SequenceSession
from checkstream.scoring.session import Gate, Reading, Readings, Window

CLEARED = 0.1
"""What a cleared window can reach at most, as a share of the lowest threshold of its label."""
_MOST_DOUBTED = 256
TOGETHER = 0.5
"""Texts that are shown to the gate together are cleared below this share of the threshold: each is a part of what it
reads, and says less there than alone."""
_TOGETHER_TOKENS = 30
"""So many of short texts are shown together: in more, one order among them is lost (`models/injection/CARD.md`)."""
FOREIGN = 0.5
"""A window is foreign to a vocabulary if so large a share of its tokens is."""


class GatedSession:
    """A model and its gate."""

    inline = False

    def __init__(self, model: Model) -> None:
        """Load as `SequenceSession` does, and the gate.

        Raises:
            ModelError: as there, or the gate isn't sound.
        """
        self.encoder = SequenceSession(model)
        """What reads the windows that are not cleared."""
        entry = model.entry
        if entry.gate_threshold is None:
            raise ModelError(f"model `{entry.name}` has no `gate_threshold`; add it")
        self.threshold = entry.gate_threshold
        """From which doubt on the model reads a window."""
        self._above = entry.limits.gate_above_tokens
        tokenizer = self.encoder.tokenizer
        self._frame = len(tokenizer.before), len(tokenizer.after)
        self._room = entry.limits.gate_tokens - sum(self._frame)
        if self._room < 1:
            raise ModelError(f"the gate of model `{entry.name}` has no room for a text; raise `gate_tokens`")
        self._overlap = min(entry.limits.overlap_tokens, self._room) // 2
        gate = model.contents["gate"]
        self._graph = Graph(
            gate, rank=2, columns=1, top_id=tokenizer.size - 1, longest=entry.limits.gate_tokens, shared=model.shared
        )
        told = [(threshold.label, threshold.score) for threshold in entry.thresholds]
        told += [(rate.label, rate.threshold) for rate in entry.rates]
        lowest = [min((score for name, score in told if name == label), default=1.0) for label in entry.labels]
        self._ceiling = np.array(lowest, np.float32) * CLEARED
        self._joint = entry.joint
        tail = None if entry.joint is None else entry.joint.tail
        self._among = None if tail is None else Among(tail.rise, tail.windows, float(lowest[0]))
        self._most = entry.limits.window_tokens - sum(self._frame)
        self._foreign = tokenizer.foreign()
        self._legible = Legible(self._foreign, tokenizer.spelled())
        self._doubted: OrderedDict[int, tuple[Window, float]] = OrderedDict()
        """What the gate has said of windows that the encoder has yet to read, the latest; by identity."""
        self._orders = Orders(entry.joint.phrases if entry.joint is not None else ())

    @property
    def gate(self) -> Gate:
        """What may be shown a window first."""
        return self

    @property
    def model(self) -> _Second:
        """What reads the windows that are not cleared, and says what both come to."""
        return _Second(self)

    # --- cutting

    def cut(self, text: str, fresh_chars: int = 0) -> Iterator[Window | None]:
        """Cut into the model's windows, and what is to be read by itself."""
        if self._joint is None:
            yield from self.encoder.cut(text, fresh_chars)
            return
        start = len(text) - fresh_chars if 0 < fresh_chars < len(text) else 0
        alone = text.strip()
        for sentence in self._orders.sentences(text, start):
            if sentence is None or sentence.strip() == alone:
                yield None  # the whole text says no less
            else:
                yield self._excerpt(self.encoder.tokenizer.ids(sentence), among=False)
        for each in self.encoder.cut(text, fresh_chars):
            window = each if each is None or self._among is None else msgspec.structs.replace(each, among=self._among)
            yield window
            if window is not None and self.is_foreign(window):
                found = self._legible.of(self._inside(window))
                if found:
                    yield self._excerpt(found, among=True)

    def together(self, texts: Sequence[str]) -> Iterator[Window | None]:
        """Cut short texts into windows for the gate, each of several texts, or of one that is read by itself."""
        held: list[str] = []
        inside: list[int] = []
        for text in texts:
            ids = self.encoder.tokenizer.ids(text)
            if len(inside) + len(ids) > min(_TOGETHER_TOKENS, self._room):
                yield from self._shown(held, inside)
                held, inside = [], []
            held.append(text)
            inside += ids
            yield None
        yield from self._shown(held, inside)

    def _shown(self, texts: Sequence[str], inside: Sequence[int]) -> Iterator[Window | None]:
        if len(texts) < 2:
            yield from self.apart(texts)
            return
        tokenizer = self.encoder.tokenizer
        ids = [*tokenizer.before, *inside, *tokenizer.after]
        yield Window("", len(ids), ids, texts=texts)

    def apart(self, texts: Sequence[str]) -> Iterator[Window | None]:
        """Cut texts into windows that count as those of texts of their own, whatever their number."""
        for text in texts:
            for window in self.cut(text):
                yield window if window is None else msgspec.structs.replace(window, among=None)
            yield None

    def _excerpt(self, ids: Sequence[int], *, among: bool) -> Window:
        tokenizer = self.encoder.tokenizer
        framed = [*tokenizer.before, *ids[: self._most], *tokenizer.after]
        if among:
            return Window("", len(framed), framed, excerpt="legible", among=self._among)
        return Window("", len(framed), framed, excerpt="order")

    def is_foreign(self, window: Window) -> bool:
        """Tell whether a window is mostly letters that the vocabulary has no words of."""
        return bool(self._foreign[np.asarray(window.ids, np.intp)].mean() >= FOREIGN)

    def _inside(self, window: Window) -> Sequence[int]:
        before, after = self._frame
        return window.ids[before : len(window.ids) - after]

    # --- reading

    def run(self, windows: Sequence[Window]) -> Readings:
        """Score windows."""
        rows = []
        for window in windows:
            cleared = self.glance(window)
            rows.append(self.score(window) if cleared is None else cleared.scores)
        return Readings(np.stack(rows))

    def glance(self, window: Window) -> Reading | None:
        """Return the scores of a window that the gate clears or knows best; None: the model has to read it."""
        if window.tokens <= self._above or window.excerpt is not None:
            return None
        if window.texts:
            return self._cleared(self.doubt(window, self.threshold * TOGETHER), self.threshold * TOGETHER)
        foreign = self._joint is not None and self.is_foreign(window)
        doubt = self.doubt(window, math.inf if foreign else self.threshold)
        if self._joint is not None and foreign and not math.isnan(doubt):
            return Reading(np.full(1, _along(self._joint.foreign, doubt), np.float32))
        cleared = self._cleared(doubt, self.threshold)
        if cleared is None and self._joint is not None and window.tokens - sum(self._frame) <= self._room:
            self._remember(window, doubt)
        return cleared

    def _cleared(self, doubt: float, below: float) -> Reading | None:
        """Return the scores of what the gate doubts less than so much; None: it doubts it, or gives no number."""
        return Reading(np.asarray(doubt / self.threshold * self._ceiling, np.float32)) if doubt < below else None

    def score(self, window: Window) -> NDArray[np.float32]:
        """Return float32[label]: what the model says of a window, with what the gate says of it."""
        said = self.encoder.score(window)
        joint = self._joint
        if joint is None:
            return said
        score = float(said[0])
        if window.excerpt == "legible":
            return np.full(1, _along(joint.legible, score), np.float32)
        unread = window.tokens <= self._above or window.excerpt is not None
        doubt = math.nan if unread else self._said_of(window)
        if math.isnan(doubt):
            return np.full(1, _along(joint.alone, score), np.float32)
        both = joint.slope * (_logit(score) + joint.gate * _logit(doubt)) + joint.offset
        return np.full(1, _sigmoid(both), np.float32)

    def _remember(self, window: Window, doubt: float) -> None:
        self._doubted[id(window)] = window, doubt  # which keeps the window, so that no other has its identity
        if len(self._doubted) > _MOST_DOUBTED:
            self._doubted.popitem(last=False)

    def _said_of(self, window: Window) -> float:
        """Return what the gate says of a window: what it has said, where that is still known."""
        known = self._doubted.pop(id(window), None)
        return self.doubt(window) if known is None else known[1]

    def doubt(self, window: Window, enough: float = math.inf) -> float:
        """Return the gate's highest doubt of a window's parts, those behind one of `enough` unread; NaN: no number."""
        highest = 0.0
        for part in self._parts(window):
            found = _sigmoid(float(self._graph.run(part)[0]))
            if math.isnan(found):
                return found
            highest = max(highest, found)
            if highest >= enough:
                break
        return highest

    def _parts(self, window: Window) -> Iterator[Sequence[int]]:
        """Yield what the gate reads of a window: all that is new in it, in framed parts that overlap."""
        before, after = self._frame
        inside = self._inside(window)
        start = max(0, min(window.context - self._overlap, len(inside) - self._room))
        while True:
            end = start + self._room
            if end >= len(inside):
                start = max(0, len(inside) - self._room)
            yield [*window.ids[:before], *inside[start : start + self._room], *window.ids[len(window.ids) - after :]]
            if end >= len(inside):
                return
            start = end - self._overlap


class _Second:
    """A gated model without its gate before it: for whoever shows windows to the gate himself."""

    inline = False
    gate: Gate | None = None

    def __init__(self, session: GatedSession) -> None:
        self._session = session

    def cut(self, text: str, fresh_chars: int = 0) -> Iterator[Window | None]:
        """Cut into windows."""
        return self._session.cut(text, fresh_chars)

    def run(self, windows: Sequence[Window]) -> Readings:
        """Score windows."""
        return Readings(np.stack([self._session.score(window) for window in windows]))


def _along(curve: Curve, score: float) -> float:
    """Return what a score comes to: between two points of a curve the logits are on a straight line."""
    return _sigmoid(float(np.interp(_logit(score), [_logit(x) for x, _ in curve], [_logit(y) for _, y in curve])))


def _logit(score: float) -> float:
    score = min(max(score, 1e-6), 1 - 1e-6)
    return math.log(score / (1 - score))


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(logit, 60.0)))) if logit == logit else math.nan  # noqa: PLR0124 - NaN
