from __future__ import annotations

import re

import pytest

from checkstream.demo.conversations import Conversation
from checkstream.demo.heard import Heard
from checkstream.demo.page import Fired, Page, Shown

LONG = "word " * 60 + "https://" + "x" * 200


def _shown(**fields: object) -> Shown:
    given: dict[str, object] = {
        "number": 3,
        "conversation": Conversation(title="Title", model="m", prompt="why? " * 40, note="a note " * 30),
        "raw": Heard(status=200, headers={}, choices=(LONG, "b"), finishes=("stop", "length"), ttft_ms=40, total_ms=90),
        "guarded": Heard(status=200, headers={}, choices=("a [EMAIL]", "b"), ttft_ms=41.5, total_ms=89),
        "fired": (Fired("PII-001", "redact", ("entity:EMAIL",)), Fired("X", "stop", ("a", "b"), "shadow")),
        "held_ms": 12.34,
        "faults": (),
    }
    return Shown(**(given | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("columns", [1, 80, 97, 120, 500])
@pytest.mark.parametrize("colours", [False, True])
def test_no_line_is_wider_than_the_terminal(columns: int, colours: bool) -> None:
    lines = list(Page(columns, colours=colours).conversation(_shown(faults=("wrong " * 40,))))
    plain = [re.sub(r"\x1b\[\d+m", "", line) for line in lines]
    assert max(map(len, plain)) <= min(max(columns, 80), 120)
    assert any("│" in line for line in plain)
    assert (plain != lines) is colours


def test_it_says_what_the_model_got_where_that_is_to_be_shown() -> None:
    assert "saw     Write to <PERSON_1>.\\x1b" in "\n".join(
        Page(120, colours=False).conversation(_shown(saw="Write to <PERSON_1>.\x1b"))
    )
    assert "\nsaw" not in "\n".join(Page(120, colours=False).conversation(_shown()))


def test_it_says_what_fired_how_long_text_was_held_and_what_it_took() -> None:
    text = "\n".join(Page(120, colours=False).conversation(_shown(faults=("`x` came through",))))
    assert "PII-001 redact (entity:EMAIL); X stop (a, b) in shadow mode" in text
    assert "12.3 ms at the longest" in text
    assert "first text 40.0 -> 41.5 ms (+1.5); whole answer 90.0 -> 89.0 ms (-1.0)" in text
    assert "[0] a [EMAIL]" in text
    assert "[1] b" in text
    assert "finish_reason: stop, length" in text
    assert "WRONG   `x` came through" in text


def test_what_evidence_says_is_shown_with_reason_and_words() -> None:
    found = {"id": "D1", "source": "", "text": "in \x1b1679"}
    claims = [
        {"text": "in 1683", "verdict": "contradicted", "reason": "1683 is not 1679", "evidence": [found]},
        {"text": "in Lund", "verdict": "supported", "reason": "it says so", "evidence": [found]},
    ]
    guarded = Heard(status=200, headers={}, events=({"checkstream": {"claims": claims}},), judged_ms=41.6)
    text = "\n".join(Page(120, colours=False).conversation(_shown(guarded=guarded, fired=())))
    assert 'claim   contradicted: in 1683\n        because 1683 is not 1679\n        D1: "in \\x1b1679"' in text
    assert "claim   supported: in Lund\ntold    42 ms after the last text" in text
    assert "every event of the model is as it sent it" in text


def test_a_refusal_shows_its_status_and_message() -> None:
    guarded = Heard(status=400, headers={}, failure="the prompt was refused", total_ms=3)
    text = "\n".join(Page(120, colours=False).conversation(_shown(guarded=guarded)))
    assert "400: the prompt was refused" in text
    assert "refused after 3.0 ms" in text
    assert "nothing was sent" in text


def test_a_quiet_guard_says_so_but_not_when_something_is_wrong() -> None:
    page = Page(120, colours=False)
    assert "nothing; every event is as the model sent it" in "\n".join(page.conversation(_shown(fired=())))
    wrong = "\n".join(page.conversation(_shown(fired=(), held_ms=None, faults=("x",))))
    assert "as the model sent it" not in wrong
    assert "no audit entry" in wrong


def test_text_from_outside_cannot_steer_the_terminal() -> None:
    evil = "a\x1b]0;title\x07b\x9bc\u202ed\n"
    shown = _shown(
        raw=Heard(status=200, headers={}, choices=(evil,), finishes=(evil,)),
        guarded=Heard(status=500, headers={}, failure=evil),
        conversation=Conversation(title="Title", model="m", prompt=evil),
        faults=(evil,),
    )
    text = "".join(Page(120, colours=False).conversation(shown))
    assert all(char.isprintable() for char in text)
