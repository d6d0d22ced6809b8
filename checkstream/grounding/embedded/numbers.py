"""Numbers, amounts and dates of a text, normalised so that `$394 billion` and `394,000,000,000 USD` are one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import msgspec

from checkstream.grounding.embedded.reading import Word
from checkstream.grounding.embedded.vocabulary import MONTHS, MULTIPLIERS, NUMBER_WORDS, ORDINAL_WORDS, SYMBOLS, UNITS

_LONGEST = 24
"""Digits of a number that are read as one; longer ones are compared as they are written."""

Date = tuple[int | None, int | None, int | None]
"""Year, month, day; what is not said is None."""


class Quantity(msgspec.Struct, frozen=True):
    """A number of a text, with what it counts."""

    first: int
    """Its first word ..."""
    last: int
    """... and its last one, in words."""
    values: tuple[float, ...] = ()
    """What it may mean: `1.234` is one thing in English, another in German."""
    precision: float = 0.0
    """The last place that is written: 0.1 for `4.2`, 1e9 for `394 billion`."""
    unit: str = ""
    """What it measures (`usd`, `percent`, `time`), empty if it only counts."""
    dates: tuple[Date, ...] = ()
    """Days, months or years that it may mean."""
    weak: bool = False
    """`one`, `first`: as often a word as a number."""


def quantities(text: str, words: Sequence[Word]) -> list[Quantity]:
    """Return the numbers among the words of a text, in order."""
    found: list[Quantity] = []
    at = 0
    while at < len(words):
        quantity = _date(text, words, at) or _clock(text, words, at) or _number(text, words, at)
        if quantity is None:
            at += 1
        else:
            found.append(quantity)
            at = quantity.last + 1
    return found


def agree(said: Quantity, there: Quantity) -> bool:
    """Tell whether evidence gives a claim's number: the same date as far as the claim goes, or the same value."""
    if any(
        all(part is None or part == other for part, other in zip(date, known, strict=True))
        for date, known in product(said.dates, there.dates)
    ):
        return True
    if said.unit and there.unit and said.unit != there.unit:
        return False
    return any(_equal(one, other, said.precision) for one, other in product(said.values, there.values))


def alike(said: Quantity, there: Quantity) -> bool:
    """Tell whether two numbers say something of the same kind, so that they could contradict each other."""
    if said.weak or there.weak:
        return False
    if said.dates and there.dates:
        return True
    return bool(said.values and there.values) and said.unit == there.unit and bool(said.dates) == bool(there.dates)


def _equal(said: float, there: float, precision: float) -> bool:
    if abs(said - there) <= 1e-9 * max(abs(said), abs(there), 1):
        return True
    # Evidence that is more exact agrees with a claim that rounds it.
    exacter = precision > 0 and there / precision != round(there / precision)
    return exacter and abs(said - there) <= precision / 2


def _gap(text: str, words: Sequence[Word], at: int) -> str:
    """Return what stands between a word and the next."""
    return text[words[at].end : words[at + 1].start] if at + 1 < len(words) else "\n"


def _whole(word: Word) -> int | None:
    return int(word.form) if word.form.isascii() and word.form.isdecimal() and len(word.form) <= 4 else None


def _day(word: Word) -> int | None:
    number = _whole(word)
    return number if number is not None and 1 <= number <= 31 and len(word.form) <= 2 else None


def _year(word: Word) -> int | None:
    number = _whole(word)
    return number if number is not None and 1000 <= number <= 2199 else None


# --- dates


def _date(text: str, words: Sequence[Word], at: int) -> Quantity | None:
    return _written_date(text, words, at) or _named_date(text, words, at) or _named_day(text, words, at)


