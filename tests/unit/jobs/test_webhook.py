from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator

import msgspec
import pytest
from aiohttp import web

from checkstream.errors import JobError, JobInvalid, NoticeUnsent
from checkstream.jobs.exchange import Exchange
from checkstream.jobs.reaction import Reaction, react
from checkstream.jobs.terms import Job, Result
from checkstream.jobs.webhook import WebhookCaller
from checkstream.webhooks import Hook, sign, signing_key


class Receiver:
    """A webhook of somebody's, on a port of its own."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, str], bytes]] = []
        self.status = 204
        self.url = ""

    async def answer(self, request: web.BaseRequest) -> web.Response:
        self.calls.append((request.path, dict(request.headers), await request.read()))
        return web.Response(status=self.status, headers={"location": f"{self.url}/elsewhere"})


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    runner = web.ServerRunner(web.Server(made.answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}"
    yield made
    await runner.cleanup()


def call(route: str = "chat") -> Job:
    exchange = Exchange(stream="s1", route=route, surface="x", answer="secret words")
    made = Result(stream="s1", route=route, scorer="watchdog", version="1", risk=90, report=b"{}", at_ms=5)
    return react(Reaction(on_high=("webhook",)), exchange, made)[0][0]


async def test_a_call_is_signed_as_the_standard_says_and_holds_no_text(receiver: Receiver) -> None:
    secret = "whsec_" + base64.b64encode(b"k" * 24).decode()
    caller = WebhookCaller(
        {"chat": Hook(receiver.url + "/hook", signing_key(secret))}, now_ms=lambda: 1_700_000_000_999
    )
    await caller(call())
    await caller(call())
    ((path, headers, body), (_, again, _)) = receiver.calls
    assert path == "/hook"
    signed = f"{headers['webhook-id']}.1700000000.".encode() + body
    digest = base64.b64encode(hmac.new(b"k" * 24, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{digest}"
    assert headers["webhook-id"] == again["webhook-id"], "a receiver can't tell a repeated call"
    assert msgspec.json.decode(body) == {
        "type": "grounding.high_risk",
        "stream": "s1",
        "route": "chat",
        "scorer": "watchdog",
        "version": "1",
        "risk": 90.0,
        "at_ms": 5,
    }


def test_the_standards_own_example_is_signed_as_there() -> None:
    key = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    assert sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body) == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )
    assert signing_key("plain words") == b"plain words"


@pytest.mark.parametrize("secret", ["whsec_", "whsec_not base64!", "whsec_====", "whsec_é"])
def test_a_secret_that_begins_as_one_and_holds_no_key_is_refused_and_not_told(secret: str) -> None:
    with pytest.raises(NoticeUnsent, match="no key in base64") as caught:
        signing_key(secret)
    assert secret not in str(caught.value).replace("`whsec_`", "")


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 500])
async def test_anything_but_success_is_a_failure_and_no_redirect_is_followed(receiver: Receiver, status: int) -> None:
    receiver.status = status
    with pytest.raises(JobError, match=f"answered {status}"):
        await WebhookCaller({"chat": Hook(receiver.url, b"k")})(call())
    assert len(receiver.calls) == 1


async def test_a_receiver_that_is_not_there_is_a_failure() -> None:
    with pytest.raises(JobError, match="can't be reached"):
        await WebhookCaller({"chat": Hook("http://127.0.0.1:1", b"k")})(call())


async def test_a_proxy_of_the_environment_is_not_asked(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    await WebhookCaller({"chat": Hook(receiver.url, b"k")})(call())
    assert len(receiver.calls) == 1


async def test_the_address_is_the_configurations_alone() -> None:
    with pytest.raises(JobInvalid, match="has no webhook"):
        await WebhookCaller({})(call("evil"))
