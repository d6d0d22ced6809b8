"""Detectors that another process runs: texts go out over HTTP in batches, scores and entities come back.

The interface is `POST /v1/detect`, described in `models/README.md`; `checkstream score` serves it. A service is a
detector like any other: behind the same queue, deadline, breaker and fail mode. One that says it is busy is asked again
later; one that was asked and says nothing within the deadline is broken. INVARIANT: whatever a service answers or does
not, every window of a batch gets an outcome or is queued again, and no answer takes more memory than its cap.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from math import isnan
from typing import Any, Self, TypeVar

import aiohttp
import msgspec

from checkstream.config import RemoteSettings, reveal
from checkstream.core.events import EntityFound
from checkstream.errors import ModelError, ScoringError, ScoringReason
from checkstream.scoring.catalog import Model
from checkstream.scoring.line import Line, Read, Waiting
from checkstream.scoring.manifest import ModelEntry
from checkstream.scoring.outcomes import Outcome, judged
from checkstream.scoring.session import Readings, Window

T = TypeVar("T")
PATH = "/v1/detect"
_ANSWER_BYTES, _ANSWER_BYTES_PER_TEXT = 65_536, 262_144
_KEEP_S = 15.0
"""A connection that was idle for longer is not used again: its other end may have given it up."""
_CHARS_PER_TOKEN = 4
_ALONE_S = _MOST_S = 60.0
"""The most that a service is given."""
_TICK_S = 0.02
_LEAST_REST_S, _MOST_REST_S = 0.05, 10.0
"""How long a service that is busy is left alone: as long as it says, within these bounds; from the first on twice as
long each time where it does not say."""


class DetectRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What `POST /v1/detect` takes."""

    model: str
    texts: tuple[str, ...]
    fresh_chars: tuple[int, ...] = ()
    """For each text how many code points at its end must be covered, the rest is context; 0, or none given: all."""
    ingress: bool = False
    """They are parts of prompts, which may wait behind checks of answers."""
    deadline_ms: float = 10_000
    """After this nobody wants the answer; `overload` in its place says that there is too much to do."""


class DetectEntity(msgspec.Struct, frozen=True):
    """A stretch of a text that names something; offsets are code points."""

    entity: str
    start: int
    end: int
    score: float


class DetectResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is said of one text: scores and entities, or why there are none."""

    scores: Mapping[str, float] = {}
    """Label -> 0..1."""
    entities: tuple[DetectEntity, ...] = ()
    error: ScoringReason | None = None


class DetectResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What `POST /v1/detect` answers."""

    results: tuple[DetectResult, ...]
    """One for each text, in order."""


class _Busy(Exception):
    """A service has too much to do; `rest_s` is how long it wants to be left alone, if it says."""

    def __init__(self, rest_s: float | None) -> None:
        super().__init__("it is busy")
        self.rest_s = rest_s


