"""The laws of pseudonyms (G38): what goes out and comes back, over any cut and in any spelling."""

from __future__ import annotations

import itertools
import json
from typing import Any
from urllib.parse import quote

from hypothesis import example, given
from hypothesis import strategies as st

from tests.guarded import CHAT, DONE, ends, event, plan, says
from tests.playbook import Played, capitalised, play

RULES = (
    "  - {name: p, id: PSN-1, entities: [EMAIL, CREDIT_CARD, US_SSN, PERSON], "
    "patterns: [{name: quoted, regex: '«[^«»]{1,40}»', max_chars: 50}], actions: [{type: pseudonymise}]}\n"
    "  - {name: o, id: PII-1, stage: midstream, entities: [EMAIL, CREDIT_CARD, US_SSN], unless: in_request, "
    "actions: [{type: redact}]}\n"
)
PLAN = plan(RULES)
NO_MODEL = plan(RULES.replace(", PERSON", ""))
VALUES = ["Ann.Lee+x@northwind.example", "4929 1234 5678 9015", "536-22-8712", '«a "b" \\ c\n¢»', "bob@x.io"]
"""Those in guillemets hold what JSON, URLs and HTML have to escape."""
KINDS = ["EMAIL", "CREDIT_CARD", "US_SSN", "QUOTED", "EMAIL"]
SIGNS = "<>\\%&;*_`~'\"/#.,:-()[]{}$@ \n"
prose = st.text(st.one_of(st.sampled_from(SIGNS), st.sampled_from("aZ0é漢🌊")), max_size=12)
meant = st.sampled_from(["Person 1", "<EMAIL_1>", "EMAIL_2", "&lt;", "%3C", "\\u003c", "**", "](", "3", ""])
cuts = st.lists(st.integers(0, 400), max_size=6)


def body(text: str, **more: Any) -> bytes:
    return json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": text}], **more}).encode()


def cut(text: str, places: list[int]) -> list[str]:
    bounds = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    return [text[low:high] for low, high in itertools.pairwise(bounds)]


def forwarded(prompt: str | bytes, **more: Any) -> str:
    asked = prompt if isinstance(prompt, bytes) else body(prompt)
    out = play(CHAT, NO_MODEL, asked, [says("ok"), ends(), DONE], **more)
    assert out.forwarded is not None
    return out.forwarded.decode()


def read(out: Played, of: str = "content") -> str:
    events = [json.loads(line[6:]) for line in out.joined.split(b"\n") if line.startswith(b"data: {")]
    deltas = [choice["delta"] for one in events for choice in one["choices"]]
    if of == "arguments":
        return "".join(call["function"]["arguments"] for each in deltas for call in each.get("tool_calls", ()))
    return "".join(each.get(of) or "" for each in deltas)


