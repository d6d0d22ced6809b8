"""A weighted lexicon: phrases that are typical of injections and of toxic language, and what each weighs.

No training stands behind it: people wrote the phrases and the weights. A score is `1 - exp(-sum of weights)`,
so it grows with each further phrase and stays below 1; it ranks texts, it is no probability. It reads words,
not meaning: irony, paraphrase and quotation are beyond it, and the card says how much that costs.

A phrase is a sequence of slots: a word; `@name`, any word of a class; `~`, up to two words of any kind.
Filler words (articles, `all`, `please`) are skipped in texts and phrases alike. A fragment is matched as it
stands, for scripts without spaces and for control marks such as `<|im_start|>`. Work is O(n) in the text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
import numpy as np

from checkstream.errors import ModelError
from checkstream.scoring.catalog import Model
from checkstream.scoring.session import Readings, Window
from checkstream.scoring.words import folded, words

_MAX_SLOTS = 12
_GAP = "~"
_GAP_WORDS = 2

CHARS_PER_TOKEN = 4
"""A lexicon has no tokens of its own: four characters count as one."""

_Weight = Annotated[float, msgspec.Meta(gt=0, le=5)]


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Phrases of one kind, which weigh the same; each further hit of the group weighs half of the one before."""

    name: str
    label: str
    weight: _Weight
    phrases: tuple[str, ...] = ()
    fragments: tuple[str, ...] = ()
    """Matched as they stand in the folded text, in the middle of words too."""


class Damping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What makes a phrase weigh less: a denial or a mention just before it."""

    factor: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    words: frozenset[str]
    unless_next: frozenset[str] = frozenset()
    """A word right after the damping word that takes its effect away (`why don't you ...`)."""
    reach: Annotated[int, msgspec.Meta(ge=1, le=8)]
    """How many words before the phrase it may stand."""


class LexiconFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole lexicon, as it stands in its file."""

    fillers: frozenset[str]
    classes: dict[str, tuple[str, ...]]
    damping: tuple[Damping, ...]
    groups: tuple[Group, ...]


class _Node:
    """A state of the phrase automaton."""

    __slots__ = ("ends", "gap", "next")

    def __init__(self) -> None:
        self.next: dict[str, _Node] = {}
        self.gap: _Node | None = None
        self.ends: list[int] = []  # groups of the phrases that end here


class Hit(msgspec.Struct, frozen=True, order=True):
    """A phrase that was found, for tests and for the curious; no offsets into the original text."""

    group: str
    phrase: str
    weight: float
    """After damping."""


