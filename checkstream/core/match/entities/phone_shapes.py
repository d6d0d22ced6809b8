"""Which groups of digits have the shape of a telephone number, by how much says that they are one."""

from __future__ import annotations

from collections.abc import Sequence


def _is_nanp(parts: Sequence[str]) -> bool:
    """Check area, exchange and line of a North American number. Source: ATIS-0300051, NPA and NXX rules."""
    area, exchange, line = parts
    return (len(area), len(exchange), len(line)) == (3, 3, 4) and area[0] > "1" and exchange[0] > "1"


def _is_year(digits: str) -> bool:
    return len(digits) == 4 and digits[:2] in ("19", "20")


def _looks_dated(parts: Sequence[str]) -> bool:
    """Say whether the groups begin like a date or are a range of years."""
    if len(parts) >= 3 and _is_year(parts[0]) and len(parts[1]) <= 2 and len(parts[2]) <= 2:
        return True
    if len(parts) >= 3 and len(parts[0]) <= 2 and len(parts[1]) <= 2 and _is_year(parts[2]):
        return True
    return len(parts) == 2 and _is_year(parts[0]) and _is_year(parts[1])


def _trunk_shape(parts: Sequence[str], gaps: Sequence[str]) -> bool:
    """Say whether groups that begin with a trunk `0` are shaped as a national number (Europe, Asia, Oceania)."""
    total = sum(map(len, parts))
    first = parts[0]
    if not (9 <= total <= 12 and 2 <= len(parts) <= 6 and first[0] == "0" and first[1:2] > "0"):
        return False
    if all("." in gap for gap in gaps) or (len(first) == 2 and all(len(part) == 2 for part in parts)):
        return len(parts) == 5 and all(len(part) == 2 for part in parts) and len({*gaps}) == 1
    if len(first) > 6 or any(not 2 <= len(part) <= 8 for part in parts[1:]) or any("." in gap for gap in gaps):
        return False
    return len(parts[-1]) >= 2 and not (len(parts) > 2 and len(parts[-1]) > 5)


def national_shape(parts: Sequence[str], gaps: Sequence[str], lead: str) -> bool:
    """Say whether the groups stand for a national number with no word to say so."""
    if any(len(gap) > 1 and not set(gap) <= set(" ()-") for gap in gaps) or _looks_dated(parts):
        return False
    bracketed = lead.endswith("(") and bool(gaps) and gaps[0].startswith(")")
    if len(parts) == 4 and parts[0] == "1" and _is_nanp(parts[1:]):
        return True
    if len(parts) == 3 and _is_nanp(parts):
        return bracketed or len({gap.strip() for gap in gaps}) == 1
    if _trunk_shape(parts, gaps):
        return True
    if len(parts) == 3 and [len(part) for part in parts] == [3, 4, 4] and parts[0][0] == "1" and parts[0][1] > "2":
        return True  # mobile numbers of China: 1[3-9]x xxxx xxxx
    total = sum(map(len, parts))
    return (
        bracketed
        and not _is_year(parts[0])
        and 2 <= len(parts[0]) <= 5
        and 8 <= total <= 12
        and len(parts) in (2, 3)
        and len(parts[-1]) >= 3
    )


def labelled_shape(parts: Sequence[str], gaps: Sequence[str]) -> bool:
    """Say whether the groups may be a number when a word such as `phone` stands before them."""
    total = sum(map(len, parts))
    if not 7 <= total <= 15 or _looks_dated(parts) or len(parts) > 7:
        return False
    if [len(part) for part in parts] == [3, 2, 4]:
        return False  # a US social security number
    if len(parts) == 4 and set(gaps) == {"."} and all(len(part) <= 3 and int(part) < 256 for part in parts):
        return False  # an IP address
    return len(parts) > 1 or total <= 13


def loose_shape(parts: Sequence[str], gaps: Sequence[str]) -> bool:
    """Say whether the groups may be a number in national form though nothing says so: no amount, date or time."""
    if len(parts) > 1:
        thousands = len(parts[0]) <= 3 and all(len(part) == 3 for part in parts[1:])
        return not thousands and len(parts) <= 5 and len(parts[-1]) >= 2 and labelled_shape(parts, gaps)
    digits = parts[0]
    if digits[0] == "0":
        return 9 <= len(digits) <= 11 and digits[1] > "0"
    if len(digits) == 11:
        return digits[0] == "1" and digits[1] > "1"  # North America with its 1, mobile numbers of China
    if len(digits) == 10:
        return digits[0] > "1" and (digits[0] > "5" or digits[3] > "1")  # North America; mobile numbers of India
    return len(digits) == 9 and digits[0] in "679"  # mobile numbers of Spain and Portugal
