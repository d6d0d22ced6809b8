"""A history of fifty turns that is sent again costs clearly less than the first time, on every API that sends one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.commands import ForwardRequest
from checkstream.core.events import RequestReceived
from checkstream.core.exchange.guard import Guard
from checkstream.core.match.scan import Scan
from checkstream.core.wire.surfaces import SURFACES
from checkstream.proxy.quiet import QuietOfCaller, QuietTexts
from tests.guarded import plan
from tests.playbook import digest

PLAN = plan(
    "  - {name: a, id: R-1, stage: [ingress], phrases: [forbidden fruit], actions: [{type: reject}]}\n"
    "  - {name: b, id: R-2, stage: [ingress], entities: [EMAIL, PHONE, CREDIT_CARD], actions: [{type: redact}]}\n"
)
TURNS = 50
LEAST = 0.1
"""Of what the first time costs: two further texts of a hundred, and borders of messages, which are read apart."""


def turns(number: int) -> list[tuple[str, str]]:
    """Who says what: long enough that what stands at borders of messages is the lesser part."""
    about = "and so it went on for a while, with rain and some wind from the west, until all had gone home again. " * 6
    asked = [f"Turn {at}: what came then? Anna wrote from anna{at}@example.com, {about}" for at in range(number)]
    return [each for at, text in enumerate(asked) for each in (("user", text), ("assistant", f"In {at}: {about}"))][:-1]


def body(name: str, said: list[tuple[str, str]]) -> bytes:
    asked: dict[str, Any] = {"model": "m", "max_tokens": 9}
    messages = [{"role": role, "content": text} for role, text in said]
    if name == "openai.responses":
        del asked["max_tokens"]
        return json.dumps(asked | {"input": messages}).encode()
    if name == "ollama.chat":
        del asked["max_tokens"]
    return json.dumps(asked | {"messages": messages}).encode()


class Work:
    """Counts the characters that patterns are searched in."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._feed, self._chars = Scan.feed, 0
        monkeypatch.setattr(Scan, "feed", self._noted())

    def _noted(self) -> Any:
        def feed(scan: Scan, text: str) -> Any:
            if scan._patterns.patterns:
                self._chars += len(text)
            return self._feed(scan, text)

        return feed

    def of(self, name: str, said: list[tuple[str, str]], quiet: QuietOfCaller | None) -> tuple[int, bytes]:
        """Return how many characters of a prompt are searched, and what is forwarded of it."""
        self._chars, forwarded = 0, b""
        guard = Guard(surface=SURFACES[name], plan=PLAN, digest=digest, quiet=quiet)
        for command in guard.receive(RequestReceived(body(name, said)), 1.0):
            forwarded = command.body if isinstance(command, ForwardRequest) else forwarded
        assert forwarded
        return self._chars, forwarded


@pytest.mark.parametrize("name", ["openai.chat", "openai.responses", "anthropic.messages", "ollama.chat"])
def test_a_history_that_is_sent_again_costs_a_tenth_and_others_pay_for_theirs(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, known = Work(monkeypatch), QuietTexts()
    before, after = turns(TURNS), turns(TURNS + 1)
    first, _ = work.of(name, before, known.of("app", PLAN.program.hash))
    again, sent = work.of(name, after, known.of("app", PLAN.program.hash))
    assert first > sum(len(text) for _, text in before)
    assert again < LEAST * first
    unknown, anew = work.of(name, after, None)
    assert sent == anew
    assert b"@example.com" not in sent
    for caller, program in (("rival", PLAN.program.hash), ("app", "of another policy, or behind a reload")):
        assert work.of(name, after, known.of(caller, program))[0] == unknown
