"""Asks all operations that an API describes, with what its description allows and with what it doesn't."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from checkstream.control.telemetry.packing import packed

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
_BOUNDS = (
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
)

Headers = Callable[[str, str, bytes], Mapping[str, str]]
"""Returns by method, path and body what else is sent: a key or a signature."""


@schemathesis.serializer("application/zstd")
def _packed(_context: object, value: Any) -> bytes:
    return packed(value.encode("utf-8", "surrogatepass") if isinstance(value, str) else repr(value).encode())


def _without_tuples(schema: Any) -> Any:
    """Return a description whose lists of a fixed length have items of any of their kinds.

    What makes examples writes `prefixItems` as older drafts of JSON Schema have it, into the very description by which
    it then reads answers.
    """
    if isinstance(schema, list):
        return [_without_tuples(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _without_tuples(below) for name, below in schema.items()}
    if "prefixItems" in found:
        found["items"] = {"anyOf": found.pop("prefixItems")}
    return found


class Asking:
    """Asks all operations of an API, and keeps what is not as it is described."""

    def __init__(self, described: Mapping[str, Any], url: str, examples: int, known: Mapping[str, Any]) -> None:
        """Ask at `url`; `examples` of each kind go to each operation. `known` are names of what there is, by field."""
        self._known = known
        self._schema = schemathesis.openapi.from_dict(_without_tuples(described))
        self._url = url
        self._bounds = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=(Phase.generate,),
            suppress_health_check=_BOUNDS,
        )
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.faults: dict[str, str] = {}

    def ask_all(self, who: Mapping[str, Headers], scheme: str = "bearer") -> None:
        """Ask all that such askers are for, as each of them in turn. Blocks."""
        with requests.Session() as session:
            for found in self._schema.get_all_operations():
                operation = found.ok()  # type: ignore[union-attr]  # else it raises, and the test fails
                schemes = operation.definition.raw.get("security", self._schema.raw_schema.get("security", ()))
                if not any(scheme in each for each in schemes):
                    continue
                for mode in GenerationMode:
                    for person, headers in who.items():
                        self._ask(session, operation, mode, person, headers)

    def _ask(
        self,
        session: requests.Session,
        operation: APIOperation[Any, Any, Any, Any],
        mode: GenerationMode,
        person: str,
        headers: Headers,
    ) -> None:
        name = f"{operation.method.upper()} {operation.path}"
        known = self._known if mode is GenerationMode.POSITIVE else {}

        def one(case: Case[Any]) -> None:
            for given_ in (case.path_parameters, case.query, case.body):
                if isinstance(given_, dict):
                    given_.update({field: value for field, value in known.items() if field in given_})
            self.statuses[name, _asked(session, case, self._url, headers)] += 1

        asking = given(case=operation.as_strategy(generation_mode=mode))(one)
        try:
            seed(f"{name} {mode} {person}")(self._bounds(asking))()
        except Unsatisfiable:  # there is nothing that it doesn't allow
            return
        except FailureGroup as error:
            self.faults[f"{name} {mode} {person}"] = "\n".join(map(str, error.exceptions))


def _asked(session: requests.Session, case: Case[Any], url: str, headers: Headers) -> int:
    kwargs = case.as_transport_kwargs(base_url=url)
    prepared = session.prepare_request(
        requests.Request(**{name: value for name, value in kwargs.items() if name not in {"timeout", "verify"}})
    )
    body = prepared.body.encode() if isinstance(prepared.body, str) else prepared.body or b""
    assert isinstance(body, bytes)
    path = (prepared.url or "").removeprefix(url).partition("?")[0]
    prepared.headers.update(headers(prepared.method or "", path, body))
    response = session.send(prepared, timeout=30, allow_redirects=False)
    case.validate_response(response, checks=CHECKS)
    return response.status_code
