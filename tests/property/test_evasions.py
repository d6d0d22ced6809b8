"""G18 and G9 through the whole guard: what is hidden is found, redacted whole, and recorded where it really stands."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.terms import Span
from checkstream.core.wire.openai.chat import OpenAIChat
from tests.playbook import Played, digest, play

CHAT = OpenAIChat()
RULE = """
pack: {name: t, version: 1.0.0}
policies:
  - name: hidden
    id: HID-1
    stage: [midstream]
    entities: [EMAIL, CREDIT_CARD]
    phrases: [zero risk]
    actions: [{type: redact, text: "<X>"}]
"""
PLAN = Plan(program=compile_sources([("t.yaml", RULE)]))
REQUEST = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}

THINGS = {
    "entity:EMAIL": "john.smith@example.com",
    "entity:CREDIT_CARD": "4111111111111111",
    "phrase:zero risk": "zero risk",
}
LOOKALIKES = str.maketrans("aeopcxi", "аеорсхі")  # noqa: RUF001 - Cyrillic is what this is about


Hide = Callable[[str], str]
EVERYWHERE: Mapping[str, Hide] = {
    "fullwidth": lambda text: "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text),
    "mathematical digits": lambda text: "".join(chr(0x1D7CE + int(c)) if c.isdigit() else c for c in text),
    "zero-width spaces": "\u200b".join,
    "soft hyphens": "\u00ad".join,
    "nulls": "\0".join,
    "control characters": lambda text: (
        text[0] + "".join("\b\v\x1b\x7f\x80\x9f"[n % 6] + c for n, c in enumerate(text[1:]))
    ),
    "json escapes": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "percent": lambda text: "".join(f"%{ord(char):02X}" for char in text),
    "html, decimal": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "html, hexadecimal": lambda text: "".join(f"&#x{ord(char):x};" for char in text),
}
SOME: Mapping[str, tuple[str, Hide]] = {
    "lookalikes in an address": ("entity:EMAIL", lambda text: text.translate(LOOKALIKES)),
    "lookalikes in a phrase": ("phrase:zero risk", lambda text: text.translate(LOOKALIKES)),
    "letters set apart in an address": ("entity:EMAIL", lambda _: "j o h n@e x a m p l e.com"),
    "letters set apart in a card": ("entity:CREDIT_CARD", " ".join),
    "dots between a card's digits": ("entity:CREDIT_CARD", ".".join),
    "letters set apart in a phrase": ("phrase:zero risk", " ".join),
    "leetspeak in a phrase": ("phrase:zero risk", lambda text: text.translate(str.maketrans("eois", "3015"))),
    "leetspeak with signs": ("phrase:zero risk", lambda text: text.replace("i", "!").replace("s", "$")),
}
CASES = [
    *((f"{how}: {what}", what, hide(thing)) for how, hide in EVERYWHERE.items() for what, thing in THINGS.items()),
    *((how, what, hide(THINGS[what])) for how, (what, hide) in SOME.items()),
]


def stream(pieces: list[str]) -> tuple[str, Played]:
    """Return the text that left, and all else."""
    events = [{**HEAD, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]} for text in pieces]
    said = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    out = play(CHAT, PLAN, REQUEST, [*said, b"data: [DONE]\n\n"])
    lines = [line[6:] for line in out.joined.split(b"\n") if line.startswith(b"data: {")]
    return "".join(json.loads(line)["choices"][0]["delta"]["content"] for line in lines), out


@pytest.mark.parametrize(("what", "hidden"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_g18_what_is_hidden_is_redacted_at_its_own_place(what: str, hidden: str) -> None:
    before = "Well, "
    for pieces in ([f"{before}{hidden} it is."], list(f"{before}{hidden} it is.")):
        text, out = stream(pieces)
        assert text == f"{before}<X> it is."
        assert out.record is not None
        (finding,) = out.record.findings
        assert (finding.detector, finding.span) == (what, Span(len(before), len(before) + len(hidden)))
        assert finding.digest == digest(hidden)
        assert out.record.verdicts[0].spans == (finding.span,)


@pytest.mark.parametrize("what", sorted(THINGS))
@pytest.mark.parametrize("ahead", ["", "a", "ab", "abc"])
def test_g18_base64_is_read_at_every_alignment(what: str, ahead: str) -> None:
    plain = f"{ahead} please note {THINGS[what]} from here on"
    hidden = base64.b64encode(plain.encode()).decode()
    text, out = stream(list(f"Decode {hidden} now."))
    assert out.record is not None
    (finding,) = out.record.findings
    assert (finding.detector, finding.view) == (what, "encoded")
    start, end = finding.span.start - len("Decode "), finding.span.end - len("Decode ")
    assert text == f"Decode {hidden[:start]}<X>{hidden[end:]} now."
    # No four characters that are left carry a byte of it.
    first = len(plain.partition(THINGS[what])[0].encode())
    assert start <= first * 4 // 3
    assert end >= (first + len(THINGS[what])) * 4 // 3


@given(data=st.data(), case=st.sampled_from(CASES))
def test_g09_g18_no_character_of_it_leaves_however_it_is_cut(data: st.DataObject, case: tuple[str, str, str]) -> None:
    _, _, hidden = case
    text = f"Well, {hidden} it is."
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=12)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert stream(pieces)[0] == "Well, <X> it is."


@pytest.mark.parametrize("what", ["zebra riskless", "4111111111111112", "john at example"])
@pytest.mark.parametrize("how", sorted(EVERYWHERE))
def test_g12_what_only_looks_hidden_leaves_as_it_came(how: str, what: str) -> None:
    text = f"Well,  {EVERYWHERE[how](what)}\t it\n is."
    assert stream(list(text))[0] == text
