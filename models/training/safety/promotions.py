"""Writes financial promotions without balance, and what looks like them: the texts of the label `promotional`.

A promotion promises a return or denies a risk, or hurries its reader into money matters. What it is told from uses the
same words: balanced marketing, warnings, news and questions about such claims, textbooks, fund documents, refusals,
and ordinary advertisements, whose guarantees are about mattresses. The sentences are those of `promoted.py` and of the
files in `banks`; what `held_out` holds measures alone, and nothing here reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import re2

from models.training.corpus import Part, part_of
from models.training.safety import promoted
from models.training.safety.labels import ANY, LABELS, PROMOTIONAL, Text, safe

SOURCE, CALM_SOURCE = "generated promotion", "generated balanced"

_BANKS = Path(__file__).with_name("banks")
_CHOICE = re2.compile(r"\[([^\[\]]*)\]")


def _lines(name: str) -> dict[str, list[str]]:
    """Return the lines of a file of sentences by their kind; those before the first kind have none."""
    found: dict[str, list[str]] = {}
    kind = ""
    for line in (_BANKS / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            kind = line.removeprefix("== ")
        elif line and not line.startswith("#"):
            found.setdefault(kind, []).append(line)
    return found


@cache
def claims() -> tuple[str, ...]:
    """Return the sentences that sell without balance, their slots empty."""
    return (*promoted.CLAIMS, *_lines("promotions")[""], *(pair.split(" || ")[0] for pair in _lines("pairs")[""]))


@cache
def calm() -> Mapping[str, tuple[str, ...]]:
    """Return the sentences that they are told from by kind, and in which frames promotions are quoted (`frame`)."""
    found = {kind: (*promoted.CALM.get(kind, ()), *lines) for kind, lines in _lines("lookalikes").items()}
    found["frame"] = (*promoted.FRAMES, *found["frame"])
    found["pair"] = tuple(pair.split(" || ")[1] for pair in _lines("pairs")[""])
    return {**promoted.CALM, **found}


def _target(sells: bool) -> np.typing.NDArray[np.float32]:
    target = safe()
    if sells:
        target[LABELS.index(PROMOTIONAL)] = 0.95
        for unknown in ("financial_crime", "regulated_advice"):
            target[LABELS.index(unknown)] = np.nan
        target[ANY] = np.nan  # whether selling so is a harm is for others to say
    return target


def filled(template: str, random: Random) -> str:
    """Return a template with one of each `[a|b]` and every `{slot}` filled, the first letter of a sentence large."""
    while choice := _CHOICE.search(template):
        own = random.choice(str(choice.group(1)).split("|"))
        template = f"{template[: choice.start()]}{own}{template[choice.end() :]}"
    found = str(re2.sub(r"\{(\w+)\}", lambda slot: random.choice(promoted.SLOTS[slot.group(1)]), template))
    return found[:1].upper() + found[1:]


def _of_part(bank: Sequence[str], part: Part) -> list[str]:
    return [each for each in bank if part_of(each) == part] or list(bank)


def _cased(text: str, random: Random) -> str:
    drawn = random.random()
    if drawn < 0.04:
        return text.upper()
    return text.lower() if drawn < 0.09 else text


def promotion(random: Random) -> Text:
    """Write a promotion: an answer, an advertisement, a post, a letter or a talk."""
    main = random.choice(claims())
    own = _of_part(claims(), part_of(main))
    chosen = list(dict.fromkeys([main, *random.sample(own, min(random.choice((0, 0, 1, 1, 2)), len(own)))]))
    random.shuffle(chosen)
    said = [(filled(claim, random), True) for claim in chosen]
    if random.random() < 0.35:
        said.insert(random.randint(0, len(said)), (filled(random.choice(promoted.FEATURES), random), False))
    if random.random() < 0.3:
        said.append((filled(random.choice(promoted.URGED), random), False))  # goods are sold in a hurry too
    said = [(filled(random.choice(promoted.OPENERS), random), False), *said]
    said.append((filled(random.choice(promoted.CLOSERS), random), False))
    text, spans = "", list[tuple[int, int]]()
    for words, sells in said:
        if words:
            text += f"{' ' if text else ''}{words}"
            if sells:
                spans.append((len(text) - len(words), len(text)))
    return Text(_cased(text, random), _target(True), SOURCE, group=main, spans=spans)


def lookalike(random: Random) -> Text:
    """Write what a promotion is told from."""
    kind = random.choice([kind for kind in calm() if kind != "frame"])
    bank = calm()[kind]
    main = random.choice(bank)
    own = _of_part(bank, part_of(main))
    chosen = [main, *random.sample(own, min(random.choice((0, 1, 1, 2)), len(own)))]
    texts = [filled(each, random) for each in dict.fromkeys(chosen)]
    if kind == "balanced":  # the benefits and, never missing, the risks
        texts.insert(0, filled(random.choice(promoted.FEATURES), random))
    if kind == "advertisement" and random.random() < 0.3:
        texts.append(filled(random.choice(promoted.GOODS_CLOSERS), random))
    opener = random.choice((*promoted.CALM_OPENERS, *promoted.OPENERS)) if random.random() < 0.4 else ""
    closer = random.choice(promoted.CLOSERS) if random.random() < 0.25 else ""  # who asks for an order may be fair
    said = " ".join(filter(None, (filled(opener, random), *texts, filled(closer, random))))
    return Text(_cased(said, random), _target(False), CALM_SOURCE, group=main)


def quoted(random: Random) -> Text:
    """Write a text that quotes a promotion in order to warn of it, judge it or ask about it."""
    frame, claim = random.choice(calm()["frame"]), random.choice(claims())
    words = filled(claim, random).rstrip(".!")
    text = filled(frame, random).replace("<claim>", words)
    return Text(text, _target(False), CALM_SOURCE, group=frame)
