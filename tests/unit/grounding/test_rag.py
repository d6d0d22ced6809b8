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
