"""Recitals through the whole guard: no word of one leaves on any surface, at any cut, streamed or whole."""

from __future__ import annotations

import base64
import json
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamOpened
from checkstream.core.exchange.plan import Plan
from checkstream.core.terms import Recited
from checkstream.core.wire.surfaces import SURFACES
from tests import generated
from tests.chance import examples
from tests.fingerprinted import KEEPER, compiled, file_of
from tests.generated import APIS, cut, events, made_up, sent, speaks_of_it, told
from tests.guarded import CHAT, DONE, bodies, ends, event, request, says, text_of, whole
from tests.playbook import Exchange, Played, play
from tests.property.test_every_surface import legal, letters
from tests.twin import watched

RULE = "  - {{name: r, id: R-1, stage: [midstream], fingerprints: [{{file: books.fp}}], actions: [{{{}}}]}}\n"
ACTIONS = {
    "redact": "type: redact, text: '[GONE]'",
    "words": "type: redact, scope: word",
    "stop": "type: stop, message: Halt.",
}
PASSAGE = "шифр жук фишр рук жирф куш кур шик жуф фужр уж шур риф фук"
"""In letters that stand nowhere else, as `generated.SECRET`."""
FEW = file_of([PASSAGE], 8)
PLANS = {name: Plan(program=compiled(RULE.format(action), books=FEW)) for name, action in ACTIONS.items()}
KEPT = {name: Plan(program=compiled(RULE.format(action))) for name, action in ACTIONS.items()}
"""Of English."""
RECITED = KEEPER[4:160].rsplit(" ", 1)[0]
WORDS = len(RECITED.split())
TEXT = f"Well, as I recall: {RECITED}; so it goes, more or less."


def said(pieces: list[str], action: str = "redact", *, plan: Plan | None = None) -> Played:
    streamed = [*map(says, pieces), ends(), DONE]
    return play(CHAT, plan or KEPT[action], request(), streamed)


@pytest.mark.parametrize("surface", APIS)
@given(chance=st.randoms(use_true_random=False), stream=st.booleans(), action=st.sampled_from(sorted(ACTIONS)))
@settings(max_examples=examples(40))
def test_g04_no_letter_of_a_recital_leaves_on_any_surface(
    surface: str, chance: random.Random, stream: bool, action: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generated, "SECRET", PASSAGE)
        script = made_up(chance, secret=True)
        spoken = speaks_of_it(surface, script)
    asked = generated.request(surface, script, stream=stream)
    pieces = cut(chance, told(surface, script, stream=stream))
    out = play(SURFACES[surface], PLANS[action], asked, pieces, streaming=stream)
    assert not letters(list(events(surface, sent(out), stream=stream)))
    legal(surface, sent(out), stream=stream)
    assert out.record is not None
    assert {verdict.rule_id for verdict in out.record.verdicts} == ({"R-1"} if spoken else set())


@pytest.mark.parametrize("action", ["redact", "stop"])
def test_g03_g04_no_word_of_a_recital_leaves_at_any_cut(action: str) -> None:
    expected = said([TEXT], action)
    left = text_of(expected)
    if action == "redact":
        assert left == TEXT.replace(RECITED, "[GONE]")
    else:
        assert left == "Well, as I recall: Halt."
    for pieces in [*([TEXT[:at], TEXT[at:]] for at in range(1, len(TEXT))), list(TEXT)]:
        out = said(pieces, action)
        assert text_of(out) == left
        assert out.record is not None
        assert expected.record is not None
        assert (out.record.verdicts, out.record.findings) == (expected.record.verdicts, expected.record.findings)


def test_a_verdict_says_how_long_a_recital_is_and_how_much_of_the_text() -> None:
    out = said([TEXT])
    assert out.record is not None
    (verdict,) = out.record.verdicts
    (finding,) = out.record.findings
    assert verdict.triggers == ("recital:books.fp",)
    assert verdict.recited == finding.recited == Recited(words=WORDS, share=WORDS / (WORDS + 4))
    assert RECITED[:20] not in str(out.record)
    told = [body["checkstream"] for body in bodies(out) if "checkstream" in body]
    assert "books.fp" not in str(told)


def test_text_that_recites_less_is_held_and_leaves_as_it_came() -> None:
    short = f"He said {' '.join(RECITED.split()[:11])} and left."
    out = said(list(short))
    assert text_of(out) == short
    assert out.record is not None
    assert not out.record.verdicts


