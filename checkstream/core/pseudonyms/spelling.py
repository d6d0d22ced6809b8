"""How a value is written in a place: escaped for URLs, HTML, Markdown and strings of JSON, as often as it takes there.

What a caller has written in a string of JSON is escaped, and in the model's prose it must not be; what it has written
in prose must be in the model's JSON. Where both are alike, the value comes back just as it stood.
"""

from __future__ import annotations

import html
import json
from typing import Final
from urllib.parse import quote

from checkstream.core.match.engine import Regex, compile_regex
from checkstream.core.pseudonyms.quoting import LINK, PLAIN, ROW

_PERCENT: Final = compile_regex(r"%(?:25)*[0-9A-Fa-f]{2}")
_ENTITY: Final = compile_regex(r"&(?:amp;)*(?:#[0-9]+|#[xX][0-9A-Fa-f]+|[A-Za-z]+);")
_ESCAPE: Final = compile_regex(r"\\+(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})")
_MOST_TIMES: Final = 5
"""That something is escaped: each time may double what is escaped."""
_ENDS_LINK: Final = frozenset(" \t\r\n()<>\\")
"""What an address in Markdown can't have as it is."""


def written_as(value: str, placeholder: str, way: int) -> str:
    """Return a value as it is written in place of a placeholder of the model.

    Args:
        value: As it says.
        placeholder: As the model has written it.
        way: What the place is written in (see `quoting`).
    """
    percent, entity, escape = (_first(marks, placeholder) for marks in (_PERCENT, _ENTITY, _ESCAPE))
    if percent:
        for _ in range(min(len(percent[1:]) // len("25"), _MOST_TIMES)):
            value = quote(value, safe="", errors="replace")
    elif entity:
        for _ in range(min(1 + entity.count("amp;"), _MOST_TIMES)):
            value = html.escape(value, quote=True)
    elif way == ROW:
        value = "<br>".join(value.replace("|", "\\|").splitlines())
    elif way == LINK and not _ENDS_LINK.isdisjoint(value):
        value = "".join(quote(char, safe="") if char in _ENDS_LINK else char for char in value)
    backslashes = min(len(escape) - len(escape.lstrip("\\")), 2**_MOST_TIMES)
    for _ in range(max(way, backslashes.bit_length(), PLAIN)):
        value = json.dumps(value, ensure_ascii=bool(escape))[1:-1]
    return value


def _first(marks: Regex, text: str) -> str:
    hit = marks.search(text)
    return "" if hit is None else text[hit.start() : hit.end()]


def is_plain(placeholder: str) -> bool:
    """Tell whether a placeholder is written without escapes of its own."""
    return not any(marks.search(placeholder) for marks in (_PERCENT, _ENTITY, _ESCAPE))


def says(text: str, way: int) -> str:
    """Return what a piece of a text says that is written in some way; the text itself where it is no such piece."""
    said = text
    try:
        for _ in range(way):
            said = json.loads(f'"{said}"', strict=False)
    except ValueError:
        return text
    said = said.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if way > PLAIN else said
    return said.replace("\\|", "|") if way == ROW else said
