"""A configuration to begin with: what `serve --upstream URL` runs, as a file in which each setting is explained."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

import msgspec
from msgspec import inspect as types

from checkstream.config.default import unplaced
from checkstream.config.described import descriptions, structs_in
from checkstream.config.parts import Secret
from checkstream.config.settings import RouteSettings

_HEAD = """\
# What `checkstream serve --upstream {upstream}` runs, to be changed:
#
#     checkstream config check {file}
#     checkstream serve --config {file}
#
# A line that begins with `#` and a name is a setting with its default. Take the `#` away to change it, and that of the
# group that it stands in. Paths are relative to this file. `checkstream config reference` says all there is to say.
"""
_TOOLS = """\
# A server of tools (MCP over streamable HTTP) is guarded, too: agents get this address in place of the server's.
# The upstream and the route stand with the others above.
#
#     upstreams:
#       library: {url: "http://127.0.0.1:8081"}
#     routes:
#       - {name: library, match: {path: /mcp}, surface: mcp, upstream: library, policies: ["builtin:default"],
#          tools_changed: refuse}
#     tools: {secret: {file: tools.key}}     # `openssl rand -base64 32 > tools.key`; then `checkstream tools list`
"""
_WIDTH = 118
_ACTIVE = frozenset({"server", "listen", "admin", "callers", "upstreams", "routes", "audit", "dir", "durability"})
"""Settings that are written out though they have their default: what everybody asks first."""
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./")


def sample(upstream: str, file: str = "checkstream.yaml") -> str:
    """Return the text of the file.

    Args:
        upstream: Root of the model server.
        file: Its name, for the words at the beginning.

    Raises:
        ValueError: `upstream` is no url.
    """
    lines = _settings(unplaced(upstream), "", live=True)
    text = "\n".join((_HEAD.format(upstream=upstream, file=file), *lines)).rstrip("\n")
    return f"{text}\n\n{_TOOLS}"


def _settings(group: msgspec.Struct, indent: str, *, live: bool) -> Iterator[str]:
    """Yield the lines of a group, each setting below what it is for; `live`: the group itself is not commented out."""
    described = descriptions(type(group))
    info = next(iter(structs_in(types.type_info(type(group)))))
    for field in info.fields:
        value = getattr(group, field.name)
        active = live and (field.encode_name in _ACTIVE or field.required or value != _default(field))
        yield from _comment(described[field.encode_name], indent)
        yield from _setting(field, value, indent, live=active)
        if not indent:
            yield ""


def _setting(field: types.Field, value: object, indent: str, *, live: bool) -> Iterator[str]:
    mark = indent if live else f"{indent}#"
    inner = value if isinstance(value, msgspec.Struct) else _optional(field, value)
    if inner is not None:
        yield f"{mark}{field.encode_name}:"
        yield from _settings(inner, indent + "  ", live=live)
    elif field.encode_name == "upstreams" and isinstance(value, dict):
        yield f"{mark}upstreams:"
        for name, upstream in value.items():
            yield f"{indent}  {name}:"
            yield from _settings(upstream, indent + "    ", live=True)
    elif field.encode_name == "routes" and isinstance(value, tuple):
        yield f"{mark}routes:"
        yield from _routes(value, indent + "  ")
    else:
        yield f"{mark}{field.encode_name}: {_flow(value)}"


def _routes(routes: tuple[RouteSettings, ...], indent: str) -> Iterator[str]:
    """Yield the first route with all that may be said of one, and each other one on a line."""
    first, *others = routes
    lines = list(_settings(first, f"{indent}  ", live=True))
    start = next(place for place, line in enumerate(lines) if not line.lstrip().startswith("#"))
    yield from lines[:start]
    yield f"{indent}- {lines[start].lstrip()}"
    yield from lines[start + 1 :]
    for route in others:
        said = {
            field.encode_name: getattr(route, field.name)
            for field in msgspec.structs.fields(route)
            if field.required or getattr(route, field.name) != field.default
        }
        yield f"{indent}- {_flow(said)}"


def _optional(field: types.Field, value: object) -> msgspec.Struct | None:
    """Return what a group that is not there would be by default; None where it has none, or is something else."""
    if value is not None or not isinstance(field.type, types.UnionType):
        return None
    for struct in structs_in(field.type):
        if struct.cls is not Secret and not any(inner.required for inner in struct.fields):
            made: msgspec.Struct = struct.cls()
            return made
    return None


def _default(field: types.Field) -> object:
    return field.default_factory() if field.default is msgspec.NODEFAULT and not field.required else field.default


def _comment(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def _flow(value: object) -> str:
    """Return a value as YAML on one line."""
    match value:
        case msgspec.Struct():
            changed = {
                field.encode_name: getattr(value, field.name)
                for field in msgspec.structs.fields(value)
                if field.required or getattr(value, field.name) != field.default
            }
            return _flow(changed)
        case dict():
            return "{" + ", ".join(f"{_flow(key)}: {_flow(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_flow, value)) + "]"
        case str() if value and (value[0].isalpha() or value[0] == "/") and set(value) <= _PLAIN:
            return value
        case _:
            return json.dumps(value, ensure_ascii=False)
