"""Profiles beside running streams: bounded in time and number, and whatever fails is told as null."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkstream.app import inline, verifiers
from checkstream.app.inline import Inline
from checkstream.app.verifiers import Verifiers, open_verifiers
from checkstream.config import Config, Match, RouteSettings
from checkstream.config.background import GroundingSettings, VerifierSettings
from checkstream.config.trusted import EvidenceSettings
from checkstream.core.commands import Assess
from checkstream.core.events import Assessed
from checkstream.core.terms import Dialogue, Document, Message
from checkstream.proxy.accept import Route
from checkstream.proxy.upstream import UpstreamClient
from checkstream.telemetry.logs import open_log
from checkstream.telemetry.metrics import Metrics
from tests.scripted_chat import scripted

RULES = Document("Goods can be returned within 30 days of delivery.", id="rules")
WRONG = "Goods can be returned within 60 days of delivery."


class Rig:
    def __init__(self, **config: Any) -> None:
        self.log = io.BytesIO()
        self.metrics = Metrics()
        self.documents: tuple[Document, ...] = (RULES,)
        self.inline = Inline(Config(**config), self.metrics, open_log("json", self.log))
        client: Any = object.__new__(UpstreamClient)
        self.route = Route(name="r", match=Match(path="/v1/chat/completions"), upstream=client)

    async def ask(self, *answers: str, profiles: tuple[str, ...] = ("watchdog",), ms: float = 5000.0) -> Assessed:
        dialogue = Dialogue(
            model="m",
            messages=(Message("user", "How long?"),),
            answers=dict(enumerate(answers)),
            documents=self.documents,
        )
        return await self.inline.assess(Assess(dialogue, profiles, ms), stream="s", route=self.route)

    @property
    def events(self) -> list[str]:
        return [json.loads(line)["event"] for line in self.log.getvalue().splitlines()]


def read(said: Assessed) -> dict[str, Any]:
    return {name: json.loads(bytes(value)) for name, value in said.members.items()}


async def test_all_profiles_speak_under_the_keys_of_their_designs() -> None:
    rig = Rig()
    try:
        said = await rig.ask(WRONG, profiles=("watchdog", "rag", "budget"))
    finally:
        await rig.inline.close()
    members = read(said)
    assert set(members) == {"risk", "checkstream", "verification", "hallucination_check", "warning"}
    assert said.risks["watchdog"] == members["risk"]["risk_score"] == 35
    assert set(said.risks) == {"watchdog", "rag", "budget"}
    assert said.failed == ()
    assert members["checkstream"]["claims"][0]["evidence"][0]["id"] == "rules"
    assert not [thread for thread in threading.enumerate() if thread.name == "inline"]


async def test_a_high_risk_is_counted_and_logged_as_the_route_says_and_without_its_words() -> None:
    rig = Rig()
    rig.route = msgspec.structs.replace(rig.route, grounding=GroundingSettings(high=35))
    quiet = msgspec.structs.replace(rig.route, name="q", grounding=GroundingSettings(high=35, on_high=()))
    try:
        for answer in (WRONG, RULES.text):
            await rig.ask(answer)
        rig.route = quiet
        await rig.ask(WRONG)
    finally:
        await rig.inline.close()
    text = rig.metrics.render().decode()
    assert 'checkstream_grounding_risk_count{profile="watchdog",route="r"} 2.0' in text
    assert 'checkstream_grounding_risk_count{profile="watchdog",route="q"} 1.0' in text
    assert 'checkstream_grounding_high_total{profile="watchdog",route="r"} 1.0' in text
    assert 'checkstream_grounding_high_total{profile="watchdog",route="q"}' not in text
    assert rig.events == ["grounding.high"]
    assert b"60 days" not in rig.log.getvalue()


async def test_of_several_choices_the_worst_speaks() -> None:
    rig = Rig()
    try:
        assert (await rig.ask(RULES.text)).risks == {"watchdog": 0.0}
        said = await rig.ask(RULES.text, WRONG, RULES.text)
    finally:
        await rig.inline.close()
    assert said.risks == {"watchdog": 35.0}
    assert "60 days" in read(said)["risk"]["claims"][0]["text"]


async def test_a_judge_that_never_answers_costs_its_deadline_and_only_its_own_profile() -> None:
    async with scripted(lambda *_: None) as chat:
        rig = Rig(verifier=VerifierSettings(kind="judge", url=chat.url, model="m"))
        try:
            said = await rig.ask("Hello!", "Hello!", profiles=("watchdog",))
            assert said.failed == ()
            late = await rig.ask(WRONG, profiles=("watchdog", "rag"), ms=50)
        finally:
            await rig.inline.close()
    assert late.failed == ("watchdog", "rag")
    assert late.risks == {}
    assert read(late) == {"risk": None, "verification": None}
    assert rig.events == ["inline.late", "inline.late"]


async def test_a_judge_that_is_down_is_told_by_the_design_or_made_up_for() -> None:
    async with scripted(lambda *_: 400) as chat:
        rig = Rig(verifier=VerifierSettings(kind="judge", url=chat.url, model="m"))
        try:
            said = await rig.ask(WRONG, profiles=("watchdog", "rag", "budget"))
        finally:
            await rig.inline.close()
    members = read(said)
    assert members["hallucination_check"]["overall_grounded"] is None
    assert said.failed == ("budget",)
    assert "budget" not in said.risks
    assert members["checkstream"]["degraded"] == ["judge:refused"]
    assert set(members["verification"]["degraded"]) == {"alignment", "fact_verification"}


async def test_g22_one_more_than_are_assessed_at_once_goes_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "_MOST", 2)
    async with scripted(lambda *_: None) as chat:
        rig = Rig(verifier=VerifierSettings(kind="judge", url=chat.url, model="m"))
        try:
            said = await asyncio.gather(*(rig.ask(WRONG, ms=200) for _ in range(3)))
        finally:
            await rig.inline.close()
    assert [each.failed for each in said] == [("watchdog",)] * 3
    assert rig.events == ["inline.refused", "inline.late", "inline.late"]


async def test_g22_what_would_take_seconds_is_refused_at_once() -> None:
    rig = Rig()
    rig.documents = (Document("x" * 131_073),)
    none = await rig.ask()
    much = await rig.ask(WRONG)
    await rig.inline.close()
    assert none == much
    assert (read(much), much.failed) == ({"risk": None}, ("watchdog",))
    assert rig.events == ["inline.refused"] * 2


async def test_a_store_that_is_not_there_is_told_and_tried_again(tmp_path: Path) -> None:
    settings = RouteSettings(
        name="r", match=Match(path="/"), upstream="u", policies=("p",), grounding=GroundingSettings(from_store=True)
    )
    folder = tmp_path / "in the way"
    folder.write_text("no folder")
    evidence = EvidenceSettings(store=f"sqlite:{folder / 'e.db'}", embedder="hashing")
    rig = Rig(routes=(settings,), evidence=evidence)
    try:
        assert (await rig.ask(WRONG)).failed == ("watchdog",)
        folder.unlink()
        folder.mkdir()
        assert (await rig.ask(WRONG)).risks == {"watchdog": 35.0}
    finally:
        await rig.inline.close()
    assert rig.events == ["inline.unavailable"]


async def test_what_opens_for_longer_than_an_answer_may_wait_is_open_for_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ready, opened = threading.Event(), []

    @contextlib.asynccontextmanager
    async def slow(*settings: Any, waiting: bool) -> AsyncIterator[Verifiers]:
        opened.append(settings)
        await asyncio.to_thread(ready.wait)
        async with open_verifiers(*settings, waiting=waiting) as verifiers:
            yield verifiers

    monkeypatch.setattr(verifiers, "open_verifiers", slow)
    rig = Rig()
    try:
        first = await rig.ask(WRONG, ms=1.0)
        ready.set()
        second = await rig.ask(WRONG)
    finally:
        ready.set()
        await rig.inline.close()
    assert first.failed == ("watchdog",)
    assert second.risks == {"watchdog": 35}
    assert len(opened) == 1


async def test_the_loop_goes_on_while_an_answer_is_assessed() -> None:
    rig = Rig()
    long = " ".join(f"The tower number {number} is {number} metres high." for number in range(4000))
    try:
        asking = asyncio.ensure_future(rig.ask(long))
        turns = 0
        while not asking.done():
            await asyncio.sleep(0)
            turns += 1
        said = await asking
    finally:
        await rig.inline.close()
    assert turns > 100
    assert msgspec.json.decode(bytes(said.members["checkstream"]))["unjudged"] > 0