class RemoteSession:
    """A model that a service runs."""

    inline = False
    gate = None

    def __init__(self, entry: ModelEntry, settings: RemoteSettings, token: str | None) -> None:
        """Ask `settings.url`, with `token` if it is given."""
        self._entry = entry
        self._settings = settings
        self._url = settings.url.rstrip("/").removesuffix(PATH) + PATH
        self._headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        own = (*entry.labels, *(kind.entity for kind in entry.entities))
        self._names = settings.labels or {name: name for name in own}
        self._thresholds = {kind.entity: kind.threshold for kind in entry.entities}

    @classmethod
    def open(cls, model: Model) -> Self:
        """Make a remote model ready to be asked; nothing is sent yet.

        Raises:
            ModelError: it says nothing of who answers for it.
            ConfigError: its token is not there.
        """
        settings = model.remote
        if settings is None:
            raise ModelError(f"model `{model.name}` is remote and has no url; give it one in `models.yaml`")
        return cls(model.entry, settings, None if settings.token is None else reveal(settings.token))

    @property
    def connections(self) -> int:
        """How many requests may run at once."""
        return self._settings.connections

    def cut(self, text: str, fresh_chars: int = 0) -> Iterable[Window]:
        """Return the text as one window: the service knows its model's tokens, and cuts it itself."""
        begin = len(text) - fresh_chars if 0 < fresh_chars < len(text) else 0
        return (Window(text, len(text) // _CHARS_PER_TOKEN + 1, begin=begin, stop=len(text) + 1),)

    def run(self, windows: Sequence[Window]) -> Readings:
        """Ask from a thread, on a connection of its own: for whoever has no event loop.

        Raises:
            ScoringError: the service gave no usable answer to one of the windows.
        """
        import numpy as np  # noqa: PLC0415 - not for a process whose policies ask no model

        async def alone() -> list[DetectResult | ScoringError]:
            async with self.client() as client:
                try:
                    return await self.ask(client, windows, _ALONE_S, ingress=True)
                except _Busy:
                    return [self._failed("has too much to do; ask less at once", "overload") for _ in windows]

        rows, entities = [], []
        for window, result in zip(windows, asyncio.run(alone()), strict=True):
            readings = self._readings(result, window)
            rows.append(readings.scores[0])
            entities.append(readings.entities[0])
        return Readings(np.stack(rows), entities)

    def client(self) -> aiohttp.ClientSession:
        """Open connections to the service; whoever calls closes them."""
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._settings.connections, keepalive_timeout=_KEEP_S),
            headers=self._headers,
            auto_decompress=False,
        )

    async def outcomes(
        self, client: aiohttp.ClientSession, windows: Sequence[Window], seconds: float, *, ingress: bool
    ) -> list[Outcome]:
        """Ask for a batch; each window gets what is said of it, or why there is nothing: `overload`, it is busy.

        Raises:
            _Busy: it takes nothing at all at present.
        """
        found: list[Outcome] = []
        for window, result in zip(windows, await self.ask(client, windows, seconds, ingress=ingress), strict=True):
            try:
                readings = self._readings(result, window)
            except ScoringError as error:
                found.append(error)
            else:
                found += judged(readings, 1, len(self._entry.labels), self._entry.name)
        return found

    async def ask(
        self, client: aiohttp.ClientSession, windows: Sequence[Window], seconds: float, *, ingress: bool
    ) -> list[DetectResult | ScoringError]:
        """Send a batch and return the service's results, one for each window.

        What it can't answer as a whole is sent once more, text by text: it may be one that it can't read.

        Raises:
            _Busy: it takes nothing at present.
        """
        try:
            return await self._together(client, windows, seconds, ingress=ingress)
        except ScoringError as error:
            if (
                len(windows) == 1
                or error.reason == "deadline"
                or isinstance(error.__cause__, aiohttp.ClientConnectorError)
            ):
                return [error for _ in windows]
        return await asyncio.gather(*(self._alone(client, each, seconds, ingress=ingress) for each in windows))

    async def _alone(
        self, client: aiohttp.ClientSession, window: Window, seconds: float, *, ingress: bool
    ) -> DetectResult | ScoringError:
        try:
            return (await self._together(client, (window,), seconds, ingress=ingress))[0]
        except ScoringError as error:
            return error
        except _Busy:
            return self._failed("has too much to do; ask less at once", "overload")

    async def _together(
        self, client: aiohttp.ClientSession, windows: Sequence[Window], seconds: float, *, ingress: bool
    ) -> list[DetectResult | ScoringError]:
        """Send a batch.

        Raises:
            ScoringError: there is no answer, or none that can be used.
            _Busy: it takes nothing at present.
        """
        request = DetectRequest(
            model=self._settings.model or self._entry.name,
            texts=tuple(_encodable(window.text) for window in windows),
            fresh_chars=tuple(len(window.text) - window.begin if window.begin else 0 for window in windows),
            ingress=ingress,
            deadline_ms=max(1.0, round(seconds * 1000, 1)),
        )
        body = msgspec.json.encode(request)
        try:
            answer = await _within(seconds, self._post_twice(client, body, len(windows)))
        except TimeoutError as error:
            raise self._failed("passed its deadline; raise it or ask less", "deadline") from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._failed(f"can't be reached: {str(error) or type(error).__name__}", "crash") from error
        if len(answer.results) != len(windows):
            raise self._failed("answered for another number of texts", "garbage")
        return list(answer.results)

    async def _post_twice(self, client: aiohttp.ClientSession, body: bytes, texts: int) -> DetectResponse:
        try:
            return await self._post(client, body, texts)
        except (aiohttp.ServerDisconnectedError, ConnectionResetError):
            # The connection had been given up at its other end. Asking twice changes nothing there.
            return await self._post(client, body, texts)

    async def _post(self, client: aiohttp.ClientSession, body: bytes, texts: int) -> DetectResponse:
        async with client.post(self._url, data=io.BytesIO(body), allow_redirects=False) as response:
            if response.status != 200:
                retry_after = response.headers.get("retry-after")
                if response.status == 429 or (response.status == 503 and retry_after is not None):
                    raise _Busy(_seconds(retry_after))
                raise self._failed(f"answered {response.status}", "deadline" if response.status == 504 else "crash")
            limit = _ANSWER_BYTES + texts * _ANSWER_BYTES_PER_TEXT
            data = bytearray()
            async for piece in response.content.iter_any():
                data += piece
                if len(data) > limit:
                    raise self._failed(f"answered with more than {limit} bytes", "garbage")
        try:
            return msgspec.json.decode(data, type=DetectResponse)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._failed("gave an answer of another form", "garbage") from error

    def _readings(self, result: DetectResult | ScoringError, window: Window) -> Readings:
        """Return what is said of one window in our labels.

        Raises:
            ScoringError: it can't be used.
        """
        import numpy as np  # noqa: PLC0415

        if isinstance(result, ScoringError):
            raise result
        if result.error is not None:
            raise self._failed(f"could not read a text ({result.error})", result.error)
        best = dict.fromkeys(self._entry.labels, -1.0)  # outside 0..1: a label that is missing is no label that is low
        for theirs, ours in self._names.items():
            if ours in best and theirs in result.scores:
                score = result.scores[theirs]
                best[ours] = score if score != score else max(best[ours], score)  # noqa: PLR0124 - NaN must not be lost
        entities = tuple(self._entity(entity, window) for entity in result.entities if entity.entity in self._names)
        wanted = tuple(each for each in entities if each.score >= self._thresholds.get(each.entity, 1.0))
        return Readings(np.array([list(best.values())], np.float32), (wanted,))

    def _entity(self, found: DetectEntity, window: Window) -> EntityFound:
        if not (0 <= found.start < found.end <= len(window.text) and 0 <= found.score <= 1):
            raise self._failed("found an entity outside the text", "garbage")
        return EntityFound(self._names[found.entity], found.start, found.end, found.score)

    def _failed(self, what: str, reason: ScoringReason) -> ScoringError:
        return ScoringError(f"the service of classifier `{self._entry.name}` {what}", reason=reason)


