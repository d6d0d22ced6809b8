"""Writes financial promotions without balance, and what looks like them: the texts of the label `promotional`.

A promotion promises a return or denies a risk, or hurries its reader into money matters. What it is told from uses the
same words: balanced marketing, warnings, news and questions about such claims, textbooks, fund documents, refusals,
and ordinary advertisements, whose guarantees are about mattresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import re2

from models.training.corpus import Part, part_of
from models.training.safety import promoted
from models.training.safety.labels import ANY, LABELS, PROMOTIONAL, Text, safe

SOURCE, CALM_SOURCE = "generated promotion", "generated balanced"


def _target(sells: bool) -> np.typing.NDArray[np.float32]:
    target = safe()
    if sells:
        target[LABELS.index(PROMOTIONAL)] = 0.95
        for unknown in ("financial_crime", "regulated_advice"):
            target[LABELS.index(unknown)] = np.nan
        target[ANY] = np.nan  # whether selling so is a harm is for others to say
    return target


def filled(template: str, random: Random) -> str:
    """Return a template with every `{slot}` filled, the first letter of a sentence large."""
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
    main = random.choice(promoted.CLAIMS)
    own = _of_part(promoted.CLAIMS, part_of(main))
    claims = list(dict.fromkeys([main, *random.sample(own, min(random.choice((0, 0, 1, 1, 2)), len(own)))]))
    random.shuffle(claims)
    said = [(filled(claim, random), True) for claim in claims]
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
    kind = random.choice(promoted.KINDS)
    bank = promoted.CALM[kind]
    main = random.choice(bank)
    own = _of_part(bank, part_of(main))
    said = [main, *random.sample(own, min(random.choice((0, 1, 1, 2)), len(own)))]
    texts = [filled(each, random) for each in dict.fromkeys(said)]
    if kind == "balanced":  # the benefits and, never missing, the risks
        texts.insert(0, filled(random.choice(promoted.FEATURES), random))
    if kind == "advertisement" and random.random() < 0.3:
        texts.append(filled(random.choice(promoted.GOODS_CLOSERS), random))
    opener = filled(random.choice(promoted.CALM_OPENERS), random) if random.random() < 0.4 else ""
    return Text(_cased(" ".join(filter(None, (opener, *texts))), random), _target(False), CALM_SOURCE, group=main)


def quoted(random: Random) -> Text:
    """Write a text that quotes a promotion in order to warn of it, judge it or ask about it."""
    frame, claim = random.choice(promoted.FRAMES), random.choice(promoted.CLAIMS)
    words = filled(claim, random).rstrip(".!")
    text = filled(frame, random).replace("<claim>", words)
    return Text(text, _target(False), CALM_SOURCE, group=frame)
