"""Editors: what writes a span anew for `rewrite_span`.

An editor is a pure function of the text. Its output is not trusted: `actions` has it scanned again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Protocol

from checkstream.core.match.shapes import is_word
from checkstream.core.policy.action import RewriteSpan


class Editor(Protocol):
    """Writes a text anew."""

    def edit(self, text: str) -> str:
        """Return what stands in place of `text`; the same text where the editor has nothing to change."""


class _Branch:
    """What can follow the atoms read so far in a phrase, and what is written where a phrase ends here."""

    __slots__ = ("following", "replacement")

    def __init__(self) -> None:
        self.following: dict[str, _Branch] = {}
        self.replacement: str | None = None


class LexiconEditor:
    """Puts words and phrases in the place of others.

    Rules: a phrase stands alone (no letter, mark, digit or underscore touches it), letter case is ignored, white
    space matches any run of white space. Of phrases that start at one place the longest counts; what has been put in
    is not read again. The case of what was there is kept: `RISK FREE` and `Risk free` give `LOWER RISK` and
    `Lower risk`; otherwise the replacement stands as it was written. The work is linear in the text.
    """

    __slots__ = ("_root",)

    def __init__(self, words: Iterable[tuple[str, str]]) -> None:
        """Take pairs of a phrase and its replacement; of phrases equal but for letter case the first counts.

        A phrase of white space alone never matches.
        """
        self._root = _Branch()
        for phrase, replacement in words:
            branch = self._root
            for atom in _atoms(phrase.strip()):
                branch = branch.following.setdefault(_folded(atom), _Branch())
            if branch.replacement is None:
                branch.replacement = replacement

    def edit(self, text: str) -> str:
        """Return `text` with every phrase of the lexicon replaced."""
        atoms = _atoms(text)
        parts: list[str] = []
        place = 0
        while place < len(atoms):
            size, replacement = self._longest(atoms, place)
            if size:
                parts.append(_in_case_of("".join(atoms[place : place + size]), replacement))
            else:
                parts.append(atoms[place])
            place += size or 1
        return "".join(parts)

    def _longest(self, atoms: Sequence[str], place: int) -> tuple[int, str]:
        """Return how many atoms the longest phrase at `place` takes (0: there is none), and its replacement."""
        longest = 0, ""
        if place and is_word(atoms[place - 1][-1]):
            return longest
        branch: _Branch | None = self._root
        for at in range(place, len(atoms)):
            branch = branch.following.get(_folded(atoms[at])) if branch is not None else None
            if branch is None:
                break
            if branch.replacement is not None and not (at + 1 < len(atoms) and is_word(atoms[at + 1][0])):
                longest = at + 1 - place, branch.replacement
        return longest


def _atoms(text: str) -> list[str]:
    """Cut a text into words, runs of white space, and single other characters."""
    atoms: list[str] = []
    for kind, run in groupby(text, _kind):
        if kind == _OTHER:
            atoms += run
        else:
            atoms.append("".join(run))
    return atoms


_WORD, _SPACE, _OTHER = range(3)


def _kind(char: str) -> int:
    if is_word(char):
        return _WORD
    return _SPACE if char.isspace() else _OTHER


def _folded(atom: str) -> str:
    return " " if atom.isspace() else atom.casefold()


def _in_case_of(found: str, replacement: str) -> str:
    """Return the replacement in the letter case of what was found."""
    letters = [char for char in found if char.isalpha()]
    if len(letters) > 1 and found.isupper():
        return replacement.upper()
    if letters and letters[0].isupper():
        return replacement[:1].title() + replacement[1:]
    return replacement


@lru_cache(maxsize=256)
def editor_of(action: RewriteSpan) -> Editor:
    """Return the editor that an action names, made once per action."""
    match action.editor:
        case "lexicon":
            return LexiconEditor(action.words)
