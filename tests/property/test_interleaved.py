"""Texts of one answer that come by turns: each is read as what clients join it to, and nothing condemned leaves.

Clients join the events of one block, item, choice or call, whatever stands between them; some read all texts of a
choice in the order in which they come.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.wire.surfaces import SURFACES
from tests import messages, responses
from tests.chance import examples
from tests.generated import events
from tests.guarded import DONE, event, plan
from tests.playbook import Played, play

RULES = plan(
    "  - {name: m, id: PII-1, stage: [midstream], entities: [EMAIL, CREDIT_CARD, IBAN], actions: [{type: redact}]}\n"
)
SECRETS = ["4111111111111111", "4111 1111 1111 1111", "john.doe@example.com", "DE89370400440532013000"]
CALM = ["It ", "is ", "so, ", "and ", "well. ", "I ", "look ", "it ", "up. "]
SPOKEN = {"text", "thinking"}

Texts = list[tuple[str, list[str]]]
"""Kind of each text, and its pieces."""


@st.composite
def spoken(draw: st.DrawFn, kinds: list[str]) -> tuple[str, Texts]:
    """Return a secret and texts, one of which has it, cut over its pieces."""
    secret = draw(st.sampled_from(SECRETS))
    texts: Texts = []
    for kind in [draw(st.sampled_from(kinds)) for _ in range(draw(st.integers(2, 4)))]:
        texts.append((kind, draw(st.lists(st.sampled_from(CALM), min_size=1, max_size=4))))
    cuts = sorted(draw(st.sets(st.integers(1, len(secret) - 1), min_size=1, max_size=3)))
    pieces = [secret[low:high] for low, high in zip([0, *cuts], [*cuts, len(secret)], strict=True)]
    at = draw(st.integers(0, len(texts) - 1))
    kind, calm = texts[at]
    texts[at] = kind, [*calm, "to ", *pieces, " and ", "on."]
    return secret, texts


def by_turns(draw: st.DrawFn, streams: list[list[Any]]) -> list[Any]:
    """Return several sequences as one, each in its order; each begins in the order of the list."""
    left = [list(each) for each in streams]
    out = [each.pop(0) for each in left] if draw(st.booleans()) else []
    chance = random.Random(draw(st.integers(0, 10**6)))
    begun = len(left) if out else 0
    while any(left):
        some = [i for i in range(begun) if left[i]]
        if begun < len(left) and (not some or chance.random() < 0.3):
            some, begun = [begun], begun + 1
        out.append(left[chance.choice(some)].pop(0))
    return out


def asked(surface: str, choices: int = 1) -> bytes:
    said = {"input": "hi"} if surface == "openai.responses" else {"messages": [{"role": "user", "content": "hi"}]}
    more = {"n": choices} if choices > 1 else {}
    return json.dumps({"model": "m", "max_tokens": 64, "stream": True, **said, **more}).encode()


def through(surface: str, pieces: list[bytes], choices: int = 1) -> Played:
    out = play(SURFACES[surface], RULES, asked(surface, choices), pieces)
    assert out.record is not None
    return out


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def assert_unsaid(secret: str, texts: list[str]) -> None:
    for text in texts:
        assert squeezed(secret) not in squeezed(text), text


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_g34_blocks_of_a_message_that_come_by_turns_are_read_one_by_one(data: st.DataObject) -> None:
    secret, texts = data.draw(spoken(["text", "thinking", "call"]))
    streams = []
    for i, (kind, pieces) in enumerate(texts):
        if kind == "call":
            given_ = json.dumps({"q": "".join(pieces)})
            cuts = sorted({0, len(given_), *(given_.index(piece) for piece in pieces)})
            cut = [given_[low:high] for low, high in itertools.pairwise(cuts)]
            streams.append(messages.call(i, "look", *cut, id=f"toolu_{i}"))
        else:
            streams.append(messages.text(i, *pieces) if kind == "text" else messages.thought(i, *pieces))
    order = data.draw(st.composite(by_turns)(streams))
    ends_block = data.draw(st.booleans())
    if not ends_block:  # some servers leave the ends of blocks out
        order = [each for each in order if b"content_block_stop" not in each]
    out = through("anthropic.messages", [messages.head(), *order, messages.end()])
    assert out.record is not None
    if b"goes on after another one has begun" in out.joined:
        assert any(kind != "call" for kind, _ in texts), "calls wait for each other"
        joined = b"".join(piece for piece in out.joined.split(b"\n") if b"_delta" in piece).decode()
        assert_unsaid(secret, ["".join(re.findall(r'"(?:text|thinking)": ?"([^"]*)"', joined))])
        return
    message = messages.read(out.joined)
    blocks = message["content"]
    said = [block.get("text") or block.get("thinking") or json.dumps(block.get("input")) for block in blocks]
    assert_unsaid(secret, [*said, "".join(said)])
    assert {verdict.rule_id for verdict in out.record.verdicts} == {"PII-1"}
    calm = ["".join(pieces) for kind, pieces in texts if kind != "call" and secret not in "".join(pieces)]
    assert set(calm) <= set(said), "nothing is lost"
    called = {squeezed(json.dumps({"q": "".join(pieces)})) for kind, pieces in texts if kind == "call"}
    told = {squeezed(json.dumps(block["input"])) for block in blocks if block["type"] == "tool_use"}
    assert {each for each in called if squeezed(secret) not in each} <= told, "no call is lost"


def late_ends(*blocks: list[bytes]) -> list[bytes]:
    """Return blocks, one after the other, all of which are said to be over at the end, as llama.cpp does."""
    ends = [each for block in blocks for each in block if b"_stop" in each or b"signature_delta" in each]
    return [*(each for block in blocks for each in block if each not in ends), *ends]


def test_g34_texts_of_a_message_that_come_by_turns_wait_for_each_other() -> None:
    """Each leaves whole, one behind the other, and a value that is cut over the turns is found."""
    pieces = ["Card ", "4111 ", "1111 ", "1111 ", "1111 ", "it is."]
    one, two = messages.text(0, *pieces), messages.text(1, *["so "] * len(pieces))
    order = [each for pair in itertools.zip_longest(one, two) for each in pair if each is not None]
    third = messages.text(2, "Well.")
    out = through("anthropic.messages", [messages.head(), *order, *third, messages.end()])
    message = messages.read(out.joined)
    assert [block["text"] for block in message["content"]] == [
        "Card [CREDIT_CARD] it is.",
        "so " * len(pieces),
        "Well.",
    ]
    assert out.record is not None
    assert out.record.outcome == "complete"


def test_a_text_behind_one_that_is_over_waits_for_nothing() -> None:
    order = [messages.head(), *messages.text(0, "One."), *messages.text(1, *["two "] * 50)[:-1]]
    assert through("anthropic.messages", order).joined.count(b'"two "') > 40


def test_g10_texts_that_all_stay_open_are_read_twice_at_most_and_told_at_the_end() -> None:
    count = 60
    begun = [messages.begun(at, type="text", text=f"{at} ") for at in range(count)]
    ends = [messages.over(at) for at in reversed(range(count))]
    message = messages.read(through("anthropic.messages", [messages.head(), *begun, *ends, messages.end()]).joined)
    assert messages.said(message) == "".join(f"{at} " for at in range(count))


@pytest.mark.parametrize("kind", ["text", "call"])
def test_g22_what_waits_for_another_block_counts_as_held(kind: str) -> None:
    first = messages.text(0, "One.") if kind == "text" else messages.call(0, "look", '{"q": 1}')
    rest = [messages.begun(1, type="text", text=""), *(messages.delta(1, "text_delta", text="x" * 1000),) * 40]
    small = plan(
        "  - {name: m, id: PII-1, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}\n",
        held_bytes=20_000,
    )
    out = play(
        SURFACES["anthropic.messages"], small, asked("anthropic.messages"), [messages.head(), *first[:-1], *rest]
    )
    assert out.record is not None
    assert out.record.upstream_failure == "held_too_large"
    assert b"bytes of the answer had to be held" in out.joined


def test_g34_a_text_waits_for_no_block_that_is_said_to_be_over_at_the_end() -> None:
    thought, said = messages.thought(0, "Well, ", "so. "), messages.text(1, *["It is so. "] * 3000)
    order = [messages.head(), *late_ends(thought, said)]
    sent = through("anthropic.messages", order[:1503]).joined
    assert sent.count(b"It is so") > 1400, "it leaves while it comes"
    call = messages.call(2, "look", '{"q": "', *["moon "] * 3000, '"}')
    out = through("anthropic.messages", [messages.head(), *late_ends(thought, said, call), messages.end()])
    message = messages.read(out.joined)
    assert [block["type"] for block in message["content"]] == ["thinking", "text", "tool_use"]
    assert message["content"][1]["text"] == "It is so. " * 3000
    assert message["content"][2]["input"] == {"q": "moon " * 3000}


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_g34_choices_calls_and_thoughts_of_a_chat_that_come_by_turns_are_read_one_by_one(data: st.DataObject) -> None:
    secret, texts = data.draw(spoken(["text", "thinking", "call"]))
    choices = data.draw(st.integers(1, 2))
    streams, taken = [], set[tuple[int, str]]()
    for i, (kind, pieces) in enumerate(texts):
        number = data.draw(st.integers(0, choices - 1))
        if kind in SPOKEN and (number, kind) in taken:
            continue  # it would be the same text
        taken.add((number, kind))
        name = {"text": "content", "thinking": "reasoning_content"}.get(kind, "")
        deltas: list[dict[str, Any]] = [{name: piece} for piece in pieces]
        if kind == "call":
            given_ = ['{"q": "', *pieces, '"}']
            head = {"index": i, "id": f"c{i}", "type": "function", "function": {"name": "look", "arguments": ""}}
            deltas = [{"tool_calls": [head]}]
            deltas += [{"tool_calls": [{"index": i, "function": {"arguments": piece}}]} for piece in given_]
        streams.append([event((number, delta, None)) for delta in deltas])
    order = data.draw(st.composite(by_turns)(streams))
    ends = [event((number, {}, "stop")) for number in range(choices)]
    out = through("openai.chat", [*order, *ends, DONE], choices)
    joined: dict[tuple[Any, ...], str] = {}
    for body in events("openai.chat", out.joined):
        for choice in body["choices"]:
            for name in ("content", "reasoning_content"):
                text = choice["delta"].get(name) or ""
                for key in ((choice["index"], name), (choice["index"], "arrival"), ("arrival",)):
                    joined[key] = joined.get(key, "") + text
            for call in choice["delta"].get("tool_calls") or ():
                told: tuple[Any, ...] = (choice["index"], "call", call["index"])
                joined[told] = joined.get(told, "") + (call["function"].get("arguments") or "")
    assert_unsaid(secret, list(joined.values()))


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_g34_items_of_a_response_that_come_by_turns_are_read_one_by_one(data: st.DataObject) -> None:
    secret, texts = data.draw(spoken(["text", "thinking", "call"]))
    made, items = responses.Stream(), []
    streams = []
    for i, (kind, pieces) in enumerate(texts):
        text = "".join(pieces)
        if kind == "call":
            item = responses.call("look", json.dumps({"q": text}), number=i)
        else:
            item = responses.message(text, id=f"msg_{i}") if kind == "text" else responses.reasoning(text, id=f"rs_{i}")
        before = len(made.events)
        made.item(i, item, pieces=['{"q": "', *pieces, '"}'] if kind == "call" else pieces)
        streams.append(made.events[before:])
        items.append(item)
    del made.events[2:]
    made.events += data.draw(st.composite(by_turns)(streams))
    made.end(*items)
    numbered = [
        re.sub(rb'"sequence_number": \d+', b'"sequence_number": %d' % at, each) for at, each in enumerate(made.events)
    ]
    out = through("openai.responses", numbered)
    joined: dict[Any, str] = {}
    for body in responses.events(out.joined):
        if body["type"].endswith(".delta") and isinstance(body.get("delta"), str):
            keys = [body["output_index"], *([] if "arguments" in body["type"] else ["arrival"])]
            for key in keys:
                joined[key] = joined.get(key, "") + body["delta"]
    assert_unsaid(secret, list(joined.values()))
    assert squeezed(secret) not in squeezed(re.sub(r'"delta": ?"[^"]*"', "", out.joined.decode()))


@pytest.mark.parametrize("surface", ["ollama.chat", "ollama.generate"])
@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_g34_thoughts_and_speech_of_ollama_that_come_by_turns_are_read_one_by_one(
    surface: str, data: st.DataObject
) -> None:
    secret, texts = data.draw(spoken(["text", "thinking"]))
    name = {"text": "response" if surface.endswith("generate") else "content", "thinking": "thinking"}
    streams = [[{name[kind]: piece} for piece in pieces] for kind, pieces in dict(texts).items()]
    order = data.draw(st.composite(by_turns)(streams))
    head = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
    if not surface.endswith("generate"):
        order = [{"message": {"role": "assistant", **each}} for each in order]
    lines = [head | each for each in order]
    lines = [line | {"done": False} for line in lines] + [head | {"done": True, "done_reason": "stop"}]
    asks = {"prompt": "hi"} if surface.endswith("generate") else {"messages": [{"role": "user", "content": "hi"}]}
    pieces = [json.dumps(line).encode() + b"\n" for line in lines]
    out = play(SURFACES[surface], RULES, json.dumps({"model": "m", "stream": True, **asks}).encode(), pieces)
    joined = dict.fromkeys(["arrival", *name.values()], "")
    for body in events(surface, out.joined):
        for member, text in (body.get("message") or body).items():
            if member in name.values():
                joined[member] += text
                joined["arrival"] += text
    assert_unsaid(secret, list(joined.values()))


@settings(max_examples=examples(80), deadline=None)
@given(st.sampled_from(SECRETS), st.data(), st.sampled_from(["openai.responses", "anthropic.messages"]), st.booleans())
def test_g34_a_value_cut_over_members_of_items_never_leaves_whole(
    secret: str, data: st.DataObject, surface: str, stream: bool
) -> None:
    at = data.draw(st.integers(3, len(secret) - 3))
    parts = secret[:at], secret[at:]
    if surface == "openai.responses":
        items = [responses.message("Hi", id=f"msg_{i}") | {"x_field": part} for i, part in enumerate(parts)]
        answer = responses.answer(*items) if stream else responses.whole(*items)
    elif stream:
        blocks = [
            [messages.begun(i, type="text", text="Hi", x_field=part), messages.over(i)] for i, part in enumerate(parts)
        ]
        answer = messages.answer(*blocks)
    else:
        answer = messages.whole(*({"type": "text", "text": "Hi", "x_field": part} for part in parts))
    asks = json.loads(asked(surface)) | {"stream": stream}
    out = play(SURFACES[surface], RULES, json.dumps(asks).encode(), [answer], streaming=stream)
    left = out.joined if out.reply is None else out.reply.body
    found = [json.loads(text) for text in re.findall(r'"x_field": ?("[^"]*")', left.decode())]
    assert found
    assert_unsaid(secret, ["".join(dict.fromkeys(found))])
