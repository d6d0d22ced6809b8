"""Weak labels of other languages: what spaCy marks in English texts, carried over to their translations.

Two texts are translations of one another when each is the nearest to the other by what multilingual-e5-small says of
the whole. Their words belong together when each is the other's nearest by what its eighth layer says of them (as
SimAlign does, Jalili Sabet et al. 2020). An entity whose words don't land close together is carried nowhere, and the
sentence that it stands in is left out.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from models.training import corpus
from models.training.encoder import Encoder
from models.training.graph import Float
from models.training.ner.data import cleaned, listed
from models.training.ner.encode import Words, words_of
from models.training.ner.generate import Cast
from models.training.ner.marked import Marked, Span
from models.training.ner.silver import label
from models.training.teacher.bases import BASES

SOURCE = "prompts_multilingual"
_ORIGIN = "deepmind/xquad"
PROMPTS = "system_prompts_lobe"
_LAYER = 8
_AHEAD = 0.015
"""By so much a translation is nearer than any other text: a cosine's level differs from script to script."""
_BEGINNING = 240
"""Characters that tell which text a translation is of."""
_MOST_PIECES = 500
_LONGEST, _SHORTEST = 1000, 40
"""Characters of a segment."""
_BEFORE = frozenset(
    ["the", "der", "die", "das", "den", "dem", "des", "el", "la", "los", "las", *"вкосу", "на", "из", "от"]
) | frozenset("\u5728\u4e8e\u548c\u4e0e\u4ece\u5230\u7531\u5bf9\u88ab\u628a\u7684\u662f\u53ca\u7ed9\u5411")
"""Words that stand before a name and may come in one piece with it."""
_BEHIND = frozenset("\u7684\u662f\u5728\u4e86\u548c\u4e0e\u4e8e,.;:()\u3001\uff0c\u3002\uff1b\uff1a\uff08\uff09")
_END = re.compile(r"(?<=[.!?\u3002\uff01\uff1f\u0964\u061f])[\"\u201d\u00bb\u300d)]*\s*")


class Reads(Protocol):
    """Says what texts are like, in any language."""

    def whole(self, text: str) -> Float:
        """Return what is said of a text, float32[hidden], of length 1."""
        ...

    def pieces(self, text: str) -> tuple[Float, list[tuple[int, int]]]:
        """Return what is said of each piece, float32[piece, hidden] of length 1, and where the pieces stand."""
        ...


class Reader:
    """Reads texts with the whole pretrained encoder."""

    def __init__(self) -> None:
        """Load it; takes some seconds and half a gigabyte."""
        base = BASES["e5"]
        files = base.files()
        self.tokenizer = Tokenizer.from_str(files.tokenizer.decode())
        self._model: Encoder = base.started(files, 1).eval()
        self._kept: dict[str, tuple[Float, list[tuple[int, int]]]] = {}
        self._frame = [self.tokenizer.token_to_id(name) for name in ("<s>", "</s>")]

    def whole(self, text: str) -> Float:
        """Return what is said of a text by its beginning, float32[hidden], of length 1."""
        last = self._states(
            self.tokenizer.encode(text[:_BEGINNING], add_special_tokens=False).ids, BASES["e5"].shape.layers
        )
        mean: Float = last.mean(0)
        return mean / np.linalg.norm(mean)

    def pieces(self, text: str) -> tuple[Float, list[tuple[int, int]]]:
        """Return what is said of each piece, float32[piece, hidden] of length 1, and where the pieces stand."""
        if text not in self._kept:
            encoding = self.tokenizer.encode(text, add_special_tokens=False)
            middle = self._states(encoding.ids[:_MOST_PIECES], _LAYER)
            self._kept[text] = (
                middle / np.linalg.norm(middle, axis=1, keepdims=True),
                encoding.offsets[: len(middle)],
            )
        return self._kept[text]

    def _states(self, ids: Sequence[int], layers: int) -> Float:
        """Return what so many layers say of each piece."""
        whole = torch.tensor([[self._frame[0], *ids, self._frame[1]]])
        seen = torch.ones_like(whole)[:, None, None, :].bool()
        with torch.inference_mode():
            x = self._model.norm(self._model.tokens(whole) + self._model.positions.weight[: whole.shape[1]])
            for layer in list(self._model.layers)[:layers]:
                x = layer(x, seen, 0.0)
        states: Float = x[0, 1:-1].numpy()
        return states


