"""Generated texts: attacks, innocent texts that sound like them, and pairs of poisoned and clean documents."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from models.training.augment import augmented
from models.training.injection.disguise import ciphered
from models.training.injection.documents import composed
from models.training.injection.grammar import Grammar

LANGUAGES = ("de", "fr", "es", "it", "pt", "nl", "pl", "ru", "zh", "ja", "tr", "ar", "ko", "sv", "hi", "id")

DIRECT: Mapping[str, int] = {
    "override": 24,
    "bare": 14,
    "extraction": 18,
    "persona_long": 22,
    "smuggle": 9,
    "force": 10,
    "fiction": 8,
    "split": 3,
    "authority": 6,
    "foreign": 9,
    "ciphered": 6,
    "embedded": 6,
}
"""Family of direct attacks -> its weight."""

INNOCENT: Mapping[str, int] = {
    "security": 6,
    "security_quote": 6,
    "coder": 7,
    "coder_ask": 5,
    "roleplay": 6,
    "roleplay_long": 5,
    "everyday": 7,
    "mind_change": 8,
    "skipping": 8,
    "form": 5,
    "form_first": 5,
    "system_prompt": 8,
    "letter": 6,
    "manual": 4,
    "docs": 4,
    "fiction": 4,
    "hypothetical": 2,
    "secret": 5,
    "decode": 5,
    "scary": 5,
    "chatlog": 5,
    "about_ai": 5,
    "list_ask": 4,
    "words": 6,
    "tool_use": 4,
    "news": 2,
    "teacher": 3,
    "foreign": 10,
    "blob": 7,
    "specification": 6,
    "translator": 4,
    "support": 4,
    "legal": 4,
    "game": 5,
    "prompting": 5,
    "operator": 7,
    "exchange": 6,
    "classroom": 4,
}
"""Family of innocent texts -> its weight."""

HELD_OUT: Mapping[str, tuple[str, ...]] = {
    "personas": ("roleplay", "words", "scary", "teacher", "news", "decode", "hypothetical", "fiction"),
    "methods": ("security", "everyday", "form", "docs", "tool_use", "list_ask", "secret", "manual"),
    "indirect": ("coder", "coder_ask", "mind_change", "letter", "about_ai", "chatlog"),
}
"""Fold -> families of innocent texts that its model doesn't learn, so that their figure is of texts it never saw."""

_NOTES = (
    *("letter_ask", "step", "warn", "docs_more", "sp_guard", "code_note", "everyday", "words", "teacher"),
    *("leg_clause", "op_rule", "sup_what", "blob"),
)
"""Banks of what clean documents hold where poisoned ones have orders to a machine."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A generated text."""

    text: str
    family: str
    insertion: str = ""
    """What a poisoned document has planted in it."""


class Generator:
    """Draws texts without end; the same `Random` draws the same texts."""

    def __init__(self, slots: Mapping[str, Sequence[str]], bodies: Sequence[str]) -> None:
        """Read the banks.

        Args:
            slots: texts of the pool for the banks `harm`, `question` and `task`.
            bodies: texts that documents are about.
        """
        scrambled = Random(5)
        pool = {
            **slots,
            "doc": [body[:400] for body in bodies],
            "encoded": [ciphered(text[:80], scrambled) for text in slots["question"][:800]],
        }
        self._direct = Grammar.read("direct", pool=pool)
        self._indirect = Grammar.read("direct", "indirect", pool=pool)
        self._innocent = Grammar.read("direct", "innocent", "trades", pool=pool)
        self._foreign = Grammar.read("direct", "innocent", "trades", "languages", pool=pool)
        self._bodies = bodies

    def attacks(self, count: int, random: Random) -> Iterator[Generated]:
        """Yield direct attacks, one in five of them disguised."""
        for family in random.choices(list(DIRECT), list(DIRECT.values()), k=count):
            text = self._attack(family, random)
            yield Generated(text if family == "ciphered" else augmented(text, random, 0.2), family)

    def _attack(self, family: str, random: Random) -> str:
        if family == "foreign":
            return self.foreign(random.choice(LANGUAGES), random)
        if family == "ciphered":
            inner = self._direct.draw(random.choice(("override", "extraction", "harm", "harm")), random)
            outer = self._direct.draw("decode", random)
            hidden = ciphered(inner, random)
            return random.choice((f"{outer} {hidden}", f"{outer}\n{hidden}", f"{hidden}\n{outer}", hidden)).strip()
        if family == "embedded":  # an attack at the end or in the midst of a long innocent prompt
            body = random.choice(self._bodies)[: random.choice((150, 300, 600))]
            attack = self._direct.draw(random.choice(("override", "override", "extraction", "smuggle")), random)
            return random.choice((f"{body}\n{attack}", f"{attack}\n{body}", f"{body} {attack} {body[:120]}"))
        return self._direct.draw(family, random)

    def foreign(self, language: str, random: Random) -> str:
        """Return an attack in a language of `LANGUAGES`."""
        return self._foreign.draw(f"{language}_attack", random)

    def order(self, language: str, random: Random) -> str:
        """Return an attack in a language of `LANGUAGES`, or a short one in English."""
        if language == "en":
            return self._direct.draw(random.choice(("override", "override", "bare", "extraction", "smuggle")), random)
        return self.foreign(language, random)

    def innocents(self, count: int, random: Random, without: Collection[str] = ()) -> Iterator[Generated]:
        """Yield innocent texts full of the attacks' words, one in eight of them disguised; `without` some families."""
        weights = {family: weight for family, weight in INNOCENT.items() if family not in without}
        for family in random.choices(list(weights), list(weights.values()), k=count):
            if family == "foreign":
                text = self._foreign.draw(f"{random.choice(LANGUAGES)}_innocent", random)
            else:
                text = self._innocent.draw(family, random)
            yield Generated(augmented(text, random, 0.12), family)

    def poisoned(self, count: int, random: Random) -> Iterator[Generated]:
        """Yield documents with instructions to an AI planted in them."""
        for _ in range(count):
            if random.random() < 0.12:
                planted = self._foreign.draw(f"{random.choice(LANGUAGES)}_attack", random)
            else:
                planted = self._indirect.draw("planted", random)
            if random.random() < 0.12:
                planted = augmented(planted, random, 1.0)
            text = composed(random.choice(self._bodies), planted, random)
            yield Generated(text, "poisoned", planted)

    def clean(self, count: int, random: Random) -> Iterator[Generated]:
        """Yield documents of the same make; half of them have orders to people, rules or notes in the same places."""
        for _ in range(count):
            note = None
            if random.random() < 0.55:
                note = self._innocent.draw(random.choice(_NOTES), random)
                if random.random() < 0.2:
                    note = self._foreign.draw(f"{random.choice(LANGUAGES)}_innocent", random)
            text = composed(random.choice(self._bodies), note, random)
            yield Generated(augmented(text, random, 0.08), "clean")

    def long_documents(self, count: int, random: Random) -> Iterator[str]:
        """Yield clean documents of up to forty sentences."""
        for _ in range(count):
            bodies = random.sample(self._bodies, min(3, len(self._bodies)))
            yield composed(" ".join(bodies) if random.random() < 0.5 else bodies[0], None, random, 40)
