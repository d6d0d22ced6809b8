"""Answers and requests of very many parts, messages, blocks, items or members, each of a few letters.

Readers may put them together, so what they say is one text, cut at each of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from checkstream.core.exchange.guard import Guard
from checkstream.core.exchange.plan import Plan
from checkstream.core.wire.surface import Surface
from checkstream.core.wire.surfaces import SURFACES
from tests import hostile_answers as chat
from tests import messages as blocks
from tests import responses
from tests.watchdog import answered, guard_of, steps

_CHAT = SURFACES["openai.chat"]
_OLLAMA = SURFACES["ollama.chat"]
_ASKED = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
_ASKED_WHOLE = json.dumps({"model": "m", "stream": False, "messages": [{"role": "user", "content": "hi"}]}).encode()

SAID: Mapping[str, Callable[[int], str]] = MappingProxyType({
    "letters": lambda _: "a",
    "letters that differ": lambda n: "etaoinshrdlu"[n * 7 % 12],
    "letters and a gap": lambda _: "a ",
    "words": lambda _: "word ",
    "words without gaps": lambda _: "word",
    "lines": lambda _: "word\n",
    "digits": lambda n: str(n * 7 % 10),
    "digits and a gap": lambda n: f"{n * 7 % 10} ",
    "groups of digits": lambda n: f"{1000 + n % 977}",
    "what nobody sees": lambda _: "\u200b",
    "letters and what nobody sees": lambda _: "a\u200b",
    "strokes": lambda _: "a\u0336",
    "dots": lambda _: "a.",
    "stars": lambda _: "*a*",
    "eyJ": lambda _: "eyJ",
    "eyJ and dots": lambda _: "eyJ.",
    "base64": lambda _: "QUJD",
    "hex": lambda _: "6a6f",
    "hex and a gap": lambda _: "6a 6f ",
    "percent": lambda _: "%41",
    "backslashes": lambda _: "\\u0061",
    "references": lambda _: "&#65;",
    "leet": lambda _: "1gn0r3",
    "begun keys": lambda _: "-----BEGIN ",
    "keys": lambda _: "-----BEGIN PRIVATE KEY-----\n",
    "addresses that never come": lambda _: "a@",
    "hosts": lambda _: "http://",
    "labels": lambda _: "phone: ",
    "addresses": lambda n: f"u{n}@example.com",
    "addresses and a gap": lambda n: f"u{n}@example.com ",
    "halves of addresses": lambda n: "@example.com, " if n % 2 else f"u{n}",
    "cards": lambda _: "4111111111111111",
    "cards and a gap": lambda _: "4111 1111 1111 1111 ",
    "phrases": lambda n: "risk" if n % 2 else "zero",
    "emoji": lambda _: "\U0001f600",
    "Chinese": lambda _: "\u6f22",
})  # fmt: skip
"""What each part says, by its number."""

Texts = Sequence[str]


class Told(msgspec.Struct, frozen=True):
    """A form in which parts come."""

    surface: Surface
    body: Callable[[Texts], bytes]
    """Of the answer, or of the request."""
    asked: bytes = b""
    """The request; empty: the body is one."""
    streaming: bool = True


def work_of(told: Told, texts: Texts, plan: Plan) -> int:
    """Return what an exchange costs that tells some texts so."""
    body = told.body(texts)
    asked, body = (told.asked, body) if told.asked else (body, b"")
    guard = guard_of(told.surface, plan)
    assert isinstance(guard, Guard)
    meter = guard._course.checking.meter
    steps(guard, answered(asked, body, streaming=told.streaming))
    return meter.spent


def _part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _chat_whole(message: dict[str, Any]) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return json.dumps({"id": "c", "object": "chat.completion", "choices": [choice]}).encode()


def _items(texts: Texts) -> list[dict[str, Any]]:
    return [responses.message(text, id=f"m{n}") for n, text in enumerate(texts)]


def _last_word(*items: dict[str, Any], **more: Any) -> bytes:
    stream = responses.Stream(1)
    stream.end(*items, **more)
    return stream.joined


def _answer(*items: dict[str, Any]) -> bytes:
    return responses.answer(*items, pieces=1)


def _block_of(form: str, member: str) -> Callable[[Texts], bytes]:
    return lambda texts: blocks.whole(*({"type": form, member: text} for text in texts))


def _chat(body: Callable[[Texts], bytes]) -> Told:
    return Told(_CHAT, lambda texts: body(texts) + chat.END, _ASKED)


def _chat_alone(body: Callable[[Texts], dict[str, Any]]) -> Told:
    return Told(_CHAT, lambda texts: _chat_whole(body(texts)), _ASKED_WHOLE, streaming=False)


def _said(body: Callable[[Texts], bytes], *, streaming: bool = True) -> Told:
    return Told(responses.RESPONSES, body, responses.request(stream=streaming), streaming)


def _told(body: Callable[[Texts], bytes], *, streaming: bool = True) -> Told:
    return Told(blocks.MESSAGES, body, blocks.request(stream=streaming), streaming)


def _line(**message: Any) -> bytes:
    done = {"done": False} if message else {"done": True, "done_reason": "stop"}
    return (
        json.dumps({"model": "m", "message": {"role": "assistant", "content": "", **message}, **done}).encode() + b"\n"
    )


def _ollama(body: Callable[[Texts], bytes]) -> Told:
    return Told(_OLLAMA, lambda texts: body(texts) + _line(), _ASKED)


def _turns(texts: Texts) -> list[dict[str, Any]]:
    return [{"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(texts)]


ANSWERS: Mapping[str, Told] = MappingProxyType({
    "chat: parts of one event": _chat(lambda texts: chat.event({"content": [_part(each) for each in texts]})),
    "chat: parts of many events": _chat(
        lambda texts: b"".join(chat.event({"content": [_part(each)]}) for each in texts)
    ),
    "chat: parts by turns": _chat(
        lambda texts: b"".join(
            chat.event({"content": [{**_part(each), "index": n}]}) for n, each in enumerate(texts)
        )
    ),
    "chat: texts": _chat(lambda texts: b"".join(chat.event({"content": each}) for each in texts)),
    "chat: details of reasoning": _chat(
        lambda texts: chat.event({"reasoning_details": [{"text": each, "index": n} for n, each in enumerate(texts)]})
    ),
    "chat: details of many events": _chat(lambda texts: b"".join(
        chat.event({"reasoning_details": [{"text": each, "index": n}]}) for n, each in enumerate(texts[:1000])
    )),
    "chat: strings nobody knows": _chat(lambda texts: chat.event({"x": list(texts)})),
    "chat: strings nobody knows in many events": _chat(
        lambda texts: b"".join(chat.event({"x": [each]}) for each in texts)
    ),
    "chat: strings nobody knows at many places": _chat(
        lambda texts: b"".join(chat.event({"x": [{"index": n, "y": each}]}) for n, each in enumerate(texts[:1000]))
    ),
    "chat: thoughts and words by turns": _chat(
        lambda texts: b"".join(
            chat.event({"reasoning_content" if n % 2 else "content": each}) for n, each in enumerate(texts)
        )
    ),
    "chat: custom calls": _chat(
        lambda texts: b"".join(
            chat.event({"tool_calls": [
                {"index": n, "id": f"c{n}", "type": "custom", "custom": {"name": "f", "input": each}}
            ]})
            for n, each in enumerate(texts[:500])
        )
    ),
    "chat: whole, of parts": _chat_alone(lambda texts: {"content": [_part(each) for each in texts]}),
    "chat: whole, strings nobody knows": _chat_alone(lambda texts: {"content": "a", "x": list(texts)}),
    "responses: parts": _said(lambda texts: _answer(responses.message(*texts))),
    "responses: messages": _said(lambda texts: _answer(*_items(texts))),
    "responses: thoughts": _said(lambda texts: _answer(responses.reasoning(*texts))),
    "responses: strings nobody knows": _said(lambda texts: _answer({**responses.message("a"), "x": list(texts)})),
    "responses: items nobody knows": _said(lambda texts: _answer(
        *({"id": f"x{n}", "type": "strange", "says": each} for n, each in enumerate(texts))
    )),
    "responses: searches": _said(
        lambda texts: _answer(*(responses.search(each, number=n) for n, each in enumerate(texts)))
    ),
    "responses: parts in the last word": _said(lambda texts: _last_word(responses.message(*texts))),
    "responses: messages in the last word": _said(lambda texts: _last_word(*_items(texts))),
    "responses: thoughts in the last word": _said(lambda texts: _last_word(responses.reasoning(*texts))),
    "responses: strings in the last word": _said(lambda texts: _last_word(responses.message("a"), x=list(texts))),
    "responses: whole, of parts": _said(lambda texts: responses.whole(responses.message(*texts)), streaming=False),
    "responses: whole, of messages": _said(lambda texts: responses.whole(*_items(texts)), streaming=False),
    "responses: whole, of thoughts": _said(lambda texts: responses.whole(responses.reasoning(*texts)), streaming=False),
    "responses: whole, of strings nobody knows": _said(
        lambda texts: responses.whole({**responses.message("a"), "x": list(texts)}), streaming=False
    ),
    "messages: blocks": _told(
        lambda texts: blocks.answer(*(blocks.text(n, each) for n, each in enumerate(texts)))
    ),
    "messages: thoughts": _told(
        lambda texts: blocks.answer(*(blocks.thought(n, each) for n, each in enumerate(texts)))
    ),
    "messages: whole, of blocks": _told(_block_of("text", "text"), streaming=False),
    "messages: whole, of blocks nobody knows": _told(_block_of("strange", "says"), streaming=False),
    "ollama: texts": _ollama(lambda texts: b"".join(_line(content=each) for each in texts)),
    "ollama: strings nobody knows": _ollama(lambda texts: _line(content="a", x=list(texts))),
})  # fmt: skip

REQUESTS: Mapping[str, Told] = MappingProxyType({
    "chat: asked in messages": Told(
        _CHAT, lambda texts: json.dumps({"model": "m", "messages": _turns(texts)}).encode()
    ),
    "chat: asked in messages of one role": Told(
        _CHAT,
        lambda texts: json.dumps(
            {"model": "m", "messages": [{"role": "user", "content": each} for each in texts]}
        ).encode(),
    ),
    "chat: asked in parts": Told(
        _CHAT,
        lambda texts: json.dumps(
            {"model": "m", "messages": [{"role": "user", "content": [_part(each) for each in texts]}]}
        ).encode(),
    ),
    "chat: asked in strings nobody knows": Told(
        _CHAT, lambda texts: json.dumps({**json.loads(_ASKED), "x": list(texts)}).encode()
    ),
    "responses: asked in messages": Told(
        responses.RESPONSES, lambda texts: responses.request([{"role": "user", "content": each} for each in texts])
    ),
    "responses: asked in parts": Told(
        responses.RESPONSES,
        lambda texts: responses.request(
            [{"role": "user", "content": [{"type": "input_text", "text": each} for each in texts]}]
        ),
    ),
    "messages: asked in blocks": Told(
        blocks.MESSAGES, lambda texts: blocks.request([_part(each) for each in texts])
    ),
})  # fmt: skip
