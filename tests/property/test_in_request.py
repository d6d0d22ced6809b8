"""Laws of `unless: in_request`: what the user has said is never altered, everything else always (G3, G4)."""

from __future__ import annotations

import base64
import itertools
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chance import examples
from tests.guarded import CHAT, DONE, ends, event, plan, says, text_of, whole
from tests.playbook import Played, play

RULES = (
    "  - {name: p, id: P-1, stage: [midstream], entities: [EMAIL, PHONE, CREDIT_CARD, IBAN], unless: in_request, "
    "actions: [{type: redact, text: '#'}]}\n"
)
PLAN = plan(RULES)
names = st.text("abcdefgh", min_size=1, max_size=6)
mails = st.builds("{}.{}@{}.example".format, names, names, names)
phones = st.builds("+1 415 555 {:04d}".format, st.integers(0, 9999))
cards = st.sampled_from(["4111 1111 1111 1111", "5500 0055 5555 5559", "4012 8888 8888 1881", "3782 822463 10005"])
ibans = st.sampled_from(
    ["GB82 WEST 1234 5698 7654 32", "DE89 3704 0044 0532 0130 00", "FR14 2004 1010 0505 0001 3M02 606"]
)
values = mails | phones | cards | ibans
words = st.sampled_from(["Write to", "or call", "and then", "see", "\u00fc.", "\n"])


def spelled(value: str, way: int) -> str:
    """The same value, written in another way."""
    if "@" in value:
        return (value, value.upper(), value.replace("@", " [at] "), value.replace("@", "%40"))[way]
    return (value, value.replace(" ", ""), value.replace(" ", "-"), value.replace(" ", "\u00a0"))[way]


def streamed(body: bytes, text: str, cuts: list[int]) -> Played:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [says(text[a:b]) for a, b in itertools.pairwise(edges) if a < b]
    return play(CHAT, PLAN, body, [*pieces, ends(), DONE])


@settings(max_examples=examples(120), deadline=None)
@given(
    st.lists(st.tuples(values, st.integers(0, 1)), max_size=3, unique_by=lambda item: item[0]),
    st.lists(values, min_size=1, max_size=3, unique=True),
    st.data(),
)
def test_g03_what_the_user_said_is_never_altered_and_all_else_always_is(
    said: list[tuple[str, int]], others: list[str], data: st.DataObject
) -> None:
    known = [value for value, _ in said]
    secret = [value for value in others if value not in known]
    prompt = "\n".join(f"my own is {spelled(value, way)} ok" for value, way in said) or "hi"
    messages = [
        {"role": "system", "content": "You may write to " + (secret[0] if secret else "nobody")},
        {"role": "user", "content": prompt},
        {"role": "tool", "tool_call_id": "c", "content": "\n".join(secret)},
    ]
    body = json.dumps({"model": "m", "stream": True, "messages": messages}).encode()
    parts = [(value, value in known) for value in data.draw(st.permutations([*known, *secret]))]
    written = [(data.draw(words), spelled(value, data.draw(st.integers(0, 2))), kept) for value, kept in parts]
    text = "".join(f"{word} {value} ; " for word, value, _ in written)
    out = streamed(body, text, data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    assert text_of(out) == "".join(f"{word} {value if kept else '#'} ; " for word, value, kept in written)
    answer = play(CHAT, PLAN, body.replace(b'"stream": true', b'"stream": false'), [whole(text)], streaming=False)
    assert answer.reply is not None
    assert json.loads(answer.reply.body)["choices"][0]["message"]["content"] == text_of(out)


@settings(max_examples=examples(40), deadline=None)
@given(mails, mails, st.integers(1, 40))
def test_g03_the_arguments_of_a_call_are_spared_in_the_same_way(mine: str, other: str, cut: int) -> None:
    body = json.dumps(
        {"stream": True, "messages": [{"role": "user", "content": f"mail {mine.upper()} for me"}]}
    ).encode()
    arguments = json.dumps({"to": mine, "cc": [other]}).replace("@", "\\u0040")
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "send_mail", "arguments": arguments[:cut]}}
    more = {"index": 0, "function": {"arguments": arguments[cut:]}}
    pieces = [event((0, {"tool_calls": [each]}, None)) for each in (call, more)]
    out = play(CHAT, PLAN, body, [*pieces, ends(reason="tool_calls"), DONE])
    told = "".join(
        each["function"].get("arguments", "")
        for line in out.joined.split(b"\n")
        if line.startswith(b"data: {")
        for choice in json.loads(line[6:])["choices"]
        for each in choice["delta"].get("tool_calls", ())
    )
    assert json.loads(told) == {"to": mine, "cc": [other if other == mine else "#"]}


def test_values_beyond_the_bound_are_altered_and_it_is_told() -> None:
    said = "\n".join(f"user{number}@x.example" for number in range(20_050))
    body = json.dumps({"stream": True, "messages": [{"role": "user", "content": said}]}).encode()
    out = play(CHAT, PLAN, body, [says("user1@x.example or user20040@x.example."), ends(), DONE])
    assert text_of(out) == "user1@x.example or #."
    assert out.record is not None
    assert "values_not_remembered" in out.record.degradations


def test_an_address_of_an_allowed_domain_takes_nobody_else_along() -> None:
    rules = (
        "  - {name: p, id: P-1, stage: [midstream], entities: [EMAIL, URL], allow: {domains: [ours.example]}, "
        "actions: [{type: redact, text: '#'}]}\n"
    )
    body = json.dumps({"stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
    for text, left in {
        "see https://ours.example/help, mail help@ours.example ok": None,
        "see https://ours.example/?to=help@ours.example ok": None,
        "see https://ours.example/?to=ann@other.example ok": "see https://ours.example/?to=# ok",
        "mail ann%40other.example@ours.example ok": "mail #@ours.example ok",
        "see www.evil.org/?to=http://ours.example/ ok": "see # ok",
    }.items():
        assert text_of(play(CHAT, plan(rules), body, [says(text), ends(), DONE])) == (left or text)


def test_g04_what_the_user_has_encoded_spares_no_other_value_that_stands_encoded() -> None:
    mine, other = (base64.b64encode(card.encode()).decode() for card in ("4111111111111111", "4935608413919632"))
    body = json.dumps({"stream": True, "messages": [{"role": "user", "content": f"mine is {mine} ok"}]}).encode()
    out = play(CHAT, PLAN, body, [says(f"mine {mine} and theirs {other} ok"), ends(), DONE])
    assert mine in text_of(out)
    assert other[:16] not in text_of(out)
