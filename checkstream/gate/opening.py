"""Connects an evaluation to the models, documents and prompts that its configuration names."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path, PurePosixPath

import msgspec

from checkstream.config import EmbedderKind
from checkstream.errors import GateError
from checkstream.evidence.opening import SQLITE, open_store
from checkstream.evidence.search import Retriever
from checkstream.evidence.store import Store
from checkstream.gate.asking import answering, extracting, judging, writing
from checkstream.gate.bedrock import BedrockChat, client
from checkstream.gate.prompts import about, library, numbered
from checkstream.gate.running import Opened
from checkstream.gate.settings import GateSettings, Model
from checkstream.gate.shared_past import HISTORY_SECRET, SharedPast
from checkstream.gate.steps import World
from checkstream.gate.terms import Prompt
from checkstream.grounding.chat import Chat, ChatModel, ChatSettings
from checkstream.grounding.judge import LlmJudge
from checkstream.grounding.terms import Passage, Verifier
from checkstream.scoring.embedding import Embedder

_LIBRARY_BYTES = 1 << 24
_TOPICS = 50
_STORE_SECRET = "CHECKSTREAM_STORE_SECRET"  # noqa: S105 - the name of a variable
_NO_DOCUMENTS = "the store holds no documents, so every claim would fail; run `checkstream ingest` first"
_ENDINGS = frozenset({".htm", ".html", ".md", ".txt", ".rst", ".pdf", ".docx"})


class Connections:
    """Opens what configurations name. Paths in them are read below one folder; keys come from the environment."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        embedders: Callable[[EmbedderKind], Embedder],
        verifier: Callable[[], Verifier],
        history: str = "",
    ) -> None:
        """Read what configurations name.

        Args:
            folder: files are read below it.
            environment: holds secrets.
            embedders: by the kind asked for.
            verifier: opens what judges claims where no model is named as judge; may block.
            history: of many machines, for configurations that name none; empty: there is none.
        """
        self._folder = folder.resolve()
        self._environment = environment
        self._embedders = embedders
        self._verifier = verifier
        self._history = history

    @asynccontextmanager
    async def open(self, config: GateSettings) -> AsyncIterator[Opened]:
        """Connect to everything, and let go of it at the end.

        Raises:
            GateError: a model, a file or a key is missing, or there are no documents.
            ConfigError: the embedder or the verifier is not there.
            StoreUnusable: the store can't be opened.
        """
        async with AsyncExitStack() as stack:
            target = await self._chat(stack, config.target, config.parallel)
            asked = None if config.judge is None else await self._chat(stack, config.judge, config.parallel)
            judge = None if asked is None else LlmJudge(asked)
            verifier = await asyncio.to_thread(self._verifier) if judge is None else judge
            embedder = await asyncio.to_thread(self._embedders, config.embedder)
            store = await open_store(self._address(config), embedder, secret=self._environment.get(_STORE_SECRET))
            stack.push_async_callback(store.close)
            if not await store.count():
                raise GateError(_NO_DOCUMENTS)
            files = [(name, await asyncio.to_thread(self._read, name)) for name in config.prompt_library]
            yield Opened(
                world=World(
                    prompts=await _prompts(config, files, store, asked),
                    answer=answering(target, config.target),
                    claims=extracting(judge),
                    search=_searching(Retriever(store, embedder)),
                    judge=judging(verifier),
                    parallel=config.parallel,
                ),
                snapshot=await store.snapshot(),
                verifier=f"{verifier.name}@{verifier.version}",
                library=_digest(files),
                shared=await self._shared(stack, config.history or self._history),
            )

    async def _shared(self, stack: AsyncExitStack, history: str) -> SharedPast | None:
        if not history:
            return None
        shared = await SharedPast.open(history, api_key=self._environment.get(HISTORY_SECRET))
        stack.push_async_callback(shared.close)
        return shared

    async def _chat(self, stack: AsyncExitStack, model: Model, parallel: int) -> Chat:
        if model.provider == "bedrock":
            return BedrockChat(await asyncio.to_thread(client, model.timeout_s), model.model_id)
        key = None
        if model.api_key_env:
            key = self._environment.get(model.api_key_env)
            if not key:
                raise GateError(
                    f"environment variable `{model.api_key_env}` holds no key; set it, or remove `api_key_env`"
                )
        settings = ChatSettings(
            url=f"{model.root}/v1",
            model=model.model_id,
            timeout_ms=int(model.timeout_s * 1000),
            retries=0,
            connections=parallel,
        )
        return await stack.enter_async_context(ChatModel(settings, key))

    def _address(self, config: GateSettings) -> str:
        """Return where the store is: a file below the folder, or a server, with the index in the path.

        Raises:
            GateError: the file leads out of the folder, or isn't there; opening it would make it.
        """
        if config.store.startswith(SQLITE):
            file = self._below(config.store.removeprefix(SQLITE))
            if not file.is_file() or not file.stat().st_size:
                raise GateError(_NO_DOCUMENTS)
            return f"{SQLITE}{file}"
        if config.store.startswith(("http://", "https://")):
            return f"{config.store.rstrip('/')}/{config.index}"
        return config.store

    def _below(self, path: str) -> Path:
        """Return a path below the folder.

        Raises:
            GateError: it leads out of it.
        """
        found = (self._folder / path).resolve()
        if not found.is_relative_to(self._folder):
            raise GateError(f"`{path}` leads out of the folder of the configuration; keep what it names below that")
        return found

    def _read(self, name: str) -> bytes:
        """Read a file of prompts.

        Raises:
            GateError: it is too large, or can't be read.
        """
        path = self._below(name)
        try:
            if path.stat().st_size > _LIBRARY_BYTES:
                raise GateError(f"`{name}` has more than {_LIBRARY_BYTES} bytes; split it")
            return path.read_bytes()
        except OSError as error:
            raise GateError(f"`{name}` can't be read: {(error.strerror or str(error)).lower()}") from error


