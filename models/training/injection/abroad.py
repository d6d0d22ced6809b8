"""What the gate learns of other languages: their ordinary prose, and orders to a model planted in it.

The encoder knows no script but Latin: it reads a page in Russian letter by letter, finds nothing in it that it knows,
and suspects all of it. So the gate learns from what the texts were made to be, not from the encoder's answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

from models.training.augment import augmented
from models.training.fit import Example
from models.training.injection.documents import composed
from models.training.injection.generate import LANGUAGES, Generated, Generator
from models.training.injection.pool import Text
from models.training.injection.teach import Lesson

_JOINTS = ("\n", "\n\n", " ", "\n- ", "\n\n---\n\n")
_RUN_CHARS = (300, 600, 1_200, 2_400)
"""Prose of one language is joined to about so many characters: windows of long prompts hold parts of several."""

_ENGLISH = 0.15
"""Share of the runs that are English: windows with parts of several prompts, which the lesson's single texts lack."""

_ENGLISH_ORDERS = 0.3
"""Share of the attacks that are English: a plain override in the midst of prose, which the turns before let pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many texts of each kind an epoch holds."""

    runs: int = 7_000
    clean: int = 2_000
    planted: int = 3_600
    native: int = 3_600
    """Attacks in the language of the prose around them, or by themselves."""


@dataclass(frozen=True, slots=True)
class Abroad:
    """Draws texts of many languages."""

    prose: Mapping[str, Sequence[str]]
    """Language -> its innocent texts, of one part."""
    generator: Generator
    """Whose bodies are of these languages."""
    share: Share = field(default_factory=Share)

    @classmethod
    def of(cls, texts: Sequence[Text], slots: Mapping[str, Sequence[str]], share: Share | None = None) -> Abroad:
        """Draw from texts whose sources are their languages, with the banks' orders and notes."""
        prose: dict[str, list[str]] = {}
        for text in texts:
            prose.setdefault(text.source, []).append(text.text)
        bodies = [text.text for text in texts if text.source != "en" and len(text.text) > 60]
        return cls(prose, Generator(slots, bodies), share or Share())

    def run(self, language: str, size: int, random: Random) -> str:
        """Return texts of one language, joined until they have so many characters."""
        parts: list[str] = []
        joint = random.choice(_JOINTS)
        while sum(map(len, parts)) < size:
            parts.append(random.choice(self.prose[language]))
        return joint.join(parts)

    def innocents(self, random: Random) -> Iterator[str]:
        """Yield innocent texts: runs of prose of every language alike, and documents about it."""
        languages = sorted(self.prose)
        for _ in range(self.share.runs):
            language = "en" if "en" in self.prose and random.random() < _ENGLISH else random.choice(languages)
            text = self.run(language, random.choice(_RUN_CHARS), random)
            yield augmented(text, random, 0.05)
        yield from (text.text for text in self.generator.clean(self.share.clean, random))

    def attacks(self, random: Random) -> Iterator[Generated]:
        """Yield orders to a model, in English and in other languages, in prose of any language."""
        yield from self.generator.poisoned(self.share.planted, random)
        known = [language for language in LANGUAGES if language in self.prose] or LANGUAGES
        for _ in range(self.share.native):
            yield self.native("en" if random.random() < _ENGLISH_ORDERS else random.choice(known), random)

    def native(self, language: str, random: Random) -> Generated:
        """Return an attack in a language: in prose of that language, or, now and then, of another, or by itself."""
        order = self.generator.order(language, random)
        around = language if language in self.prose and random.random() < 0.8 else random.choice(sorted(self.prose))
        kind = random.random()
        if kind < 0.15:
            return Generated(order, "native", order)
        if kind < 0.5:
            return Generated(composed(self.run(around, 200, random), order, random), "native", order)
        before, after = (self.run(around, random.choice((40, 200, 500)), random) for _ in range(2))
        joint = random.choice(_JOINTS)
        return Generated(joint.join((before, order, after)), "native", order)

    def windows(self, lesson: Lesson, epoch: int) -> list[Example]:
        """Return the windows of an epoch, labelled by what they were made to be; the same for the same number."""
        random = Random(lesson.seed * 1000 + epoch)
        found: list[Example] = []
        for text in self.innocents(random):
            cut = lesson.cutter.windows(lesson.cutter.pieces([text])[0])
            found += [Example(ids, np.zeros(1, np.float32)) for ids in random.sample(cut, min(len(cut), 4))]
        for attack in self.attacks(random):
            found += lesson.attack(attack, random, whole=False)
        return found