def _written_date(text: str, words: Sequence[Word], at: int) -> Quantity | None:
    """Read `15.03.2023`, `2023-03-15`, `3/15/2023`."""
    parts, last = words[at].form.split("."), at
    if len(parts) != 3 and at + 2 < len(words) and _gap(text, words, at) == _gap(text, words, at + 1):
        if _gap(text, words, at) not in {"-", "/"}:
            return None
        parts, last = [word.form for word in words[at : at + 3]], at + 2
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) <= 4 for part in parts):
        return None
    one, two, three = map(int, parts)
    orders: tuple[Date, ...]
    if len(parts[0]) == 4:
        orders = ((one, two, three),)
    elif len(parts[2]) in {2, 4}:
        year = three if len(parts[2]) == 4 else three + (2000 if three < 70 else 1900)
        orders = ((year, two, one), (year, one, two))
    else:
        return None
    dates = tuple(date for date in orders if 1 <= (date[1] or 0) <= 12 and 1 <= (date[2] or 0) <= 31)
    return Quantity(at, last, dates=dates) if dates else None


def _named_date(text: str, words: Sequence[Word], at: int) -> Quantity | None:
    """Read `15 March 2023`, `15. März`, `15th of March`, `15 de marzo de 2023`."""
    day = _day(words[at])
    if day is None:
        return None
    behind = at + 1
    while behind < min(len(words), at + 3) and words[behind].form in {"st", "nd", "rd", "th", "of", "de", "the"}:
        behind += 1
    if behind >= len(words) or words[behind].form not in MONTHS:
        return None
    month = MONTHS[words[behind].form]
    last, year = _year_behind(text, words, behind)
    return Quantity(at, last, dates=((year, month, day),))


def _named_day(text: str, words: Sequence[Word], at: int) -> Quantity | None:
    """Read `March 15, 2023`, `March 2023`."""
    month = MONTHS.get(words[at].form)
    if month is None or at + 1 >= len(words):
        return None
    day, last = _day(words[at + 1]), at + 1
    if day is None:
        last, year = _year_behind(text, words, at)
        return None if year is None else Quantity(at, last, dates=((year, month, None),))
    if last + 1 < len(words) and words[last + 1].form in {"st", "nd", "rd", "th"}:
        last += 1
    last, year = _year_behind(text, words, last)
    return Quantity(at, last, dates=((year, month, day),))


def _year_behind(text: str, words: Sequence[Word], at: int) -> tuple[int, int | None]:
    """Return the last word of a date, and its year if one follows."""
    behind = at + 1
    if behind < len(words) and words[behind].form in {"de", "of"}:
        behind += 1
    if behind < len(words) and _gap(text, words, behind - 1).strip(" ,.\u00a0") == "":
        year = _year(words[behind])
        if year is not None:
            return behind, year
    return at, None


# --- times of day


def _clock(text: str, words: Sequence[Word], at: int) -> Quantity | None:
    """Read `17:30`, `5:30 pm`, `5 p.m.` as minutes of the day."""
    hour, minute, last = _whole(words[at]), 0, at
    if hour is None or len(words[at].form) > 2:
        return None
    if _gap(text, words, at) == ":":
        minutes = _whole(words[at + 1])
        if minutes is None or minutes > 59 or len(words[at + 1].form) != 2:
            return None
        minute, last = minutes, at + 1
    half, end = _half_day(text, words, last)
    if half is None:
        return Quantity(at, last, (60.0 * hour + minute,), 1, "clock") if last > at and hour <= 24 else None
    if not 1 <= hour <= 12:
        return None
    return Quantity(at, end, (60.0 * (hour % 12 + half) + minute,), 1, "clock")


def _half_day(text: str, words: Sequence[Word], at: int) -> tuple[int | None, int]:
    """Return the hours that `am` or `pm` behind a word adds, and the last word of it; None where neither stands."""
    following = [word.form for word in words[at + 1 : at + 3]]
    if following[:1] in (["am"], ["pm"]):
        return 12 * (following[0] == "pm"), at + 1
    if following in (["a", "m"], ["p", "m"]) and _gap(text, words, at + 1) == ".":
        return 12 * (following[0] == "p"), at + 2
    return None, at


# --- numbers


