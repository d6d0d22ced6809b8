"""G10 and G33: an answer costs what it says, in however many parts, messages or blocks it says it.

Readers put parts together, with nothing or with a space between them: a value that is cut over them is found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.channel.matches import Matches
from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.match.scan import Scan
from checkstream.core.steps import done
from checkstream.core.terms import Span
from tests.chance import examples
from tests.guarded import plan
from tests.hostile_parts import ANSWERS, REQUESTS, SAID, Told, work_of
from tests.playbook import play
from tests.watchdog import everything

FORMS = {**ANSWERS, **REQUESTS}
FEW, MANY = 100, 400
DEAR = ("letters", "digits", "hex", "what nobody sees", "eyJ", "addresses")
"""Texts of which each is dear in another way."""
TIMES = 2
"""What parts cost at most, in readings of the same text with nothing and with spaces between them ..."""
A_PART = 2000
"""... but for beginning and ending each, whatever it says."""
NAMED = ("responses: parts", "responses: whole, of messages", "messages: blocks", "chat: whole, of parts")


def texts(said: str, count: int) -> list[str]:
    return [SAID[said](number) for number in range(count)]


def most(said: str, count: int) -> int:
    """Return what so many parts may cost: little more than the same text in so many pieces, which stands in none."""
    pieces, plain = texts(said, count), ANSWERS["chat: texts"]
    once = work_of(plain, pieces, everything()) + work_of(plain, [f"{each} " for each in pieces], everything())
    return TIMES * once + A_PART * count


@pytest.mark.parametrize("said", DEAR)
@pytest.mark.parametrize("form", NAMED)
def test_g10_parts_of_a_text_cost_little_more_than_the_text(form: str, said: str) -> None:
    assert work_of(FORMS[form], texts(said, FEW), everything()) <= most(said, FEW)


@pytest.mark.nightly
@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("form", NAMED)
def test_g10_very_many_parts_of_a_text_cost_little_more_than_the_text(form: str, said: str) -> None:
    assert work_of(FORMS[form], texts(said, MANY), everything()) <= most(said, MANY)


# --- what is found over parts

PATTERNS = PatternSet([
    Pattern(signal=0, name="address", regex="[a-z]{1,9}@[a-z]{1,9}"),
    Pattern(signal=1, name="order", regex="ab? cd (?:ef )?gh"),
    Pattern(signal=2, name="number", regex="[0-9]{2} [0-9]{2,3}"),
])  # fmt: skip
PIECES = st.sampled_from(["a", "ab", "cd", "ef", "gh", " ", "a@b", "@", "12", "3", "45 6", "x. ", "ab cd", "\u200b"])


def _from(text: str) -> Callable[[int], str]:
    return lambda start: text[start:]


def found_over(parts: Sequence[str], sizes: Sequence[int]) -> set[tuple[int, Span]]:
    """Return what is found in some parts, fed in pieces of these sizes."""
    matches, text = Matches(PATTERNS), ""
    for number, part in enumerate(parts):
        if number:
            done(matches.parting(len(text), _from(text), 0, spaced=True))
        at = 0
        while at < len(part):
            size = sizes[(len(text) + at) % len(sizes)]
            matches.feed(part[at : at + size])
            at += size
        text += part
    matches.end()
    return {(each.signal, each.span) for each in matches.found}


def over_gaps(parts: Sequence[str]) -> set[tuple[int, Span]]:
    """Return what stands over the bounds of parts that have a space between them, and of which no part has any."""
    scan = Scan(PATTERNS)
    found = scan.feed(" ".join(parts)) + scan.end()
    starts = [sum(len(part) + 1 for part in parts[:number]) for number in range(len(parts))]
    over = set[tuple[int, Span]]()
    for each in found:
        touched = [n for n, at in enumerate(starts) if at < each.span.end and each.span.start < at + len(parts[n])]
        own = [finding for n in touched for finding in _alone(parts[n])]
        if len(touched) > 1 and all(finding != each.signal for finding in own):
            first, last = touched[0], touched[-1]
            over.add((each.signal, Span(each.span.start - first, each.span.end - last)))
    return over


def _alone(part: str) -> list[int]:
    scan = Scan(PATTERNS)
    return [each.signal for each in scan.feed(part) + scan.end()]


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.lists(PIECES, min_size=1, max_size=4).map("".join), min_size=2, max_size=8),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
)
def test_g09_what_stands_over_spaces_between_parts_is_found_however_they_are_cut(
    parts: list[str], sizes: list[int]
) -> None:
    found = found_over(parts, [1_000])
    assert over_gaps(parts) <= found
    assert found_over(parts, sizes) == found


WORDS = ["zebra", "crossing", "ahead", "tonight"]
RULES = """  - name: m
    id: PII-1
    stage: [midstream]
    phrases: [zebra crossing ahead tonight]
    actions: [{type: redact, text: "-"}]
"""


@pytest.mark.parametrize("form", [name for name, told in ANSWERS.items() if name in NAMED and told.asked])
@pytest.mark.parametrize("places", [(1,), (2, 3), (1, 2, 3)])
def test_g34_what_is_said_over_three_parts_and_more_is_found_with_spaces_between(
    form: str, places: tuple[int, ...]
) -> None:
    said: list[str] = []
    for low, high in zip((0, *places), (*places, len(WORDS)), strict=True):
        said.append(" ".join(WORDS[low:high]))
    told: Told = ANSWERS[form]
    got = play(told.surface, plan(RULES), told.asked, [told.body(["See: ", *said, " End."])], streaming=told.streaming)
    out = got.joined if told.streaming else got.reply.body if got.reply else b""
    assert b"See: " in out
    assert b"End." in out
    assert not [word for word in WORDS if word.encode() in out]


@pytest.mark.parametrize("form", ["chat: details of many events", "chat: thoughts and words by turns"])
@pytest.mark.parametrize("said", ["what nobody sees", "digits"])
def test_g10_a_text_is_read_by_itself_once_however_many_stand_behind_it(
    form: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beginning to read is what costs there: each finding over a hundred texts asked each of them anew."""
    begun, counts = Scan.__init__, list[int]()

    def counting(self: Scan, *args: Any, **more: Any) -> None:
        counts[-1] += 1
        begun(self, *args, **more)

    monkeypatch.setattr(Scan, "__init__", counting)
    for count in (FEW, 2 * FEW):
        counts.append(0)
        work_of(FORMS[form], texts(said, count), everything())
    assert counts[1] <= 2.1 * counts[0]
    assert counts[1] <= 20 * 2 * FEW


@pytest.mark.nightly
@pytest.mark.parametrize("said", ["letters", "digits", "addresses"])
@pytest.mark.parametrize("form", FORMS)
def test_g10_twice_the_parts_are_twice_the_work(form: str, said: str) -> None:
    """Of so many: what is live of a text grows up to the longest of what is looked for, and no further.

    That is reached later in a request, whose texts are read together only once all are there.
    """
    least = 500 if FORMS[form].asked else 1000
    few, many = (work_of(FORMS[form], texts(said, count), everything()) for count in (least, 2 * least))
    assert many <= 2.5 * few
