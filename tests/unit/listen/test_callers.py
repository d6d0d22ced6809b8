"""Who calls: by key, by token, by certificate, and what comes first."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp.test_utils import make_mocked_request
from aiohttp.web import BaseRequest

from checkstream.config.certificates import read_pattern, require_apart
from checkstream.errors import CallerUnknown, TokenRefused
from checkstream.listen import Callers, Identity

AFTER, BEFORE = "Jan  1 00:00:00 2100 GMT", "Jan  1 00:00:00 2020 GMT"
NOW = 1_800_000_000.0


def certificate(
    *subject: tuple[str, str], ends: str = AFTER, names: tuple[tuple[str, str], ...] = ()
) -> dict[str, Any]:
    return {"subject": tuple((pair,) for pair in subject), "subjectAltName": names, "notAfter": ends}


def request(shown: object = None, **headers: str) -> BaseRequest:
    transport = Mock()
    transport.get_extra_info = {"peercert": shown, "peername": ("127.0.0.1", 1)}.get
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return make_mocked_request("POST", "/", headers=named, transport=transport)


class Words:
    """Knows one token."""

    async def identity(self, token: str, address: str) -> Identity:
        if (token, address) != ("a.b.c", "127.0.0.1"):
            raise TokenRefused("not that one")
        return Identity("jane", "authorization", '{"tenant": 5}')


@pytest.mark.parametrize(
    ("pattern", "taken", "not_taken"),
    [
        (
            "spiffe://example.org/ns/shop/sa/web",
            ["spiffe://example.org/ns/shop/sa/web"],
            ["spiffe://example.org/ns/shop/sa/web2", "spiffe://example.org.evil/ns/shop/sa/web", "spiffe://example.org"],
        ),
        (
            "spiffe://example.org/ns/shop/*",
            ["spiffe://example.org/ns/shop/sa/web", "spiffe://example.org/ns/shop/x"],
            [
                "spiffe://example.org/ns/shop", "spiffe://example.org/ns/shops/x", "spiffe://example.org/ns/shop/../adm",
                "spiffe://example.org/ns/shop//x", "SPIFFE://example.org/ns/shop/%2e%2e", "https://example.org/ns/shop/x",
            ],
        ),
    ],
)  # fmt: skip
def test_a_spiffe_id_is_taken_whole(pattern: str, taken: list[str], not_taken: list[str]) -> None:
    rule = read_pattern(pattern)
    for name in taken:
        assert rule.takes(certificate(names=(("URI", name), ("DNS", "x"))), NOW)
        assert not rule.takes(certificate(names=(("URI", name),), ends=BEFORE), NOW), "it has ended meanwhile"
        assert not rule.takes(certificate(names=(("URI", name), ("URI", "spiffe://example.org/other"))), NOW)
        assert not rule.takes(certificate(("commonName", name), names=(("DNS", name),)), NOW)
    for name in not_taken:
        assert not rule.takes(certificate(names=(("URI", name),)), NOW)


def test_a_name_or_attributes_are_taken_just_so() -> None:
    rule = read_pattern("dns:App1.example.com")
    assert rule.takes(certificate(names=(("DNS", "app1.EXAMPLE.com"),)), NOW)
    for names in ((), (("DNS", "*.example.com"),), (("DNS", "app1.example.com.evil"),), (("URI", "app1.example.com"),)):
        assert not rule.takes(certificate(names=names), NOW)
    rule = read_pattern("CN=app1, O=Shop")
    shop = (("commonName", "app1"), ("organizationName", "Shop"))
    assert rule.takes(certificate(*shop, ("countryName", "DE")), NOW)
    for wrong in (shop[:1], (*shop, ("commonName", "admin")), (shop[0], ("organizationName", "Shop2")), ()):
        assert not rule.takes(certificate(*wrong), NOW)


@pytest.mark.parametrize(
    "text",
    [
        "", "app1", "CN=", "CN", "XX=1", "CN=a,CN=b", "spiffe://", "spiffe://x", "spiffe://X.org/a", "spiffe://x/a//b",
        "spiffe://x/a?b", "spiffe://x/*/b", "spiffe://x/..", "dns:", "dns:*.x", "dns:a/b", "dns:a b",
    ],
)  # fmt: skip
def test_what_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|once"):
        read_pattern(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("CN=a", "CN=a"), ("CN=a, O=b", "O=b,CN=a"), ("CN=a", "CN=a, O=b"), ("C=DE, CN=a, O=b, OU=c", "OU=c, CN=a"),
        ("dns:a.example", "dns:A.example"), ("spiffe://x/a", "spiffe://x/a"), ("spiffe://x/a/b", "spiffe://x/a/*"),
        ("spiffe://x/a/b/c", "spiffe://x/*"), ("spiffe://x/a/*", "spiffe://x/*"), ("spiffe://x/*", "spiffe://x/*"),
    ],
)  # fmt: skip
def test_patterns_of_which_one_takes_all_of_another_are_refused(one: str, other: str) -> None:
    for pair in ((one, other), (other, one)):
        with pytest.raises(ValueError, match=r"`(a|b)` (and|takes those of) .*`(a|b)`"):
            require_apart(dict(zip("ab", map(read_pattern, pair), strict=True)))


def test_patterns_that_stand_apart_are_taken() -> None:
    given = (
        "CN=a", "CN=b, O=s", "CN=c, O=s", "dns:a", "dns:b", "spiffe://x/a", "spiffe://x/a/*", "spiffe://x/ab",
        "spiffe://xy/*", "spiffe://x/b/*",
    )  # fmt: skip
    require_apart({text: read_pattern(text) for text in given})


async def test_a_certificate_that_may_be_two_callers_is_nobody_s() -> None:
    rules = {"web": read_pattern("CN=web"), "shop": read_pattern("O=Shop"), "host": read_pattern("dns:web.example")}
    require_apart(rules)  # which their patterns don't tell
    callers = Callers({}, certificates=rules)
    shop, names = ("organizationName", "Shop"), (("DNS", "web.example"),)
    assert await callers.identify(request(certificate(shop))) == Identity("shop")
    for both in (certificate(shop, ("commonName", "web")), certificate(shop, names=names)):
        with pytest.raises(CallerUnknown):
            await callers.identify(request(both))


async def test_a_key_comes_first_then_a_token_then_a_certificate() -> None:
    rules = {"web": read_pattern("CN=web"), "app": read_pattern("CN=app")}
    callers = Callers({"a": "key-a", "dotted": "x.y.z"}, tokens=Words(), certificates=rules)
    shown = certificate(("commonName", "web"))
    assert await callers.identify(request(shown, authorization="Bearer key-a")) == Identity("a", "authorization")
    assert await callers.identify(request(shown, authorization="Bearer x.y.z")) == Identity("dotted", "authorization")
    assert (await callers.identify(request(shown, authorization="Bearer a.b.c"))).known == '{"tenant": 5}'
    assert await callers.identify(request(shown, authorization="Bearer sk-upstreams")) == Identity("web")
    assert await callers.identify(request(shown)) == Identity("web")
    with pytest.raises(TokenRefused):
        await callers.identify(request(shown, authorization="Bearer f.o.rged"))
    for nobody in (certificate(("commonName", "eve")), certificate(("commonName", "web"), ends=BEFORE), {}, None):
        with pytest.raises(CallerUnknown):
            await callers.identify(request(nobody))
    with pytest.raises(CallerUnknown):
        await callers.identify(request(None, x_api_key="a.b.c"))
