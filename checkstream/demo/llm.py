"""The scripted LLM: a real HTTP server that speaks OpenAI's, Anthropic's and Ollama's APIs as scenarios say.

It answers with figures (`figures`: embeddings, ranks), too, and at `/mcp` it is a server of tools (`tools`).

    python -m checkstream.demo.llm --port 0 --scenarios FOLDER

prints one JSON line with its address once it listens, and serves until SIGTERM or SIGINT. The form of a scenario
stands in `checkstream.demo.script`. Besides the API:

- `GET /_scripted/requests`: what was received, oldest first: headers, body, the scenario that answered.
- `GET /_scripted/connections`: what became of each answer: its state, what was sent, and when (CLOCK_MONOTONIC).
- `PUT /_scripted/scenarios/NAME`: put in (or replace) a scenario. `DELETE /_scripted/records`: forget the records.

INVARIANT: a connection that the caller closes is noticed at once, in any state of the script, and recorded with the
time at which this end of the socket saw it.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Protocol, Self

import msgspec
import orjson
import uvloop
from aiohttp import web

from checkstream.demo import answer, anthropic, figures, ollama, responses, tools, wire
from checkstream.demo.asked import IN_LINES, Api, Asked, read_asked
from checkstream.demo.scenario import ECHO, Scenario, built_in, choose, read_folder, read_scenario
from checkstream.demo.script import SCENARIO_HEADER, Breakage, Failure
from checkstream.errors import FaultyFile, RequestInvalid

MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_RECORDS = 20_000
ENDLESS_PIECE_BYTES = 16 * 1024

_PATHS: Mapping[str, Api] = MappingProxyType(
    {
        "/v1/chat/completions": "chat",
        "/v1/completions": "completions",
        "/v1/responses": "openai.responses",
        "/openai/deployments/{name}/chat/completions": "chat",  # Azure's, whose clients name the model in the body, too
        "/openai/v1/chat/completions": "chat",
        "/openai/v1/responses": "openai.responses",
        "/v1/messages": "anthropic.messages",
        "/api/chat": "ollama.chat",
        "/api/generate": "ollama.generate",
    }
)


class _Speech(Protocol):
    """Says a scenario in an API's form."""

    def events(self, asked: Asked, scenario: Scenario) -> list[answer.Event]: ...

    def whole(self, asked: Asked, scenario: Scenario) -> answer.Json: ...


_SPEECHES: Mapping[Api, _Speech] = MappingProxyType(
    {
        "chat": answer,
        "completions": answer,
        "openai.responses": responses,
        "anthropic.messages": anthropic,
        "ollama.chat": ollama,
        "ollama.generate": ollama,
    }
)

State = Literal["open", "complete", "closed_by_client", "reset", "closed", "failed"]


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it came."""

    index: int
    method: str
    path: str
    headers: list[tuple[str, str]]
    body: Any
    """The JSON value, or the text when it is none."""
    scenario: str
    at_ms: float


class Connection(msgspec.Struct, kw_only=True):
    """What became of the answer to one request. Times are CLOCK_MONOTONIC, milliseconds."""

    index: int
    """Number of the request, from 0; the same as in `Received`."""
    scenario: str
    state: State = "open"
    """`closed_by_client`: the caller went before the end. `reset`, `closed`: a fault of the script.
    `failed`: the script's error status."""
    events_sent: int = 0
    bytes_sent: int = 0
    opened_ms: float
    first_byte_ms: float | None = None
    ended_ms: float | None = None


