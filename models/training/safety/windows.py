"""Texts -> the windows that a model reads, with what is known of each: a part of a harmful text may be harmless.

A stream is read in pieces, so a student learns from windows that end anywhere in a text. What a window does comes
from the annotators' spans where there are some, else from the text's own target and the teacher's score of the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from tokenizers import Encoding, Tokenizer

from models.training.augment import augmented
from models.training.safety.labels import ANY, HARMS, Float, Text

WINDOW = 32
"""Word pieces of a window; no piece marks its start or end."""

LEARNT = 48
"""Word pieces of a window that is learnt from at most: more of a quotation's frame than a check shows."""

OVERLAP = 20
"""Word pieces that neighbours share when a whole text is scored at once: a stream's checks are hardly closer."""

_GLIMPSE = 12
"""Characters of a marked harm that a window must show to do it."""

_EARLY = 0.4
"""Share of a text that is its beginning, where answers ought to be decided."""


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of a text."""

    ids: tuple[int, ...]
    text: str
    """The characters that the ids stand for."""
    origin: int
    """Number of the text that it was cut from."""
    marked: bool | None
    """It shows what annotators marked; None where nobody marked anything, or only a glimpse shows."""


def ends(encoding: Encoding) -> list[int]:
    """Return the numbers of pieces after which a word ends, in order."""
    words = encoding.word_ids
    return [at for at in range(1, len(words) + 1) if at == len(words) or words[at] != words[at - 1]]


def cut(encoding: Encoding, text: Text, words: str, pieces: tuple[int, int], origin: int = 0) -> Window:
    """Cut some pieces, the last not included, out of a text as `words` spells it."""
    begin, end = encoding.offsets[pieces[0]][0], encoding.offsets[pieces[1] - 1][1]
    marked = None if text.spans is None else _shows(text.spans, begin, end)
    return Window(tuple(encoding.ids[pieces[0] : pieces[1]]), words[begin:end], origin, marked)


def _shows(spans: Sequence[tuple[int, int]], begin: int, end: int) -> bool | None:
    shown = [(min(stop, end) - max(start, begin), stop - start) for start, stop in spans]
    if any(seen >= min(_GLIMPSE, long) for seen, long in shown):
        return True
    return None if any(seen > 0 for seen, _ in shown) else False


def sampled(texts: Sequence[Text], tokenizer: Tokenizer, size: int, random: Random, most: int = 4) -> Iterator[Window]:
    """Yield windows of each text: the whole where it fits, and random ones that end at a word, early ones more often.

    Args:
        texts: what to cut; their numbers become the windows' origins.
        tokenizer: without special tokens.
        size: pieces of a window at most.
        random: of every choice.
        most: windows of one text at most.
    """
    for origin, text in enumerate(texts):
        words = text.text if text.spans is not None else augmented(text.text, random, 0.08)
        encoding = tokenizer.encode(words, add_special_tokens=False)
        stops = ends(encoding)
        if not stops:
            continue
        total = stops[-1]
        if total <= size:
            yield cut(encoding, text, words, (0, total), origin)
            if total > 10 and random.random() < 0.35:
                yield cut(encoding, text, words, (0, random.choice(stops[:-1] or stops)), origin)
            continue
        early = [stop for stop in stops if stop <= max(size // 2, _EARLY * total)]
        for _ in range(min(most, 1 + total // size)):
            last = random.choice(early if early and random.random() < 0.4 else stops)
            yield cut(encoding, text, words, (max(0, last - size), last), origin)


def balanced(windows: Sequence[Window], texts: Sequence[Text], most: int, of_one: int) -> list[Window]:
    """Return the first windows, `most` of them and `of_one` of a source at most; `texts` are their origins."""
    counts: dict[str, int] = {}
    kept: list[Window] = []
    for window in windows:
        source = texts[window.origin].source
        counts[source] = counts.get(source, 0) + 1
        if counts[source] <= of_one and len(kept) < most:
            kept.append(window)
    return kept


def teacher_texts(texts: Sequence[Text], tokenizer: Tokenizer, size: int, random: Random) -> Iterator[Text]:
    """Yield texts for the teacher: none longer than `size` pieces, and pieces of those whose parts are known."""
    for text in texts:
        words = text.text if text.spans is not None else augmented(text.text, random, 0.1)
        encoding = tokenizer.encode(words, add_special_tokens=False)
        stops = ends(encoding)
        if not stops:
            continue
        certain = text.spans is not None or text.target[ANY] < 0.3
        wide = size if not certain or random.random() < 0.6 else random.randint(6, 40)
        last = stops[-1] if stops[-1] <= wide else random.choice([stop for stop in stops if stop >= wide] or stops[-1:])
        if not certain and random.random() < 0.5:  # answers mostly begin where the first window begins
            last = min(stops, key=lambda stop: abs(stop - wide))
        window = cut(encoding, text, words, (max(0, last - wide), last))
        target = text.target
        if window.marked is False:
            target = np.minimum(target, np.float32(0.15))
        yield replace(text, text=window.text, target=target)


def noisy_or(scores: Float) -> Float:
    """Return the chance of any harm, float32[row], of scores float32[row, label] taken as independent."""
    return np.asarray(1 - np.prod(1 - scores[..., : len(HARMS)], axis=-1), np.float32)


def soft_targets(windows: Sequence[Window], texts: Sequence[Text], teacher: Float) -> Float:
    """Return what each window is taught: float32[window, 11].

    Where a text is harmless so are its windows, a little of the teacher's doubt apart. Where it does harm, its most
    suspicious window does, and the others in the teacher's proportion; what nobody said is the teacher's word. A text
    that the recipe wrote to do harm does it from its first words on, but for the parts that it marks as calm.

    Args:
        windows: of `texts`.
        texts: the texts, by origin.
        teacher: float32[window, label], its score of each window alone.
    """
    scores = np.concatenate([teacher, noisy_or(teacher)[:, None]], axis=1)
    highest = np.full((len(texts), ANY + 1), 0.2, np.float32)
    origins = np.array([window.origin for window in windows])
    np.maximum.at(highest, origins, scores)
    truth = np.stack([text.target for text in texts])[origins]
    share = np.clip(scores / highest[origins], 0, 1)
    written = np.array([text.source.startswith("generated") for text in texts])[origins]
    share[written] = 1
    harm = 0.7 * truth * share + 0.3 * scores
    calm = 0.85 * np.nan_to_num(truth) + 0.15 * scores
    target = np.where(np.isnan(truth), scores, np.where(truth >= 0.3, harm, calm)).astype(np.float32)
    for row, window in enumerate(windows):
        if window.marked is False:
            target[row] = np.minimum(target[row], 0.3 * scores[row])
        elif window.marked:
            done = truth[row] >= 0.5
            target[row, done] = np.maximum(target[row, done], 0.7 + 0.3 * scores[row, done])
    return target


def hard_targets(windows: Sequence[Window], texts: Sequence[Text]) -> Float:
    """Return what each window is taught without a teacher: float32[window, 11], NaN where nobody said.

    A part of a harmful text does harm less surely than the whole.
    """
    target = np.stack([texts[window.origin].target for window in windows])
    for row, window in enumerate(windows):
        if window.marked is False:
            target[row] = np.minimum(target[row], np.float32(0.15))
        elif window.marked is None and len(window.text) < 0.8 * len(texts[window.origin].text):
            target[row] = np.where(target[row] > 0.3, np.float32(0.65) * target[row], target[row])
    return target
