import base64

import pytest

from checkstream.core.match.encoded import BLOCK_CHARS, Encoded
from checkstream.core.match.lane import Found
from checkstream.core.match.patterns import Pattern, PatternSet
from checkstream.core.match.scan import Scan

PATTERNS = PatternSet([Pattern(signal=0, name="secret", regex="(?i)the secret|geheimnis é{1,99}")])


def begin() -> Scan:
    return Scan(PATTERNS)


def found(text: str, cut: int = 0) -> list[Found]:
    encoded = Encoded(begin, 0)
    out: list[Found] = []
    for size in [*range(1, len(text), cut or len(text)), len(text)]:
        encoded.read(text[encoded.at : size], out, ended=False)
        assert encoded.live <= size
    encoded.read(text[encoded.at :], out, ended=True)
    return out


def encode(text: str, *, url: bool = False) -> str:
    return (base64.urlsafe_b64encode if url else base64.b64encode)(text.encode()).decode()


@pytest.mark.parametrize("cut", [0, 1, 7])
@pytest.mark.parametrize("before", ["", "x: ", "abc", "ab", "a", "word "])
@pytest.mark.parametrize("url", [False, True])
def test_a_text_that_stands_encoded_is_found_at_each_alignment(before: str, cut: int, *, url: bool) -> None:
    code = encode("here is the secret of all things that were ever said, ÿÿ? and more of it", url=url)
    text = f"{before}{code} end"
    hits = found(text, cut)
    assert len(hits) == 1
    start, end = len(before) + 8 // 3 * 4, len(before) + -(-18 // 3) * 4
    assert (hits[0].start, hits[0].end) == (start, end)
    assert "the secret" in base64.urlsafe_b64decode(text[start:end].replace("+", "-").replace("/", "_")).decode()


def test_text_goes_on_over_blocks_and_characters_over_their_borders() -> None:
    said = "ab" + "é" * 23 + "geheimnis " + "é" * 40
    code = encode(said)
    assert len(code) > 2 * BLOCK_CHARS
    assert found(code) == found(code, 1) != []


@pytest.mark.parametrize("cut", [0, 1, 7])
@pytest.mark.parametrize("width", [64, 76])
@pytest.mark.parametrize("wrap", ["\n", "\r\n", "\\n", "\n> ", "\n    ", '" +\n    "', '", "', "\\r\\n"])
def test_a_text_goes_on_over_the_ends_of_its_lines(wrap: str, width: int, cut: int) -> None:
    code = encode("it was said in " + "a long line, " * 9 + "that the secret is this " + "and more " * 9)
    text = wrap.join(code[at : at + width] for at in range(0, len(code), width)) + "\nend of it"
    assert [text[hit.start : hit.end].replace(wrap, "") for hit in found(text, cut)] == [
        code[(place := 15 + 13 * 9 + 5) // 3 * 4 : -(-(place + 10) // 3) * 4]
    ]


def test_a_short_run_or_one_that_is_no_text_is_left_alone() -> None:
    assert found("dGhlIHNlY3I") == []
    assert found(base64.b64encode(bytes(range(128, 256))).decode()) == []
    assert found("internationalisation of state-of-the-art/paths/and/more") == []


def test_what_is_not_decided_is_at_most_a_block() -> None:
    encoded = Encoded(begin, 0)
    text = "A" * 1000
    encoded.read(text, [], ended=False)
    assert len(text) - encoded.at < BLOCK_CHARS
    assert encoded.live == encoded.at
