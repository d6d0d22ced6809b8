"""Texts that are dear to search: near misses, runs without end and overlapping beginnings, made from a pattern itself.

Whatever entity or pattern comes to be, its texts come with it: nothing here names one.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator, Sequence
from functools import lru_cache

from checkstream.core.match.syntax import parse
from checkstream.core.match.tree import Alternation, Assertion, Atom, Concat, Node, Repeat

_CHARS = string.digits + string.ascii_letters + string.punctuation + " \t\n" + "é\u00a0\u2010\u5e74\uac00"
_SOME = 24
"""A repetition without bound is drawn up to so many times more than it must be."""


@lru_cache(maxsize=4096)
def _members(source: str, fold: bool | None) -> str:
    flags = re.ASCII | (re.IGNORECASE if fold else re.NOFLAG)
    return "".join(char for char in _CHARS if re.fullmatch(source, char, flags))


def drawn(node: Node, dice: random.Random, *, longest: bool) -> str:
    """Return a text that `node` matches, but for its assertions."""
    match node:
        case Atom(source, fold):
            members = _members(source, fold)
            return dice.choice(members) if members else source
        case Assertion():
            return ""
        case Concat(parts):
            return "".join(drawn(part, dice, longest=longest) for part in parts)
        case Alternation(options):
            return drawn(dice.choice(options), dice, longest=longest)
        case Repeat(part, low, high):
            most = low + _SOME if high is None else min(high, low + _SOME)
            count = most if longest else dice.randint(low, most)
            return "".join(drawn(part, dice, longest=longest) for _ in range(count))


def _classes(node: Node) -> Iterator[str]:
    """Yield the members of every class that is repeated in `node`."""
    match node:
        case Repeat(part):
            if isinstance(part, Atom):
                yield _members(part.source, part.fold)
            yield from _classes(part)
        case Concat(parts) | Alternation(parts):
            for part in parts:
                yield from _classes(part)
        case _:
            pass


def hostile(regex: str, size: int, seed: int = 0) -> dict[str, str]:
    """Return texts of `size` characters that come close to `regex`, by what they are."""
    dice, node = random.Random(seed), parse(regex)

    def filled(pieces: Sequence[str], between: str = "") -> str:
        text: list[str] = []
        long = 0
        while long < size:
            text.append(dice.choice(pieces) + between)
            long += max(len(text[-1]), 1)
        return "".join(text)[:size]

    long = [drawn(node, dice, longest=True) for _ in range(40)]
    short = [drawn(node, dice, longest=False) for _ in range(40)]
    torn = [each[: dice.randrange(1, len(each) + 1)] for each in (*long, *short) if each]
    digits = [re.sub(r"[0-9]", lambda _: dice.choice(string.digits), each) for each in long]
    texts = {
        "one behind the other": filled(long + short),
        "set apart by spaces": filled(long + short, " "),
        "one text again and again": filled(long[:1], " "),
        "one short text again and again": filled(short[:1], " "),
        "all but the last character": filled([each[:-1] for each in long + short if each], " "),
        "beginnings": filled(torn),
        "beginnings set apart": filled(torn, " "),
        "one beginning again and again": filled(torn[:1]),
        "other digits": filled(digits, ", "),
        "lines": filled(long + short, "\n"),
        "behind a letter": "x" + filled(long + short, " x"),
    }
    for number, members in enumerate(dict.fromkeys(each for each in _classes(node) if each)):
        texts[f"a run of class {number}"] = filled(list(members))
        texts[f"one character of class {number}"] = members[0] * size
    return {name: text[:size] for name, text in texts.items()}


def common(size: int, seed: int = 0) -> dict[str, str]:
    """Return texts that are dear to many patterns at once."""
    dice = random.Random(seed)

    def of(alphabet: str) -> str:
        return "".join(dice.choice(alphabet) for _ in range(size))

    def of_pieces(*pieces: str) -> str:
        text = ""
        while len(text) < size:
            text += dice.choice(pieces)
        return text[:size]

    numbers = " ".join(str(dice.randint(1, 9999)) for _ in range(size))[:size]
    alphanumeric = string.ascii_letters + string.digits
    return {
        "letters and digits": of(alphanumeric),
        "hex digits": of("0123456789abcdef"),
        "digits and signs": of("0123456789 -./()+:"),
        "all that is printable": of(string.printable[:95]),
        "letters": of(string.ascii_letters),
        "base64": of(alphanumeric + "+/="),
        "short numbers": numbers,
        "one digit apart": "1 " * (size // 2),
        "eyJ": ("eyJ" * size)[:size],
        "zero width": ("a\u200b" * size)[:size],
        "percent": ("%4" * size)[:size],
        "percent signs": ("%41" * size)[:size],
        "ampersands": ("&am" * size)[:size],
        "backslashes": ("\\u006" * size)[:size],
        "base64 text": ("QUJD" * size)[:size],
        "base64 of numbers": ("MTIzNDUgNjc4OTAgMTIgMzQg" * size)[:size],
        "base64 of base64 text": ("VVVKRFJFVkc=" * size)[:size],
        "hex of text": ("6a6f686e40" * size)[:size],
        "hex of hex of text": ("3661 3666 3638 3665 3430 " * size)[:size],
        "hex pairs that begin": ("6a 6f 6e 7c " * size)[:size],
        "hex pairs apart": ("0x61, 0x62,\n" * size)[:size],
        "addresses that never come": ("a.b-c_d@" * size)[:size],
        "open key": ("-----BEGIN PRIVATE KEY-----\n" + of(alphanumeric + "+/"))[:size],
        "keys begun": ("-----BEGIN PRIVATE KEY-----\n" * size)[:size],
        "letters set apart": "x " * (size // 2),
        "marks": ("e" + "\u0301" * 40) * (size // 41),
        "emoji": ("\U0001f600" * size)[:size],
        "leetspeak": of("01345789@$!|"),
        "labels": of_pieces("phone ", "account ", "12 ", "34567 ", "ssn: ", "no. ", "4111 "),
        "assigned": of_pieces("password=", "token: ", "x=", "= ", ": a1", "secret is ", "B7_"),
        "fullwidth digits": "".join(chr(0xFF10 + dice.randrange(10)) for _ in range(size)),
    }