class RemoteRunner:
    """Sends the batches of one line to its service, as many at once as it has connections."""

    def __init__(self, session: RemoteSession) -> None:
        """Open connections when the first batch is there."""
        self._session = session
        self._connections = session.connections
        self._client: aiohttp.ClientSession | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._scheduled: asyncio.Handle | None = None
        self._resting: asyncio.TimerHandle | None = None
        self._rest_s = _LEAST_REST_S
        self._closed = False

    def wake(self, line: Line) -> None:
        """Form batches at the end of this turn, as far as connections are free; else as soon as one is."""
        if self._scheduled is None and self._resting is None and not self._closed:
            self._scheduled = asyncio.get_running_loop().call_soon(self._flush, line)

    def _flush(self, line: Line) -> None:
        self._scheduled = None
        while line.waiting and len(self._running) < self._connections and self._resting is None and not self._closed:
            batch = line.form()
            if not batch:
                return
            task = asyncio.get_running_loop().create_task(self._carry(line, batch))
            self._running.add(task)
            task.add_done_callback(lambda done: self._carried(done, line))

    def _carried(self, task: asyncio.Task[None], line: Line) -> None:
        self._running.discard(task)
        self.wake(line)

    async def _carry(self, line: Line, batch: Sequence[Waiting]) -> None:
        if self._client is None:
            self._client = self._session.client()
        seconds = min(max(entry.asker.allowed_s(entry.window) for entry in batch), _MOST_S)
        windows = [entry.window for entry in batch]
        try:
            outcomes = await self._session.outcomes(self._client, windows, seconds, ingress=line.ingress)
        except _Busy as busy:
            self._leave_alone(line, batch, busy.rest_s)
            return
        pairs = list(zip(batch, outcomes, strict=True))
        unread = [entry for entry, outcome in pairs if isinstance(outcome, ScoringError) and _is_busy(outcome)]
        if unread:
            self._leave_alone(line, unread, None)
        else:
            self._rest_s = _LEAST_REST_S
        line.deliver([Read(entry, outcome) for entry, outcome in pairs if entry not in unread])

    def _leave_alone(self, line: Line, batch: Sequence[Waiting], rest_s: float | None) -> None:
        """Queue windows again, and ask nothing for a while."""
        line.put_back(batch)
        if self._resting is None and not self._closed:
            if rest_s is None:
                rest_s, self._rest_s = self._rest_s, self._rest_s * 2
            rest_s = min(max(rest_s, _LEAST_REST_S), _MOST_REST_S)
            self._resting = asyncio.get_running_loop().call_later(rest_s, self._rested, line)

    def _rested(self, line: Line) -> None:
        self._resting = None
        self.wake(line)

    async def close(self) -> None:
        """Break off what runs and close the connections."""
        self._closed = True
        for handle in (self._scheduled, self._resting):
            if handle is not None:
                handle.cancel()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._client is not None:
            await self._client.close()


def _is_busy(error: ScoringError) -> bool:
    return error.reason == "overload"


def _seconds(retry_after: str | None) -> float | None:
    """Return what `retry-after` says in seconds; None where it gives a date, or nothing."""
    try:
        seconds = float(retry_after) if retry_after is not None else None
    except ValueError:
        return None
    return None if seconds is None or isnan(seconds) else seconds


async def _within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns within a time that the loop was there to see.

    A tick that comes late counts no more than one that comes in time: on a starved core an answer may lie there unread,
    and it is not the service that is late then.

    Raises:
        TimeoutError: it took longer.
    """
    task = asyncio.ensure_future(work)
    try:
        while seconds > 0:
            tick_s = min(seconds, _TICK_S)
            seconds -= tick_s
            await asyncio.wait((task,), timeout=tick_s)
            if task.done():
                return task.result()
        raise TimeoutError
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))


def _encodable(text: str) -> str:
    """Return the text with every lone surrogate replaced, which no UTF-8 can carry; places stay as they are."""
    if text.isascii():
        return text
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
