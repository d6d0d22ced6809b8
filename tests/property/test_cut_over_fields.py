"""A secret that is cut over the fields of an answer, or over names of members: who reads them in order gets none."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.guarded import CHAT, DONE, bodies, ends, plan, request
from tests.playbook import play

RULES = """  - name: m
    id: PII-1
    stage: [midstream]
    entities: [EMAIL, CREDIT_CARD, US_SSN, AWS_ACCESS_KEY]
    actions: [{type: redact}]
"""
PLAN = plan(RULES)
SECRETS = ("john.doe@example.com", "4111 1111 1111 1111")
STATUSES = (200, 206, 400, 401, 403, 404, 422, 429, 500, 502, 503, 529)
PLACES = ("error", "top", "choice", "said")


def split(secret: str, at: set[int]) -> list[str]:
    edges = [0, *sorted(place for place in at if place < len(secret)), len(secret)]
    return [secret[low:high] for low, high in itertools.pairwise(edges)]


def nested(parts: list[Any], how: str) -> Any:
    """Return JSON in which some values stand in order, or some names."""
    match how:
        case "members":
            return {f"f{chr(97 + at)}": part for at, part in enumerate(parts)}
        case "list":
            return [parts[0], *({"of": part} for part in parts[1:])]
        case "deep":
            value: Any = parts[-1]
            for at, part in reversed(list(enumerate(parts[:-1]))):
                value = {f"f{at}": part, "more": value}
            return value
        case "names":
            return {str(part): at for at, part in enumerate(parts)}
        case _:
            value = 1
            for part in reversed(parts):
                value = {str(part): value}
            return value


def values(body: Any) -> Iterator[str]:
    if isinstance(body, dict):
        for value in body.values():
            yield from values(value)
    elif isinstance(body, list):
        for value in body:
            yield from values(value)
    elif isinstance(body, str | int):
        yield str(body)


def names(body: Any) -> Iterator[str]:
    if isinstance(body, dict):
        for name, value in body.items():
            yield name
            yield from names(value)
    elif isinstance(body, list):
        for value in body:
            yield from names(value)


def answered(place: str, value: Any, *, streaming: bool, status: int = 200) -> Any:
    """Return what a caller gets of an answer that says something at a place."""
    said: dict[str, Any] = {"content": "fine, "}
    choice: dict[str, Any] = {"index": 0, "delta" if streaming else "message": said, "finish_reason": None}
    choice["finish_reason"] = None if streaming else "stop"
    body: dict[str, Any] = {"id": "c1", "object": "chat.completion", "created": 7, "model": "m", "choices": [choice]}
    if place == "error":
        body = {"error": value if isinstance(value, dict) else {"message": value}}
    else:
        {"top": body, "choice": choice, "said": said}[place]["record"] = value
    raw = json.dumps(body).encode()
    pieces = [b"data: " + raw + b"\n\n", ends(), DONE] if streaming else [raw]
    out = play(CHAT, PLAN, request(stream=streaming), pieces, streaming=streaming, status=status)
    return bodies(out.joined) if out.reply is None else json.loads(out.reply.body), out


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(SECRETS),
    st.sampled_from([{9}, {10}]),
    st.sampled_from(["members", "list", "deep", "names", "names in names"]),
    st.tuples(st.sampled_from(PLACES), st.booleans(), st.sampled_from(STATUSES)),
)
def test_g34_a_secret_cut_over_fields_or_names_never_leaves_whole(
    secret: str, at: set[int], how: str, where: tuple[str, bool, int]
) -> None:
    place, streaming, status = where
    parts = split(secret, at)
    if len(set(parts)) < len(parts) and "names" in how:
        parts = [secret[:3], secret[3:]]
    if how.startswith("names") and place == "error":
        place = "top"
    got, _ = answered(place, nested(parts, how), streaming=streaming, status=200 if streaming else status)
    for read in (values, names):
        assert secret not in "".join(read(got))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["4111111111111111", "4012888888881881", "5555555555554444"]),
    st.sampled_from([(4, 8, 12), (8,), (6,)]),
    st.sampled_from(["abcde", ["part_1", "part_2", "part_3", "part_4", "part_5"], "01234"]),
    st.tuples(st.sampled_from(PLACES[1:]), st.booleans()),
)
def test_g34_a_card_cut_over_numbers_of_lettered_members_never_leaves_whole(
    card: str, at: tuple[int, ...], named: str | list[str], where: tuple[str, bool]
) -> None:
    parts = split(card, set(at))
    if any(part[0] == "0" or int(part) < 256 for part in parts):
        parts = [card[:8], card[8:]]
    if parts[-1][0] == "0":
        return
    value = {name: int(part) for name, part in zip(named, parts, strict=False)}
    got, _ = answered(where[0], value, streaming=where[1])
    assert card not in "".join(values(got))


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(
    "value",
    [
        {"prompt_tokens": 4111, "completion_tokens": 1111, "total_tokens": 1111, "cached": 1111},
        {"input": 41111111, "output": 11111111},
        {"x1": 4111, "y1": 1111, "x2": 1111, "y2": 1111},
        {"created": 1700000000, "finished": 1700000005},
        {"a": 4111, "b": 1111, "c": 1111, "d": 1111, "e": 4111},
        {"twitter": "@example.com", "user": "john"},
        {"first_id": "chatcmpl-41111111", "second_id": "call_11111111"},
        {"a": "see page 4111", "b": "1111 words"},
    ],
)
def test_g05_fields_that_only_stand_beside_each_other_leave_as_they_came(value: Any, streaming: bool) -> None:
    for place in PLACES[1:]:
        got, _ = answered(place, value, streaming=streaming)
        assert json.dumps(value) in json.dumps(got), place
