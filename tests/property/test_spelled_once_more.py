"""What spells a text once more, and parts that are read apart and together: neither says what a rule takes out."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.wire.surfaces import SURFACES
from tests.chance import examples
from tests.guarded import plan
from tests.playbook import Played, play

PLAN = plan("""  - name: m
    id: PII-1
    stage: [midstream]
    entities: [EMAIL, US_SSN]
    phrases: [zebra]
    actions: [{type: redact}]
""")
SECRETS = ["john.doe@example.com", "123-45-6789", "zebra"]
CHAT = SURFACES["openai.chat"]
HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def ask(*, stream: bool) -> bytes:
    return json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}]}).encode()


def event(delta: dict[str, Any], **choice: Any) -> bytes:
    body = {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": None, **choice}]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def pieces(text: str, edges: list[int]) -> list[str]:
    marks = sorted({0, len(text), *(edge % (len(text) + 1) for edge in edges)})
    return [text[low:high] for low, high in itertools.pairwise(marks)]


def entry(token: str) -> dict[str, Any]:
    top = [{"token": token, "logprob": 0.0, "bytes": list(token.encode())}]
    return {"token": token, "logprob": 0.0, "bytes": list(token.encode()), "top_logprobs": top}


def choices(out: Played) -> list[dict[str, Any]]:
    lines = out.joined.split(b"\n") if out.reply is None else [b"data: " + out.reply.body]
    bodies = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
    return [choice for body in bodies for choice in body.get("choices", ())]


def spelled(out: Played) -> tuple[str, str, str]:
    """Return what tokens, their bytes and the alternatives to them spell, and whether there are ids."""
    entries = [each for choice in choices(out) for each in ((choice.get("logprobs") or {}).get("content") or ())]
    tokens = "".join(each["token"] for each in entries)
    told = b"".join(bytes(each["bytes"]) for each in entries).decode(errors="replace")
    others = "".join(top["token"] for each in entries for top in each["top_logprobs"])
    return tokens, told, others


EDGES = st.lists(st.integers(1, 60), max_size=6)


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(SECRETS), EDGES, EDGES, st.sampled_from(["beside", "ahead", "behind", "calls"]))
def test_g15_no_order_of_text_and_log_probabilities_spells_what_was_edited(
    secret: str, token_edges: list[int], text_edges: list[int], order: str
) -> None:
    text = f"well, {secret} it is"
    tokens, texts = pieces(text, token_edges), pieces(text, text_edges if order != "beside" else token_edges)
    probable = [{"logprobs": {"content": [entry(token)]}, "token_ids": [7, 8]} for token in tokens]
    if order == "beside":
        events = [event({"content": said}, **more) for said, more in zip(texts, probable, strict=True)]
    elif order == "calls":
        call = json.dumps({"q": text})
        events = [event({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": call}}]})]
        events += [event({"content": ""}, **more) for more in probable]
    else:
        said, spells = [event({"content": part}) for part in texts], [event({}, **more) for more in probable]
        events = said + spells if order == "behind" else spells + said
    out = play(CHAT, PLAN, ask(stream=True), [*events, event({}, finish_reason="stop"), b"data: [DONE]\n\n"])
    for told in spelled(out):
        assert secret not in told
        assert not any(told.find(secret[at : at + 5]) >= 0 for at in range(len(secret) - 4))
    assert not any(choice.get("token_ids") for choice in choices(out))


@settings(max_examples=examples(60), deadline=None)
@given(EDGES)
def test_g15_log_probabilities_of_just_the_text_beside_them_stay(edges: list[int]) -> None:
    events = [
        event({"content": said}, logprobs={"content": [entry(said)]}) for said in pieces("all is well, ok", edges)
    ]
    raw = b"".join([*events, event({}, finish_reason="stop"), b"data: [DONE]\n\n"])
    assert play(CHAT, PLAN, ask(stream=True), [raw]).joined == raw


@settings(max_examples=examples(80), deadline=None)
@given(st.sampled_from(SECRETS), st.sampled_from(["text", "other text", "empty", "longer", "alternative"]))
def test_g15_a_whole_answers_log_probabilities_spell_its_text_or_go(secret: str, kind: str) -> None:
    text = {"text": f"so {secret}", "empty": ""}.get(kind, "fine")
    told = [entry(token) for token in {"longer": ["fine", secret], "alternative": ["fine"]}.get(kind, [secret])]
    if kind == "alternative":
        told[0]["top_logprobs"].append({"token": secret, "logprob": -1.0})
    choice = {"index": 0, "message": {"content": text}, "logprobs": {"content": told}, "finish_reason": "stop"}
    out = play(CHAT, PLAN, ask(stream=False), [json.dumps({**HEAD, "choices": [choice]}).encode()], streaming=False)
    assert out.reply is not None
    assert all(secret not in said for said in spelled(out))
    assert json.dumps(list(secret.encode()))[1:-1].encode() not in out.reply.body


GLUE = st.sampled_from(["", "abc", "x", "code abc", "9", " ", "-"])


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from(SECRETS),
    st.none() | st.tuples(GLUE, GLUE),
    EDGES,
    st.sampled_from(["parts", "choices", "calls", "kinds"]),
)
def test_g34_parts_are_read_by_themselves_and_joined(
    secret: str, apart: tuple[str, str] | None, edges: list[int], form: str
) -> None:
    said = [apart[0], secret, apart[1]] if apart is not None else pieces(f"so {secret} ok", edges)
    parts: list[dict[str, Any]] = [{"type": "text", "text": part} for part in said]
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if form == "parts":
        found = [{"index": 0, "message": message | {"content": parts}, "finish_reason": "stop"}]
    elif form == "choices":
        found = [{"index": 0, "message": message | {"content": part}, "finish_reason": "stop"} for part in said]
    else:
        kinds = itertools.cycle(
            [("function", "arguments"), ("custom", "input")] if form == "kinds" else [("custom", "input")]
        )
        calls = [
            {"index": 0, "id": "a", kind: {"name": "f", field: part}}
            for part, (kind, field) in zip(said, kinds, strict=False)
        ]
        found = [{"index": 0, "message": message | {"tool_calls": calls}, "finish_reason": "tool_calls"}]
    out = play(CHAT, PLAN, ask(stream=False), [json.dumps({**HEAD, "choices": found}).encode()], streaming=False)
    assert out.reply is not None
    assert secret.encode() not in out.reply.body
    body = json.loads(out.reply.body)
    texts = [
        part.get("text", "")
        for choice in body.get("choices", ())
        for part in choice["message"].get("content") or ()
        if isinstance(part, dict)
    ]
    assert secret not in "".join(texts)


@pytest.mark.parametrize("name", ["logprobs", "token_ids", "prompt_logprobs", "prompt_token_ids"])
@pytest.mark.parametrize(
    "value", [{"zebra": ""}, {"x": 123456789}, 4111111111111111, "zebra", [["zebra"]], {"content": {}}]
)
@pytest.mark.parametrize("stream", [True, False])
def test_g15_what_has_another_form_goes(name: str, value: object, *, stream: bool) -> None:
    said = {"content": "fine"}
    choice = {"index": 0, "delta" if stream else "message": said, "finish_reason": "stop", name: value}
    raw = json.dumps({**HEAD, "choices": [choice], name: value}).encode()
    pieces = [b"data: " + raw + b"\n\n", b"data: [DONE]\n\n"] if stream else [raw]
    out = play(CHAT, PLAN, ask(stream=stream), pieces, streaming=stream)
    assert "zebra" not in str(choices(out))
    assert [found.get(name) for found in choices(out)] in ([None], [{"content": {}}])
