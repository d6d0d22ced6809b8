"""JSON of callers, read strictly: what two parsers could take for two different things is refused (G31)."""

from __future__ import annotations

import json
from typing import NoReturn

from checkstream.errors import RequestInvalid

_MAX_DIGITS = 19  # of a 64-bit number


class StrictJson:
    """Reads one kind of JSON text; its faults name it."""

    def __init__(self, what: str) -> None:
        """Read what messages call `what`, such as `the body`."""
        self._what = what
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._integer,
            parse_float=self._real,
            parse_constant=self._constant,
            strict=True,
        )

    def read(self, text: str) -> dict[str, object]:
        """Return the object that `text` is.

        Raises:
            RequestInvalid: not one JSON object, nested too deeply, duplicate or case-variant names, or numbers that
                don't fit 64 bits.
        """
        try:
            value = self._decoder.decode(text)
        except json.JSONDecodeError as error:
            raise RequestInvalid(f"{self._what} is not JSON at character `{error.pos}`: {error.msg.lower()}") from error
        except RecursionError as error:
            raise RequestInvalid(f"{self._what} is nested too deeply; send a flatter one") from error
        if not isinstance(value, dict):
            raise RequestInvalid(f"{self._what} is not a JSON object; send one")
        return value

    def _object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        """Build an object, refusing names that two parsers could take for one or the other."""
        found = dict(pairs)
        if len(found) != len(pairs) or len({name.casefold() for name in found}) != len(pairs):
            seen: dict[str, str] = {}
            for name, _ in pairs:
                first = seen.get(name.casefold())
                if first is not None:
                    both = f"`{shown(first)}` and `{shown(name)}`"
                    raise RequestInvalid(f"{self._what} has an object with both {both}; send one")
                seen[name.casefold()] = name
        return found

    def _integer(self, digits: str) -> int:
        if len(digits.removeprefix("-")) > _MAX_DIGITS:
            number = f"the number `{shown(digits)}`"
            raise RequestInvalid(f"{self._what} has {number}, which is too large; send at most 64 bits")
        return int(digits)

    def _real(self, digits: str) -> float:
        value = float(digits)
        if value in (float("inf"), float("-inf")):
            number = f"the number `{shown(digits)}`"
            raise RequestInvalid(f"{self._what} has {number}, which is too large; send a finite one")
        return value

    def _constant(self, name: str) -> NoReturn:
        raise RequestInvalid(f"{self._what} has `{name}`, which is not JSON; send a number or null")


def shown(name: str) -> str:
    """Return user input fit for a message: short and printable."""
    cut = name if len(name) <= 64 else name[:64] + "..."
    return cut.encode("ascii", "backslashreplace").decode() if not cut.isprintable() else cut