def test_a_long_recital_leaves_no_word_and_is_one_replacement_for_each_piece() -> None:
    chance = random.Random(3)
    book = " ".join(f"{chance.choice('bcdfg')}{chance.choice('aeiou')}{number}" for number in range(400))
    plan = Plan(program=compiled(RULE.format(ACTIONS["redact"]), books=file_of([book])))
    spoken = " ".join(book.split()[50:250])
    out = said([f"Listen: {spoken}. Over."[at : at + 7] for at in range(0, len(spoken) + 15, 7)], plan=plan)
    assert text_of(out) == "Listen: [GONE] [GONE] [GONE] [GONE]. Over."
    assert out.record is not None
    assert [v.recited.words for v in out.record.verdicts if isinstance(v.recited, Recited)] == [64, 128, 192, 200]


@pytest.mark.parametrize("size", [3, 9, 40])
def test_g03_g04_calm_events_around_a_recital_come_to_what_they_come_to_in_full(size: int) -> None:
    spoken = f"{TEXT} The tide came in. It was late, and the tower stood dark. {TEXT}"
    pieces = [spoken[at : at + size] for at in range(0, len(spoken), size)]
    for plan in KEPT.values():
        with watched() as twins:
            said(pieces, plan=plan)
            assert twins


def test_g01_a_whole_answer_is_guarded_as_a_streamed_one() -> None:
    streamed, at_once = said([TEXT]), play(CHAT, KEPT["redact"], request(stream=False), [whole(TEXT)], streaming=False)
    assert json.loads(sent(at_once))["choices"][0]["message"]["content"] == text_of(streamed)
    assert streamed.record is not None
    assert at_once.record is not None
    assert [v.recited for v in streamed.record.verdicts] == [v.recited for v in at_once.record.verdicts]


@pytest.mark.parametrize("action", ["reject, message: No.", "redact, text: '[GONE]'", "log_event"])
def test_a_prompt_that_recites_is_refused_or_edited(action: str) -> None:
    rule = RULE.format(f"type: {action}").replace("midstream", "ingress").replace("R-1", "I-1")
    out = play(CHAT, Plan(program=compiled(rule)), request(f"Go on: {RECITED}"), [says("Hm."), ends(), DONE])
    assert out.record is not None
    assert [v.rule_id for v in out.record.verdicts] == ["I-1"]
    if action.startswith("reject"):
        assert out.forwarded is None
        assert out.reply is not None
        assert b"books.fp" not in out.reply.body
    else:
        assert out.forwarded is not None
        assert (RECITED in json.loads(out.forwarded)["messages"][0]["content"]) is (action == "log_event")


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        (RULE.format(ACTIONS["redact"]).replace("id: R-1", "id: R-1, mode: shadow"), TEXT),
        (RULE.format("type: log_event"), TEXT),
        (
            RULE.format("type: inject_disclaimer, text: (Not mine.)").replace("midstream", "egress"),
            f"{TEXT}(Not mine.)",
        ),
    ],
)
def test_a_rule_that_changes_nothing_of_the_text_holds_none_of_it(rule: str, left: str) -> None:
    plan = Plan(program=compiled(rule))
    exchange = Exchange(CHAT, plan)
    exchange.send(RequestReceived(request()))
    exchange.send(UpstreamOpened(200, streaming=True))
    exchange.send(UpstreamBytes(says(TEXT[:150])))
    assert text_of(exchange.out) == TEXT[:150]
    out = said(list(TEXT), plan=plan)
    assert text_of(out).replace("\n\n", "") == left
    assert out.record is not None
    assert [v.recited for v in out.record.verdicts] == [Recited(words=WORDS, share=WORDS / (WORDS + 4))]


def test_a_recital_of_the_users_can_be_kept_from_the_model_and_comes_back() -> None:
    rule = RULE.format("type: pseudonymise").replace("midstream", "ingress")
    answer = [says("You sent "), says("<TEXT"), says("_1> to me."), ends(), DONE]
    out = play(CHAT, Plan(program=compiled(rule)), request(f"Look: {RECITED}"), answer)
    assert out.forwarded is not None
    assert json.loads(out.forwarded)["messages"][0]["content"] == "Look: <TEXT_1>"
    assert text_of(out) == f"You sent {RECITED} to me."


CODE = """
def lamp(room, key):
    for each in room.lamps:
        if each.key == key and not each.lit:
            each.light("match\\n", watts=40)
            return each
    raise NoLamp(f"no lamp {key!r} in {room}")
"""


def calls(arguments: str, size: int) -> list[bytes]:
    """Return the events of a call of a tool, its arguments in pieces."""
    head = {"index": 0, "id": "c1", "type": "function", "function": {"name": "write_file", "arguments": ""}}
    found: list[dict[str, Any]] = [{"role": "assistant", "tool_calls": [head]}]
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    found += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces]
    return [generated_event(delta, None) for delta in found] + [generated_event({}, "tool_calls"), DONE]


def generated_event(delta: dict[str, Any], reason: str | None) -> bytes:
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
    return b"data: " + json.dumps({**body, "choices": choices}).encode() + b"\n\n"


