"""The API's face over real sockets: who is let in, what is refused and how, and what ends a request."""

from __future__ import annotations

import asyncio
import io
import json
import re

import aiohttp
import msgspec
import pytest

from checkstream.api.operation import Operation, for_anyone
from checkstream.errors import GateError, StepFailed, StoreUnusable
from checkstream.telemetry.metrics import Metrics
from tests.api_serving import KEY, ask, serving


class Echo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    inner: dict[str, list[int]] = {}


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    most: int = 5


async def echoed(asked: Echo | Query) -> Echo | Query:
    if isinstance(asked, Echo) and asked.text in FAILURES:
        raise FAILURES[asked.text]
    return asked


FAILURES: dict[str, Exception] = {
    "gate": GateError("it can't be done"),
    "step": StepFailed("responses", "p1", "no answer"),
    "store": StoreUnusable("no connection to es.internal:9200"),
    "step's store": StepFailed("evidence", "p1.c1", "no connection to es.internal:9200", told="it can't be used"),
    "bug": KeyError("a secret of the inside"),
    "timeout": TimeoutError("of something inside"),
}
OPERATIONS = (
    Operation("POST", "/echo", "Say it again.", Echo, (Echo,), for_anyone(echoed)),
    Operation("GET", "/things/{id}", "Which thing?", Query, (Query,), for_anyone(echoed)),
)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", "/echo", b"{", 400, "truncated"),
        ("POST", "/echo", b"", 400, "truncated"),
        ("POST", "/echo", b"\xff\xfe", 400, "not of the form"),
        ("POST", "/echo", b'{"text": "\xff"}', 400, "not of the form"),
        ("POST", "/echo", b'{"text": "\\ud800"}', 400, "not of the form"),
        ("POST", "/echo", b'{"inner": ' + b"[" * 5000, 400, "not of the form"),
        ("POST", "/echo", [], 400, "Expected `object`"),
        ("POST", "/echo", {}, 400, "`text`"),
        ("POST", "/echo", {"text": "x", "else": 1}, 400, "`else`"),
        ("POST", "/echo", {"text": "x" * 70_000}, 413, "more than 65536 bytes"),
        ("POST", "/echo", {"text": "gate"}, 400, "it can't be done"),
        ("POST", "/echo", {"text": "step"}, 502, "step `responses` failed at item `p1`"),
        ("POST", "/echo", {"text": "store"}, 503, "can't be used"),
        ("POST", "/echo", {"text": "step's store"}, 502, "step `evidence` failed at item `p1.c1`: it can't be used"),
        ("POST", "/echo", {"text": "bug"}, 500, "something inside failed"),
        ("POST", "/echo", {"text": "timeout"}, 504, "something inside failed"),
        ("GET", "/echo", None, 405, "takes POST"),
        ("DELETE", "/things/a", None, 405, "takes GET"),
        ("GET", "/things/a?most=many", None, 400, "Expected `int`"),
        ("GET", "/things/a?most=1&most=2", None, 400, "twice"),
        ("GET", "/things/a?id=b", None, 400, "twice"),
        ("GET", "/things/a?more=1", None, 400, "`more`"),
        ("GET", "/things/", None, 404, "/openapi.json"),
        ("GET", "/things/a/b", None, 404, "/openapi.json"),
        ("GET", "/", None, 404, "/openapi.json"),
        ("POST", "/echo/", {"text": "x"}, 404, "/openapi.json"),
    ],
)
async def test_what_can_not_be_answered_is_refused_and_says_why(
    method: str, path: str, body: object, status: int, words: str
) -> None:
    async with serving(OPERATIONS) as (url, _):
        found, answer = await ask(method, url + path, body)
        assert (found, words in answer["error"]["message"]) == (status, True), answer
        assert set(answer["error"]) == {"type", "code", "message", "param"}
        assert "secret of the inside" not in json.dumps(answer)
        assert (await ask("POST", f"{url}/echo", {"text": "still here"}))[0] == 200


@pytest.mark.parametrize("failing", ["store", "step's store"])
async def test_why_a_store_fails_is_for_the_operator_alone(failing: str) -> None:
    lines = io.BytesIO()
    async with serving(OPERATIONS, log=lines) as (url, _):
        _, answer = await ask("POST", f"{url}/echo", {"text": failing})
    assert "es.internal" not in json.dumps(answer)
    assert json.loads(lines.getvalue())["detail"].endswith("no connection to es.internal:9200")


async def test_a_refusal_names_the_place() -> None:
    async with serving(OPERATIONS) as (url, _):
        _, answer = await ask("POST", f"{url}/echo", {"text": "x", "inner": {"a": [1, "2"]}})
    assert answer["error"]["param"] == "$.inner[...][1]"


