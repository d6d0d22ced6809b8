"""What in a text wakes the views that read it otherwise: most texts have nothing of the kind, and the views sleep."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from checkstream.core.match.apart import APART
from checkstream.core.match.encoded import RUN_CHARS
from checkstream.core.match.engine import Regex, compile_regex
from checkstream.core.match.escapes import TRIGGERS
from checkstream.core.match.hexed import HEX
from checkstream.core.match.hidden import CARRIERS
from checkstream.core.match.markup import MARKED
from checkstream.core.match.normalise import FOLDING, LEET_CHARS
from checkstream.core.match.turned import OVERRIDE

_LEET: Final = f"[{LEET_CHARS}]"
_RUN: Final = f"[A-Za-z0-9+/_-]{{{RUN_CHARS}}}"
_CHANGING: Final = f"{TRIGGERS}|{FOLDING}|{MARKED}|{APART}"
_CHANGED: Final = compile_regex(_CHANGING)
_CHANGED_LEET: Final = compile_regex(f"{_CHANGING}|{_LEET}")
_EMBEDDINGS: Final = f"{_RUN}|{CARRIERS}|{HEX}|{OVERRIDE}"
EMBEDDING: Final = compile_regex(_EMBEDDINGS)
"""Finds what may stand encoded or hidden."""


@lru_cache(maxsize=16)
def trigger_of(names: tuple[str, ...], *, embeds: bool) -> Regex | None:
    """Return what wakes any view that some pattern is searched in; `names`: of those that read one another."""
    parts = [_CHANGING] if names else []
    if names[-1:] == ("leet",):
        parts.append(_LEET)
    if embeds:
        parts.append(_EMBEDDINGS)
    return compile_regex("|".join(parts)) if parts else None


def changing(names: Sequence[str]) -> Regex:
    """Return what wakes those of the views that read one another."""
    return _CHANGED_LEET if names[-1] == "leet" else _CHANGED


def without_surrogates(text: str) -> str:
    """Return the text with lone surrogates, which no engine reads, as replacement characters; same length."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text
