"""Laws of the views: the same however they are read, maps in order, and the identity where nothing is evaded."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.match.apart import Spaced
from checkstream.core.match.chain import undecided
from checkstream.core.match.escapes import Unescaped
from checkstream.core.match.markup import Unmarked
from checkstream.core.match.normalise import Folded, Leet, View
from tests.chance import examples
from tests.property.match_strategies import cuts, pieces

HOSTILE = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            "abI -._1&;%\\u{}U@*~`<>/!525amp;"
            "0xDde8C34#39!|\u0301\u0323\u200b\u20dd\ufe0f\u1112\u1161\u11ab\u0430é½ﬁ\u00ad"
        ),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=40,
)
VIEWS: list[Callable[[], View]] = [Folded, Unmarked, Spaced, Leet, Unescaped]


def read(view: View, text: list[str]) -> tuple[str, list[int], list[int]]:
    """Read pieces one after the other, then the end."""
    out, starts, ends = "", list[int](), list[int]()
    unread, at = "", 0
    for piece in [*text, None]:
        source = unread + (piece or "")
        reading = view.read(
            source, range(at, at + len(source)), range(at + 1, at + len(source) + 1), ended=piece is None
        )
        out += reading.text
        starts += reading.starts
        ends += reading.ends
        unread, at = source[reading.used :], at + reading.used
    assert not unread
    return out, starts, ends


@pytest.mark.parametrize("make", VIEWS)
@given(text=HOSTILE, at=cuts)
@settings(max_examples=examples(150))
def test_g09_a_view_and_its_map_are_the_same_however_the_text_is_cut(
    make: Callable[[], View], text: str, at: list[int]
) -> None:
    whole = read(make(), [text])
    assert read(make(), pieces(text, at)) == whole
    assert read(make(), list(text)) == whole
    out, starts, ends = whole
    assert len(out) == len(starts) == len(ends)
    assert starts == sorted(starts)
    assert ends == sorted(ends)
    assert all(0 <= start < end <= len(text) for start, end in zip(starts, ends, strict=True))


@pytest.mark.parametrize("make", VIEWS)
@given(text=HOSTILE)
@settings(max_examples=examples(150))
def test_g09_where_a_view_reports_no_change_it_is_the_identity(make: Callable[[], View], text: str) -> None:
    reading = make().read(text, range(len(text)), range(1, len(text) + 1), ended=True)
    if reading.changed < 0:
        assert reading.text == text
        assert list(reading.starts) == list(range(len(text)))
        assert list(reading.ends) == list(range(1, len(text) + 1))
    else:
        tail = text[reading.changed :]
        assert reading.text.endswith(tail)
        assert list(reading.starts)[len(reading.text) - len(tail) :] == list(range(reading.changed, len(text)))


@given(st.text(alphabet="ab1I .-_!*<>/@\n", max_size=14))
@settings(max_examples=examples(200))
def test_asleep_a_view_has_stopped_where_it_would_awake(text: str) -> None:
    folded = Folded().read(text, range(len(text)), range(1, len(text) + 1), ended=False)
    unmarked = Unmarked().read(folded.text, folded.starts, folded.ends, ended=False)
    spaced = Spaced().read(unmarked.text, unmarked.starts, unmarked.ends, ended=False)
    if max(unmarked.changed, spaced.changed) < 0 and not any(len(run) > 6 for run in text.split()):
        _, first, second, third, _ = undecided(text)
        assert (first, second) == (folded.used, unmarked.used)
        if spaced.used != third:  # only where four singles stand, which wakes the view
            assert spaced.used < third or "".join(text[spaced.used :].split()) != ""
