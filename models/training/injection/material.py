"""Everything that a training of this recipe needs, read once: texts by part, the generator, the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from models.training.corpus import Part, normalised
from models.training.encoder import prune_vocabulary
from models.training.injection import pool
from models.training.injection.abroad import Abroad, Share
from models.training.injection.generate import HELD_OUT, Generator
from models.training.injection.pool import FOLDS, Text
from models.training.injection.teach import Lesson, Mix
from models.training.injection.windows import Cutter

PIECES = 15_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What the recipe reads and generates."""

    folder: Path
    attacks: Sequence[Text]
    innocents: Sequence[Text]
    bodies: Sequence[str]
    """Of documents for training."""
    cutter: Cutter
    tokenizer: str
    """The pruned `tokenizer.json`."""
    rows: NDArray[np.int64]
    """int64[piece], the row of the base's table of each piece."""

    @classmethod
    def read(cls, folder: Path, work: Path, pieces: int = PIECES) -> Material:
        """Read the pool; the vocabulary is reckoned once and kept in `work`."""
        attacks, innocents, bodies = pool.attacks(folder), pool.innocents(folder), pool.bodies(folder, "train")
        kept, rows_kept = work / "tokenizer.json", work / "rows.npy"
        if not kept.exists():
            work.mkdir(parents=True, exist_ok=True)
            generator = Generator(pool.slots(folder), bodies)
            random = Random(99)
            drawn = (
                *generator.attacks(20_000, random),
                *generator.innocents(20_000, random),
                *generator.poisoned(10_000, random),
                *generator.clean(5_000, random),
            )
            texts = [text.text for text in drawn] + [
                text.text for text in (*innocents, *attacks) if text.part == "train"
            ]
            described, rows = prune_vocabulary(texts, pieces)
            np.save(rows_kept, rows)
            kept.write_text(described, encoding="utf-8")
        described = kept.read_text(encoding="utf-8")
        return cls(
            folder=folder,
            attacks=attacks,
            innocents=innocents,
            bodies=bodies,
            cutter=Cutter(Tokenizer.from_str(described)),
            tokenizer=described,
            rows=np.load(rows_kept),
        )

    @classmethod
    def shipped(cls, folder: Path, tokenizer: str) -> Material:
        """Read the pool for a training that goes on with a vocabulary."""
        return cls(
            folder=folder,
            attacks=pool.attacks(folder),
            innocents=pool.innocents(folder),
            bodies=pool.bodies(folder, "train"),
            cutter=Cutter(Tokenizer.from_str(tokenizer)),
            tokenizer=tokenizer,
            rows=np.zeros(0, np.int64),
        )

    def abroad(self, part: Part, share: Share | None = None) -> Abroad:
        """Return texts of a part in many languages."""
        return Abroad.of(pool.abroad(self.folder, part), pool.slots(self.folder), share)

    def left_out(self, fold: str) -> list[Text]:
        """Return the attacks of a fold's sources, all parts: its model sees none of them."""
        sources = FOLDS[fold]
        composed = pool.poisoned(self.folder) if "agent" in sources else []
        return [*(text for text in self.attacks if text.source in sources), *composed]

    def lesson(self, fold: str | None, mix: Mix, seed: int) -> Lesson:
        """Return what a model learns from: without a fold, or from every source for the model that ships."""
        withheld = [text.text for text in self.left_out(fold)] if fold is not None else []
        sources = FOLDS[fold] if fold is not None else ()
        return Lesson(
            cutter=self.cutter,
            generator=Generator(pool.slots(self.folder, withheld), self.bodies),
            # A fold's model may learn every row of the other sources: none of them is in its figure.
            attacks=[
                text
                for text in self.attacks
                if text.source not in sources and (fold is not None or text.part == "train")
            ],
            innocents=[text for text in self.innocents if text.part == "train"],
            withheld=frozenset(normalised(text) for text in withheld),
            without=HELD_OUT[fold] if fold is not None else (),
            mix=mix,
            seed=seed,
        )
