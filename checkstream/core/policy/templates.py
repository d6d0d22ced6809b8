"""Texts with variables in them, as rules write them into answers and requests.

    text     = {plain | "{{" | "}}" | variable}
    variable = "{" name ["|" default] "}"
    name     = model | route | surface | rule_id | policy | detector | sources | context.field{.field}

A value comes from outside: it is cut short, and what could move the cursor or hide text is taken out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection

import msgspec

from checkstream.core.policy.fields import did_you_mean
from checkstream.errors import TemplateError

NAMES = ("model", "route", "surface", "rule_id", "policy", "detector")
"""Variables that every text may have, besides `context.` and its fields."""
SOURCES = "sources"
MAX_VALUE_CHARS = 200
MAX_SOURCES_CHARS = 10_000
MAX_PATH = 8
"""Fields that a name may have one below the other; no context is deeper."""
_UNWRITTEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that are no text: controls, invisible format characters, surrogates, line separators."""


class Variable(msgspec.Struct, frozen=True):
    """A place in a text where a value is put."""

    path: tuple[str, ...]
    """`("model",)`, `("context", "user", "phone")`."""
    default: str | None = None
    """What is written when there is no value."""

    @property
    def name(self) -> str:
        """The variable as it is written."""
        return ".".join(self.path)


Template = tuple[str | Variable, ...]


def parse(text: str, names: Collection[str] = NAMES) -> Template:
    """Read a text.

    Args:
        text: As it stands in the policy.
        names: Variables that it may have, besides `context.` and its fields.

    Raises:
        TemplateError: a brace stands alone, or a variable is not one of `names`; says at which character.
    """
    parts: list[str | Variable] = []
    plain, at = "", 0
    while at < len(text):
        char = text[at]
        if char in "{}" and text[at : at + 2] == char * 2:
            plain, at = plain + char, at + 2
        elif char == "{":
            end = text.find("}", at)
            if end < 0:
                raise TemplateError("`{` is never closed", at, "close it with `}`, or write `{{` for a brace")
            if plain:
                parts.append(plain)
            parts.append(_variable(text[at + 1 : end], at + 1, names))
            plain, at = "", end + 1
        elif char == "}":
            raise TemplateError("`}` closes nothing", at, "write `}}` for a brace")
        else:
            following = min(found if found >= 0 else len(text) for found in (text.find("{", at), text.find("}", at)))
            plain, at = plain + text[at:following], following
    return (*parts, plain) if plain else tuple(parts)


def _variable(written: str, at: int, names: Collection[str]) -> Variable:
    """Read what stands between braces.

    Raises:
        TemplateError: there is no such variable.
    """
    name, bar, default = written.partition("|")
    if "{" in written:
        raise TemplateError("a variable can't stand within another", at + written.index("{"), "write `{{` for a brace")
    path = tuple(name.split("."))
    if path[0] != "context":
        if name not in names:
            known = ", ".join(f"`{{{known}}}`" for known in names) + ", `{context.field}`"
            reason = f"there is no variable `{{{_shown(name)}}}`" if name.strip() else "a variable has no name"
            advice = did_you_mean(name, names, f"use one of {known}; write `{{{{` for a brace")
            if name == SOURCES:
                advice = "only the text of `attribute_sources` can name them"
            raise TemplateError(reason, at, advice)
    elif len(path) == 1:
        raise TemplateError("`{context}` names no field", at, "write `{context.field}`")
    elif len(path) > MAX_PATH:
        raise TemplateError(f"`{{{_shown(name)}}}` goes deeper than {MAX_PATH} levels", at, "no context is as deep")
    elif not all(field and all(char.isalnum() or char in "_-" for char in field) for field in path):
        reason = f"`{{{_shown(name)}}}` is no name of a field"
        raise TemplateError(reason, at, "fields are of letters, digits, `_` and `-`, with points between them")
    return Variable(path, default if bar else None)


def _shown(name: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in name[:60])


def render(template: Template, lookup: Callable[[tuple[str, ...]], object]) -> tuple[str, tuple[str, ...]]:
    """Return the text with its values put in, and the names of variables that have neither a value nor a default.

    Args:
        template: What `parse` returned.
        lookup: Path of a variable -> its value, or None when there is none.
    """
    written: list[str] = []
    missing: list[str] = []
    for part in template:
        if isinstance(part, str):
            written.append(part)
            continue
        value = clean(lookup(part.path), most_chars(part.path))
        if value is None and part.default is None:
            missing.append(part.name)
        written.append(value if value is not None else part.default or "")
    return "".join(written), tuple(missing)


def most_chars(path: tuple[str, ...]) -> int:
    """Return how many characters of a variable's value are written."""
    return MAX_SOURCES_CHARS if path == (SOURCES,) else MAX_VALUE_CHARS


def clean(value: object, limit: int = MAX_VALUE_CHARS) -> str | None:
    """Return a value as it may be written, at most `limit` characters; None for what is no text, number or boolean."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)[:limit]
    if not isinstance(value, str):
        return None
    # No more than `limit` characters stay, so a value of any length costs the same.
    return "".join(char for char in value[: 4 * limit] if unicodedata.category(char) not in _UNWRITTEN)[:limit]
