"""A cleaned document -> chunks: never longer than a size, sharing what stands around each cut. Pure.

A chunk begins and ends where sentences do, as far as that is possible, and belongs to one section. What follows in the
same section repeats at least the last `overlap` tokens of the chunk before, so a claim that spans a cut is in one
of them whole. Without any sentence edge this is the plain window algorithm of `grounding.windows`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

import msgspec

from checkstream.core.terms import Span
from checkstream.evidence.records import Chunk, chunk_id
from checkstream.evidence.structure import Section, sections
from checkstream.grounding.sentences import sentences

Tokenise = Callable[[str], Sequence[Span]]
"""Text -> its tokens, ascending and disjoint."""
MAX_TOKEN_CHARS = 50
"""What is longer counts as several tokens: data without a space is one word to any tokeniser."""


class Cutting(msgspec.Struct, frozen=True, kw_only=True):
    """How documents are cut."""

    size: int = 500
    """Most tokens of a chunk."""
    overlap: int = 50
    """Tokens that a chunk repeats of the one before, at least."""

    def __post_init__(self) -> None:
        """A chunk brings more new text than it repeats.

        Raises:
            ValueError: it would not.
        """
        if not 0 <= self.overlap * 2 <= self.size or self.size < 1:
            raise ValueError(f"`overlap` {self.overlap} is more than half of `size` {self.size}; lower it")


def words(text: str) -> list[Span]:
    """Return the tokens of a text by a rule that needs no model: runs of letters and digits, other signs one by one."""
    found: list[Span] = []
    begin = -1
    for at, sign in enumerate(text):
        if sign.isalnum() and sign < "\u0e00":
            begin = at if begin < 0 else begin
            continue
        if begin >= 0:
            found.append(Span(begin, at))
            begin = -1
        if not sign.isspace():
            found.append(Span(at, at + 1))
    if begin >= 0:
        found.append(Span(begin, len(text)))
    return found


def chunks(text: str, source: str, tokenise: Tokenise, cutting: Cutting) -> list[Chunk]:
    """Return the chunks of a cleaned document, in order; text that stands in it twice is one chunk."""

    def measured(part: str) -> list[Span]:
        return list(_bounded(tokenise(part), len(part)))

    found: dict[str, Chunk] = {}
    for section in _joined(text, sections(text), measured, cutting):
        body = text[section.start : section.end]
        for start, end in _places(body, measured(body), cutting):
            piece = body[start:end]
            identity = chunk_id(piece, source)
            chunk = Chunk(
                id=identity,
                source=source,
                text=piece,
                headings=section.headings,
                start=section.start + start,
                end=section.start + end,
            )
            found.setdefault(identity, chunk)
    return list(found.values())


def _bounded(tokens: Sequence[Span], length: int) -> Iterator[Span]:
    """Yield tokens, what is too long cut into several: a token, or what stands between two."""
    at = 0
    for token in (*tokens, Span(length, length)):
        begin = at if token.start - at > MAX_TOKEN_CHARS else token.start
        if token.end - begin <= MAX_TOKEN_CHARS:
            if begin < token.end:
                yield token
        else:
            for start in range(begin, token.end, MAX_TOKEN_CHARS):
                yield Span(start, min(start + MAX_TOKEN_CHARS, token.end))
        at = token.end


def _joined(text: str, parts: Sequence[Section], tokenise: Tokenise, cutting: Cutting) -> Iterator[Section]:
    """Yield sections, a very short one together with what follows it: a line by itself is no evidence."""
    held: Section | None = None
    for part in parts:
        now = part if held is None else Section(held.start, part.end, _common(held.headings, part.headings))
        if len(tokenise(text[now.start : now.end])) <= cutting.overlap:
            held = now
            continue
        yield now
        held = None
    if held is not None:
        yield held


def _common(held: tuple[str, ...], following: tuple[str, ...]) -> tuple[str, ...]:
    """Return the headings that both stand under; all of the second where the first is its own parent."""
    if following[: len(held)] == held:
        return following
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(held, following, strict=False))
    return tuple(title for title, _ in pairs)


def _places(body: str, tokens: Sequence[Span], cutting: Cutting) -> Iterator[tuple[int, int]]:
    """Yield where the chunks of a section stand, in characters."""
    starts, ends = _edges(body, tokens)
    begin = 0
    while begin < len(tokens):
        end = min(begin + cutting.size, len(tokens))
        if end < len(tokens):
            end = _last(ends, begin + max(cutting.size // 2, cutting.overlap + 1), end, end)
        yield tokens[begin].start, tokens[end - 1].end
        if end == len(tokens):
            return
        latest = end - cutting.overlap
        begin = _last(starts, max(begin + 1, latest - 2 * cutting.overlap), latest, latest)


def _edges(body: str, tokens: Sequence[Span]) -> tuple[list[int], list[int]]:
    """Return before which tokens sentences begin, and behind which they end, as numbers of tokens."""
    first = [token.start for token in tokens]
    last = [token.end for token in tokens]
    spans = sentences(body)
    return [bisect_left(first, span.start) for span in spans], [bisect_right(last, span.end) for span in spans]


def _last(edges: Sequence[int], least: int, most: int, otherwise: int) -> int:
    """Return the greatest edge from `least` to `most`, both included; `otherwise` where there is none."""
    at = bisect_right(edges, most) - 1
    return edges[at] if at >= 0 and edges[at] >= least else otherwise