@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_source_code_that_a_tool_is_given_is_found_through_its_escapes(ensure_ascii: bool) -> None:
    plan = Plan(program=compiled(RULE.format(ACTIONS["redact"]), books=file_of([CODE])))
    arguments = json.dumps({"path": "a\u00e9.py", "text": f"import x\n{CODE}\nprint(1)\n"}, ensure_ascii=ensure_ascii)
    first: list[str] = []
    for size in (1, 7, len(arguments)):
        out = play(CHAT, plan, request(), calls(arguments, size))
        made = "".join(
            call["function"].get("arguments", "")
            for body in bodies(out)
            for choice in body.get("choices", ())
            for call in choice["delta"].get("tool_calls", ())
        )
        assert json.loads(made)["text"].split("\n")[0] == "import x"
        assert "watts" not in made
        assert "NoLamp" not in made
        first.append(made)
    assert len(set(first)) == 1


NUMBERED = [f"w{number}" for number in range(420)]
"""Words of a text that is longer than a recital is told in one piece."""


def numbered(words: int) -> Plan:
    """Return what keeps so many of them in a row from leaving."""
    rule = f"fingerprints: [{{file: long.fp, words: {words}}}], actions: [{{type: redact, text: '[GONE]'}}]"
    return Plan(
        program=compiled(f"  - {{name: r, id: R-1, stage: [midstream], {rule}}}\n", long=file_of([" ".join(NUMBERED)]))
    )


def leaked(out: Played) -> int:
    """Return how many of the words stand in what has left."""
    return len(re.findall(rb"w[0-9]+", re.sub(rb'"[a-z_]+":', b"", sent(out))))


@pytest.mark.parametrize("goes_on", ["tool call", "content"])
@pytest.mark.parametrize(
    ("words", "size"), [(12, n) for n in (40, 64, 65, 75, 76, 127, 139)] + [(100, 183), (200, 390)]
)
def test_g04_the_end_of_a_long_recital_stays_where_another_text_begins(words: int, size: int, goes_on: str) -> None:
    """What has been told of it makes the rest one, though that is shorter."""
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    field, more = (
        ("content", {"tool_calls": [call]}) if goes_on == "tool call" else ("reasoning_content", {"content": "So."})
    )
    text = f"So: {' '.join(NUMBERED[:size])}"
    deltas = [{field: text[at : at + 5]} for at in range(0, len(text), 5)]
    streamed = [event((0, delta, None)) for delta in (*deltas, more)]
    assert not leaked(play(CHAT, numbered(words), request(), [*streamed, ends(), DONE]))


@pytest.mark.parametrize("size", [3, 400])
@pytest.mark.parametrize(("words", "sizes"), [(12, (65, 10)), (12, (75, 0)), (12, (8, 8)), (200, (201, 198))])
def test_g04_no_word_of_a_recital_leaves_in_parts(words: int, sizes: tuple[int, int], size: int) -> None:
    first, second = sizes
    parts = [" ".join(NUMBERED[:first]), " ".join(NUMBERED[first : first + second]) or "And so on."]
    data = _block_events(parts, size)
    asked = json.dumps({"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]})
    out = play(SURFACES["anthropic.messages"], numbered(words), asked.encode(), data)
    assert not leaked(out)


def _block_events(parts: list[str], size: int) -> list[bytes]:
    """Return a message whose text stands in several blocks."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    begun = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    told: list[dict[str, Any]] = [
        {"type": "message_start", "message": begun | dict.fromkeys(("stop_reason", "stop_sequence"))}
    ]
    for number, part in enumerate(parts):
        told.append({"type": "content_block_start", "index": number, "content_block": {"type": "text", "text": ""}})
        for at in range(0, len(part), size):
            delta = {"type": "text_delta", "text": part[at : at + size]}
            told.append({"type": "content_block_delta", "index": number, "delta": delta})
        told.append({"type": "content_block_stop", "index": number})
    told.append({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage})
    told.append({"type": "message_stop"})
    return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in told]


def test_g04_the_beginning_of_an_encoded_recital_is_held_where_nothing_else_is_looked_for() -> None:
    """A word of letters may be one of base64 that goes on behind a `-`."""
    code = "that old~" + "->".join(KEEPER.replace(",", "").replace(";", "").replace(".", "").split()[:40])
    encoded = base64.urlsafe_b64encode(code.encode()).decode().rstrip("=")
    assert encoded[:12].replace("-", "").isalpha()
    plan = Plan(program=compiled(RULE.format("type: redact, text: '[GONE]'"), books=file_of([code])))
    text = f"well then here is the text and now it comes: {encoded} that is all"
    for size in (1, 3, 1000):
        out = said([text[at : at + size] for at in range(0, len(text), size)], plan=plan)
        assert text_of(out) == text.replace(encoded, "[GONE]")