class ScriptedLlm:
    """The server; also usable inside another program: `async with ScriptedLlm(scenarios) as llm: llm.url`."""

    def __init__(self, scenarios: Mapping[str, Scenario], *, host: str = "127.0.0.1", port: int = 0) -> None:
        """Serve `scenarios` at `host` and `port` (0: one that is free) once entered."""
        self._scenarios = dict(scenarios)
        self._host, self._port = host, port
        self._runner: web.AppRunner | None = None
        self._count = 0
        self.requests: deque[Received] = deque(maxlen=MAX_RECORDS)
        self.connections: deque[Connection] = deque(maxlen=MAX_RECORDS)

    async def __aenter__(self) -> Self:
        """Bind the port and serve.

        Raises:
            OSError: the port can't be bound.
        """
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.add_routes(
            [
                *(web.post(path, functools.partial(self._answer, api=api)) for path, api in _PATHS.items()),
                *(web.post(path, self._figures) for path in figures.PATHS),
                web.post("/mcp", self._tools),
                web.get("/v1/models", self._models),
                web.get("/_scripted/requests", self._show_requests),
                web.get("/_scripted/connections", self._show_connections),
                web.delete("/_scripted/records", self._forget),
                web.put("/_scripted/scenarios/{name}", self._put),
                web.route("*", "/{rest:.*}", self._unknown),
            ]
        )
        # with `handler_cancellation` a handler ends in the very turn of the loop that sees the caller's FIN or RST
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, backlog=1024)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the port and what is still open."""
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def url(self) -> str:
        """The server's root, without `/v1`."""
        return f"http://{self._host}:{self._port}"

    async def _answer(self, request: web.Request, api: Api) -> web.StreamResponse:
        body = await request.read()
        try:
            asked = read_asked(api, body)
        except RequestInvalid as error:
            self._record(request, body, "")
            return _refusal(Failure(status=400, message=str(error)), api)
        named = request.headers.get(SCENARIO_HEADER)
        scenario = choose(
            self._scenarios,
            header=named,
            model=asked.model,
            last_user=asked.last_user,
            continues=asked.continues,
        )
        if scenario is None:
            self._record(request, body, "")
            known = ", ".join(sorted(self._scenarios)) or "none"
            wanted = f"`{named}`" if named is not None else f"as `continued_by` of `{asked.model}` asks"
            return _refusal(Failure(status=400, message=f"no scenario is named {wanted}; there are: {known}"), api)
        self._record(request, body, scenario.name)
        connection = Connection(index=self._count - 1, scenario=scenario.name, opened_ms=_now_ms())
        self.connections.append(connection)
        try:
            return await self._tell(request, asked, scenario, connection)
        except (asyncio.CancelledError, ConnectionError):
            if connection.state == "open":
                connection.state = "closed_by_client"
            raise
        finally:
            connection.ended_ms = _now_ms()

    async def _tell(
        self, request: web.Request, asked: Asked, scenario: Scenario, connection: Connection
    ) -> web.StreamResponse:
        script = scenario.script
        if script.timing.headers_ms:
            await asyncio.sleep(script.timing.headers_ms / 1000)
        if script.error is not None:
            connection.state = "failed"
            return _refusal(script.error, asked.api)
        sent: Sequence[wire.Sent]
        in_lines = asked.api in IN_LINES
        speech = _SPEECHES[asked.api]
        if asked.streaming:
            sent = (wire.lines if in_lines else wire.stream)(speech.events(asked, scenario), script)
            media = "application/x-ndjson" if in_lines else "text/event-stream"
            response = web.StreamResponse(headers={"content-type": media, "cache-control": "no-cache"})
            response.enable_chunked_encoding()
        else:
            sent = wire.whole(speech.whole(asked, scenario), script)
            response = web.StreamResponse(headers={"content-type": "application/json"})
            response.content_length = sum(len(piece.data) for piece in sent)
        response.headers["x-request-id"] = f"req_{connection.index}"
        await response.prepare(request)
        for step in wire.steps(sent, script):
            match step:
                case wire.Wait(ms):
                    await asyncio.sleep(ms / 1000)
                case wire.Write(data, events):
                    await _write(response, data, connection)
                    connection.events_sent = events
                case wire.Break(breakage):
                    ended = await self._break(request, response, breakage, connection)
                    if ended:
                        return response
        await response.write_eof()
        connection.state = "complete"
        return response

    async def _break(
        self, request: web.Request, response: web.StreamResponse, breakage: Breakage, connection: Connection
    ) -> bool:
        """Let a fault happen; return whether the answer is over."""
        match breakage.kind:
            case "stall":
                await asyncio.sleep(3600 if breakage.stall_ms is None else breakage.stall_ms / 1000)
                return False
            case "endless":
                await _write(response, b'data: {"id":"', connection)
                while True:
                    await _write(response, b"x" * ENDLESS_PIECE_BYTES, connection)
                    await asyncio.sleep(0)
            case "end" if response.chunked:
                await response.write_eof()
                connection.state = "complete"
            case "reset" | "close" | "end":  # a body of declared length can't end early but by closing
                connection.state = "reset" if breakage.kind == "reset" else "closed"
                _hang_up(request, reset=breakage.kind == "reset")
        return True

    def _record(self, request: web.Request, body: bytes, scenario: str) -> None:
        try:
            value: Any = orjson.loads(body)
        except orjson.JSONDecodeError:
            value = body.decode(errors="replace")
        self.requests.append(
            Received(
                index=self._count,
                method=request.method,
                path=request.path_qs,
                headers=[(name.lower(), text) for name, text in request.headers.items()],
                body=value,
                scenario=scenario,
                at_ms=_now_ms(),
            )
        )
        self._count += 1

    async def _figures(self, request: web.Request) -> web.Response:
        body = await request.read()
        self._record(request, body, request.path)
        try:
            return _json(figures.answered(request.path, body))
        except RequestInvalid as error:
            return _refusal(Failure(status=400, message=str(error)))

    async def _tools(self, request: web.Request) -> web.Response:
        body = await request.read()
        self._record(request, body, request.path)
        try:
            told = tools.answered(body, self._page)
        except RequestInvalid as error:
            return _refusal(Failure(status=400, message=str(error)))
        return web.Response(status=202) if told is None else _json(told)

    def _page(self, name: str) -> str | None:
        """Return what the first choice of a scenario says."""
        scenario = self._scenarios.get(name)
        said = scenario.script.choices[0].content if scenario is not None and scenario.script.choices else None
        return "".join(said) if isinstance(said, list) else said

    async def _models(self, request: web.Request) -> web.Response:
        self._record(request, await request.read(), "")
        rows = [
            {"id": name, "object": "model", "created": answer.CREATED, "owned_by": "scripted"}
            for name in sorted(self._scenarios) or [ECHO.name]
        ]
        return _json({"object": "list", "data": rows})

    async def _show_requests(self, request: web.Request) -> web.Response:
        return _json(_of_scenario(self.requests, request))

    async def _show_connections(self, request: web.Request) -> web.Response:
        return _json(_of_scenario(self.connections, request))

    async def _forget(self, _request: web.Request) -> web.Response:
        self.requests.clear()
        self.connections.clear()
        return web.Response(status=204)

    async def _put(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        try:
            self._scenarios[name] = read_scenario(name, await request.read())
        except FaultyFile as error:
            return _refusal(Failure(status=400, message=str(error)))
        return web.Response(status=204)

    async def _unknown(self, request: web.Request) -> web.Response:
        self._record(request, await request.read(), "")
        message = f"invalid URL ({request.method} {request.path}); the API is under /v1"
        return _refusal(Failure(status=404, message=message, code="unknown_url"))


def _of_scenario(rows: deque[Any], request: web.Request) -> list[Any]:
    wanted = request.query.get("scenario")
    return [row for row in rows if wanted is None or row.scenario == wanted]


async def _write(response: web.StreamResponse, data: bytes, connection: Connection) -> None:
    if connection.first_byte_ms is None:
        connection.first_byte_ms = _now_ms()
    await response.write(data)
    connection.bytes_sent += len(data)


def _hang_up(request: web.Request, *, reset: bool) -> None:
    """End the caller's connection in the middle of the answer: by RST, or by FIN."""
    transport = request.transport
    if transport is None:
        return
    if reset:
        # a socket that lingers for zero seconds is reset when it closes: socket(7), SO_LINGER
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()


def _refusal(failure: Failure, api: Api = "chat") -> web.Response:
    body = answer.failure_body(failure)
    if api in IN_LINES:
        body = ollama.failure_body(body["error"]["message"])
    elif api == "anthropic.messages":
        body = anthropic.failure_body(failure, body["error"]["message"])
    return _json(body, status=failure.status, headers=failure.headers)


def _json(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    body = msgspec.json.encode(value)
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")


def _now_ms() -> float:
    return round(time.monotonic() * 1000, 3)


async def serve(scenarios: Mapping[str, Scenario], *, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT; say where on stdout.

    Raises:
        OSError: the port can't be bound.
    """
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    async with ScriptedLlm(scenarios, host=host, port=port) as llm:
        print(orjson.dumps({"event": "listening", "url": llm.url}).decode(), flush=True)  # noqa: T201 - the result
        await over.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scripted LLM from the command line; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m checkstream.demo.llm", description="An LLM that follows a script.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: one that is free; it is printed")
    parser.add_argument("--scenarios", type=Path, default=built_in(), help="folder of scenario files")
    chosen = parser.parse_args(arguments)
    try:
        scenarios = read_folder(chosen.scenarios)
        uvloop.run(serve(scenarios, host=chosen.host, port=chosen.port))
    except (FaultyFile, OSError, OverflowError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - the command line's own message
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
