"""Every SDK's own parser takes every stream that leaves: each golden transcript, and answers that chance makes up.

What was read, stopped or edited is read without an error; what failed raises the SDK's own error, never one of its
parser's. What leaves is of the SDK's own types wherever what came was.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from checkstream.core.wire.framing import LINES
from checkstream.core.wire.surfaces import SURFACES
from tests.e2e.sdks.driver import Clients
from tests.generated import APIS, PLANS, cut, guarded, made_up, sent, told
from tests.transcripts.case import Audited, Case, cases

READ = {"complete", "stopped"}
PARSING = {
    "SyntaxError", "TypeError", "JSONDecodeError", "UnicodeDecodeError", "KeyError", "AttributeError", "ValueError",
    "IndexError", "AssertionError", "ValidationError", "ZodError",
}  # fmt: skip
"""What a parser raises that was given what it can't read."""
SAID = (b'"response.failed"', b'"type": "error"', b'"type":"error"')
"""Errors that the Responses API has events for: its SDKs hand them to their applications as such."""
SPLITS = 2
MADE_UP = 15
AT_ONCE = 50
LANGUAGES = pytest.mark.parametrize("sdk", ["parsers", "parsers_node"])


class Leaves(msgspec.Struct, frozen=True):
    """What leaves of one exchange, and how that must be read."""

    name: str
    surface: str
    status: int
    media: str
    data: bytes
    came: bytes | None
    """What came from the model, if it was of the same form."""
    outcome: str

    def asked(self, data: bytes, chance: random.Random) -> dict[str, Any]:
        """Return what a parser is asked."""
        pieces = [piece.decode("latin-1") for piece in cut(chance, data)]
        return {"surface": self.surface, "status": self.status, "media": self.media, "pieces": pieces}


def golden() -> Iterator[Leaves]:
    """Yield what leaves in each transcript; a caller who has gone reads nothing."""
    for folder in cases():
        case = Case(folder)
        audit = msgspec.json.decode((folder / "audit.json").read_bytes(), type=Audited)
        outcome = str(audit.record["outcome"])
        (body,) = folder.glob("downstream.*")
        media = {"json": "application/json", "sse": "text/event-stream"}.get(body.suffix[1:], "application/x-ndjson")
        if outcome != "downstream_closed" and case.script.method == "POST":
            came = case.upstream if case.streaming == (media != "application/json") else None
            yield Leaves(folder.name, case.surface.name, audit.status, media, body.read_bytes(), came, outcome)


def made() -> Iterator[Leaves]:
    """Yield what leaves of answers on every surface under every rule."""
    for surface in APIS:
        lines = SURFACES[surface].framing is LINES
        for number in range(MADE_UP):
            chance = random.Random(f"{surface} {number}")
            script = made_up(chance, secret=number % 4 != 0)
            stream, action = number % 3 != 0, chance.choice(sorted(PLANS))
            data = told(surface, script, stream=stream)
            out = guarded(surface, action, script, cut(chance, data), stream=stream)
            media = "application/x-ndjson" if lines else "text/event-stream"
            assert out.record is not None
            yield Leaves(
                f"{surface} {number} {action}", surface, 200, media if stream else "application/json", sent(out), data,
                out.record.outcome,
            )  # fmt: skip


def parsed(clients: Clients, sdk: str, answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Have answers parsed, some at a time: a program that says nothing for a minute is taken to hang."""
    found: list[dict[str, Any]] = []
    for at in range(0, len(answers), AT_ONCE):
        found += clients.ask({"sdk": sdk, "do": "read", "answers": answers[at : at + AT_ONCE]}).given()
    return found


def hold(clients: Clients, sdk: str, leaves: list[Leaves], times: int) -> None:
    """Hold a parser to what it must make of all that leaves, cut in so many ways."""
    chance = random.Random(sdk)
    came = parsed(clients, sdk, [each.asked(each.came or b"", chance) for each in leaves])
    for _ in range(times):
        read = parsed(clients, sdk, [each.asked(each.data, chance) for each in leaves])
        for each, got, before in zip(leaves, read, came, strict=True):
            _held(each, got, before)


def _held(each: Leaves, got: dict[str, Any], before: dict[str, Any]) -> None:
    """Hold what a parser made of one answer against what it makes of the model's own bytes."""
    where = f"{each.name}: {got}, and of what came: {before}"
    own = each.came is not None and before["error"] is not None  # as in a stream that never was one
    if each.surface == "mcp" or (each.status == 200 and each.outcome in READ):
        assert got["error"] is None or (own and got["error"] == before["error"]), where
    elif got["error"] is None:
        assert each.outcome == "upstream_failed", where
        assert any(said in each.data for said in SAID), where
    else:
        assert got["error"][0] not in PARSING, where
    if each.came is None or not before["wrong"]:
        assert got["wrong"] == [], where


@LANGUAGES
def test_g20_every_sdk_s_parser_takes_every_golden_transcript(clients: Clients, sdk: str) -> None:
    hold(clients, sdk, list(golden()), SPLITS)


@LANGUAGES
def test_g20_every_sdk_s_parser_takes_answers_that_chance_makes_up(clients: Clients, sdk: str) -> None:
    hold(clients, sdk, list(made()), 1)


def test_every_surface_with_texts_is_parsed() -> None:
    assert {each.surface for each in golden()} == {*APIS, "mcp"}
