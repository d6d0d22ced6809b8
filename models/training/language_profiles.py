"""Writes `checkstream/core/match/language_profiles.py` from the profiles of the package langdetect 1.0.9 (Apache-2.0).

    pip install langdetect==1.0.9 && python -m models.training.language_profiles

The profiles count runs of one to three letters in abstracts of Wikipedia. What is kept are the commonest of each
length, in their order: enough to tell languages of one script apart, and small enough to be a part of the program.
"""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from importlib.resources import files
from pathlib import Path

import msgspec

LANGUAGES = {
    "latin": "ca cs da de en es et fi fr hr hu id it lt lv nl no pl pt ro sk sl sv tr vi",
    "cyrillic": "bg ru uk",
}
KEPT = (40, 150, 300)
"""Runs of one, two and three letters."""
WIDTH = 90
TARGET = Path(__file__).parents[2] / "checkstream/core/match/language_profiles.py"
HEAD = '''# ruff: noqa: RUF001 - letters of other scripts are what this is about
"""The commonest runs of one, two and three letters of languages that share a script, the commonest first.

Written by `models/training/language_profiles.py` from the profiles of langdetect 1.0.9 (Apache-2.0, Nakatani Shuyo and
Michal Danilak). `_` stands for the edge of a word. Edit the script in place of this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

PROFILES: Mapping[str, Mapping[str, tuple[str, str, str]]] = MappingProxyType(
    {
'''
TAIL = '''    }
)
"""Script -> language -> its runs of one, two and three letters, each joined to one text."""
'''


class Profile(msgspec.Struct):
    """What a profile says."""

    freq: dict[str, int]


def runs_of(language: str, script: str) -> list[str]:
    """Return the runs of a language in its script by length, the commonest first, each length joined to one text.

    Raises:
        FileNotFoundError: the package has no profile of it.
    """
    data = files("langdetect").joinpath("profiles", language).read_bytes()
    counted: Counter[str] = Counter()
    for run, count in msgspec.json.decode(data, type=Profile).freq.items():
        counted[run.lower()] += count
    ranked = [run.replace(" ", "_") for run, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0]))]
    return [
        "".join([run for run in ranked if len(run) == size and is_of(run, script)][:kept])
        for size, kept in enumerate(KEPT, 1)
    ]


def is_of(run: str, script: str) -> bool:
    """Tell whether a run is of letters of one script, with the edge of a word at most at its own."""
    letters = run.strip("_")
    return bool(letters) and all(unicodedata.name(char, "").startswith(script.upper()) for char in letters)


def written(text: str) -> list[str]:
    """Return the lines of a text constant."""
    pieces = [text[start : start + WIDTH] for start in range(0, len(text), WIDTH)]
    if len(pieces) == 1:
        return [f'                "{pieces[0]}",']
    return ["                (", *(f'                    "{piece}"' for piece in pieces), "                ),"]


def main() -> int:
    """Write the module."""
    lines: list[str] = []
    for script, languages in LANGUAGES.items():
        lines += [f'        "{script}": MappingProxyType(', "            {"]
        for language in languages.split():
            lines.append(f'                "{language}": (')
            lines += [f"    {line}" for run in runs_of(language, script) for line in written(run)]
            lines.append("                ),")
        lines += ["            }", "        ),"]
    TARGET.write_text(HEAD + "\n".join(lines) + "\n" + TAIL, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
