"""Fields that servers encrypt for themselves: chance passes, and what says something is read."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.commands import ForwardRequest, Record
from checkstream.core.events import DownstreamClosed, RequestReceived
from checkstream.core.wire.sealed import SEALED, is_sealed
from checkstream.core.wire.surfaces import SURFACES
from tests.chance import examples
from tests.guarded import plan, request
from tests.playbook import Exchange, play

RULES = "  - {name: c, id: CARD-1, entities: [CREDIT_CARD, EMAIL], actions: [{type: redact}]}\n"
CIPHERS = (base64.b64encode, base64.urlsafe_b64encode)


def chance(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 1 << 30), st.integers(96, 3000), st.sampled_from(CIPHERS), st.booleans())
def test_chance_is_sealed_in_either_alphabet_with_and_without_its_end(
    seed: int, size: int, encode: Callable[[bytes], bytes], padded: bool
) -> None:
    said = encode(chance(seed, size)).decode()
    assert is_sealed(said if padded else said.rstrip("="))


SAID = [
    "my card is 4111 1111 1111 1111, and so on",
    "john.doe@example.com writes to you",
    "мой адрес в Москве улица Ленина",
]


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(SAID),
    st.sampled_from(["utf-8", "utf-16-le", "utf-16-be", "utf-32-le"]),
    st.integers(0, 2000),
    st.integers(0, 2000),
    st.sampled_from(CIPHERS),
)
def test_g34_text_in_base64_is_not_sealed_whatever_stands_around_it(
    said: str, code: str, before: int, behind: int, encode: Callable[[bytes], bytes]
) -> None:
    data = chance(1, before) + said.encode(code) + chance(2, behind)
    assert not is_sealed(encode(data).decode())


@pytest.mark.parametrize(
    "said", ["4111111111111111", "a" * 200, "johndoeatexampledotcomjohndoe", "john.doe@example.com"]
)
def test_g34_what_is_said_in_the_characters_themselves_is_not_sealed(said: str) -> None:
    noise = base64.b64encode(chance(3, 300)).decode()
    assert not is_sealed(noise + said + noise)
    assert not is_sealed(said)


@pytest.mark.parametrize("name", sorted(SEALED))
def test_g37_what_is_sealed_passes_both_ways_and_stands_in_the_record(name: str) -> None:
    seal = base64.urlsafe_b64encode(chance(4, 60_000)).decode()
    detail = {"type": "reasoning.encrypted", name: seal}
    message = {"role": "assistant", "content": "Hello.", "reasoning_details": [detail]}
    exchange = Exchange(SURFACES["openai.chat"], plan(RULES))
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}, message, {"role": "user", "content": "Go"}]}
    exchange.send(RequestReceived(json.dumps(asked).encode()))
    (forwarded,) = [each for each in exchange.out.commands if isinstance(each, ForwardRequest)]
    assert json.loads(forwarded.body) == asked
    exchange.send(DownstreamClosed())
    (record,) = [each.record for each in exchange.out.commands if isinstance(each, Record)]
    assert [place for place in record.unscanned if name[:4] in place]
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    out = play(
        SURFACES["openai.chat"], plan(RULES), request(stream=False), [json.dumps(body).encode()], streaming=False
    )
    assert out.reply is not None
    assert json.loads(out.reply.body) == body
