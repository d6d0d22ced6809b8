"""What the path reads of a request's head besides its body."""

from __future__ import annotations

import pytest
from aiohttp.test_utils import make_mocked_request

from checkstream.config import Match, Upstream
from checkstream.errors import RequestInvalid
from checkstream.listen import Identity, Who
from checkstream.proxy.accept import Route
from checkstream.proxy.sent import Sent, one_of, read_around, readable, unread
from checkstream.proxy.upstream import UpstreamClient
from tests.guarded import CHAT, plan

RULE = "  - {name: m, id: M-1, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}\n"
HEADERS = pytest.mark.parametrize(
    ("name", "most"), [("x-checkstream-context", 8192), ("x-checkstream-conversation", 512)]
)


@HEADERS
def test_a_header_to_policies_is_handed_on_as_it_came(name: str, most: int) -> None:
    assert one_of(name, []) is None
    for value in ("", '{"a": "é"}', "not json", "x" * most):
        assert one_of(name, [value]) == value


@HEADERS
def test_g22_a_header_to_policies_is_bounded_and_single(name: str, most: int) -> None:
    for values, message in (
        (["x" * (most + 1)], f"{most + 1} bytes"),
        (["é" * (most // 2 + 1)], f"{most + 2} bytes"),
        (["{}", "{}"], "2 times"),
        (["\udcff"], "not UTF-8"),
    ):
        with pytest.raises(RequestInvalid, match=message):
            one_of(name, values)


@pytest.mark.parametrize(
    ("body", "size"),
    [
        (b'{"a":"text"}', 12),
        (b'{"url":"data:image/png;base64,AAAA","text":"hi"}', 48 - len(b";base64,AAAA")),
        (b'{"a":";base64,AA","b":";base64,BBBB"}', 37 - len(b";base64,AA;base64,BBBB")),
        (b"data:image/png;base64,AAAA", 26),
        (b'";base64,"' * 1000, 10_000 - 64 * 8),
    ],
)
def test_pictures_are_not_reckoned_as_text_to_be_read(body: bytes, size: int) -> None:
    assert readable(body) == size


async def test_g36_callers_without_names_share_no_connection_with_other_addresses() -> None:
    upstream = UpstreamClient("u", Upstream(url="http://127.0.0.1:1"), {})
    route = Route(name="r", match=Match(path="/v1/chat/completions"), upstream=upstream)
    request, known = make_mocked_request("POST", "/v1/chat/completions"), plan(RULE)

    def parties(who: Who) -> set[str]:
        sent = Sent(Identity(who.caller), b"{}", None, who.party("caller"))
        guarded, _ = read_around(request, sent, route=route, plan=known, surface=CHAT, sessions=None)
        return {guarded.party, unread(request, sent).party}

    found = [parties(Who(None, address)) for address in ("192.0.2.1", "192.0.2.2")]
    found += [parties(Who(name, "192.0.2.1")) for name in ("app1", "address 192.0.2.2")]
    assert all(len(each) == 1 for each in found)
    assert len(set.union(*found)) == len(found)
    assert parties(Who("app1", "192.0.2.2")) == found[2]
    await upstream.close()
