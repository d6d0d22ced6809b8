"""Log probabilities and token ids: what spells an answer's text once more, and whether it spells just that (G15).

They leave with the text of their own event or body where they spell that text, and nothing else, to the letter. Which
of them stand behind text that is still held, or was edited, can't be told in any other case. The alternatives to its
tokens are texts of their own, one for each rank, joined over events like the text.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Mapping

from checkstream.core.steps import Steps
from checkstream.core.terms import Extra
from checkstream.core.wire.json_text.lists import spelling
from checkstream.core.wire.json_text.spans import Path
from checkstream.core.wire.json_text.strings import clean

SHADOWS = ("logprobs", "token_ids", "prompt_logprobs", "prompt_token_ids")
"""Fields, of choices and of answers, that spell text once more."""
PROBABILITIES = "logprobs"
IDS = frozenset({"token_ids", "prompt_token_ids"})
"""Nobody here has the vocabulary that they are of."""
_MOST_TOKEN = 4096
"""Characters of one."""
_MOST_FIGURE = 10**9
"""Logarithms of probabilities and places in a text are less: what is more would say something else."""
_ENTRY = frozenset({"token", "logprob", "bytes", "top_logprobs"})
_ENTRIES_A_STEP = 256
_IDS_A_STEP = 8192
_MEMBERS = frozenset({"content", "refusal", "tokens", "token_logprobs", "top_logprobs", "text_offset"})
_LISTS = frozenset({"tokens", "token_logprobs", "top_logprobs", "text_offset"})


def spells_any(shadow: object) -> bool:
    """Tell whether log probabilities or token ids say anything; members of theirs that are empty don't."""
    if isinstance(shadow, dict):
        return any(name not in _MEMBERS or _says(value) for name, value in shadow.items())
    return _says(shadow)


def _says(shadow: object) -> bool:
    if isinstance(shadow, dict):
        return bool(shadow)
    return shadow is not None and shadow not in ("", [], False, True)


def besides(
    shadow: object, texts: Collection[str], choice: int, path: Path, *, whole: bool
) -> Generator[None, None, list[Extra] | None]:
    """Return, in steps, what log probabilities say besides the text that they spell; None where they spell another.

    Args:
        shadow: The value of `logprobs`.
        texts: What stands beside them: they spell one of these.
        choice: Whose they are.
        path: Where they stand.
        whole: All of the answer is there: they may go on behind the text, with the tokens that have ended it.
    """
    if isinstance(shadow, list):  # of Ollama
        shadow = {"content": shadow}
    if not isinstance(shadow, dict):
        return None
    reading = _Reading(texts, whole=whole)
    try:
        if "tokens" in shadow:
            yield from _legacy(shadow, reading)
        else:
            for name, entries in shadow.items():
                if name not in ("content", "refusal"):
                    return None
                if spells_any(entries):
                    yield from _entries(entries, reading)
    except (_OtherFormError, TypeError, ValueError, AttributeError):
        return None
    # A rank is read as it would be joined, here and over events, and token by token.
    joined = [
        Extra(choice, clean("".join(rank)), path, joins=True, part=number, known=len(path))
        for number, rank in enumerate(reading.ranks, start=1)
        if any(rank)
    ]
    ranks = dict.fromkeys("\n".join(rank) for rank in reading.ranks if len(rank) > 1)
    apart = [Extra(choice, clean(text), path, known=len(path)) for text in ranks if text.strip("\n")]
    return joined + apart


def ids(shadow: object, choice: int, path: Path) -> Generator[None, None, list[Extra] | None]:
    """Return, in steps, what token ids say, read as bytes, as they stand there; None where they are no numbers."""
    rows = shadow if isinstance(shadow, list) and all(isinstance(row, list) for row in shadow) else [shadow]
    found: list[Extra] = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, list):
            return None
        for at in range(0, len(row), _IDS_A_STEP):
            if not all(type(each) is int for each in row[at : at + _IDS_A_STEP]):
                return None
            if at:
                yield
        text = yield from spelling(row)
        if text is not None:
            found.append(Extra(choice, clean(text), path, known=len(path)))
        if number % _ENTRIES_A_STEP == 0:
            yield
    return found


