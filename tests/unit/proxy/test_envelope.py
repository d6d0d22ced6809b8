"""What stands around a request's body: it goes on when rules have read it."""

from __future__ import annotations

from itertools import pairwise
from urllib.parse import quote, unquote_plus, urlencode

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from checkstream.core.commands import ForwardRequest, Record, Reply
from checkstream.core.events import DownstreamClosed, Envelope, RequestReceived, Said
from checkstream.core.exchange.guard import Guard, Plan
from checkstream.errors import RequestInvalid
from checkstream.proxy.envelope import KNOWN, around
from checkstream.proxy.headers import AUTH, request_headers
from checkstream.proxy.outgoing import Outgoing
from tests.chance import examples
from tests.guarded import CHAT, plan, request

CHATS = "/v1/chat/completions"
AZURE = "/openai/deployments/{model}/chat/completions"
TENANT = "/of/{tenant}/{model}/chat"
RULES = """
  - {name: c, id: CARD-1, stage: [ingress], entities: [CREDIT_CARD, EMAIL, AWS_ACCESS_KEY], actions: [{type: redact}]}
  - {name: r, id: WORD-1, stage: [ingress], phrases: [purple password], actions: [{type: reject, message: No.}]}
"""
RULED = plan(RULES)
CARD, MAIL, KEY = "4111111111111111", "john.doe@example.com", "AKIAIOSFODNN7EXAMPLE"


def sent(
    headers: list[tuple[str, str]],
    *,
    query: str = "",
    pattern: str = CHATS,
    path: str = CHATS,
    ruled: Plan = RULED,
) -> tuple[str, dict[str, str]] | Reply:
    """Return target and headers of what an upstream gets, or the refusal."""
    outer = around(pattern, path, query, headers, strict=ruled.unknown_fields == "refuse")
    guard = Guard(surface=CHAT, plan=ruled, digest=str)
    for command in guard.receive(RequestReceived(request(), envelope=outer.envelope), 0.0):
        if isinstance(command, Reply):
            return command
        if isinstance(command, ForwardRequest):
            out = Outgoing(outer.target, outer.headers, None).bare(command.without)
            return out.target, dict(
                request_headers(out.headers, replaced={}, key_header=None, content_type="application/json")
            )
    raise AssertionError("neither forwarded nor refused")


SDK = [
    ("Host", "proxy"),
    ("Authorization", "Bearer sk-proj-abcdefghijklmnopqrstuvwx0123456789ABCDEFGH"),
    ("User-Agent", f"AsyncOpenAI/Python 1.99 {MAIL}"),
    ("X-Stainless-OS", "Linux"),
    ("X-Nobody-Knows", CARD),
    ("Cookie", CARD),
    ("Accept", CARD),
    ("X-Trace", "7"),
    ("OpenAI-Organization", "org-1"),
    ("anthropic-version", "2023-06-01"),
    ("anthropic-beta", "claude-code-20250219,interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14"),
    ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ("x-request-id", "0f8fad5b-d9cb-469f-a165-70867728950e"),
    ("X-Title", "My app"),
]


@pytest.mark.parametrize("strict", [False, True])
def test_g31_calm_headers_go_on_as_they_came_where_unknown_ones_may(strict: bool) -> None:
    found = sent(SDK, ruled=plan(RULES, unknown_fields="refuse") if strict else RULED)
    assert not isinstance(found, Reply)
    target, headers = found
    assert target == CHATS
    calm = {name.lower(): value for name, value in SDK[8 if strict else 7 :]}
    assert headers == {
        "user-agent": "checkstream",
        "accept": "application/json, text/event-stream",
        "authorization": SDK[1][1],
        **calm,
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
    }


@pytest.mark.parametrize("name", ["helicone-auth", "cf-aig-authorization", "portkey-api-key"])
def test_the_key_of_a_gateway_goes_on_and_text_in_its_place_is_read(name: str) -> None:
    key = "Bearer sk-proj-abcdefghijklmnopqrstuvwx0123456789ABCDEFGH"
    found = sent([(name, key)])
    assert not isinstance(found, Reply)
    assert found[1][name] == key
    left = sent([(name, f"for {MAIL}")])
    assert not isinstance(left, Reply)
    assert name not in left[1]


def test_the_headers_of_one_hop_and_what_no_server_reads_alike_stay_behind() -> None:
    found = sent([("Connection", "x-title"), ("X-Title", "a"), ("X-Request-Id", "\x01b"), ("Tracestate", "ü")])
    assert not isinstance(found, Reply)
    assert found[1].keys() == {"user-agent", "accept", "Content-Type", "Accept-Encoding"}


