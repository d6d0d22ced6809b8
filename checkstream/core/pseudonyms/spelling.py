"""How a value is written where its placeholder stood: escaped as that was, for a URL, HTML or a string of a program."""

from __future__ import annotations

import html
import json
from typing import Final
from urllib.parse import quote

from checkstream.core.match.patterns import compile_regex

_PERCENT: Final = compile_regex(r"%[0-9A-Fa-f]{2}")
_ENTITY: Final = compile_regex(r"&(?:#[0-9]+|#[xX][0-9A-Fa-f]+|[A-Za-z]+);")
_ESCAPE: Final = compile_regex(r"\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})")


def written_as(value: str, placeholder: str) -> str:
    """Return a value, as its caller has written it, as it is written in place of a placeholder of the model."""
    if _PERCENT.search(placeholder):
        return quote(value, safe="", errors="replace")
    if _ENTITY.search(placeholder):
        return html.escape(value, quote=True)
    return json.dumps(value)[1:-1] if _ESCAPE.search(placeholder) else value
