"""Halves of characters (lone surrogates) hide nothing, wherever they stand, and an emoji cut in two stays one."""

from __future__ import annotations

import itertools
import json
import unicodedata
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chance import examples
from tests.guarded import CHAT, DONE, bodies, event, plan, request, whole
from tests.playbook import Played, play

RULES = """  - name: m
    id: PII-1
    stage: [midstream]
    entities: [EMAIL, CREDIT_CARD, AWS_ACCESS_KEY]
    phrases: [zebra crossing]
    actions: [{type: redact}]
"""
PLAN = plan(RULES)
SECRETS = ["john.doe@example.com", "4111111111111111", "AKIAIOSFODNN7EXAMPLQ", "zebra crossing"]
WAYS: dict[str, Callable[[str], dict[str, Any]]] = {
    "content": lambda text: {"content": text},
    "parts": lambda text: {"content": [{"type": "text", "text": text[:1]}, {"type": "text", "text": text[1:]}]},
    "refusal": lambda text: {"refusal": text},
    "reasoning": lambda text: {"reasoning_content": text},
    "details": lambda text: {"reasoning_details": [{"index": 0, "text": text}]},
    "unknown": lambda text: {"notes": text},
    "nested": lambda text: {"notes": [{"a": text}]},
}
HALVES = st.sampled_from(["\ud800", "\ude00", "\udbff", "\udfff", "\ufffd", "\udc00\ud83d"])


def left(out: Played) -> list[Any]:
    """Return what a caller's parser makes of what left."""
    if out.reply is not None:
        return [json.loads(out.reply.body)["choices"][0]["message"]]
    return [choice["delta"] for body in bodies(out) for choice in body.get("choices") or ()]


def joined(values: list[Any]) -> list[str]:
    """Return the texts that a client joins, each at one place of all events."""
    texts: defaultdict[tuple[str, ...], str] = defaultdict(str)

    def walk(value: Any, path: tuple[str, ...]) -> None:
        if isinstance(value, str):
            texts[path] += value
        elif isinstance(value, list):
            for inner in value:
                walk(inner, (*path, "*"))
        elif isinstance(value, dict):
            for name, inner in value.items():
                walk(inner, (*path, name))

    for value in values:
        walk(value, ())
    return list(texts.values())


def shown(text: str) -> str:
    """Return a text as clients show it that join halves and drop what is left of them."""
    whole_text = text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    return unicodedata.normalize("NFKC", whole_text.replace("\ufffd", ""))


def answered(way: str, pieces: list[str], *, streaming: bool) -> Played:
    said = WAYS[way]
    if not streaming:
        fields = {"content": "hi", **said("".join(pieces))}
        return play(CHAT, PLAN, request(stream=False), [whole(**fields)], streaming=False)
    events = [event((0, said(piece), None)) for piece in pieces]
    return play(CHAT, PLAN, request(), [*events, event((0, {}, "stop")), DONE])


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted({place % len(text) for place in places} - {0}), len(text)]
    return [text[low:high] for low, high in itertools.pairwise(edges)]


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(SECRETS), st.sampled_from(sorted(WAYS)), st.booleans(), st.data())
def test_g34_half_a_character_within_a_secret_hides_nothing_of_it(
    secret: str, way: str, streaming: bool, data: st.DataObject
) -> None:
    places = data.draw(st.lists(st.integers(1, len(secret) - 1), min_size=1, max_size=4, unique=True))
    parts = cut(secret, places)
    text = parts[0] + "".join(data.draw(HALVES) + part for part in parts[1:])
    pieces = cut(text, data.draw(st.lists(st.integers(1, 60), max_size=4)))
    out = answered(way, pieces, streaming=streaming)
    assert not any(secret in shown(said) for said in joined(left(out)))


@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from(sorted(WAYS)), st.booleans(), st.lists(st.integers(1, 40), max_size=8))
def test_g34_a_number_of_characters_cut_in_two_is_read_as_clients_join_it(
    way: str, streaming: bool, places: list[int]
) -> None:
    digits = "".join(chr(0x1D7CE + int(digit)) for digit in "4111111111111111")
    halves = digits.encode("utf-16-be").hex(" ", 2).split()
    pieces = cut("".join(chr(int(half, 16)) for half in halves), places)
    out = answered(way, [f"so {pieces[0]}", *pieces[1:]], streaming=streaming)
    assert not any("4111111111111111" in shown(said) for said in joined(left(out)))


@pytest.mark.parametrize("way", WAYS)
def test_g12_an_emoji_whose_halves_stand_in_two_events_leaves_as_it_came(way: str) -> None:
    pieces = ["calm \ud83d", "\ude00 and \ud83d", "\ude00", "\ud83d", "\ude00."]
    events = [*(event((0, WAYS[way](piece), None)) for piece in pieces), event((0, {}, "stop")), DONE]
    assert play(CHAT, PLAN, request(), events).joined == b"".join(events)


@pytest.mark.parametrize("way", sorted(WAYS.keys() - {"parts"}))
def test_g12_an_emoji_stays_whole_beside_an_edit_of_its_event(way: str) -> None:
    out = answered(way, ["to \ud83d", "\ude00 john.doe@example.com \ud83d", "\ude00 ok"], streaming=True)
    assert [shown(said) for said in joined(left(out)) if "ok" in said] == ["to \U0001f600 [EMAIL] \U0001f600 ok"]
