"""What a route hands over after an answer, and the jobs that come of it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from checkstream.core.terms import Circumstances
from checkstream.errors import JobInvalid
from checkstream.grounding.terms import Passage
from checkstream.jobs.terms import Job


class Message(msgspec.Struct, frozen=True):
    """One message of the prompt, as text."""

    role: str
    text: str


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt, its answer as it went out, and what is known of both. Holds text of callers and models."""

    stream: str
    """Id of the exchange; of another choice than the first with `/` and its number behind."""
    route: str
    caller: str | None = None
    """Name as configured; None: callers have none."""
    surface: str
    model: str = ""
    language: str = ""
    """Of the answer, where it could be told."""
    policies: tuple[str, ...] = ()
    """`name@version` of each pack that was in force."""
    messages: tuple[Message, ...] = ()
    answer: str
    documents: tuple[Passage, ...] = ()
    """From the request's context."""
    conversation: str = ""
    """Made by `conversation_key`; empty where the caller named none."""
    circumstances: Circumstances = Circumstances()
    ages: tuple[tuple[int, float], ...] = ()
    """Of an answer that a rule has stopped: where pieces of it began, and how long before the end each had come,
    seconds."""

    @property
    def characters(self) -> int:
        """How much text it holds."""
        return (
            len(self.answer)
            + sum(len(message.text) for message in self.messages)
            + sum(len(passage.text) for passage in self.documents)
            + len(self.circumstances.context)
            + len(self.circumstances.known)
        )


class _ScoreBody(msgspec.Struct, frozen=True):
    profile: str
    exchange: Exchange


def conversation_key(caller: str, conversation: str) -> str:
    """Return what stands for a caller's conversation: two callers can't mark each other's, and no name is kept."""
    return hashlib.sha256(f"{len(caller)}\0{caller}{conversation}".encode("utf-8", "surrogatepass")).hexdigest()


def scoring_jobs(exchange: Exchange, profiles: Sequence[str], put_ms: int, most_bytes: int) -> list[Job]:
    """Return a job for each profile.

    Raises:
        JobInvalid: the exchange is longer than a job may be, or is no text that can be written.
    """
    jobs = []
    for profile in profiles:
        try:
            body = msgspec.msgpack.encode(_ScoreBody(profile, exchange))
        except UnicodeEncodeError as error:
            raise JobInvalid("the exchange holds half of a character and can't be written; it is not scored") from error
        if len(body) > most_bytes:
            raise JobInvalid(f"the exchange has {len(body)} bytes, `jobs.job_bytes` is {most_bytes}; raise it")
        id_ = f"score:{exchange.stream}:{profile}"
        jobs.append(Job(id=id_, kind="score", stream=exchange.stream, body=body, put_ms=put_ms))
    return jobs


def read_scoring_job(job: Job) -> tuple[str, Exchange]:
    """Return the profile and the exchange that a job is about.

    Raises:
        JobInvalid: its body is not one of this version.
    """
    try:
        body = msgspec.msgpack.decode(job.body, type=_ScoreBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise JobInvalid(f"the job `{job.id}` can't be read: {error}; it is of another version or damaged") from error
    return body.profile, body.exchange
