"""Answers that turn, on every surface whose answers can: what the upstream is asked, what is counted, how it stops."""

from __future__ import annotations

from typing import Any

import pytest

from tests.continued import ASK, NAMES, answer, came, forwarded, run, told
from tests.playbook import Played

EACH = pytest.mark.parametrize("name", NAMES)
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
SAID = "You could launder money with shops."


def turned(name: str, first: str = SAID, second: str = "live.", *, stream: bool, **more: Any) -> Played:
    bodies = [answer(name, [text], stream=stream) for text in (first, second)]
    return run(name, bodies[:1], bodies[1:], stream=stream, **more)


@STREAMS
@EACH
def test_the_model_is_asked_to_go_on_in_the_surface_s_own_way(name: str, stream: bool) -> None:
    played = turned(name, stream=stream)
    again = forwarded(played)[1]
    if name == "openai.completions":
        assert again["prompt"] == f"{ASK}You could "
    elif name == "openai.responses":
        asked, begun = again["input"]
        assert asked == {"role": "user", "content": ASK}
        assert (begun["role"], begun["status"], begun["content"][0]["text"]) == (
            "assistant",
            "incomplete",
            "You could ",
        )
    else:
        begun = "You could" if name == "anthropic.messages" else "You could "
        assert again["messages"] == [{"role": "user", "content": ASK}, {"role": "assistant", "content": begun}]
    assert (again.get("continue_final_message"), again.get("add_generation_prompt")) == (
        (True, False) if name == "openai.chat" else (None, None)
    )
    cooled = again["options"] if name == "ollama.chat" else again
    assert cooled["temperature"] == 0.2


@STREAMS
@EACH
def test_g16_the_tokens_of_both_parts_are_counted(name: str, stream: bool) -> None:
    (usage,) = told(name, came(turned(name, stream=stream)), stream=stream)[1]
    written = next(usage[key] for key in ("completion_tokens", "output_tokens", "eval_count") if key in usage)
    # A stream that was cut off has not said what it cost: what was sent of it is counted, and marked as an estimate.
    if name == "anthropic.messages":
        assert written == (5 + 6 if stream else 9 + 9)  # ids count as text
    elif name == "openai.responses":
        assert written == (9 + 3 if stream else 9 + 9)
    else:
        assert written == (5 + 3 if stream else 5 + 5)
    assert usage.get("checkstream_estimated", False) is stream


@STREAMS
@EACH
def test_g08_an_upstream_that_will_not_go_on_stops_the_answer(name: str, stream: bool) -> None:
    played = turned(name, stream=stream, status=400)
    text, _ = told(name, came(played), stream=stream)
    assert text == "You could [Stopped.]"
    assert (b"refusal" if name == "anthropic.messages" else b"content_filter") in came(played)
    assert played.record is not None
    assert (played.record.action, played.record.turned_at) == ("stop", len("You could "))
    assert "not_continued" in played.record.degradations


FORM = {"type": "json_schema", "schema": {"type": "object"}}


@STREAMS
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("openai.chat", {"response_format": {"type": "json_object"}}),
        ("openai.completions", {"echo": True}),
        ("anthropic.messages", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        ("anthropic.messages", {"output_config": {"format": FORM}}),
        ("anthropic.messages", {"output_format": FORM}),
        ("ollama.chat", {"format": "json"}),
    ],
)
def test_g08_what_no_request_can_ask_to_go_on_is_stopped(name: str, more: dict[str, Any], stream: bool) -> None:
    played = turned(name, stream=stream, **more)
    assert len(forwarded(played)) == 1
    assert "launder" not in came(played).decode()
    assert played.record is not None
    assert (played.record.action, played.record.outcome) == ("stop", "stopped")


@STREAMS
def test_the_caller_s_own_beginning_stays_the_beginning(stream: bool) -> None:
    begun = [{"role": "user", "content": ASK}, {"role": "assistant", "content": "Well:"}]
    for name in ("anthropic.messages", "ollama.chat"):
        again = forwarded(turned(name, stream=stream, messages=begun))[1]["messages"]
        assert again[0] == begun[0]
        assert again[1]["content"].startswith("Well:You could"), name


@EACH
def test_an_answer_turns_where_more_waits_than_leaves_at_a_time(name: str) -> None:
    pieces = [*("a@b.example.com! " * 20), "launder money now"]
    played = run(name, [answer(name, pieces, stream=True)], [answer(name, ["live."], stream=True)], stream=True)
    assert told(name, came(played), stream=True)[0] == "[EMAIL]! " * 20 + "live."
