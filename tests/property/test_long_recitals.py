"""G10, G33: looking for recitals takes time and room in proportion to the text, in steps that are short."""

from __future__ import annotations

import json
import random
import sys
import time

import pytest

from checkstream.core.exchange.plan import Plan
from checkstream.core.match.fingerprints import Fingerprints
from checkstream.core.match.patterns import Pattern
from checkstream.core.match.recital import MOST_BETWEEN, PIECE_WORDS, Recital
from checkstream.core.match.work import Work
from checkstream.core.wire.surfaces import SURFACES
from tests.fingerprinted import KEEPER, compiled, file_of
from tests.hostile_answers import END, streamed_text, whole_text
from tests.watchdog import answered, guard_of, long_steps, pace, steps

CHANCE = random.Random(5)
BOOK = " ".join(CHANCE.choice(KEEPER.split()) for _ in range(3000))
FILE = file_of([" a" * 500, KEEPER * 5, "\u6f22\u5b57" * 300, BOOK], 8)
TEXTS = {
    "recited": BOOK,
    "one letter": "a " * 4000,
    "characters": "\u6f22\u5b57" * 4000,
    "other characters": "\u6f22\u6771" * 4000,
    "escapes": "\\u0061 " * 1200,
    "line ends": "\\n" * 4000,
    "percents": "%41" * 2500,
    "references": "&" * 8000,
    "nothing": "a\u200b " * 2500,
    "far apart": ("a" + "." * (MOST_BETWEEN - 1)) * 30,
    "one word": "a" * 8000,
    "stitched": " ".join(" ".join(CHANCE.sample(KEEPER.split(), 3)) for _ in range(600)),
}
PLAN = Plan(
    program=compiled(
        "  - {name: r, id: R-1, stage: [midstream], fingerprints: [{file: books.fp}, {file: others.fp}], "
        "actions: [{type: redact}]}\n",
        books=FILE,
        others=file_of([" a" * 300, KEEPER]),
    )
)
CHAT = SURFACES["openai.chat"]


def read(text: str, size: int = 64) -> tuple[Recital, int, int]:
    """Return what has read a text, the most characters that were held, and the bytes of its state."""
    recital, held = Recital([Pattern(signal=0, name="b", texts=Fingerprints(FILE), words=8)], Work()), 0
    for at in range(0, len(text), size):
        recital.feed(text[at : at + size])
        held = max(held, min(at + size, len(text)) - recital.live)
    known = recital._known
    return recital, held, sum(map(sys.getsizeof, (known.numbers, known.starts, known.ends)))


@pytest.mark.parametrize("name", TEXTS)
def test_g10_twice_the_text_is_twice_the_work_and_no_more_room(name: str) -> None:
    one, held, size = read(TEXTS[name])
    two, most, more = read(TEXTS[name] * 2)
    assert two.work.done <= 2.1 * one.work.done + 100
    assert most <= max(held, PIECE_WORDS * (MOST_BETWEEN + 64))
    assert more <= max(2 * size, 60_000)


@pytest.mark.parametrize("name", TEXTS)
def test_g33_no_more_time_is_taken_than_is_counted(name: str) -> None:
    shares = list[float]()
    while len(shares) < 7 and min(shares, default=2.0) > 1:
        began = time.thread_time()
        recital, _, _ = read(TEXTS[name], 256)
        shares.append((time.thread_time() - began) * 1e6 / pace() / (2 * recital.work.done + 5000))
    assert min(shares) <= 1


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", TEXTS)
def test_g33_no_step_on_an_answer_is_long(name: str, stream: bool) -> None:
    text = TEXTS[name]
    asked = json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}]}).encode()
    body = streamed_text(text) + END if stream else whole_text(text)
    events = answered(asked, body, streaming=stream)
    assert long_steps(lambda: steps(guard_of(CHAT, PLAN), events)) == []