class _OtherFormError(Exception):
    """These log probabilities are of another form, or spell another text."""


class _Reading:
    """What log probabilities are held against, and what they say besides."""

    def __init__(self, texts: Collection[str], *, whole: bool) -> None:
        self.ranks: list[list[str]] = []
        """The alternatives to the tokens, by rank, and what stands behind the text."""
        self._texts = texts
        self._whole = whole

    def hold(self, tokens: list[str]) -> None:
        """Hold the tokens against the texts.

        Raises:
            _OtherFormError: they spell none of them.
        """
        spelled = "".join(tokens)
        if spelled in self._texts:
            return
        if not self._whole or not any(text and spelled.startswith(text) for text in self._texts):
            raise _OtherFormError
        begun = max((text for text in self._texts if spelled.startswith(text)), key=len)
        self.ranks.append([spelled[len(begun) :]])

    def note(self, place: int, other: str) -> None:
        """Note an alternative to a token."""
        while place >= len(self.ranks):
            self.ranks.append([])
        self.ranks[place].append(other)


def _entries(entries: object, reading: _Reading) -> Steps:
    """Read OpenAI's list of tokens."""
    if not isinstance(entries, list):
        raise _OtherFormError
    tokens: list[str] = []
    for entry in entries:
        tokens.append(_token(entry))
        if len(tokens) % _ENTRIES_A_STEP == 0:
            yield
    reading.hold(tokens)
    looked = 0
    for entry, token in zip(entries, tokens, strict=True):
        place, looked = 0, looked + 1
        for each in entry.get("top_logprobs") or ():
            other, looked = _token(each), looked + 1
            if looked >= _ENTRIES_A_STEP:
                looked = 0
                yield
            if other != token:
                reading.note(place, other)
                place += 1


def _token(entry: object) -> str:
    """Return the token of an entry that says nothing else."""
    if not isinstance(entry, dict) or not _ENTRY.issuperset(entry):
        raise _OtherFormError
    token, spelled = entry.get("token"), entry.get("bytes")
    if not isinstance(token, str) or not _is_figure(entry.get("logprob")):
        raise _OtherFormError
    if len(token) > _MOST_TOKEN or (spelled is not None and len(spelled) > 4 * _MOST_TOKEN):
        raise _OtherFormError
    if spelled is not None and bytes(spelled) != token.encode():
        raise _OtherFormError
    return token


def _is_figure(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and (abs(value) < _MOST_FIGURE or value == -math.inf))


def _legacy(shadow: Mapping[str, object], reading: _Reading) -> Steps:
    """Read the lists of legacy completions."""
    tokens, tops = shadow["tokens"], shadow.get("top_logprobs") or []
    numbers = [*_list(shadow.get("token_logprobs")), *_list(shadow.get("text_offset"))]
    if not isinstance(tokens, list) or not isinstance(tops, list) or not _LISTS.issuperset(shadow):
        raise _OtherFormError
    yield from _look_at_figures(numbers)
    reading.hold(tokens)
    looked = 0
    for token, top in zip(tokens, tops, strict=False):
        for place, (other, probability) in enumerate((top or {}).items()):
            looked += 1
            if looked % _ENTRIES_A_STEP == 0:
                yield
            if not _is_figure(probability):
                raise _OtherFormError
            if other != token:
                reading.note(place, other)
    if len(tops) > len(tokens):
        raise _OtherFormError


def _look_at_figures(numbers: list[object]) -> Steps:
    for at in range(0, len(numbers), _IDS_A_STEP):
        if not all(map(_is_figure, numbers[at : at + _IDS_A_STEP])):
            raise _OtherFormError
        if at:
            yield


def _list(value: object) -> list[object]:
    if value is not None and not isinstance(value, list):
        raise _OtherFormError
    return value or []
