"""A stored program is hostile input: it is refused, or it decides within bounds and all of it can be carried out."""

from __future__ import annotations

import contextlib
from copy import deepcopy
from typing import Any

import msgspec
from hypothesis import event, given
from hypothesis import strategies as st

from checkstream.core.cel.code import Op
from checkstream.core.policy.stored import load, stored
from tests.stored_programs import SPOILED, exercise, program, refused

DATA = stored(program())
PLAIN = msgspec.json.decode(DATA)


def paths(value: Any, here: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return where something stands in plain data."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(path for key, item in inner for path in paths(item, (*here, key)))]


PATHS = [path for path in paths(PLAIN) if path and path[0] != "functions"]
BY_PART = {part: [path for path in PATHS if path[0] == part] for part in ("signals", "rules", "code", "entries")}
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 40),
    st.sampled_from((2**31, 2**63, -(2**63), 0.0, 0.5, 1.0, 1.5, 1e308)),
    st.sampled_from(
        ("", "x", "content", "user", "ingress", "egress", "{", "{model}", "EMAIL", "toy.alpha", "(", "a" * 99)
    ),
)


JUMPS = {Op.SKIP_FALSE, Op.SKIP_TRUE, Op.GUARD, Op.BRANCH, Op.JUMP, Op.BEGIN, Op.NEXT, Op.KEEP, Op.STEP}


def put(data: Any, path: tuple[str | int, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = value


def at(data: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """A stored program in which some parts are changed, dropped, doubled or taken from elsewhere."""
    data = msgspec.json.decode(DATA)
    for _ in range(draw(st.integers(1, 3))):
        places = BY_PART[draw(st.sampled_from(sorted(BY_PART)))]
        path = draw(st.sampled_from(places))
        with contextlib.suppress(
            KeyError, IndexError, TypeError, AttributeError
        ):  # what an earlier change has taken away
            match draw(st.sampled_from(("put", "put", "move", "drop", "double"))):
                case "put":
                    put(data, path, draw(SCALARS))
                case "move":
                    put(data, path, deepcopy(at(data, draw(st.sampled_from(places)))))
                case "drop":
                    del at(data, path[:-1])[path[-1]]
                case _:
                    at(data, path[:-1]).insert(draw(st.integers(0, 5)), deepcopy(at(data, path)))
    return msgspec.json.encode(data)


def check(data: bytes) -> None:
    event("refused" if refused(data) else "runs")


def test_the_program_itself_can_be_exercised() -> None:
    exercise(load(DATA))


@given(spoiled())
def test_a_spoiled_program_is_refused_or_runs(data: bytes) -> None:
    check(data)


@given(st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_program_with_other_bytes_is_refused_or_runs(changes: list[tuple[int, int]]) -> None:
    data = bytearray(DATA)
    for place, byte in changes:
        data[place] = byte
    check(bytes(data))


@given(st.sampled_from(sorted(SPOILED)), st.sampled_from(sorted(SPOILED)))
def test_two_faults_are_refused_like_one(one: str, other: str) -> None:
    data = msgspec.json.decode(DATA)
    SPOILED[one](data)
    with contextlib.suppress(KeyError, IndexError, TypeError, AttributeError, ValueError, StopIteration):
        SPOILED[other](data)
    check(msgspec.json.encode(data))


@given(
    st.lists(
        st.tuples(
            st.sampled_from((*map(int, Op), *[int(Op.LOAD), int(Op.CONST), int(Op.AND)] * 6)), st.integers(0, 40)
        ),
        min_size=1,
        max_size=12,
    )
)
def test_any_code_is_refused_or_runs(code: list[tuple[int, int]]) -> None:
    data = msgspec.json.decode(DATA)
    start = len(data["code"])
    number = next(place for place, rule in enumerate(data["rules"]) if rule["id"] == "CODE")
    for entry in data["entries"]:
        if entry["rule"] == number:
            entry["start"] = start
    # What would lead out of the new code leads into it.
    data["code"] += [[op, start + argument % 12 if op in range(4, 30) else argument] for op, argument in code] + [
        [9, 0]
    ]
    check(msgspec.json.encode(data))
