from __future__ import annotations

from collections.abc import Callable

import pytest

from checkstream.core.cel.types import BOOL, DOUBLE, DYN, INT, STRING, map_of
from checkstream.core.policy.program import Signal, Variable
from checkstream.core.policy.signals import entity_signal, phrase_signal
from checkstream.core.policy.variables import (
    REQUEST_FIELDS,
    STREAM_FIELDS,
    UNKNOWN,
    count_name,
    found_name,
    peak_name,
    score_name,
    scored_name,
    signal_of,
    type_of,
    variable_of,
)

SIGNALS = [
    Signal(kind="classifier", name="model.label"),
    entity_signal("EMAIL"),
    phrase_signal("zero risk"),
    Signal(kind="pattern", name="a", regex='"}:@\\u00e9é', max_chars=3),
    Signal(kind="pattern", name="a", regex="x", max_chars=3),
]
NAMES = {"score": score_name, "scored": scored_name, "peak": peak_name, "count": count_name, "found": found_name}


@pytest.mark.parametrize(("kind", "name"), NAMES.items())
def test_the_names_of_signals_tell_them_apart_and_lead_back(kind: str, name: Callable[[Signal], str]) -> None:
    names = [name(signal) for signal in SIGNALS]
    assert len(set(names)) == len(SIGNALS)
    assert [signal_of(made) for made in names] == SIGNALS
    variables = [variable_of(made, SIGNALS.index) for made in names]
    assert [(variable.kind, variable.signal) for variable in variables] == [(kind, n) for n in range(len(SIGNALS))]


def test_the_names_of_kinds_tell_them_apart() -> None:
    assert len({name(SIGNALS[0]) for name in NAMES.values()}) == len(NAMES)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("context", Variable(kind="context")),
        *((f"request.{field}", Variable(kind="request", name=field)) for field in REQUEST_FIELDS),
        *((f"@given:{field}", Variable(kind="given", name=field)) for field in REQUEST_FIELDS),
        *((f"stream.{field}", Variable(kind="stream", name=field)) for field in STREAM_FIELDS),
    ],
)
def test_other_names_are_variables_of_no_signal(name: str, variable: Variable) -> None:
    assert signal_of(name) is None
    assert variable_of(name, SIGNALS.index) == variable


def test_variables_have_types() -> None:
    kinds = {"score": DOUBLE, "scored": BOOL, "peak": DOUBLE, "count": INT, "found": BOOL}
    assert {kind: type_of(name(SIGNALS[0])) for kind, name in NAMES.items()} == kinds
    assert type_of("context") == map_of(STRING, DYN)
    assert type_of("request.metadata") == map_of(STRING, STRING)
    assert type_of("@given:temperature") == BOOL
    assert type_of("stream.tokens") == INT
    assert type_of(UNKNOWN) == DYN
