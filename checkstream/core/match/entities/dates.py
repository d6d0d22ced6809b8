"""Calendar dates as people write them, without a clock: is it a day that exists, in a plausible year of birth?"""

from __future__ import annotations

from types import MappingProxyType

from checkstream.core.match.entities.entity import WORD

# Names and abbreviations in English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish, Polish.
_MONTHS = (
    "january jan januar janvier janv enero ene gennaio gen janeiro januari styczeń stycznia",
    "february feb februar février fevrier févr fev febrero febbraio febb fevereiro februari luty lutego",
    "march mar märz maerz mrz mars marzo março marco maart mrt marzec marca",
    "april apr avril avr abril abr aprile kwiecień kwietnia",
    "may mai mayo maggio mag maio mei maj maja",
    "june jun juni juin junio giugno giu junho czerwiec czerwca",
    "july jul juli juillet juil julio luglio lug julho lipiec lipca",
    "august aug août aout agosto ago augustus sierpień sierpnia augusti",
    "september sep sept septembre septiembre settembre set setembro wrzesień września",
    "october oct oktober okt octobre octubre ottobre ott outubro out październik października",
    "november nov novembre noviembre novembro listopad listopada",
    "december dec dezember dez décembre decembre déc diciembre dic dicembre dezembro grudzień grudnia",
)
_MONTH_NUMBERS = MappingProxyType({name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()})

_MONTH = "(?:" + "|".join(sorted(_MONTH_NUMBERS, key=lambda name: (-len(name), name))) + ")"
DATE_REGEX = (
    rf"(?i){WORD}(?:"
    "[0-9]{4} ?[\\-/.\u5e74] ?[0-9]{1,2} ?[\\-/.\u6708] ?[0-9]{1,2}\u65e5?"
    r"|[0-9]{1,2}(?:st|nd|rd|th|er|º|°|\.)?(?: of| de| del|-)?[ \-]?"
    rf"{_MONTH}\.?,?(?: de| del)?[ \-]?(?:[0-9]{{4}}|[0-9]{{2}})"
    rf"|{_MONTH}\.? ?[0-9]{{1,2}}(?:st|nd|rd|th)?,? ?[0-9]{{4}}"
    r"|[0-9]{1,2}[\-/.][0-9]{1,2}[\-/.](?:[0-9]{4}|[0-9]{2})"
    r"|[0-9]{1,2}[./]? [0-9]{1,2}[./]? [0-9]{4}"
    r"|[0-9]{8}"
    r")"
)
"""RE2 syntax; finds all forms that `birth_year` reads."""

_EARLIEST, _LATEST = 1900, 2099


def _days(year: int, month: int) -> int:
    """Return the days of a month in the Gregorian calendar."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def is_day(year: int, month: int, day: int) -> bool:
    """Say whether the day exists, in a year in which somebody who may be alive can have been born."""
    return _EARLIEST <= year <= _LATEST and 1 <= month <= 12 and 1 <= day <= _days(year, month)


def _words(date: str) -> list[str]:
    """Split a date into its numbers and names."""
    words: list[str] = []
    kind = ""
    for char in date.casefold():
        now = "digit" if "0" <= char <= "9" else "letter" if char.isalpha() else ""
        if now and now == kind:
            words[-1] += char
        elif now:
            words.append(char)
        kind = now
    return words


def is_birth_date(date: str) -> bool:
    """Say whether a text found by `DATE_REGEX` is a plausible day of birth in at least one reading."""
    words = _words(date)
    numbers = [int(word) for word in words if word.isdigit()]
    months = [_MONTH_NUMBERS[word] for word in words if word in _MONTH_NUMBERS]
    if len(words) == 1 and len(words[0]) == 8:
        whole = words[0]
        readings = (
            (whole[:4], whole[4:6], whole[6:]),
            (whole[4:], whole[2:4], whole[:2]),
            (whole[4:], whole[:2], whole[2:4]),
        )
        return any(is_day(int(year), int(month), int(day)) for year, month, day in readings)
    if months and len(numbers) == 2:
        day, year = numbers
        return any(is_day(full, months[0], day) for full in _full_years(year))
    if len(numbers) != 3:
        return False
    if numbers[0] > 31:
        return is_day(*numbers)
    first, second, year = numbers
    return any(is_day(full, second, first) or is_day(full, first, second) for full in _full_years(year))


def _full_years(year: int) -> tuple[int, ...]:
    """Return the years that a number of a date may mean (`85` is 1985 or 2085)."""
    return (1900 + year, 2000 + year) if year < 100 else (year,)