@pytest.mark.parametrize("value", [f"Bearer {MAIL}", CARD, f"Bearer {CARD}", "Bearer 4111 1111 1111 1111"])
def test_g31_what_is_no_key_is_read_as_text(value: str) -> None:
    found = sent([("Authorization", value)])
    assert not isinstance(found, Reply)
    assert "authorization" not in found[1]


def test_g31_headers_and_parameters_that_nobody_knows_go_on_and_are_read() -> None:
    found = sent([("Helicone-User", MAIL), ("Helicone-App", "a")], query="tenant=a+b&part=1&part=2")
    assert not isinstance(found, Reply)
    assert found[0] == f"{CHATS}?tenant=a+b&part=1&part=2"
    assert found[1]["helicone-app"] == "a"
    assert "helicone-user" not in found[1]
    for query in (f"tenant={CARD}", f"{CARD}=x", f"tenant=a&tenant={CARD}"):
        refused = sent([], query=query)
        assert isinstance(refused, Reply)
        error = msgspec.json.decode(refused.body)["error"]
        assert (error["code"], error["rule_id"]) == ("request_blocked", "CARD-1")
        assert error["param"] in {"query.tenant", "query.name"}
        assert CARD not in error["message"]


@pytest.mark.parametrize(
    ("query", "goes_on"),
    [
        ("api-version=2024-10-21", "?api-version=2024-10-21"),
        ("api-version=2025-01-01-preview", "?api-version=2025-01-01-preview"),
        ("beta=true", "?beta=true"),
        ("beta=true&x=1&x=2", "?beta=true&x=1&x=2"),
        ("include%5B%5D=a", "?include%5B%5D=a"),
        ("key=AIzaSyA1234567890abcdefghijklmnopqrstuv", "?key=AIzaSyA1234567890abcdefghijklmnopqrstuv"),
    ],
)
def test_g31_a_calm_query_goes_on(query: str, goes_on: str) -> None:
    found = sent([], query=query)
    assert not isinstance(found, Reply)
    assert found[0] == CHATS + goes_on


def test_g31_a_route_that_refuses_unknown_fields_refuses_unknown_parameters() -> None:
    refused = sent([], query="beta=true&tenant=a", ruled=plan(RULES, unknown_fields="refuse"))
    assert isinstance(refused, Reply)
    assert msgspec.json.decode(refused.body)["error"]["message"] == (
        "fields that this route does not know: `query.tenant`; leave them out"
    )


def test_g31_a_parameter_that_goes_on_stands_there_once() -> None:
    with pytest.raises(RequestInvalid, match="`api-version` stands in the query twice"):
        around(AZURE, AZURE, "api-version=1&api-version=2", [])


def test_a_caller_s_key_in_the_query_stays_behind_where_the_upstream_has_its_own() -> None:
    assert around(CHATS, CHATS, "key=abc&beta=true", [], keyed=True).target == f"{CHATS}?beta=true"


def test_g31_names_of_models_in_the_path_are_no_text_and_all_else_there_is() -> None:
    assert around(AZURE, AZURE.format(model="gpt-4o-mini"), "", []).envelope == Envelope()
    found = around(TENANT, "/of/john%40x.org/gpt-5/chat", "", []).envelope
    assert found.said == (Said("path", "tenant", "john@x.org"),)


def test_g37_what_stays_behind_stands_in_the_record() -> None:
    outer = Envelope((Said("header", "x-title", MAIL),), ("tenant",))
    guard = Guard(surface=CHAT, plan=RULED, digest=str)
    guard.receive(RequestReceived(request(), envelope=outer), 0.0)
    guard_ends = guard.receive(DownstreamClosed(), 1.0)
    (record,) = [command.record for command in guard_ends if isinstance(command, Record)]
    assert set(record.removed) == {"query.tenant", "header.x-title"}
    assert [verdict.rule_id for verdict in record.verdicts] == ["CARD-1"]


