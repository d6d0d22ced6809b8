"""Evidence for answers whose request brought none along: from the store, on the routes that say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkstream.app.evidence_search import open_search
from checkstream.app.profiles import profiles
from checkstream.app.verifiers import open_verifiers
from checkstream.config import Config, EvidenceSettings, Match, RouteSettings
from checkstream.config.background import GroundingSettings, VerifierSettings
from checkstream.errors import ConfigError, StoreUnusable
from checkstream.evidence.opening import open_store
from checkstream.evidence.records import Chunk, Document, chunk_id
from checkstream.grounding.terms import Passage
from checkstream.jobs import Exchange
from checkstream.scoring.embedding import HashingEmbedder

TEXTS = (
    "Goods can be returned within 30 days of delivery.",
    "The lighthouse of Skagen was built in 1858.",
    "Penguins live in the south.",
)


async def fill(folder: Path, embedder: HashingEmbedder) -> str:
    address = f"sqlite:{folder / 'evidence.db'}"
    store = await open_store(address, embedder)
    for number, text in enumerate(TEXTS):
        source = f"{number}.md"
        chunk = Chunk(id=chunk_id(text, source), source=source, text=text, start=0, end=len(text))
        await store.put(Document(source=source, digest=str(number)), [chunk], await embedder.embed([text]))
    await store.close()
    return address


def config(address: str, **more: object) -> Config:
    def route(name: str, *, from_store: bool) -> RouteSettings:
        grounding = GroundingSettings(from_store=from_store)
        return RouteSettings(name=name, match=Match(path="/x"), upstream="u", policies=("p",), grounding=grounding)

    routes = (route("searching", from_store=True), route("other", from_store=False))
    return Config(routes=routes, evidence=EvidenceSettings(store=address, embedder="hashing"), **more)  # type: ignore[arg-type]


def exchange(answer: str, *documents: Passage, route: str = "searching") -> Exchange:
    return Exchange(stream="s", route=route, surface="openai.chat", answer=answer, documents=documents)


async def test_what_the_store_has_for_the_claims_is_the_evidence(tmp_path: Path) -> None:
    settings = config(await fill(tmp_path, HashingEmbedder()))
    own = Passage(id="own", text="Of the request.")
    async with open_search(settings) as evidence, open_verifiers(VerifierSettings(), None) as verifiers:
        found = await evidence.passages(exchange("Goods can be returned within 60 days of delivery. Bye?"))
        assert found[0].text == TEXTS[0]
        assert found[0].source == "0.md"
        assert len({passage.id for passage in found}) == len(found)
        assert await evidence.passages(exchange("Hello! How can I help?")) == []
        assert list(await evidence.passages(exchange(TEXTS[0], own))) == [own]
        assert not await evidence.passages(exchange(TEXTS[0], route="other"))
        watchdog = profiles(verifiers, evidence)["watchdog"]
        assert (await watchdog.assess(exchange("Goods can be returned within 60 days of delivery."))).risk == 35
        assert (await watchdog.assess(exchange("The lighthouse of Skagen was built in 1858."))).risk == 0


async def test_without_such_a_route_no_store_is_opened(tmp_path: Path) -> None:
    settings = Config(evidence=EvidenceSettings(store=f"sqlite:{tmp_path / 'no' / 'evidence.db'}"))
    async with open_search(settings) as evidence:
        assert not await evidence.passages(exchange(TEXTS[0]))
    assert not (tmp_path / "no").exists()


async def test_a_store_of_another_embedder_is_refused_with_what_to_do(tmp_path: Path) -> None:
    address = await fill(tmp_path, HashingEmbedder(dimensions=8))
    with pytest.raises((ConfigError, StoreUnusable), match="hashing"):
        async with open_search(config(address)):
            pass