def segments(folder: Path, language: str) -> list[str]:
    """Return the distinct paragraphs and questions of one language."""
    found: dict[str, None] = {}
    for row in corpus.rows(folder, SOURCE):
        if str(row["source"]).startswith(_ORIGIN) and row["language"] == language:
            for part in str(row["text"]).split("\n\n"):
                # A long text of the pool may be cut at its end: what is whole is kept.
                text = part.strip()[:_LONGEST]
                if len(text) >= (_SHORTEST if language not in {"zh", "ja"} else _SHORTEST // 3):
                    found.setdefault(text)
    return list(found)


def prompts(folder: Path, languages: Sequence[str], most: int) -> list[dict[str, str]]:
    """Return system prompts that there are in all of these languages and in English: language -> the beginning."""
    found: dict[str, dict[str, str]] = {}
    for row in corpus.rows(folder, PROMPTS):
        path = str(row["source"])
        found.setdefault(path.rsplit("/", 1)[0], {})[str(row["language"])] = str(row["text"])
    whole = [texts for _, texts in sorted(found.items()) if {"en", *languages} <= set(texts)]
    return whole[:most]


def carried(marked: Marked, text: str, reader: Reads, words: Tokenizer) -> Iterator[Marked]:
    """Yield the sentences of a translation with the entities of the marked text.

    Args:
        marked: the English text.
        text: its translation.
        reader: sees what belongs together.
        words: splits texts into the words whose bounds count.
    """
    (ours, our_places), (theirs, their_places) = reader.pieces(marked.text), reader.pieces(text)
    alike = ours @ theirs.T
    forward, backward = alike.argmax(1), alike.argmax(0)
    split = words_of(words, text)
    bounds = [0, *(found.end() for found in _END.finditer(text) if 0 < found.end() < len(text)), len(text)]
    spans: list[Span] = []
    doubted: list[tuple[int, int]] = []
    known = len(text) if not their_places else their_places[-1][1]
    if known < len(text):
        doubted.append((known, len(text)))
    for span in marked.spans:
        pieces = [
            n for n, (start, end) in enumerate(our_places) if start < span.end and end > span.start and end > start
        ]
        hits = _grown({int(forward[n]) for n in pieces if int(backward[forward[n]]) in pieces}, backward, pieces)
        place = _landed(hits, len(pieces), their_places, split, text)
        if place is None or any(place[0] < other.end and place[1] > other.start for other in spans):
            at = [their_places[int(forward[n])] for n in pieces] or [(0, len(text))]
            doubted += at
        else:
            spans.append(Span(*place, span.entity))
    spans.sort(key=lambda span: span.start)
    for start, end in itertools.pairwise(sorted(set(bounds))):
        if any(a < end and b > start for a, b in doubted) or not text[start:end].strip():
            continue
        inside = [span for span in spans if start < span.end and span.start < end]
        if all(start <= span.start and span.end <= end for span in inside):
            shifted = tuple(Span(span.start - start, span.end - start, span.entity) for span in inside)
            yield Marked(text[start:end].rstrip(), shifted)


def _grown(hits: set[int], backward: NDArray[np.int64], pieces: Sequence[int]) -> list[int]:
    """Add the neighbours that belong to the same entity by their own account: a name may have more pieces abroad."""
    for step in (-1, 1):
        at = (min(hits) if step < 0 else max(hits)) + step if hits else -1
        while 0 <= at < len(backward) and int(backward[at]) in pieces:
            hits.add(at)
            at += step
    return sorted(hits)


def _landed(
    hits: Sequence[int], count: int, places: Sequence[tuple[int, int]], words: Words, text: str
) -> tuple[int, int] | None:
    """Return the bounds of the whole words that an entity's pieces land on; None where they are few or far apart."""
    if len(hits) < max(1, 0.6 * count) or hits[-1] - hits[0] > 2 * count + 2:
        return None
    start, end = places[hits[0]][0], places[hits[-1]][1]
    inside = [n for n in range(len(words.starts)) if words.starts[n] < end and words.ends[n] > start]
    while inside and text[words.starts[inside[0]] : words.ends[inside[0]]].lower() in _BEFORE:
        inside.pop(0)
    while inside and text[words.starts[inside[-1]] : words.ends[inside[-1]]] in _BEHIND:
        inside.pop()
    return (words.starts[inside[0]], words.ends[inside[-1]]) if inside else None


def pairs(ours: Float, theirs: Sequence[str], reader: Reads) -> list[tuple[int, int]]:
    """Return which texts are translations of one another, by number.

    Args:
        ours: what is said of each English text, float32[text, hidden].
        theirs: texts of another language.
        reader: sees what belongs together.
    """
    alike = ours @ np.stack([reader.whole(text) for text in theirs]).T
    forward, backward = alike.argmax(1), alike.argmax(0)
    seconds = np.partition(alike, -2, axis=1)[:, -2]
    return [(n, int(m)) for n, m in enumerate(forward) if int(backward[m]) == n and alike[n, m] - seconds[n] >= _AHEAD]


def joined_sentences(sentences: Iterable[Marked], most: int = 350, between: str = " ") -> Iterator[Marked]:
    """Yield sentences that follow one another as passages."""
    text, spans = "", list[Span]()
    for sentence in sentences:
        if text and len(text) + len(between) + len(sentence.text) > most:
            yield Marked(text, tuple(spans))
            text, spans = "", []
        text += between if text else ""
        spans += [Span(s.start + len(text), s.end + len(text), s.entity) for s in sentence.spans]
        text += sentence.text
    if text:
        yield Marked(text, tuple(spans))


def translated(folder: Path, languages: Sequence[str], words: Tokenizer) -> Iterator[tuple[str, str, Marked]]:
    """Yield marked passages of XQuAD as (language, English text, passage).

    Args:
        folder: the pool.
        languages: those to carry labels to.
        words: splits texts into the words whose bounds count.
    """
    reader, known = Reader(), listed(Cast(Random(1)))
    english = segments(folder, "en")
    marked = [cleaned(text, *known) for text in label(english)]
    ours = np.stack([reader.whole(text) for text in english])
    for language in languages:
        own = segments(folder, language)
        found = pairs(ours, own, reader)
        for n, m in found:
            between = "" if language == "zh" else " "
            for passage in joined_sentences(carried(marked[n], own[m], reader, words), between=between):
                yield language, english[n], passage
        print(f"{language}: {len(found)} of {len(own)} translated", file=sys.stderr, flush=True)


def nameless_prompts(folder: Path, languages: Sequence[str], most: int, chars: int = 350) -> Iterator[tuple[str, str]]:
    """Yield the beginnings of system prompts in which spaCy marks nobody in English, as (language, text)."""
    whole = prompts(folder, languages, most)
    for texts, first in zip(whole, label([texts["en"][:_LONGEST] for texts in whole]), strict=True):
        if not first.spans:
            for language in languages:
                yield language, texts[language][:chars]
