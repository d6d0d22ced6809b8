"""RAG verification with a judge that is asked, and chunks of any shape."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from checkstream.grounding import rag
from checkstream.grounding.terms import Passage


class Asked:
    """A judge that remembers what it was asked."""

    def __init__(self, alignment: str | None, facts: str | None) -> None:
        self.replies = (alignment, facts)
        self.asked: list[int] = []

    async def alignment(self, query: str, answer: str, passages: Sequence[Passage]) -> str | None:
        assert query
        assert answer
        self.asked.append(len(passages))
        return self.replies[0]

    async def facts(self, answer: str, passages: Sequence[Passage]) -> str | None:
        assert answer
        self.asked.append(len(passages))
        return self.replies[1]


def chunks(count: int) -> list[Passage]:
    return [Passage(id=f"c{at}", text="Apple revenue", metadata={"ticker": "AAPL"}) for at in range(count)]


async def test_the_judge_sees_five_chunks_for_alignment_and_ten_for_facts() -> None:
    judge = Asked('{"score": 1}', None)
    found = await rag.verify("q", "AAPL", chunks(12), judge)
    assert judge.asked == [5, 10]
    assert found.degraded == ("fact_verification",)


async def test_nothing_is_asked_without_chunks() -> None:
    judge = Asked('{"score": 1}', None)
    assert (await rag.verify("q", "AAPL", [], judge)).issues == ("No sources retrieved",)
    assert judge.asked == []


def test_the_output_has_the_fields_of_the_design() -> None:
    sent = msgspec.json.decode(msgspec.json.encode(rag.reckoned("AAPL", chunks(1), None, None)))
    assert list(sent) == [
        *("overall_score", "answer_source_alignment", "citation_coverage", "fact_verification_score", "issues"),
        *("verified_sources", "unverified_claims", "degraded"),
    ]


@pytest.mark.parametrize("given", [None, "text", 5, {}, [None], [{"text": 5}], [[]]])
def test_chunks_of_another_shape_are_left_out(given: object) -> None:
    assert rag.passages_of(given) == []


def test_metadata_is_read_as_text() -> None:
    (found,) = rag.passages_of([{"text": "x", "metadata": {"year": 2023, "tags": ["a"], "ticker": None}}])
    assert (found.id, dict(found.metadata)) == ("1", {"year": "2023"})


def test_a_chunk_whose_id_is_null_is_named_by_its_place() -> None:
    assert [passage.id for passage in rag.passages_of([{"chunk_id": None, "text": "a"}, {"text": "b"}])] == ["1", "2"]


@pytest.mark.parametrize(
    ("answer", "identifier", "cited"),
    [
        ("AAPL rose.", "AAPL", True),
        ("aapl rose.", "AAPL", True),
        ("AAPLE rose.", "AAPL", False),
        ("xAAPL rose.", "AAPL", False),
        ("AAPL_1 rose.", "AAPL", False),
        ("As it is.", "IT", False),
        ("As IT is.", "IT", True),
        ("ITIT IT", "IT", True),
        ("a 10-K of 2023", "10-K", True),
        ("a 110-K of 2023", "10-K", False),
        ("see (Inc.) there", "(Inc.)", True),
        ("S\u00c4GE AG grew", "s\u00e4ge ag", True),
        ("\u05d4\u05d3\u05d5\u05d7 2023", "2023", True),
        ("a" * 50_000, "aaaa", False),
        ("", "AAPL", False),
        ("\0A\0A\0", "A", True),
    ],
)
def test_an_identifier_is_a_whole_word(answer: str, identifier: str, *, cited: bool) -> None:
    chunk = Passage(id="c", text="x", metadata={"ticker": identifier})
    assert (rag.citation_coverage(answer, [chunk]) >= 1) is cited
