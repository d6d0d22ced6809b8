"""A model server for the real clients: a test writes down what it says, turn by turn.

The words become events and bytes as the demo's scripted LLM makes them (`checkstream.demo.script` is the form). Added
here is what agents and retries need: the n-th request of a script gets its n-th turn, and the last turn again after
that; and embeddings and moderations.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from checkstream.demo import answer, wire
from checkstream.demo.asked import read_asked
from checkstream.demo.scenario import Scenario
from checkstream.demo.script import SCENARIO_HEADER, Choice, Script

Turn = Mapping[str, Any]
"""A script of the demo's form; or `{"body": ...}`, a whole answer as it is, with its `status`; `{"events": [...]}`, a
stream's; `{"lines": [...]}`, that of a server which sends a line of JSON each; or bytes: of a whole answer,
`{"raw": "..."}`, or of a stream, `{"sse": "..."}`. What `breaks` is reset where it would end."""
_PIECE_BYTES = 97
SCRIPT = SCENARIO_HEADER
"""The header that says which script answers; clients send what they were told to, on every path."""


class Upstream:
    """Serves on a free port until it is closed."""

    def __init__(self) -> None:
        """Listen, on threads."""
        self._scripts: dict[str, tuple[Turn, ...]] = {}
        self._asked: dict[str, list[dict[str, Any]]] = {}
        self.heads: dict[str, list[str]] = {}
        """Script -> of each request for it, its first line and its headers."""
        self._names = (f"script-{number}" for number in itertools.count())
        upstream = self

        class Handler(_Handler):
            model = upstream

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def says(self, *turns: Turn) -> str:
        """Write down what is said from now on under the name that is returned."""
        name = next(self._names)
        self._scripts[name] = turns
        self._asked[name] = []
        return name

    def asked(self, name: str) -> list[dict[str, Any]]:
        """Return the bodies that came for a script, oldest first."""
        return self._asked[name]

    def turn(self, name: str, asked: dict[str, Any]) -> Turn:
        """Remember what was asked, and return what is to be said."""
        self._asked[name].append(asked)
        turns = self._scripts[name]
        return turns[min(len(self._asked[name]), len(turns)) - 1]

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Upstream

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"] or 0)) or b"{}"
        name = self.headers[SCRIPT]
        self.model.heads.setdefault(name, []).append(f"{self.requestline}\n{self.headers}")
        turn = self.model.turn(name, json.loads(body))
        if "body" in turn:
            self._whole(turn.get("status", 200), json.dumps(turn["body"]).encode())
            return
        if "raw" in turn:
            self._whole(200, turn["raw"].encode(), breaks=turn.get("breaks", False))
            return
        if "sse" in turn:
            self._raw_stream(turn["sse"].encode(), breaks=turn.get("breaks", False))
            return
        if "lines" in turn:
            lines = [json.dumps(line).encode() + b"\n" for line in turn["lines"]]
            self._begin_stream("application/x-ndjson")
            for at in range(0, len(data := b"".join(lines)), 50):  # as the network cuts: not at the ends of lines
                self._chunk(data[at : at + 50])
            self._end(breaks=turn.get("breaks", False))
            return
        if "events" in turn:
            self._stream([answer.Event(event, token=False) for event in turn["events"]], Script(choices=[Choice()]))
            return
        script = msgspec.convert(dict(turn), Script)
        if script.error is not None:
            self._whole(
                script.error.status, json.dumps(answer.failure_body(script.error)).encode(), script.error.headers
            )
            return
        asked = read_asked("chat", body)
        scenario = Scenario("scripted", script)
        if not asked.streaming:
            self._whole(200, wire.whole(answer.whole(asked, scenario), script)[0].data)
            return
        self._stream(answer.events(asked, scenario), script)

    def do_GET(self) -> None:
        self.do_POST()

    def do_DELETE(self) -> None:
        self.do_POST()

    def _stream(self, events: Sequence[answer.Event], script: Script) -> None:
        self._begin_stream("text/event-stream")
        for step in wire.steps(wire.stream(events, script), script):
            match step:
                case wire.Wait(ms):
                    time.sleep(ms / 1000)
                case wire.Write(data):
                    self._chunk(data)
                case wire.Break(breakage) if breakage.kind == "reset":
                    self._reset()
                    return
                case wire.Break(breakage) if breakage.kind != "end":  # the body just stops
                    self.close_connection = True
                    return
                case wire.Break():
                    break
        self._chunk(b"")

    def _begin_stream(self, media: str) -> None:
        self.send_response(200)
        self.send_header("content-type", media)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _raw_stream(self, data: bytes, *, breaks: bool) -> None:
        self._begin_stream("text/event-stream")
        for at in range(0, len(data), _PIECE_BYTES):
            self._chunk(data[at : at + _PIECE_BYTES])
        self._end(breaks=breaks)

    def _end(self, *, breaks: bool) -> None:
        """End a body, or reset the connection within it."""
        if breaks:
            self._reset()
        else:
            self._chunk(b"")

    def _reset(self) -> None:
        # a socket that lingers for zero seconds is reset when it closes: socket(7), SO_LINGER
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _whole(
        self, status: int, data: bytes, headers: Mapping[str, str] | None = None, *, breaks: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data) + breaks))  # one byte that never comes
        self.end_headers()
        self.wfile.write(data)
        if breaks:
            self._reset()

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # the proxy has left: it stopped the answer
            super().handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""
