"""What the encoder learns from: windows of pool texts and of generated ones, drawn anew for every epoch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

from models.training.augment import augmented
from models.training.corpus import normalised
from models.training.fit import Example
from models.training.injection.generate import Generated, Generator
from models.training.injection.pool import Text
from models.training.injection.windows import WINDOW, Cutter


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """How much of what an epoch holds."""

    attacks: int = 5200
    poisoned: int = 3000
    innocents: int = 6000
    clean: int = 2200
    pool_innocents: int = 5200
    source_cap: int = 650
    """Texts of one source of attacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Draws the examples of an epoch."""

    cutter: Cutter
    generator: Generator
    attacks: Sequence[Text]
    innocents: Sequence[Text]
    withheld: frozenset[str] = frozenset()
    """Normalised texts of the test: whatever is drawn by chance and equals one is dropped."""
    without: Collection[str] = ()
    """Families of generated innocent texts that are left out."""
    mix: Mix = field(default_factory=Mix)
    seed: int = 1

    def epoch(self, number: int) -> list[Example]:
        """Return the windows of an epoch, the same ones for the same seed and number."""
        random = Random(self.seed * 1000 + number)
        texts = self._positive(random)
        found = [example for text, whole in texts for example in self.attack(text, random, whole=whole)]
        for text in self._negative(random):
            cut = self.cutter.windows(self.cutter.pieces([text])[0])
            found += [_example(window, 0.0) for window in random.sample(cut, min(len(cut), 3))]
        return found

    def _positive(self, random: Random) -> list[tuple[Generated, bool]]:
        by_source: dict[str, list[str]] = {}
        for attack in self.attacks:
            by_source.setdefault(attack.source, []).append(attack.text)
        result: list[tuple[Generated, bool]] = []
        for source in sorted(by_source):
            own = by_source[source]
            chosen = random.sample(own, min(len(own), self.mix.source_cap))
            result += [(Generated(augmented(text, random, 0.15), source), source != "spikee") for text in chosen]
        drawn = [*self.generator.attacks(self.mix.attacks, random)]
        result += [(text, True) for text in drawn if normalised(text.text) not in self.withheld]
        return [*result, *((text, False) for text in self.generator.poisoned(self.mix.poisoned, random))]

    def _negative(self, random: Random) -> list[str]:
        pool = [text.text for text in self.innocents]
        return [
            *(augmented(text, random, 0.1) for text in random.sample(pool, min(len(pool), self.mix.pool_innocents))),
            *(text.text for text in self.generator.innocents(self.mix.innocents, random, self.without)),
            *(text.text for text in self.generator.clean(self.mix.clean, random)),
        ]

    def attack(self, attack: Generated, random: Random, *, whole: bool) -> list[Example]:
        """Cut an attack: of a whole one any window counts, of a document the windows that hold the insertion."""
        ids, start, end = self.cutter.places(attack.text, attack.insertion or attack.text)
        if len(ids) <= WINDOW - 2:
            return [_example(self.cutter.framed(ids), 1.0)]
        cut = self.cutter.windows(ids)
        if whole:
            # The start of a long jailbreak says what it is; its later windows may be a story by themselves.
            later = random.choice(cut[1:])
            return [_example(cut[0], 1.0), _example(later, 1.0, 0.4)]
        if start == end:
            return []
        room = WINDOW - 2
        first = random.randint(max(0, end - room), max(0, min(start, len(ids) - room)))
        first = min(first, start)
        return [_example(self.cutter.framed(ids[first : first + room]), 1.0)]


def _example(ids: Sequence[int], target: float, weight: float = 1.0) -> Example:
    return Example(ids, np.array([target], np.float32), weight)
