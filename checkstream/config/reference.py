"""The reference page: every setting with its values, its default and what it is for, made of the declarations.

`checkstream config reference` prints it; `REFERENCE.md` beside this file is that page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import inspect as types

from checkstream.config.control import ControlConfig
from checkstream.config.described import descriptions, groups, structs_in
from checkstream.config.own_models import OwnModels
from checkstream.config.parts import Secret
from checkstream.config.settings import Config

_FILES: tuple[tuple[str, type[msgspec.Struct], str], ...] = (
    (
        "checkstream.yaml",
        Config,
        "For `checkstream serve --config FILE`; `checkstream config init` writes one to begin with.",
    ),
    ("models.yaml", OwnModels, "Models of your own; the configuration names the file as `models`."),
    ("control.yaml", ControlConfig, "For `checkstream control serve --config FILE`, which looks after many nodes."),
)
_HEAD = """\
# Settings

Every setting, made of the source by `checkstream config reference`. `checkstream config schema` prints the same as a
JSON Schema, which editors understand, and `checkstream config check FILE` names what is wrong in a file.
"""


def reference() -> str:
    """Return the page, as Markdown."""
    pages = [_HEAD]
    for file, root, purpose in _FILES:
        pages.append(f"## {file}\n\n{purpose}\n")
        places = _places(root)
        pages += [_section(group, places[group.cls]) for group in groups(root) if group.cls is not Secret]
    secret = next(group for group in groups(Config) if group.cls is Secret)
    pages.append(_section(secret, ["a secret"]))
    return "\n".join(pages)


def _places(root: type[msgspec.Struct]) -> dict[type, list[str]]:
    """Return under which paths each group of settings stands in the file."""
    found: dict[type, list[str]] = {}

    def walk(struct: types.StructType, path: str) -> None:
        found.setdefault(struct.cls, []).append(path)
        for field in struct.fields:
            for below in structs_in(field.type):
                walk(below, f"{path}.{field.encode_name}{_step(field.type)}".removeprefix("."))

    walk(next(iter(structs_in(types.type_info(root)))), "")
    return found


def _step(kind: object) -> str:
    """Return how a path goes on below a list or a mapping."""
    match kind:
        case types.ListType() | types.VarTupleType():
            return "[]"
        case types.DictType():
            return ".NAME"
        case types.UnionType():
            return next((step for each in kind.types if (step := _step(each))), "")
        case _:
            return ""


def _section(group: types.StructType, places: Iterable[str]) -> str:
    title = ", ".join(f"`{place}`" if place != "a secret" else place.capitalize() for place in places if place)
    said = (group.cls.__doc__ or "").strip().replace("\n    ", "\n")
    described = descriptions(group.cls)
    rows = [_row(field, described.get(field.encode_name, "")) for field in group.fields]
    heading = f"### {title}\n\n" if title else ""
    table = "\n".join(("| setting | value | default | what it is |", "|---|---|---|---|", *rows))
    return f"{heading}{said}\n\n{table}\n"


def _row(field: types.Field, text: str) -> str:
    cells = (f"`{field.encode_name}`", in_words(field.type), _default(field), text)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(field: types.Field) -> str:
    if field.required:
        return "needed"
    value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    if isinstance(value, msgspec.Struct):
        return "as below"
    return f"`{json.dumps(msgspec.to_builtins(value), ensure_ascii=False)}`"


_PLAIN: Mapping[type, str] = {types.BoolType: "true or false", types.StrType: "text", types.NoneType: "null"}


def in_words(kind: object) -> str:
    """Return what a setting of this type may be.

    Raises:
        TypeError: there are no words for such a type yet.
    """
    match kind:
        case types.IntType() | types.FloatType():
            return ("a whole number" if isinstance(kind, types.IntType) else "a number") + _bounds(kind)
        case types.LiteralType():
            return ", ".join(f"`{value}`" for value in kind.values)
        case types.ListType() | types.VarTupleType():
            return f"a list: {in_words(kind.item_type)}"
        case types.DictType():
            return f"a mapping of names: {in_words(kind.value_type)}"
        case types.UnionType():
            nulls_last = sorted(kind.types, key=lambda each: isinstance(each, types.NoneType))
            return " or ".join(in_words(each) for each in nulls_last)
        case types.StructType():
            return "a secret" if kind.cls is Secret else "a mapping"
        case _ if type(kind) in _PLAIN:
            return _PLAIN[type(kind)]
        case _:
            raise TypeError(f"no words for {kind!r}; add them")


def _bounds(kind: types.IntType | types.FloatType) -> str:
    low = _number(kind.ge) if kind.ge is not None else f"more than {_number(kind.gt)}" if kind.gt is not None else ""
    if kind.le is not None:
        return f", {low or 'up'} to {_number(kind.le)}"
    if kind.lt is not None:
        return f", {low + ' and ' if low else ''}less than {_number(kind.lt)}"
    return f", {low} or more" if kind.ge is not None else f", {low}" if low else ""


def _number(bound: float) -> str:
    """Return a bound without a fraction where it has none: `typing` gives equal annotations out as one, 0 as 0.0."""
    return f"{int(bound) if bound == int(bound) else bound:,}"
