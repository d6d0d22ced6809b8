"""Marked text -> word pieces with their case and tags, and back from tags to spans, as the proxy does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer

from checkstream.scoring.tokenizer import Case, case_of
from models.training.graph import Float
from models.training.ner.marked import Marked, Span

ENTITIES = (
    "PERSON",
    "LOCATION",
    "ORGANIZATION",
    "STREET_ADDRESS",
    "DATE_OF_BIRTH",
    "MEDICAL_CONDITION",
    "ACCOUNT",
)
TAGS = ("O", *(f"{mark}-{entity}" for entity in ENTITIES for mark in "BI"))
"""Columns of the model, in order."""

WINDOW, OVERLAP = 128, 32
"""Word pieces of a window, [CLS] and [SEP] among them, and what two neighbours share."""

CASES = len(Case)


@dataclass(frozen=True, slots=True)
class Words:
    """A text in words, each with its word pieces."""

    starts: list[int]
    ends: list[int]
    pieces: list[list[int]]
    cases: list[int]


def words_of(tokenizer: Tokenizer, text: str) -> Words:
    """Split a text as the tokenizer does: at spaces and around punctuation."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    words = Words([], [], [], [])
    last: int | None = None
    for piece, (start, end), word in zip(encoding.ids, encoding.offsets, encoding.word_ids, strict=True):
        if word != last:
            words.starts.append(start)
            words.ends.append(end)
            words.pieces.append([])
            last = word
        words.ends[-1] = end
        words.pieces[-1].append(piece)
    words.cases.extend(case_of(text[start:end]) for start, end in zip(words.starts, words.ends, strict=True))
    return words


def tags_of(words: Words, spans: Sequence[Span]) -> list[int]:
    """Return the column of each word's tag; a word that a span only touches belongs to it."""
    tags = [0] * len(words.starts)
    for span in spans:
        column = 1 + 2 * ENTITIES.index(span.entity)
        for number, (start, end) in enumerate(zip(words.starts, words.ends, strict=True)):
            if start < span.end and end > span.start:
                tags[number] = column
                column = 2 * ((column + 1) // 2)
    return tags


@dataclass(frozen=True, slots=True)
class Window:
    """A run of whole words as the model reads it."""

    first_word: int
    words: int
    ids: list[int]
    types: list[int]
    heads: list[int]
    """Where the first piece of each word stands in `ids`."""


def windows_of(tokenizer: Tokenizer, words: Words) -> Iterator[Window]:
    """Cut a text into windows of whole words that overlap."""
    opening, closing = (tokenizer.encode(mark, add_special_tokens=False).ids[0] for mark in ("[CLS]", "[SEP]"))
    first = 0
    while first < len(words.pieces) or first == 0:
        ids, types, heads, at = [opening], [0], [], first
        while at < len(words.pieces) and (len(ids) + min(len(words.pieces[at]), WINDOW - 2) < WINDOW):
            pieces = words.pieces[at][: WINDOW - 2]
            heads.append(len(ids))
            ids += pieces
            types += [words.cases[at]] * len(pieces)
            at += 1
        yield Window(first, at - first, [*ids, closing], [*types, 0], heads)
        if at >= len(words.pieces):
            return
        back = 0
        while at - 1 > first and back < OVERLAP:
            at -= 1
            back += len(words.pieces[at])
        first = at


def spans_of(words: Words, probabilities: Float, thresholds: Sequence[float] | None = None) -> tuple[Span, ...]:
    """Decode tags into spans.

    Args:
        words: the text in words.
        probabilities: float32[word, tag].
        thresholds: of each entity, for the mean probability of a span's words; none: every span counts.
    """
    best = probabilities.argmax(axis=1)
    spans: list[Span] = []
    at = 0
    while at < len(best):
        entity = (int(best[at]) - 1) // 2
        if best[at] == 0:
            at += 1
            continue
        end = at + 1
        while end < len(best) and best[end] == 2 + 2 * entity:
            end += 1
        score = float(probabilities[at:end, 1 + 2 * entity : 3 + 2 * entity].sum(axis=1).mean())
        if thresholds is None or score >= thresholds[entity]:
            spans.append(Span(words.starts[at], words.ends[end - 1], ENTITIES[entity]))
        at = end
    return tuple(spans)


def merged(words: Words, windows: Sequence[Window], parts: Sequence[Float]) -> Float:
    """Return one row of tag probabilities a word: of the window in which it is farthest from an edge.

    Args:
        words: the text in words.
        windows: its windows.
        parts: logits of each window, float32[piece, tag].
    """
    result = np.zeros((len(words.starts), len(TAGS)), np.float32)
    depth = np.full(len(words.starts), -1)
    for window, logits in zip(windows, parts, strict=True):
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares = shifted / shifted.sum(axis=1, keepdims=True)
        for number, head in enumerate(window.heads):
            inside = min(head, len(window.ids) - 1 - head)
            word = window.first_word + number
            if inside > depth[word]:
                depth[word], result[word] = inside, shares[head]
    return result


def marked_example(tokenizer: Tokenizer, text: Marked) -> Iterator[tuple[Window, list[int]]]:
    """Yield the windows of a marked text with the tag of each piece: -100 but for the first piece of a word."""
    words = words_of(tokenizer, text.text)
    tags = tags_of(words, text.spans)
    for window in windows_of(tokenizer, words):
        target = [-100] * len(window.ids)
        for number, head in enumerate(window.heads):
            target[head] = tags[window.first_word + number]
        if window.heads:
            yield window, target
