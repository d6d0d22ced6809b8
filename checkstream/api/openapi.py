"""The description of the API (OpenAPI 3.1), made of the table that requests are answered by. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from checkstream.api.operation import Operation
from checkstream.api.problem import ProblemBody
from checkstream.control.identity import DIGEST, NODE, SIGNATURE

_REFERENCE = "#/components/schemas/{name}"
_PROBLEMS: Mapping[str, str] = {
    "400": "Something in the request is not of the form that is asked for; `param` says where.",
    "401": "There is no key, or nobody has it.",
    "404": "There is no such thing.",
    "429": "Too much runs at once; ask again after `retry-after` seconds.",
    "503": "The answer was not ready in time, what it needs is not there, or the process is ending.",
}
_PROBLEMS_OF_BODIES: Mapping[str, str] = {
    "408": "The body did not arrive in time.",
    "413": "The body is larger than the limit.",
}
_KEYS: Mapping[str, Any] = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
}
_NODE: Mapping[str, Any] = {
    "type": "apiKey",
    "in": "header",
    "name": SIGNATURE,
    "description": "Ed25519, 128 hex digits, over 0x03, method, space, path, 0x00 and the SHA-256 of the body, which "
    f"`{DIGEST}` has in hex; `{NODE}` names the node.",
}


class About(NamedTuple):
    """What an API is."""

    title: str
    text: str


SCORING = About("checkstream scoring API", "Is an answer true to its evidence, and may a model be deployed?")


def description(operations: Sequence[Operation], version: str, *, keys: bool, about: About = SCORING) -> dict[str, Any]:
    """Return the description of `operations`.

    Args:
        operations: what there is.
        version: of the program.
        keys: callers need one.
        about: what it is about.
    """
    types = list(dict.fromkeys([ProblemBody, *(each for one in operations for each in (one.asks, *one.gives))]))
    written, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    schemas = dict(zip(types, written, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas, components)
    for operation in operations:
        if operation.method == "GET":  # its parameters are told one by one
            components.pop(operation.asks.__name__, None)
    told: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": about.title,
            "version": version,
            "description": about.text,
        },
        "paths": paths,
        "components": {"schemas": components},
    }
    schemes = dict(_KEYS) if keys else {}
    if keys:
        told["security"] = [{name: []} for name in _KEYS]
    if any(operation.asker == "node" for operation in operations):
        schemes["node"] = _NODE
    if schemes:
        told["components"]["securitySchemes"] = schemes
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(told))  # defaults as JSON has them
    return plain


def _operation(
    operation: Operation, schemas: Mapping[Any, dict[str, Any]], components: Mapping[str, Any]
) -> dict[str, Any]:
    answers = [schemas[each] for each in operation.gives]
    told: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": _name(operation),
        "responses": {
            "200": {"description": "Done.", "content": _json(answers[0] if len(answers) == 1 else {"anyOf": answers})}
        },
    }
    problems = {**_PROBLEMS, **operation.also}
    if operation.asker == "node":
        told["security"] = [{"node": []}]
    if operation.method == "POST":
        content = _packed if operation.packed else _json
        told["requestBody"] = {"required": True, "content": content(schemas[operation.asks])}
        problems |= _PROBLEMS_OF_BODIES
    else:
        told["parameters"] = _parameters(operation, components[operation.asks.__name__])
    for status, why in sorted(problems.items()):
        told["responses"][status] = {"description": why, "content": _json(schemas[ProblemBody])}
    return told


def _packed(schema: Any) -> dict[str, Any]:
    inside = {"type": "string", "contentMediaType": "application/json", "contentSchema": schema}
    return {"application/zstd": {"schema": inside}}


def _parameters(operation: Operation, component: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path" if name == operation.parameter else "query",
            "required": name in component.get("required", ()),
            "schema": schema,
        }
        for name, schema in component["properties"].items()
    ]


def _name(operation: Operation) -> str:
    words = operation.path.replace("{", "").replace("}", "").strip("/").replace("/", "_")
    return f"{operation.method.lower()}_{words}"


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