async def test_the_parameter_of_a_path_is_decoded() -> None:
    async with serving(OPERATIONS) as (url, _):
        for sent, read in (("a%20b", "a b"), ("%2e%2e%2fx", "../x"), ("%ff", "\ufffd"), ("caf%C3%A9", "café")):
            async with aiohttp.ClientSession(headers=KEY) as client:
                from yarl import URL

                async with client.get(URL(f"{url}/things/{sent}?most=2", encoded=True)) as response:
                    assert await response.json() == {"id": read, "most": 2}


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}, {"x-api-key": ""}, {"authorization": "x"}])
async def test_nothing_is_told_to_who_has_no_key(headers: dict[str, str]) -> None:
    async with serving(OPERATIONS) as (url, _):
        for method, path in (("POST", "/echo"), ("GET", "/things/a"), ("GET", "/nothing"), ("GET", "/echo")):
            status, answer = await ask(method, url + path, headers=headers)
            assert (status, answer["error"]["type"]) == (401, "authentication_error")


async def test_either_header_carries_the_key() -> None:
    async with serving(OPERATIONS) as (url, _):
        assert (await ask("POST", f"{url}/echo", {"text": "x"}, headers={"x-api-key": "secret"}))[0] == 200


async def test_health_and_description_need_no_key() -> None:
    async with serving(OPERATIONS) as (url, face), aiohttp.ClientSession() as client:
        for path in ("/livez", "/readyz", "/openapi.json"):
            async with client.get(url + path) as response:
                assert response.status == 200
        face.draining = True
        async with client.get(f"{url}/readyz") as response:
            assert response.status == 503
        async with client.post(f"{url}/echo", json={"text": "x"}, headers=KEY) as response:
            assert (response.status, response.headers["retry-after"]) == (503, "5")


class Slow:
    """Work that lasts until it is let go, and remembers how it ended."""

    def __init__(self, seconds: float | None = None) -> None:
        self.begun, self.let_go, self.cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.operations = (Operation("POST", "/echo", "Say it again.", Echo, (Echo,), for_anyone(self.work), seconds),)

    async def work(self, asked: Echo) -> Echo:
        self.begun.set()
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return asked


async def test_what_takes_too_long_is_given_up_and_says_so() -> None:
    slow = Slow(seconds=0.01)
    async with serving(slow.operations) as (url, _):
        status, answer = await ask("POST", f"{url}/echo", {"text": "x"})
    assert (status, answer["error"]["type"]) == (503, "deadline_exceeded")
    assert slow.cancelled.is_set()


async def test_a_caller_who_leaves_ends_the_work() -> None:
    slow = Slow()
    async with serving(slow.operations, streams=1) as (url, _):
        task = asyncio.ensure_future(ask("POST", f"{url}/echo", {"text": "x"}))
        await slow.begun.wait()
        task.cancel()
        await asyncio.wait_for(slow.cancelled.wait(), 5)
        slow.let_go.set()
        assert (await ask("POST", f"{url}/echo", {"text": "its place is free"}))[0] == 200


async def test_more_than_the_limit_is_told_to_come_back() -> None:
    slow = Slow()
    async with serving(slow.operations, streams=1) as (url, _):
        first = asyncio.ensure_future(ask("POST", f"{url}/echo", {"text": "x"}))
        await slow.begun.wait()
        async with (
            aiohttp.ClientSession(headers=KEY) as client,
            client.post(f"{url}/echo", json={"text": "y"}) as response,
        ):
            assert (response.status, response.headers["retry-after"]) == (429, "1")
        slow.let_go.set()
        assert (await first)[0] == 200


async def test_a_body_that_does_not_come_is_given_up() -> None:
    async with serving(OPERATIONS, header_s=0.05) as (url, _):
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = "POST /echo HTTP/1.1\r\nhost: x\r\nauthorization: Bearer secret\r\ncontent-length: 100\r\n\r\n"
        writer.write(head.encode() + b'{"text"')
        answer = await reader.read(4096)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 408")


async def test_requests_are_counted_by_operation_and_status_and_never_by_what_a_caller_wrote() -> None:
    metrics = Metrics()
    async with serving(OPERATIONS, metrics=metrics) as (url, _):
        for method, path, body, key in (
            ("POST", "/echo", {"text": "x"}, KEY),
            ("POST", "/echo", {"text": "store"}, KEY),
            ("POST", "/echo", {"text": "bug"}, KEY),
            ("POST", "/echo", {"text": "x"}, {}),
            ("GET", "/things/a%7D", None, KEY),
            ("GET", "/things/b", None, KEY),
            ("DELETE", "/things/b", None, KEY),
            *(("GET", f"/secrets/{number}", None, KEY) for number in range(3)),
        ):
            await ask(method, url + path, body, key)
    slow = Slow()
    async with serving(slow.operations, metrics=metrics) as (url, _):
        task = asyncio.ensure_future(ask("POST", f"{url}/echo", {"text": "x"}))
        await slow.begun.wait()
        task.cancel()
        await asyncio.wait_for(slow.cancelled.wait(), 5)
    counted = re.findall(r'api_seconds_count{path="(.*)",status="(.*)"} (.*)', metrics.render().decode())
    assert sorted(counted) == [
        ("/echo", "200", "1.0"),
        ("/echo", "401", "1.0"),
        ("/echo", "499", "1.0"),
        ("/echo", "500", "1.0"),
        ("/echo", "503", "1.0"),
        ("/things/{id}", "200", "2.0"),
        ("/things/{id}", "405", "1.0"),
        ("other", "404", "3.0"),
    ]
