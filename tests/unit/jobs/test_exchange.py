from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.errors import JobInvalid
from checkstream.grounding.terms import Passage
from checkstream.jobs.exchange import Exchange, Message, conversation_key, read_scoring_job, scoring_jobs
from tests.jobs_store import job

TEXT = st.text(st.characters(codec="utf-8"))


@given(TEXT, TEXT, TEXT, TEXT)
def test_an_exchange_is_read_as_it_was_written(prompt: str, answer: str, document: str, stream: str) -> None:
    exchange = Exchange(
        stream=stream,
        route="chat",
        surface="openai_chat",
        messages=(Message("user", prompt),),
        answer=answer,
        documents=(Passage(id="d", text=document, metadata={"year": "2023"}),),
    )
    one, two = scoring_jobs(exchange, ["watchdog", "rag"], 7, 1 << 20)
    assert read_scoring_job(one) == ("watchdog", exchange)
    assert read_scoring_job(two) == ("rag", exchange)
    assert (one.stream, one.kind, one.put_ms) == (stream, "score", 7)
    assert one.id != two.id
    assert exchange.characters == len(prompt) + len(answer) + len(document)


def test_an_exchange_that_is_too_long_or_no_text_makes_no_job() -> None:
    exchange = Exchange(stream="s", route="chat", surface="x", answer="a" * 2000)
    with pytest.raises(JobInvalid, match=r"`jobs\.job_bytes` is 1000"):
        scoring_jobs(exchange, ["watchdog"], 0, 1000)
    with pytest.raises(JobInvalid, match="half of a character"):
        scoring_jobs(Exchange(stream="s", route="chat", surface="x", answer="\ud83d"), ["watchdog"], 0, 1 << 20)


@given(st.binary(max_size=200))
def test_any_other_body_is_refused(body: bytes) -> None:
    with pytest.raises(JobInvalid, match="can't be read"):
        read_scoring_job(job(1, body=body))


@given(TEXT, TEXT, TEXT, TEXT)
def test_two_callers_never_share_a_conversation(caller: str, name: str, other: str, second: str) -> None:
    assert (conversation_key(caller, name) == conversation_key(other, second)) == ((caller, name) == (other, second))
    assert len(conversation_key(caller, name)) == 64
