"""What goes wrong becomes a page that says what to do, and never one that says what nobody is to know."""

from __future__ import annotations

import html
import io

import aiohttp
import pytest
from aiohttp.web import BaseRequest, Response, StreamResponse
from hypothesis import given
from hypothesis import strategies as st

from checkstream.config import Address
from checkstream.console.access import Access, token_door
from checkstream.console.face import Console
from checkstream.console.pages import Entry, _marked
from checkstream.console.serving.shell import Shell, Topic
from checkstream.console.sessions import Person
from checkstream.console.text import shown
from checkstream.errors import (
    ActConflicts,
    ActForbidden,
    AuditError,
    CheckstreamError,
    ControlUnusable,
    NotReady,
    RequestInvalid,
    ThingUnknown,
)
from checkstream.listen import Listener, Times
from checkstream.telemetry.logs import open_log

ERRORS: dict[str, tuple[CheckstreamError, int]] = {
    "invalid": (RequestInvalid("the field `x` is none"), 400),
    "forbidden": (ActForbidden("`gus` is `auditor`"), 403),
    "unknown": (ThingUnknown("there is no fleet `<b>`"), 404),
    "conflict": (ActConflicts("it is over"), 409),
    "other": (AuditError("the log can't be read"), 500),
    "store": (ControlUnusable("postgresql://user:secret@10.0.0.7 refuses"), 503),
    "early": (NotReady("nobody serves yet"), 503),
}


class Failing(Topic):
    """Pages of which each fails in its own way."""

    def __init__(self) -> None:
        self.closed = 0
        self.table = {("GET", name): self._fail for name in ERRORS}

    async def _fail(self, request: BaseRequest, _: str) -> StreamResponse:
        raise ERRORS[request.rel_url.path.rpartition("/")[2]][0]

    async def close(self) -> None:
        self.closed += 1
        raise AuditError("it can't be closed")


async def test_errors_are_pages_with_their_status_and_a_store_that_fails_is_told_to_the_operator_alone() -> None:
    said, topics = io.BytesIO(), (Failing(), Failing())
    shell = Shell(Access(None), (Entry("other", "other", "Other"),), open_log("json", said))
    console = Console(shell, topics)
    listener = Listener(console.respond, Times(header_s=5, write_s=5))
    await listener.open(Address("127.0.0.1", 0))
    try:
        async with aiohttp.ClientSession() as client:
            for name, (error, status) in ERRORS.items():
                async with client.get(f"http://{listener.address}/console/{name}") as response:
                    page = await response.text()
                assert (name, response.status) == (name, status)
                assert response.headers["content-type"] == "text/html; charset=utf-8"
                assert "<b>" not in page
                if name != "store":
                    assert html.unescape(str(error).partition("`")[0]) in html.unescape(page)
                assert "10.0.0.7" not in page
            assert "Other</a>" in page
    finally:
        await listener.close()
    assert b"10.0.0.7" in said.getvalue()
    with pytest.raises(AuditError):
        await console.close()
    assert [topic.closed for topic in topics] == [1, 1]  # one that fails keeps no other from it


@given(st.text(st.characters() | st.sampled_from("`<>&\"'"), max_size=60))
def test_marked_text_is_the_text_with_code_around_what_stands_in_backticks(text: str) -> None:
    made = str(_marked(text))
    plain = made.replace("<code>", "").replace("</code>", "")
    assert "<" not in plain
    assert made.count("<code>") == made.count("</code>") == (text.count("`") // 2 if text.count("`") % 2 == 0 else 0)
    want = shown(text, 1000)
    assert html.unescape(plain) == html.unescape(html.escape(want if text.count("`") % 2 else want.replace("`", "")))


async def test_who_was_let_in_by_another_way_has_a_session_as_well() -> None:
    """As a provider of identities does it: it says who somebody is, and the door has never seen a secret."""
    access = Access(token_door("secret"), secure=True)
    ann, cookies = Person("ann", "engineer"), []

    async def respond(request: BaseRequest) -> StreamResponse:
        known = access.person(request)
        if known is None:
            cookies.append(access.begin(request, ann, 60))
        return Response(text="nobody" if known is None else f"{known.name} {known.role}")

    listener = Listener(respond, Times(header_s=5, write_s=5))
    await listener.open(Address("127.0.0.1", 0))
    try:
        async with aiohttp.ClientSession() as client:
            async with client.get(f"http://{listener.address}/") as response:
                assert await response.text() == "nobody"
            assert cookies[0].endswith("; Path=/console/; Max-Age=60; HttpOnly; SameSite=Strict; Secure")
            headers = {"cookie": cookies[0].partition(";")[0]}
            async with client.get(f"http://{listener.address}/", headers=headers) as response:
                assert await response.text() == "ann engineer"
    finally:
        await listener.close()
    assert len(cookies) == 1
