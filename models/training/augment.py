"""Disguises and noise for training texts: what people and attackers do to a text without changing what it says.

Every function takes its randomness from the `Random` that it is given, so that a recipe repeats from its seed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

_NEIGHBOURS = {
    key: row[max(0, at - 1) : at] + row[at + 1 : at + 2]
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    for at, key in enumerate(row)
}
_HOMOGLYPHS = dict(zip("aceiopxysj", "\u0430\u0441\u0435\u0456\u043e\u0440\u0445\u0443\u0455\u0458", strict=True))
_LEET = dict(zip("aeiostl", "4310571", strict=True))
_INVISIBLE = ("\u200b", "\u200c", "\u00ad", "\u2060")
_QUOTES = (("\u201e", "\u201c"), ("\u00ab", "\u00bb"), ("\u300c", "\u300d"), ("'", "'"), ('"', '"'))


def changed_case(text: str, random: Random) -> str:
    """Write a text in capitals, in lower case, or in title case."""
    return random.choice((str.upper, str.lower, str.title))(text)


def typos(text: str, random: Random) -> str:
    """Miss, double, swap or mishit about one letter in thirty."""
    letters = list(text)
    for _ in range(max(1, len(letters) // 30)):
        at = random.randrange(len(letters)) if letters else 0
        if at + 1 >= len(letters) or not letters[at].isalpha():
            continue
        match random.randrange(4):
            case 0:
                letters[at] = ""
            case 1:
                letters[at] *= 2
            case 2:
                letters[at], letters[at + 1] = letters[at + 1], letters[at]
            case _:
                letters[at] = random.choice(_NEIGHBOURS.get(letters[at].lower(), letters[at]))
    return "".join(letters)


def respaced(text: str, random: Random) -> str:
    """Spell a word or two with spaces, dots or dashes between the letters, or double the spaces."""
    words = text.split(" ")
    if random.random() < 0.3:
        return "  ".join(words)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(words))
        if 3 < len(words[at]) < 14:
            words[at] = random.choice(" .-_").join(words[at])
    return " ".join(words)


def homoglyphs(text: str, random: Random) -> str:
    """Write some Latin letters with look-alikes of other alphabets, or strew in invisible characters."""
    if random.random() < 0.3:
        sign = random.choice(_INVISIBLE)
        return "".join(letter + sign if random.random() < 0.1 else letter for letter in text)
    return "".join(_HOMOGLYPHS.get(letter, letter) if random.random() < 0.25 else letter for letter in text)


def leetspeak(text: str, random: Random) -> str:
    """Write some letters as digits, word by word."""
    return " ".join(
        "".join(_LEET.get(letter, letter) for letter in word.lower()) if random.random() < 0.3 else word
        for word in text.split(" ")
    )


def cut_prefix(text: str, random: Random) -> str:
    """Start a text in its midst, at a word."""
    words = text.split(" ")
    return " ".join(words[random.randrange(max(1, len(words) // 3)) :])


def fenced(text: str, random: Random) -> str:
    """Put a text into a code fence, a quotation or tags."""
    match random.randrange(4):
        case 0:
            return f"```{random.choice(('', 'text', 'markdown', 'python'))}\n{text}\n```"
        case 1:
            return "\n".join("> " + line for line in text.split("\n"))
        case 2:
            tag = random.choice(("p", "div", "document", "content", "message"))
            return f"<{tag}>{text}</{tag}>"
        case _:
            return random.choice(_QUOTES)[0] + text + random.choice(_QUOTES)[1]


def in_json(text: str, random: Random) -> str:
    """Put a text into a JSON object."""
    key = random.choice(("content", "body", "message", "text", "description", "query", "note"))
    return json.dumps({"id": random.randrange(10_000), key: text}, ensure_ascii=random.random() < 0.5)


def repunctuated(text: str, random: Random) -> str:
    """Use other languages' punctuation, or leave it out."""
    if random.random() < 0.5:
        return "".join(sign for sign in text if sign not in ".,;:!?'\"")
    return text.translate(str.maketrans(".,!?;:", "\u3002\uff0c\uff01\uff1f\uff1b\uff1a"))


DISGUISES: tuple[Callable[[str, Random], str], ...] = (typos, respaced, homoglyphs, leetspeak, changed_case)
FRAMES: tuple[Callable[[str, Random], str], ...] = (cut_prefix, fenced, in_json, repunctuated)


def augmented(text: str, random: Random, share: float = 0.3) -> str:
    """Return a text as it is, or, for this share of texts, with one or two changes."""
    if random.random() >= share or not text.strip():
        return text
    text = random.choice(DISGUISES + FRAMES)(text, random)
    return random.choice(DISGUISES + FRAMES)(text, random) if random.random() < 0.2 else text