class Lexicon:
    """The compiled lexicon. Immutable; shared by all sessions."""

    def __init__(self, source: LexiconFile, labels: Sequence[str]) -> None:
        """Compile the phrases.

        Raises:
            ModelError: a phrase is empty, too long, begins or ends with a gap or names an unknown class, or a
                group has an unknown label.
        """
        self._source = source
        self._labels = tuple(labels)
        self._label_of = {group.name: group.label for group in source.groups}
        self._root = _Node()
        self._symbols: dict[str, tuple[str, ...]] = {}
        self._fillers = frozenset(_plain(word) for word in source.fillers)
        self._fragments: list[tuple[str, int]] = []
        self._classes = {f"@{name}": [_plain(word) for word in members] for name, members in source.classes.items()}
        for index, group in enumerate(source.groups):
            if group.label not in self._labels:
                raise ModelError(f"group `{group.name}` has the label `{group.label}`, which the manifest lacks")
            for phrase in group.phrases:
                self._add(phrase, index)
            for fragment in group.fragments:
                if not fragment.strip():
                    raise ModelError(f"group `{group.name}` has an empty fragment; leave it out")
                self._fragments.append((folded(fragment), index))
        symbols: dict[str, set[str]] = {}
        for name, members in self._classes.items():
            for word in members:
                symbols.setdefault(word, {word}).add(name)
        for word in self._literal_words(self._root):
            symbols.setdefault(word, {word})
        self._symbols = {word: tuple(sorted(found)) for word, found in symbols.items()}
        damping = {_plain(word) for rule in source.damping for word in rule.words | rule.unless_next}
        self._known = frozenset(symbols) | self._fillers | damping
        self._starts = frozenset(
            word for word, found in self._symbols.items() if not self._root.next.keys().isdisjoint(found)
        )

    @classmethod
    def parse(cls, data: bytes, labels: Sequence[str]) -> Lexicon:
        """Read a lexicon's JSON.

        Raises:
            ModelError: not JSON of the lexicon's form, or as the constructor says.
        """
        try:
            source = msgspec.json.decode(data, type=LexiconFile)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ModelError(f"the lexicon is not valid: {error}; correct it") from error
        return cls(source, labels)

    def _add(self, phrase: str, group: int) -> None:
        slots = [slot if slot == _GAP or slot.startswith("@") else _plain(slot) for slot in phrase.split()]
        for slot in slots:
            if slot in self._fillers:
                raise ModelError(
                    f"phrase `{phrase}` holds the filler `{slot}`, which every text is read without; leave it out"
                )
        if not all(slots) or not slots or len(slots) > _MAX_SLOTS or _GAP in (slots[0], slots[-1]):
            raise ModelError(f"phrase `{phrase}` has no word, too many, or a gap at its edge; rewrite it")
        node = self._root
        for slot in slots:
            if slot == _GAP:
                node.gap = node.gap or _Node()
                node = node.gap
                continue
            if slot.startswith("@") and slot not in self._classes:
                raise ModelError(f"phrase `{phrase}` names the class `{slot}`, which is not defined; define it")
            node = node.next.setdefault(slot, _Node())
        node.ends.append(group)

    def _literal_words(self, node: _Node) -> Iterator[str]:
        for slot, child in node.next.items():
            if not slot.startswith("@"):
                yield slot
            yield from self._literal_words(child)
        if node.gap is not None:
            yield from self._literal_words(node.gap)

    def hits(self, text: str) -> list[Hit]:
        """Return every different phrase of the text with its weight, damped where it is denied or mentioned."""
        plain = folded(text)
        read = [word for word in words(plain, self._known) if word not in self._fillers]
        best: dict[tuple[int, str], float] = {}
        if not self._starts.isdisjoint(read):
            for start, word in enumerate(read):
                if word not in self._starts:
                    continue
                for group, end in self._walk(read, start):
                    key = (group, " ".join(read[start:end]))
                    weight = self._source.groups[group].weight * self._damping(read, start)
                    best[key] = max(best.get(key, 0.0), weight)
        for fragment, group in self._fragments:
            if fragment in plain:
                best[group, fragment] = self._source.groups[group].weight
        return [Hit(self._source.groups[group].name, phrase, weight) for (group, phrase), weight in best.items()]

    def score(self, text: str) -> list[float]:
        """Return one score for each label, 0 to below 1."""
        sums = dict.fromkeys(self._labels, 0.0)
        share: dict[str, float] = {}
        for hit in sorted(self.hits(text), key=lambda hit: -hit.weight):
            # INVARIANT: a group adds less than twice its weight, so many weak hits don't make a strong one
            sums[self._label_of[hit.group]] += hit.weight * share.setdefault(hit.group, 1.0)
            share[hit.group] /= 2
        # 1 - exp(-16) is still below 1 as a float32
        return [-math.expm1(-min(total, 16.0)) for total in sums.values()]

    def _walk(self, read: Sequence[str], start: int) -> Iterator[tuple[int, int]]:
        """Yield (group, end) for every phrase that begins at `start`."""
        states = [(self._root, start)]
        while states:
            node, at = states.pop()
            for group in node.ends:
                yield group, at
            if at >= len(read):
                continue
            for symbol in self._symbols.get(read[at], ()):
                child = node.next.get(symbol)
                if child is not None:
                    states.append((child, at + 1))
            if node.gap is not None:
                states.extend((node.gap, at + skip) for skip in range(_GAP_WORDS + 1) if at + skip < len(read))

    def _damping(self, read: Sequence[str], start: int) -> float:
        factor = 1.0
        for rule in self._source.damping:
            for at in range(max(0, start - rule.reach), start):
                if read[at] in rule.words and read[at + 1] not in rule.unless_next:
                    factor = min(factor, rule.factor)
        return factor


class LexiconSession:
    """A lexicon as a session: runs inline, holds no state between calls."""

    inline = True
    gate = None

    def __init__(self, lexicon: Lexicon, *, window_tokens: int, overlap_tokens: int) -> None:
        """Score windows of so many tokens (of four characters)."""
        self._lexicon = lexicon
        self._window = window_tokens * CHARS_PER_TOKEN
        self._step = (window_tokens - overlap_tokens) * CHARS_PER_TOKEN

    @classmethod
    def open(cls, model: Model) -> LexiconSession:
        """Compile the lexicon of a verified model.

        Raises:
            ModelError: the lexicon is not valid.
        """
        limits = model.limits
        lexicon = Lexicon.parse(model.contents["lexicon"], model.labels)
        return cls(lexicon, window_tokens=limits.window_tokens, overlap_tokens=limits.overlap_tokens)

    def cut(self, text: str, fresh_chars: int = 0) -> Iterator[Window]:
        """Cut into windows of equal size that overlap, so that a phrase at a cut stands whole in one of them.

        Every window of the text is made whatever is fresh: a phrase may begin long before its last word.
        """
        del fresh_chars
        last = max(len(text) - self._window + self._step, 1)
        for start in range(0, last, self._step):
            piece = text[start : start + self._window]
            yield Window(piece, len(piece) // CHARS_PER_TOKEN + 1)

    def run(self, windows: Sequence[Window]) -> Readings:
        """Score windows."""
        return Readings(np.array([self._lexicon.score(window.text) for window in windows], dtype=np.float32))


def _plain(word: str) -> str:
    return "".join(sign for sign in folded(word) if sign.isalnum())
