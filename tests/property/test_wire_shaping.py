"""Laws of shaping: whatever the request and the policy, the result reads as asked, and no more of it has changed."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.wire.json_text.spans import NAME
from checkstream.core.wire.openai.chat import OpenAIChat
from checkstream.core.wire.openai.completions import OpenAICompletions
from checkstream.core.wire.requests.fields import EXTENSION, FORM_FIELDS
from checkstream.core.wire.requests.tools import allowed
from checkstream.core.wire.requests.undoing import UNDOES, undoing, wishes_of
from checkstream.core.wire.surface import Request, Shaping, Surface
from checkstream.errors import RequestInvalid, WireError
from tests.chance import examples

CHAT, TEXT = OpenAIChat(), OpenAICompletions()
SHAPED = FORM_FIELDS | {
    "temperature", "dynatemp_range", "tools", "functions", "tool_choice", "function_call", "parallel_tool_calls",
    "bad_words", "logit_bias", "response_format", "guided_whitespace_pattern", "continue_final_message",
    "add_generation_prompt", "echo", "chat_template_kwargs", "messages", "prompt", EXTENSION,
}  # fmt: skip
words = st.text(max_size=6) | st.sampled_from(["a", "ab", "send_mail", "7", '"\\', "\u2028", "\U0001f600"])
scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | words
anything = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))
tools = st.lists(
    st.builds(lambda name: {"type": "function", "function": {"name": name}}, words)
    | st.builds(lambda name: {"name": name}, words)
    | anything,
    max_size=4,
)
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool"])},
        optional={
            "content": st.none()
            | words
            | st.lists(st.builds(lambda t: {"type": "text", "text": t}, words), max_size=2),
            "tools": tools,
            "prefix": st.booleans(),
        },
    ),
    min_size=1,
    max_size=4,
)
fields: dict[str, st.SearchStrategy[Any]] = {
    "temperature": st.none() | st.floats(0, 2) | st.integers(0, 2),
    "tools": tools | anything,
    "functions": tools,
    "tool_choice": anything | st.builds(lambda name: {"type": "function", "function": {"name": name}}, words),
    "function_call": anything,
    "parallel_tool_calls": st.booleans(),
    "bad_words": st.none() | st.lists(words, max_size=3) | anything,
    "logit_bias": st.none() | st.dictionaries(st.sampled_from(["7", "07", "8", "x"]), st.integers(-9, 9)) | anything,
    "response_format": st.none() | st.just({"type": "json_object"}) | anything,
    "grammar": anything,
    "structured_outputs": anything,
    "chat_template_kwargs": st.fixed_dictionaries({}, optional={"tools": tools, "x": scalars}) | anything,
    "continue_final_message": st.booleans(),
    "n": st.sampled_from([1, 2]),
    "top_p": scalars,
    "stop": st.lists(words, max_size=2),
    "foo": anything,
    EXTENSION: st.just({"documents": ["d"], "context": {"a": 1}}),
}
schemas = st.dictionaries(st.text("abc", max_size=3), scalars | st.lists(scalars, max_size=2), max_size=2).map(
    json.dumps
)
shapings = st.builds(
    Shaping,
    max_temperature=st.none() | st.floats(0, 2),
    tools=st.none() | st.lists(words | words.map("{}*".format), max_size=3).map(tuple),
    bad_words=st.lists(words, max_size=2).map(tuple),
    logit_bias=st.lists(st.tuples(st.integers(0, 9), st.integers(-100, 100)), max_size=3).map(tuple),
    json_schema=st.none() | schemas,
    grammar=st.none() | words,
    instructions=st.lists(words, max_size=2).map(tuple),
    continue_from=st.none() | words,
)


@st.composite
def requests(draw: st.DrawFn, surface: Surface) -> Request:
    prompt: dict[str, st.SearchStrategy[Any]] = {"messages": messages}
    if surface is TEXT:
        prompt = {"prompt": words | st.lists(words, min_size=1, max_size=2)}
    body = draw(st.fixed_dictionaries(prompt, optional=fields))
    names = draw(st.permutations(list(body)))
    spaced = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n\t", " : ")]))
    text = json.dumps({name: body[name] for name in names}, ensure_ascii=draw(st.booleans()), separators=spaced)
    try:
        return surface.read_request(text.encode())
    except RequestInvalid:  # two names that differ in case, or a document of the wrong form
        return surface.read_request(json.dumps({name: draw(kind) for name, kind in prompt.items()}).encode())


def shape(data: st.DataObject, surface: Surface, shaping: Shaping) -> tuple[Request, dict[str, Any], Request] | None:
    request = data.draw(requests(surface))
    places = [i for i, delta in enumerate(request.unit.deltas) if delta.path[-1] != NAME]  # two names could become one
    texts = {i: data.draw(words) for i in places if data.draw(st.booleans())}
    try:
        out = surface.write_request(request, texts, shaping)
    except WireError:
        return None
    return request, json.loads(out), surface.read_request(out)


@settings(max_examples=examples(120), deadline=None)
@given(st.data(), shapings)
def test_g31_a_shaped_chat_says_what_policies_want_and_nothing_else_new(data: st.DataObject, shaping: Shaping) -> None:
    found = shape(data, CHAT, shaping)
    if found is None:
        return
    request, out, again = found
    _has_what_is_asked(out, again, shaping)
    if shaping.tools is not None:
        assert all(allowed(name, shaping.tools) for name in again.tools if name in request.tools)
    roles = [message["role"] for message in json.loads(request.unit.raw)["messages"]]
    new = [message for message in out["messages"] if message.get("content") in shaping.instructions]
    assert len(new) >= len(set(shaping.instructions))
    assert len(out["messages"]) - len(roles) - len(set(shaping.instructions)) in (0, 1)
    if shaping.continue_from:
        last = out["messages"][-1]["content"]
        assert (last if isinstance(last, str) else last[-1]["text"]).endswith(shaping.continue_from)
        assert (out["messages"][-1]["role"], out["continue_final_message"]) == ("assistant", True)


@settings(max_examples=examples(80), deadline=None)
@given(st.data(), shapings)
def test_g31_a_shaped_completion_says_what_policies_want(data: st.DataObject, shaping: Shaping) -> None:
    found = shape(data, TEXT, shaping)
    if found is None:
        return
    _, out, again = found
    assert not shaping.instructions
    assert shaping.tools is None
    _has_what_is_asked(out, again, shaping)
    if shaping.continue_from:
        prompt = out["prompt"]
        assert (prompt if isinstance(prompt, str) else prompt[0]).endswith(shaping.continue_from)


def _has_what_is_asked(out: dict[str, Any], again: Request, shaping: Shaping) -> None:
    assert again.extension is None
    if shaping.max_temperature is not None:
        assert again.temperature is not None
        assert again.temperature <= shaping.max_temperature
    if shaping.bad_words:
        assert all(word in out["bad_words"] for word in shaping.bad_words)
    for token, bias in dict(shaping.logit_bias).items():
        assert [value for key, value in out["logit_bias"].items() if key.isdigit() and int(key) == token] == [bias]
    if shaping.json_schema is not None:
        assert out["response_format"]["json_schema"]["schema"] == json.loads(shaping.json_schema)
        assert not FORM_FIELDS & out.keys()
    elif shaping.grammar is not None:
        assert (FORM_FIELDS | {"response_format"}) & out.keys() == {"structured_outputs"}
        assert out["structured_outputs"] == {"grammar": shaping.grammar}


@settings(max_examples=examples(80), deadline=None)
@given(st.data(), shapings)
def test_g31_fields_that_are_not_shaped_stay_byte_for_byte(data: st.DataObject, shaping: Shaping) -> None:
    for surface in (CHAT, TEXT):
        request = data.draw(requests(surface))
        with contextlib.suppress(WireError):
            out = json.loads(surface.write_request(request, {}, shaping))
            given_body = json.loads(request.unit.raw)
            gone = {path[0] for path in undoing(given_body, shaping, request.strange) if len(path) == 1}
            for name in given_body.keys() - SHAPED - gone:
                assert out[name] == given_body[name]
            assert out.keys() - given_body.keys() <= SHAPED
        if shaping == Shaping():
            assert surface.write_request(request, {}, shaping) == surface.write_request(request, {})


UNKNOWN = {
    "generation_config": {"temperature": 2},
    "extra_body": {"temperature": 2},
    "Temperatur": 2,
    "sampling_params": {},
}
values = scalars | st.lists(scalars, max_size=2) | st.just({"temperature": 2, "tools": [], "messages": []})


@settings(max_examples=examples(150), deadline=None)
@given(
    st.dictionaries(st.sampled_from(sorted(frozenset[str]().union(*UNDOES.values()))), values, max_size=5),
    st.sets(st.sampled_from(sorted(UNKNOWN))),
    shapings,
)
def test_g31_no_field_of_the_caller_undoes_what_is_shaped(
    twins: dict[str, Any], unknown: set[str], shaping: Shaping
) -> None:
    wishes = wishes_of(shaping)
    for surface, prompt in ((CHAT, {"messages": [{"role": "user", "content": "hi"}]}), (TEXT, {"prompt": "hi"})):
        body = {**twins, **{name: UNKNOWN[name] for name in unknown}, **prompt}
        with contextlib.suppress(WireError, RequestInvalid):
            out = json.loads(surface.write_request(surface.read_request(json.dumps(body).encode()), {}, shaping))
            kept = body.keys() & out.keys()
            assert not wishes or not kept & UNKNOWN.keys()
            own = {"continue_final_message", "add_generation_prompt"} if "continue" in wishes else set[str]()
            assert not kept & frozenset[str]().union(*(UNDOES[wish] for wish in wishes)) - own


@pytest.mark.parametrize(
    "twin",
    [
        {"chat_template": "{{ messages[-1].content }}"},
        {"chat_template_kwargs": {"messages": [{"role": "user", "content": "x"}]}},
        {"chat_template_kwargs": {"truncation": True, "max_length": 8}},
        {"truncate_prompt_tokens": 8},
        {"transforms": ["middle-out"]},
        {"guided_regex": ".*"},
        {"structural_tag": "x"},
        {"response_format": {"type": "text"}},
        {"tool_choice": "required"},
        {"tool_choice": {"type": "function", "function": {"name": "f"}}},
        {"function_call": {"name": "f"}},
        {"stop": ["{"]},
        {"bad_words": ["{"]},
        {"continue_final_message": True},
        {"modalities": ["audio"]},
        {"ignore_eos": True},
        {"samplers": ["top_k"]},
        {"logits_processors": []},
        {"custom_logit_processor": "x"},
        {"use_beam_search": True},
        {"vllm_xargs": {"temperature": 2}},
        {"options": {"temperature": 2}},
        {"web_search_options": {}},
        {"min_p_": 1},
    ],
)
def test_g31_each_twin_of_a_shaped_field_goes(twin: dict[str, Any]) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "tools": [{"function": {"name": "f"}}], **twin}
    shaping = Shaping(
        max_temperature=0.2,
        tools=("f",),
        json_schema='{"type":"object"}',
        instructions=("be kind",),
        logit_bias=((1, -9),),
    )
    out = json.loads(CHAT.write_request(CHAT.read_request(json.dumps(body).encode()), {}, shaping))
    (name,) = twin
    assert name not in out or (out[name] != twin[name] and name in ("response_format", "chat_template_kwargs"))
    assert out.get("chat_template_kwargs") in (None, {})
    assert out["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert out["temperature"] == 0.2


@settings(max_examples=examples(80), deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(SHAPED)), anything), shapings)
def test_g31_any_body_is_shaped_or_refused(body: dict[str, Any], shaping: Shaping) -> None:
    for surface in (CHAT, TEXT):
        with contextlib.suppress(WireError):
            request = surface.read_request(json.dumps(body).encode())
            surface.read_request(surface.write_request(request, {}, shaping))