SECRETS = {CARD: CARD, "4111-1111-1111-1111": CARD, MAIL: MAIL, KEY: KEY}
words = st.sampled_from([("", ""), ("app ", ""), ("", " app"), ("v1, x=", ", y"), ("/", "/"), ("'", "'")])
somewhere = st.sampled_from([*sorted(KNOWN), "x-other", "user-agent", "cookie", "mcp-session-id"])


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from(sorted(SECRETS)),
    st.sampled_from(["header", "api-version", "beta", "key", "other", "tenant", "model"]),
    somewhere,
    words,
    st.integers(0, 2),
)
def test_g31_a_secret_anywhere_around_the_body_reaches_no_upstream(
    secret: str, place: str, header: str, around_it: tuple[str, str], encoded: int
) -> None:
    said = secret.join(around_it)
    coded = said
    for _ in range(encoded):
        coded = quote(coded, safe="")
    parts = {"tenant": "t", "model": "gpt-5"}
    if place in parts:
        assume("/" not in said)  # no route takes such a path
        parts[place] = quote(coded, safe="")
    query = f"{place}={coded}" if place in {"api-version", "beta", "other"} else ""
    headers = [(header, coded)] if place == "header" else []
    assume(
        header not in AUTH or place != "header" or said.strip("/' ").replace("-", "").isdecimal()
    )  # else it is a key
    found = sent(headers, query=query, pattern=TENANT, path=TENANT.format(**parts))
    if isinstance(found, Reply):
        assert found.status == 400
        return
    leaves = f"{found[0]}\n{list(found[1].values())}"
    for _ in range(4):
        assert SECRETS[secret] not in leaves.replace("-", "") if secret != MAIL else MAIL not in leaves
        leaves = unquote_plus(leaves)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(sorted(SECRETS)),
    st.lists(st.integers(1, 19), min_size=1, max_size=3, unique=True),
    st.sampled_from(["header", "one header", "one parameter", "parameters", "path"]),
)
def test_g31_a_secret_cut_over_headers_parameters_or_parts_of_the_path_reaches_no_upstream(
    secret: str, cuts: list[int], place: str
) -> None:
    ends = [0, *sorted(cut for cut in cuts if cut < len(secret)), len(secret)]
    parts = [secret[low:high] for low, high in pairwise(ends)]
    pattern = "/".join(["/of", *(f"{{part{number}}}" for number in range(len(parts)))])
    path = "/".join(["/of", *(quote(part, safe="") for part in parts)]) if place == "path" else pattern
    names = ["x" if place == "one parameter" else f"x{number}" for number in range(len(parts))]
    query = urlencode(list(zip(names, parts, strict=True))) if "parameter" in place else ""
    called = ["x-a" if place == "one header" else f"x-{number}" for number in range(len(parts))]
    headers = list(zip(called, parts, strict=True)) if "header" in place else []
    found = sent(headers, query=query, pattern=pattern, path=path)
    if isinstance(found, Reply):
        assert found.status == 400
        assert "header" not in place
        return
    assert "header" in place
    assert "x-a" not in found[1]
    assert sum(part in found[1].values() for part in parts) < len(parts)


@pytest.mark.parametrize("text", ["x" * 1025, "caf\u00e9", "a\tb", "\udcff"])
def test_g37_a_header_that_can_not_be_read_stays_behind_and_is_named(text: str) -> None:
    outer = around(CHATS, CHATS, "", [("X-Odd", text), ("X-Other", "calm")])
    assert "x-odd" not in dict(outer.headers)
    assert outer.envelope.behind == ("x-odd",)
    guard = Guard(surface=CHAT, plan=RULED, digest=str)
    guard.receive(RequestReceived(request(), envelope=outer.envelope), 0.0)
    (record,) = [each.record for each in guard.receive(DownstreamClosed(), 1.0) if isinstance(each, Record)]
    assert record.removed == ("header.x-odd",)
    assert "header_dropped" in record.degradations


@pytest.mark.parametrize("before", [[], [CARD], ["calm"], [CARD, "calm"]])
def test_g31_halves_of_a_secret_stay_behind_beside_a_header_that_does(before: list[str]) -> None:
    said = [*before, "john.doe@exa", "mple.com"]
    found = sent([(f"x-{number}", text) for number, text in enumerate(said)])
    assert not isinstance(found, Reply)
    assert {"john.doe@exa", "mple.com", CARD}.isdisjoint(found[1].values())


@pytest.mark.parametrize("name", [f"X-{CARD}", "x-4111-1111-1111-1111", CARD])
def test_g31_a_secret_that_is_the_name_of_a_header_reaches_no_upstream(name: str) -> None:
    found = sent([(name, "1"), ("X-Other", "2")])
    assert not isinstance(found, Reply)
    assert name.lower() not in found[1]
    assert found[1]["x-other"] == "2"


def test_g37_a_secret_that_is_the_name_of_a_header_stands_in_no_record() -> None:
    outer = around(CHATS, CHATS, "", [(f"x-{CARD}", "1")]).envelope
    guard = Guard(surface=CHAT, plan=RULED, digest=str)
    guard.receive(RequestReceived(request(), envelope=outer), 0.0)
    (record,) = [each.record for each in guard.receive(DownstreamClosed(), 1.0) if isinstance(each, Record)]
    assert set(record.removed) == {"header.name"}
