"""Scenarios: how many ask, when, for what, and how they read. Pure but for reading files.

The load is open: when somebody asks is fixed before the run and waits for no answer. A closed loop, which asks again
when an answer has come, slows down together with what it measures, and hides its delays (coordinated omission).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from checkstream.errors import BenchError

SHIPPED = Path(__file__).with_name("scenarios")
TEXTS = Path(__file__).with_name("texts")
_MOST_REQUESTS = 100_000
_Positive = Annotated[int, Meta(ge=1)]
_Share = Annotated[float, Meta(ge=0, le=1)]


class Arrivals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When requests come."""

    count: _Positive
    """Requests of one wave."""
    within_s: Annotated[float, Meta(ge=0, le=3600)]
    """They come within this time."""
    random: bool = False
    """They come by chance, as from people who know nothing of each other (a Poisson process); else evenly."""
    waves: _Positive = 1
    """How many waves there are."""
    every_s: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    """From the beginning of one wave to that of the next."""

    def __post_init__(self) -> None:
        """Bounded."""
        if self.count * self.waves > _MOST_REQUESTS:
            raise ValueError(f"{self.count * self.waves} requests are too many; at most {_MOST_REQUESTS}")

    def times_s(self) -> list[float]:
        """Return when each request is due, from the start; the same in each run."""
        chance = random.Random(self.count)  # noqa: S311 - each run must meet the same load
        found: list[float] = []
        for wave in range(self.waves):
            places = [chance.random() if self.random else at / self.count for at in range(self.count)]
            found += [wave * self.every_s + self.within_s * place for place in sorted(places)]
        return sorted(found)


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file."""

    about: str
    """What it shows, in a sentence."""
    arrivals: Arrivals
    """When requests come."""
    prompt: str = "Please go on."
    """What is asked."""
    prompt_chars: _Positive = 1
    """The prompt is told over and over until it is so long."""
    says: Annotated[tuple[str, ...], Meta(min_length=1)]
    """Names of files with the texts that answers are made of, one after the other."""
    tokens: _Positive = 300
    """Of one answer."""
    per_s: Annotated[float, Meta(gt=0)] | None = 50.0
    """Tokens of one answer a second; null: as fast as they are read."""
    form: Literal["stream", "whole", "call"] = "stream"
    """What the answer is: a stream of text, one JSON object, or a stream with one tool call."""
    harm: str | None = None
    """Where it stands in an answer, the answer should not have gone on: what came behind it has leaked."""
    reads_bytes_per_s: _Positive | None = None
    """How fast a caller reads; null: at once."""
    leaving: _Share = 0.0
    """Share of callers who leave in the middle of their answer."""

    def asked(self) -> str:
        """Return the prompt."""
        text = self.prompt
        while len(text) < self.prompt_chars:
            text += "\n\n" + self.prompt
        return text


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario with its name and its text."""

    name: str
    scenario: Scenario
    text: list[str]
    """In pieces."""


def read_scenario(name: str) -> Script:
    """Return what a file says, or what is shipped under a name.

    Raises:
        BenchError: there is none, or it is faulty.
    """
    file = SHIPPED / f"{name}.yaml"
    if not file.is_file():
        file = Path(name)
    try:
        scenario = msgspec.yaml.decode(file.read_bytes(), type=Scenario)
        texts = [cut(name, file.parent) for name in scenario.says]
    except OSError as error:
        known = ", ".join(sorted(shipped()))
        raise BenchError(f"`{error.filename}` can't be read: {error.strerror}; shipped: {known}") from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise BenchError(f"`{file}`: {error}") from error
    if not all(texts):
        raise BenchError(f"`{file}`: a text of `says` is empty")
    return Script(name=file.stem, scenario=scenario, text=[piece for text in texts for piece in text])


def shipped() -> dict[str, str]:
    """Return the names of the scenarios that are shipped, and what each is about."""
    files = sorted(SHIPPED.glob("*.yaml"))
    return {file.stem: msgspec.yaml.decode(file.read_bytes(), type=Scenario).about for file in files}


def cut(name: str, beside: Path = SHIPPED) -> list[str]:
    """Return a text in pieces as models make them: before spaces, and every few characters where there are none.

    Raises:
        OSError: no such text is shipped or stands beside the scenario.
        ValueError: it isn't UTF-8.
    """
    file = beside / name
    text = (file if file.is_file() else TEXTS / name).read_text("utf-8").strip()
    return list(_pieces(f"{text}\n\n")) if text else []


def _pieces(text: str) -> Iterator[str]:
    piece, size = "", 0
    for char in text:
        if piece and ((char.isspace() and not piece[-1].isspace()) or size == _LONGEST):
            yield piece
            piece, size = "", 0
        piece += char
        size += not char.isspace()
    if piece:
        yield piece


_LONGEST = 7
"""Characters of a piece, beside its spaces."""
