"""An answer that turns is one answer: seamless however either part is cut, streamed as whole, on every surface."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tests.continued import NAMES, answer, came, forwarded, run, told

SPACES = st.sampled_from(["", " ", "\n", "\n\n", " \n", "  "])
WORD = st.sampled_from(["Live", "well", "a@b.example.com", "moon", "\u00c4rger", "\U0001f30a"])
WORDS = st.lists(WORD, min_size=1, max_size=5).map(lambda words: " ".join(words) + "!")
PARTS = st.tuples(WORDS, SPACES, SPACES, WORDS)
"""What is said before the cut, the white space before it and behind it, and what is said then."""


def cut(data: bytes, at: list[float]) -> list[bytes]:
    edges = sorted({0, len(data), *(int(each * len(data)) for each in at)})
    return [data[one:other] for one, other in itertools.pairwise(edges)]


CUTS = st.lists(st.floats(0, 1), max_size=6)


@given(st.sampled_from(NAMES), PARTS, st.integers(1, 9), CUTS, CUTS)
def test_g01_a_continued_answer_is_the_same_streamed_and_whole(
    name: str, parts: tuple[str, str, str, str], size: int, one: list[float], other: list[float]
) -> None:
    begun, behind, before, rest = parts
    first, second = f"{begun}{behind}launder money with shops.", f"{before}{rest}"
    texts = []
    for stream in (True, False):
        pieces = [[text[at : at + size] for at in range(0, len(text), size)] for text in (first, second)]
        bodies = [answer(name, each, stream=stream) for each in pieces]
        played = run(name, cut(bodies[0], one), cut(bodies[1], other), stream=stream)
        texts.append(told(name, came(played), stream=stream)[0])
        assert len(forwarded(played)) == 2
        assert played.record is not None
        assert (played.record.action, played.record.outcome) == ("safe_mode", "complete")
        assert played.record.turned_at == len(begun) + len(behind)
    assert texts[0] == texts[1]
    assert "launder" not in texts[0]
    assert "a@b" not in texts[0]
    if name != "anthropic.messages":
        assert texts[0] == f"{begun}{behind}{before}{rest}".replace("a@b.example.com", "[EMAIL]")


@given(PARTS, st.integers(1, 9))
def test_g12_white_space_that_anthropics_models_do_not_get_to_see_is_said_once(
    parts: tuple[str, str, str, str], size: int
) -> None:
    """The model goes on from the text without it, and says it again, or not."""
    begun, behind, before, rest = parts
    for said in (f"{behind}{before}{rest}", rest):
        pieces = [said[at : at + size] for at in range(0, len(said), size)]
        first = answer("anthropic.messages", [f"{begun}{behind}", "launder money"], stream=True)
        second = answer("anthropic.messages", pieces, stream=True)
        played = run("anthropic.messages", [first], [second], stream=True)
        asked = forwarded(played)[1]["messages"][-1]
        assert asked == {"role": "assistant", "content": begun.replace("a@b.example.com", "[EMAIL]")}
        seam = behind if said == rest else f"{behind}{before}"
        assert told("anthropic.messages", came(played), stream=True)[0] == f"{begun}{seam}{rest}".replace(
            "a@b.example.com", "[EMAIL]"
        )


def test_g04_what_the_seam_spells_is_matched_as_it_leaves() -> None:
    """With the white space said twice, the phrase would not be one, and it would leave as one."""
    for stream in (True, False):
        first = answer("anthropic.messages", ["Once in a ", "blue", " launder money"], stream=stream)
        second = answer("anthropic.messages", [" mo", "on it is."], stream=stream)
        played = run("anthropic.messages", [first], [second], stream=stream)
        text = told("anthropic.messages", came(played), stream=stream)[0]
        assert "blue moon" not in text, stream
