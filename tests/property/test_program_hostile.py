"""A stored program is hostile input: it is refused, or it decides within bounds and all of it can be carried out."""

from __future__ import annotations

import contextlib
import json
from copy import deepcopy
from typing import Any

import msgspec
from hypothesis import event, given
from hypothesis import strategies as st

from checkstream.core.cel.code import Op
from checkstream.core.cel.values import Value, from_json
from checkstream.core.commands import Score
from checkstream.core.events import AnyEvent, Scored
from checkstream.core.guard import Plan
from checkstream.core.policy.listing import disassemble
from checkstream.core.policy.program import Program
from checkstream.core.policy.stored import load, stored
from checkstream.core.policy.vm import Machine, exchange_facts
from checkstream.core.terms import Facts, Stage, StreamFacts
from checkstream.core.wire.openai_chat import OpenAIChat
from checkstream.errors import ProgramInvalid
from tests.playbook import play
from tests.stored_programs import SPOILED, program

DATA = stored(program())
PLAIN = msgspec.json.decode(DATA)
CHAT = OpenAIChat()
CONTEXT = from_json({"a": {"b": 3}, "name": "Ann", "at": "2026-11-22T00:00:00Z"})
REQUEST: dict[str, Value] = {"model": "m", "stream": True, "tools": ("search", "sss")}
TEXT = "Write to ann@example.com about code-123, zero risk and the press office: guaranteed."


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


def scored(score: Score) -> AnyEvent:
    return Scored(score.ticket, {"toy.alpha": 0.9, "toy.beta": 0.1, "lexicon.toxicity": 0.9})


def exercise(made: Program) -> None:
    """Decide everything once, list it, and run exchanges under it."""
    exchange, _ = exchange_facts(made, CONTEXT, REQUEST, who=("c", "u"), fail_mode="closed")
    every = range(len(made.signals))
    for stage, channel in made.scopes:
        empty = Facts(stage, channel, exchange)
        full = Facts(
            stage,
            channel,
            exchange,
            counts=dict.fromkeys(every, 3),
            scores=dict.fromkeys(every, 0.9),
            peaks=dict.fromkeys(every, 0.9),
            stream=StreamFacts(tokens=12, risk=0.5, trend=0.1, language="en"),
        )
        for facts in (empty, full):
            machine = Machine(made, facts)
            for entry in made.entries:
                rule = made.rules[entry.rule]
                if stage in rule.stages and (entry.signal >= 0 or stage is not Stage.MIDSTREAM):
                    assert machine.decide(entry) in {True, False, None}
            for rule in made.rules:
                for start in rule.condition_starts:
                    machine.value(start)
    assert disassemble(made)
    message = {"role": "user", "content": TEXT}
    for streaming in (True, False):
        asked = {"model": "m", "stream": streaming, "messages": [message]}
        words = TEXT.split(" ")
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        rows = [{**head, "choices": [{"index": 0, "delta": {"content": f"{word} "}}]} for word in words]
        rows.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        pieces = [b"data: " + json.dumps(row).encode() + b"\n\n" for row in rows]
        whole = {"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}
        body = {**head, "object": "chat.completion", "choices": [whole]}
        out = play(
            CHAT,
            Plan(program=made),
            json.dumps(asked).encode(),
            [*pieces, b"data: [DONE]\n\n"] if streaming else [json.dumps(body).encode()],
            streaming=streaming,
            scorer=scored,
        )
        assert out.record is not None


def check(data: bytes) -> None:
    try:
        made = load(data)
    except ProgramInvalid as error:
        event("refused")
        str(error).encode()  # can be printed
        return
    event("runs")
    assert stored(made) == data
    exercise(made)


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
