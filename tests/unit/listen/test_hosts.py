"""Where nobody needs a key, a web page must not be able to ask."""

from __future__ import annotations

import pytest
from aiohttp.test_utils import make_mocked_request
from aiohttp.web import BaseRequest
from hypothesis import given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict

from checkstream.errors import HostForeign, OriginForeign
from checkstream.listen import Hosts
from tests.chance import examples

OWN = ["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080", "a.localhost", "localhost.:80"]
FOREIGN = ["attacker.example", "attacker.example:8080", "127.0.0.1.attacker.example", "localhost.attacker.example"]
FOREIGN += [
    "notlocalhost",
    "0.0.0.0",
    "192.168.1.4",
    "[::ffff:192.0.2.1]",
    "localhost@attacker.example",
    "",
    "a b",
    "[::1",
]
FOREIGN += ["localhost/../x", "localhost:0", "localhost:99999", "attacker.example#localhost", "2130706433"]


def request(*headers: tuple[str, str], path: str = "/v1/models") -> BaseRequest:
    return make_mocked_request("POST", path, headers=CIMultiDict(headers))


@pytest.mark.parametrize("host", OWN)
def test_this_machines_names_are_taken(host: str) -> None:
    Hosts().require(request(("Host", host)))
    Hosts().require(request(("Host", host), ("Origin", f"http://{host}")))


@pytest.mark.parametrize("host", FOREIGN)
def test_a_foreign_name_is_refused(host: str) -> None:
    with pytest.raises(HostForeign, match=r"server\.hosts"):
        Hosts(["gpu.internal"]).require(request(("Host", host)))


@pytest.mark.parametrize(
    "origin", ["https://attacker.example", "null", "", "file://", "chrome-extension://x", "localhost"]
)
def test_a_page_of_another_site_is_refused(origin: str) -> None:
    with pytest.raises(OriginForeign, match=r"cors\.origins"):
        Hosts().require(request(("Host", "localhost"), ("Origin", origin)))


def test_what_the_operator_names_is_taken() -> None:
    hosts = Hosts(["gpu.internal"], lambda path: {"https://chat.example"} if path == "/a" else ())
    hosts.require(request(("Host", "GPU.internal:8080"), ("Origin", "https://Chat.example"), path="/a"))
    with pytest.raises(OriginForeign):
        hosts.require(request(("Host", "localhost"), ("Origin", "https://chat.example"), path="/b"))
    Hosts(origins=lambda _: {"*"}).require(request(("Host", "localhost"), ("Origin", "null")))


def test_one_good_header_does_not_excuse_another() -> None:
    with pytest.raises(HostForeign):
        Hosts().require(request(("Host", "localhost"), ("Host", "attacker.example")))
    with pytest.raises(OriginForeign):
        Hosts().require(request(("Origin", "http://localhost"), ("Origin", "https://attacker.example")))


@settings(max_examples=examples(300), deadline=None)
@given(st.text("localhst127.0:[]@/#?\\%a ", max_size=24).map(lambda end: "attacker" + end))
def test_no_spelling_that_begins_elsewhere_is_this_machine(host: str) -> None:
    taken = host.partition(":")[0].rstrip(".").endswith(".localhost")  # which every browser resolves to itself
    try:
        Hosts().require(request(("Host", host)))
    except HostForeign:
        return
    assert taken
