"""How a value is written where its placeholder stood: in a URL, in HTML, in a string of a program."""

from __future__ import annotations

import html
import json
from typing import Final
from urllib.parse import quote

from checkstream.core.match.patterns import compile_regex

_PERCENT: Final = compile_regex(r"%[0-9A-Fa-f]{2}")
_ENTITY: Final = compile_regex(r"&(?:#[0-9]+|#[xX][0-9A-Fa-f]+|[A-Za-z]+);")
_ESCAPE: Final = compile_regex(r"\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})")
_IN_ADDRESS: Final = "@:/?=,;!$'()*+~._-"
_ADDRESS: Final = compile_regex(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s<>\"]*\z")


def written_as(value: str, placeholder: str, before: str) -> str:
    """Return a value as it is written in place of a placeholder.

    Args:
        value: As its caller has written it.
        placeholder: As the model has written it: what is escaped there is escaped in the value.
        before: The text before it, as far as it is known: in an address no white space may stand.
    """
    if _PERCENT.search(placeholder):
        return quote(value, safe="")
    if _ENTITY.search(placeholder):
        return html.escape(value, quote=True)
    if _ESCAPE.search(placeholder):
        return json.dumps(value)[1:-1]
    return quote(value, safe=_IN_ADDRESS) if _ADDRESS.search(before) else value
