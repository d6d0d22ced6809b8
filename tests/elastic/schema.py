"""Checks requests against Elasticsearch's published API specification.

`api.json.gz` is the part of that specification that our endpoints reach, without its prose: Apache-2.0,
https://github.com/elastic/elasticsearch-specification, as the package @elastic/request-converter 9.5.0 carries it.
Read here by its own meta-model: `request`, `interface`, `enum`, `type_alias`, containers, shortcuts, generics.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

_INTEGERS = {"integer", "long", "short", "byte", "uint", "ulong"}
_COMMON = {"error_trace", "filter_path", "human", "pretty"}
Node = Mapping[str, Any]


class Unspecified(Exception):
    """A request that the specification does not know."""


class Api:
    """The specification."""

    def __init__(self) -> None:
        found = json.loads(gzip.decompress((Path(__file__).parent / "api.json.gz").read_bytes()))
        self._types = {(each["name"]["namespace"], each["name"]["name"]): each for each in found["types"]}
        self._endpoints = found["endpoints"]

    def check(self, method: str, path: str, query: Mapping[str, str], lines: list[Any]) -> tuple[str, dict[str, str]]:
        """Return which endpoint a request is for, and what its path names.

        Raises:
            Unspecified: there is no such endpoint, or it takes no such query or body.
        """
        endpoint, named = self._endpoint(method, path)
        request = self._types[endpoint["request"]["namespace"], endpoint["request"]["name"]]
        known = {each["name"] for part in self._lineage(request) for each in part.get("query", ())} | _COMMON
        if unknown := set(query) - known:
            raise Unspecified(f"{endpoint['name']}: no query parameter {unknown}")
        body = request["body"]
        if endpoint["name"] == "bulk":
            for action in lines[::2]:
                self._value(action, body["value"]["value"]["items"][0], {}, "bulk")
        elif body["kind"] == "properties":
            self._properties(lines[0] if lines else {}, body["properties"], {}, endpoint["name"])
        elif body["kind"] == "value":
            self._value(lines[0], body["value"], {}, endpoint["name"])
        elif lines:
            raise Unspecified(f"{endpoint['name']} takes no body")
        return endpoint["name"], named

    def _endpoint(self, method: str, path: str) -> tuple[Node, dict[str, str]]:
        parts = path.strip("/").split("/")
        for endpoint in self._endpoints:
            for url in endpoint["urls"]:
                pattern = url["path"].strip("/").split("/")
                if method in url["methods"] and len(pattern) == len(parts):
                    named = {p[1:-1]: part for p, part in zip(pattern, parts, strict=True) if p.startswith("{")}
                    if all(p.startswith("{") or p == part for p, part in zip(pattern, parts, strict=True)) and not any(
                        value.startswith("_") for value in named.values()
                    ):
                        return endpoint, named
        raise Unspecified(f"no endpoint {method} {path}")

    def _lineage(self, type_: Node) -> Iterator[Node]:
        yield type_
        if "inherits" in type_:
            name = type_["inherits"]["type"]
            if (name["namespace"], name["name"]) in self._types:
                yield from self._lineage(self._types[name["namespace"], name["name"]])

    def _value(self, value: Any, node: Node, generics: Mapping[str, Node], at: str) -> None:  # noqa: C901, PLR0912 - one branch a kind
        match node["kind"]:
            case "user_defined_value":
                return
            case "literal_value":
                if value != node["value"]:
                    raise Unspecified(f"{at}: {value!r} is not {node['value']!r}")
            case "array_of":
                if not isinstance(value, list):
                    raise Unspecified(f"{at}: {value!r} is no list")
                for each in value:
                    self._value(each, node["value"], generics, f"{at}[]")
            case "dictionary_of":
                if not isinstance(value, dict) or (node.get("singleKey") and len(value) != 1):
                    raise Unspecified(f"{at}: {value!r} is no such mapping")
                for key, each in value.items():
                    self._value(each, node["value"], generics, f"{at}.{key}")
            case "union_of":
                reasons = []
                for item in node["items"]:
                    try:
                        self._value(value, item, generics, at)
                    except Unspecified as error:
                        reasons.append(str(error))
                if len(reasons) == len(node["items"]):
                    raise Unspecified(f"{at}: none of: {'; '.join(reasons[:20])}")
            case "instance_of":
                self._instance(value, node, generics, at)
            case kind:
                raise AssertionError(kind)

    def _instance(self, value: Any, node: Node, generics: Mapping[str, Node], at: str) -> None:
        namespace, name = node["type"]["namespace"], node["type"]["name"]
        if f"{namespace}.{name}" in generics:
            return self._value(value, generics[f"{namespace}.{name}"], {}, at)
        if namespace == "_builtins" or name in _INTEGERS:
            return _builtin(value, name, at)
        type_ = self._types.get((namespace, name))
        if type_ is None:  # a parameter that nobody filled: what an index holds
            return None
        given = dict(
            zip(
                (f"{each['namespace']}.{each['name']}" for each in type_.get("generics", ())),
                node.get("generics", ()),
                strict=False,
            )
        )
        if type_["kind"] == "type_alias":
            return self._value(value, type_["type"], given, at)
        if type_["kind"] == "enum":
            members = {word for each in type_["members"] for word in (each["name"], *each.get("aliases", ()))}
            if value not in members and not type_.get("isOpen"):
                raise Unspecified(f"{at}: {value!r} is none of {sorted(members)}")
            return None
        return self._interface(value, type_, given, at)

    def _interface(self, value: Any, type_: Node, generics: Mapping[str, Node], at: str) -> None:
        lineage = list(self._lineage(type_))
        properties = [each for part in lineage for each in part.get("properties", ())]
        if not isinstance(value, dict):
            short = next((part["shortcutProperty"] for part in lineage if "shortcutProperty" in part), None)
            if short is None:
                raise Unspecified(f"{at}: {value!r} is no object")
            return self._value(value, next(each for each in properties if each["name"] == short)["type"], generics, at)
        beside = _words(each for each in properties if each.get("containerProperty"))
        if type_.get("variants", {}).get("kind") == "container" and len(value.keys() - beside) != 1:
            raise Unspecified(f"{at}: one of a container's parts, not {sorted(value)}")
        others = [
            behaviour["generics"][1]
            for part in lineage
            for behaviour in part.get("behaviors", ())
            if behaviour["type"]["name"].startswith("AdditionalPropert")
        ]
        return self._properties(value, properties, generics, at, others[0] if others else None)

    def _properties(
        self, value: Any, properties: list[Node], generics: Mapping[str, Node], at: str, others: Node | None = None
    ) -> None:
        if not isinstance(value, dict):
            raise Unspecified(f"{at}: {value!r} is no object")
        known = {word: each for each in properties for word in (each["name"], *each.get("aliases", ()))}
        for key, each in value.items():
            if key in known:
                self._value(each, known[key]["type"], generics, f"{at}.{key}")
            elif others is not None:
                self._value(each, others, generics, f"{at}.{key}")
            else:
                raise Unspecified(f"{at}.{key}: not known")
        for each in properties:
            if each["required"] and not value.keys() & {each["name"], *each.get("aliases", ())}:
                raise Unspecified(f"{at}.{each['name']}: missing")


def _words(properties: Iterable[Node]) -> set[str]:
    return {word for each in properties for word in (each["name"], *each.get("aliases", ()))}


def _builtin(value: Any, name: str, at: str) -> None:
    fits = {
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "number": isinstance(value, (int, float)) and not isinstance(value, bool),
        "null": value is None,
    }.get(name, isinstance(value, int) and not isinstance(value, bool))
    if not fits:
        raise Unspecified(f"{at}: {value!r} is no {name}")