async def _prompts(
    config: GateSettings, files: Sequence[tuple[str, bytes]], store: Store, judge: Chat | None
) -> Callable[[GateSettings], Awaitable[Sequence[Prompt]]]:
    if files:
        return _fixed(numbered([each for name, content in files for each in library(name, content)]))
    if judge is not None:
        return writing(judge)
    topics = await _topics(store, config.use_case)
    return _fixed(numbered(about(topics, config.prompt_categories, config.num_prompts)))


def _digest(files: Sequence[tuple[str, bytes]]) -> str:
    return hashlib.sha256(msgspec.json.encode(files)).hexdigest() if files else ""


def _fixed(prompts: Sequence[Prompt]) -> Callable[[GateSettings], Awaitable[Sequence[Prompt]]]:
    async def written(_: GateSettings) -> Sequence[Prompt]:
        return prompts

    return written


def _searching(retriever: Retriever) -> Callable[[str], Awaitable[tuple[Sequence[Passage], Sequence[Passage]]]]:
    async def search(claim: str) -> tuple[Sequence[Passage], Sequence[Passage]]:
        found = await retriever.search(claim)
        return [hit.chunk.passage() for hit in found.keyword], [hit.chunk.passage() for hit in found.vector]

    return search


async def _topics(store: Store, use_case: str) -> list[str]:
    """Return what the documents are about: headings near the use case, then the names of documents."""
    hits = await store.keyword(use_case, _TOPICS)
    headings = [hit.chunk.headings[-1] for hit in hits if hit.chunk.headings]
    names = [PurePosixPath(document.source.rstrip("/")) for document in await store.documents()]
    stems = [name.stem if name.suffix.lower() in _ENDINGS else name.name for name in names]
    return list(dict.fromkeys([*headings, *(stem.replace("_", " ").replace("-", " ") for stem in stems)]))