def answered(prompt: str, pieces: list[str], of: str = "content") -> str:
    if of == "arguments":
        calls: list[dict[str, Any]] = [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
        calls[0] |= {"id": "c", "type": "function"}
        calls[0]["function"]["name"] = "mail"
        events = [event((0, {"tool_calls": [call]}, None)) for call in calls]
    else:
        events = [event((0, {of: piece}, None)) for piece in pieces]
    out = play(CHAT, NO_MODEL, body(prompt), [*events, ends(), DONE])
    return read(out, of)


@given(
    st.lists(st.tuples(prose, meant, st.sampled_from(range(len(VALUES)))), max_size=5, unique_by=lambda t: t[2]),
    prose,
    cuts,
)
@example([("\\", "", 0), ("%", "", 1)], "", [])
@example([("<", "", 0), ("&lt;", "", 4)], ">&gt;", [3])
@example([("`", "<EMAIL_1>", 0)], "", [2])
def test_g38_what_the_model_says_back_comes_back_exactly(
    parts: list[tuple[str, str, int]], rest: str, places: list[int]
) -> None:
    prompt = "".join(f"{before} {meant} {VALUES[at]} " for before, meant, at in parts) + rest
    sent = forwarded(prompt)
    echoed = json.loads(sent)["messages"][0]["content"]
    assert answered(prompt, cut(echoed, places)) == prompt
    for _, _, at in parts:
        assert VALUES[at] not in json.dumps(json.loads(sent), ensure_ascii=False)
        assert VALUES[at] not in echoed


@given(prose, cuts)
def test_g38_names_that_models_find_come_back(rest: str, places: list[int]) -> None:
    prompt = f"Ask Ann Lee about {rest.lower()} and Bob."
    asked = play(CHAT, PLAN, body(prompt), [says("ok"), ends(), DONE], scorer=capitalised)
    assert asked.forwarded is not None
    echoed = json.loads(asked.forwarded)["messages"][0]["content"]
    assert "Lee" not in echoed
    pieces = [says(piece) for piece in cut(echoed, places)]
    assert read(play(CHAT, PLAN, body(prompt), [*pieces, ends(), DONE], scorer=capitalised)) == prompt


def spelled(kind: str, number: int) -> list[tuple[str, str]]:
    """Ways in which models write a placeholder, each with how the value is written there."""
    words = kind.replace("_", " ")
    plain = [
        f"<{kind}_{number}>", f"<{kind.lower()}_{number}>", f"{kind}_{number}", f"{words.title()} {number}",
        f"{words.lower()}{number}", f"{kind}-{number}", f"< {words} {number} >", f"<{kind} #{number}>",
        f"\\<{kind}_{number}\\>", f"{kind}\\_{number}", f"<{kind}\\_{number}>", f"<**{kind}_{number}**>",
        f"\uff1c{kind}_{number}\uff1e", f"{words.title()}\u00a0{number}",
    ]  # fmt: skip
    return [
        *((each, "plain") for each in plain),
        (f"%3C{kind}_{number}%3E", "url"), (f"%3c{kind}%5F{number}%3e", "url"),
        (f"&lt;{kind}_{number}&gt;", "html"), (f"&#60;{kind}_{number}&#62;", "html"),
        (f"\\u003c{kind}_{number}\\u003e", "json"),
    ]  # fmt: skip


def written(value: str, way: str) -> str:
    match way:
        case "url":
            return quote(value, safe="")
        case "html":
            return value.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
        case "json":
            return json.dumps(value)[1:-1]
        case _:
            return value


dresses = st.sampled_from(
    ["{}", "**{}**", "_{}_", "`{}`", "({})", "{}'s", "[{}](x)", '"{}"', "{}.", "| {} |", "\n- {}\n"]
)


@given(st.sampled_from(range(4)), st.integers(0, 18), dresses, cuts, st.sampled_from(["content", "reasoning_content"]))
def test_g38_any_spelling_comes_back(at: int, way: int, dress: str, places: list[int], of: str) -> None:
    said, how = spelled(KINDS[at], 1)[way]
    prompt = f"About {VALUES[at]}."
    answer = f"So: {dress.format(said)} it is"
    assert answered(prompt, cut(answer, places), of) == f"So: {dress.format(written(VALUES[at], how))} it is"


@given(
    st.lists(st.tuples(prose, st.sampled_from(["EMAIL", "PERSON", "CREDIT_CARD", "US_SSN"]), st.integers(10, 10**6))),
    prose,
    cuts,
)
@example([("", "US_SSN", 100), ("", "EMAIL", 100)], "", [])
def test_g38_what_was_not_given_stays_as_it_is(parts: list[tuple[str, str, int]], rest: str, places: list[int]) -> None:
    answer = "".join(f"{before} <{kind}_{number}> {kind} {number} " for before, kind, number in parts) + rest
    assert answered(f"About {VALUES[0]}.", cut(answer, places)) == answer
    assert answered("About nobody.", cut(answer, places)) == answer


@given(st.permutations(range(5)), st.sampled_from([True, False]), st.sampled_from([None, 1]), cuts)
def test_g38_arguments_of_tools_stay_json(
    order: list[int], escaped: bool, indent: int | None, places: list[int]
) -> None:
    prompt = " and ".join(VALUES)
    labels = ["<EMAIL_1>", "<CREDIT_CARD_1>", "<us_ssn_1>", "<QUOTED_1>", "EMAIL_2"]
    call = {"to": [labels[at] for at in order], "text": " ".join(labels), "n": 1, labels[4]: {"x": f'a"{labels[3]}\\'}}
    made = json.dumps(call, ensure_ascii=escaped, indent=indent)
    made = made.replace("<", "\\u003c") if escaped else made
    told = json.loads(answered(prompt, cut(made, places), "arguments"))
    assert told["to"] == [VALUES[at] for at in order]
    assert told["text"] == " ".join(VALUES)
    assert told[VALUES[4]] == {"x": f'a"{VALUES[3]}\\'}


@given(st.lists(st.sampled_from(VALUES), min_size=1, max_size=5))
def test_g38_nothing_that_goes_out_has_a_value(values: list[str]) -> None:
    text = "; ".join(values)
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": json.dumps({"to": values, "n": 1})}}
    said: list[dict[str, Any]] = [
        {"role": "system", "content": text},
        {"role": "user", "content": [{"type": "text", "text": text}, {"type": "text", "text": text}], "name": "n"},
        {"role": "assistant", "content": text, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": text},
    ]
    more = {
        "documents": [{"text": text}],
        "tools": [{"type": "function", "function": {"name": "g", "description": text}}],
    }
    asked = json.dumps({"model": "m", "stream": True, "messages": said, "user": text, "strange": {"x": values}, **more})
    sent = forwarded(asked.encode())
    seen = json.dumps(json.loads(sent), ensure_ascii=False)
    arguments = json.loads(sent)["messages"][2]["tool_calls"][0]["function"]["arguments"]
    for value in values:
        for spelling in (value, json.dumps(value)[1:-1], json.dumps(json.dumps(value))[2:-2]):
            assert spelling not in seen
        assert value not in str(json.loads(arguments))
