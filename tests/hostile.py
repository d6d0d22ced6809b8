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


def near_misses(size: int, seed: int = 0) -> dict[str, str]:
    """Return rows of figures and codes as they stand in tables, logs and dumps: nearly what many entities look for."""
    dice = random.Random(seed)

    def of(form: str, *ranges: tuple[int, int]) -> str:
        text = ""
        while len(text) < size:
            text += form.format(*(dice.randint(low, high) for low, high in ranges))
        return text[:size]

    pair, three, four = (10, 99), (100, 999), (1000, 9999)
    octet, byte, word = (1, 255), (0, 255), (0, 65535)
    return {
        "pairs": of("{} ", pair),
        "pairs with zeros": of("{:02} ", (0, 99)),
        "pairs of one digit": of("{0}{0} {1}{1} ", (0, 9), (0, 9)),
        "three pairs": of("{}-{}-{} ", pair, pair, pair),
        "dotted": of("{}.{}.{}.{} ", *[(1, 9)] * 4),
        "dotted without end": of("{}.", (1, 9)),
        "addresses out of range": of("{}.{}.{}.{} ", octet, octet, octet, (256, 999)),
        "years": of("{}, ", (1900, 2030)),
        "years set apart": of("{} ", (1900, 2030)),
        "prices": of("${}.{:02} ", (1, 999), (0, 99)),
        "rows": of("{},{},{}\n", (1, 99999), (1, 999), (1, 9999999)),
        "columns": of("{}\t{}\t{}\n", (1, 99999), (1, 999), (1, 9999999)),
        "a table": of("| {} | {} | {}.{} |\n", (1, 9999), (1, 9999), pair, pair),
        "a list": of("{},", (1, 9999)),
        "a dump": of("{:08x}  " + "{:02x} " * 16 + " |................|\n", (0, 1 << 30), *[byte] * 16),
        "ids": of("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}\n", (0, 1 << 32), word, word, word, (0, 1 << 48)),
        "hex words": of("{:08x} ", (0, 1 << 32)),
        "telephones of no country": of("+{} {} {} {}, ", (800, 899), three, pair, pair),
        "telephones of no area": of("{}-{}-{} ", (100, 199), (100, 199), four),
        "short telephones": of("0{} {}-{} ", pair, pair, pair),
        "numbers of nobody": of("000-{}-{} ", pair, four),
        "numbers that go on": of("{}-{}-", three, pair),
        "nine digits": of("{} ", (10**8, 10**9 - 1)),
        "ten digits": of("{} ", (10**9, 10**10 - 1)),
        "sixteen digits": of("{} ", (10**15, 10**16 - 1)),
        "cards": of("4{} {} {} {} ", three, four, four, four),
        "digits": of("{}", (0, 9)),
        "figures": of("{} ", (0, 9)),
        "days": of("{:02}.{:02}.{} ", (1, 31), (1, 12), (1900, 2030)),
        "moments": of("{}-{:02}-{:02}T{:02}:{:02}Z ", (1900, 2030), (1, 12), (1, 31), (0, 23), (0, 59)),
        "fractions": of("-{}.{:04} ", (0, 99), (0, 9999)),
        "accounts of no bank": of("DE{} {} {} {} {} {} ", pair, four, four, four, four, pair),
        "machines": of("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x} ", *[byte] * 7),
        "machines of seven groups": of("{:x}:{:x}:{:x}:{:x}:{:x}:{:x}:{:x} ", *[word] * 7),
        "values": of("key{} = {}; ", pair, (1, 10**8)),
        "labels and digits": of("phone {} account {} ssn {}-{} ", (1, 9999), (1, 99999), pair, pair),
    }