def _number(text: str, words: Sequence[Word], at: int) -> Quantity | None:
    word = words[at]
    if word.form in ORDINAL_WORDS:
        value = float(ORDINAL_WORDS[word.form])
        return Quantity(at, at, values=(value,), precision=1, unit="ordinal", weak=value <= 2)
    if word.digits:
        values, precision, last = *_values(word.form), at
        if _negative(text, word):
            values = tuple(-value for value in values)
    elif word.form in NUMBER_WORDS:
        values, precision, last = *_spelled(words, at)[:2], _spelled(words, at)[2]
    else:
        return None
    weak = word.form in {"one", "un", "une"}
    glued = last + 1 < len(words) and words[last].end == words[last + 1].start
    if glued and words[last + 1].form in {"st", "nd", "rd", "th"}:
        return Quantity(at, last + 1, values=values, precision=1, unit="ordinal")
    if glued and words[last + 1].form == "s" and _year(word) is not None:
        return Quantity(at, last + 1, dates=((int(word.form), None, None),))
    if (
        last + 1 < len(words)
        and (factor := MULTIPLIERS.get(words[last + 1].form))
        and _scales(words[last + 1], glued=glued)
    ):
        values, precision, last = tuple(value * factor for value in values), precision * factor, last + 1
        weak = False
    unit, factor, last = _unit(text, words, at, last)
    if unit:
        return Quantity(at, last, tuple(value * factor for value in values), precision * factor, unit)
    year = _year(word) if last == at else None
    dates: tuple[Date, ...] = () if year is None else ((year, None, None),)
    return Quantity(at, last, values, precision, dates=dates, weak=weak)


def _negative(text: str, word: Word) -> bool:
    """Tell whether a minus stands before a number: right before it, and behind nothing that it could join."""
    before = text[max(0, word.start - 2) : word.start]
    return before[-1:] in ("-", "\u2212") and (len(before) == 1 or before[0] in " \t\n(=:")


def _scales(word: Word, *, glued: bool) -> bool:
    """Tell whether a word multiplies the number before it: letters do only right behind it."""
    return glued or len(word.form) > 1


def _unit(text: str, words: Sequence[Word], first: int, last: int) -> tuple[str, float, int]:
    before = text[max(0, words[first].start - 2) : words[first].start].strip()
    behind = text[words[last].end : words[last].end + 2].strip()
    for sign in (before[-1:], behind[:1]):
        if sign in SYMBOLS:
            return SYMBOLS[sign], 1.0, last
    if last + 1 < len(words) and _gap(text, words, last).strip(" -\u00a0") == "":
        unit = UNITS.get(words[last + 1].form)
        if unit is not None:
            return *unit, last + 1
        if words[last + 1].form == "per" and last + 2 < len(words) and words[last + 2].form == "cent":
            return "percent", 1.0, last + 2
    return "", 1.0, last


def _spelled(words: Sequence[Word], at: int) -> tuple[tuple[float, ...], float, int]:
    """Read `twenty-one`, `three hundred`: what stands together of number words."""
    total, last = float(NUMBER_WORDS[words[at].form]), at
    if 20 <= total < 100 and at + 1 < len(words) and 0 < NUMBER_WORDS.get(words[at + 1].form, 0) < 10:
        total, last = total + NUMBER_WORDS[words[at + 1].form], at + 1
    return (total,), 1.0, last


def _values(form: str) -> tuple[tuple[float, ...], float]:
    """Return what digits with points and commas may mean, and the place that is written last."""
    if len(form) > _LONGEST or not form.isascii():
        digits = "".join(str(_digit(sign)) for sign in form if sign.isdecimal())[:_LONGEST]
        return ((float(digits),), 1.0) if digits else ((), 0.0)
    signs = [sign for sign in form if sign in ".,"]
    if not signs:
        return (float(form),), 1.0
    plain = form.replace(",", "").replace(".", "")
    last = signs[-1]
    behind = form.rpartition(last)[2]
    grouped, decimal = float(plain), float(f"{form.rpartition(last)[0].replace(',', '').replace('.', '')}.{behind}")
    place = float(10 ** -len(behind))
    if len(set(signs)) == 2:
        return ((decimal,), place) if signs.count(last) == 1 else ((grouped,), 1.0)
    if len(signs) > 1:
        return (grouped,), 1.0
    if len(behind) != 3 or form[0] == "0":
        return (decimal,), place
    return ((grouped, decimal), place) if last == "." else ((grouped,), 1.0)


def _digit(sign: str) -> int:
    return int(sign)
