"""Which headers go on, both ways, and which bodies are taken for what they are said to be."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.exchange.heads import holds
from checkstream.core.policy.compile import compile_sources
from checkstream.errors import MediaRefused
from checkstream.proxy import headers as rules
from checkstream.proxy.headers import JSON, condemned, media_of_request, read_media, request_headers, response_headers
from checkstream.proxy.specimens import SPECIMENS
from tests.chance import examples

GIVEN = [
    ("Host", "proxy"),
    ("Authorization", "Bearer caller"),
    ("X-Api-Key", "k"),
    ("Connection", "keep-alive, X-Hop"),
    ("X-Hop", "1"),
    ("Transfer-Encoding", "chunked"),
    ("Content-Length", "3"),
    ("Content-Encoding", "gzip"),
    ("Accept-Encoding", "br"),
    ("Expect", "100-continue"),
    ("X-Checkstream-Context", "{}"),
    ("Content-Type", "application/json; charset=utf-7"),
    ("OpenAI-Beta", "a"),
]
WELL_KNOWN = ["Set-Cookie", "Content-Type", "Content-Length", "Transfer-Encoding", "Connection", "Location", "Refresh"]
WELL_KNOWN += ["X-Accel-Redirect", "X-Sendfile", "Link", "X-Request-Id", "x-ratelimit-limit", "openai-model", "Age"]
WELL_KNOWN += ["Content_Type", "X_Forwarded_For", "HOST", "Cookie", "X-HTTP-Method-Override", "sec-fetch-site", "ETag"]
WELL_KNOWN += ["X-Checkstream-Action", "access-control-allow-origin", "Content-Disposition", "Accept-Charset", "Te"]
names = st.sampled_from(WELL_KNOWN) | st.text("abcdefgh-_XYZ", min_size=1, max_size=12)
pairs = st.lists(st.tuples(names, st.text(max_size=20)), max_size=12)


def test_only_end_to_end_headers_go_on() -> None:
    headers = request_headers(GIVEN, replaced={}, key_header=None, content_type=JSON)
    assert dict(headers) == {
        "Authorization": "Bearer caller",
        "X-Api-Key": "k",
        "Content-Type": "application/json",
        "OpenAI-Beta": "a",
        "Accept-Encoding": "identity",
    }


def test_the_upstreams_own_key_replaces_every_key_of_the_caller() -> None:
    headers = request_headers(GIVEN, replaced={"authorization": "Bearer own"}, key_header=None, content_type=None)
    assert headers.getall("Authorization") == ["Bearer own"]
    assert "X-Api-Key" not in headers


def test_the_key_for_the_proxy_goes_no_further() -> None:
    headers = request_headers(GIVEN, replaced={}, key_header="x-api-key", content_type=None)
    assert "X-Api-Key" not in headers
    assert headers["Authorization"] == "Bearer caller"


def test_what_is_between_caller_and_proxy_goes_no_further() -> None:
    own = [("X-Checkstream-Context", "{}"), ("x-checkstream-confirm", "t"), ("X_CHECKSTREAM_STREAM", "s")]
    sent = request_headers([*own, ("accept", "*/*")], replaced={}, key_header=None, content_type=None)
    assert [name.lower() for name in sent] == ["accept", "accept-encoding"]
    assert list(response_headers([*own, ("x-request-id", "r")], names=["x-*"])) == ["x-request-id"]


@settings(max_examples=examples(300), deadline=None)
@given(pairs)
def test_g31_no_header_of_a_caller_says_what_the_body_is_or_who_asks(given_: list[tuple[str, str]]) -> None:
    sent = request_headers(given_, replaced={}, key_header=None, content_type=JSON)
    assert sent.getall("content-type") == [JSON]
    as_variables = [name.upper().replace("-", "_") for name in sent]  # as CGI and WSGI servers hand them on
    assert as_variables.count("CONTENT_TYPE") == 1
    for name in ("HOST", "COOKIE", "CONTENT_LENGTH", "TRANSFER_ENCODING", "X_FORWARDED_FOR", "X_HTTP_METHOD_OVERRIDE"):
        assert name not in as_variables
    assert not any(name.startswith(("SEC_", "X_CHECKSTREAM_", "ACCESS_CONTROL_")) for name in as_variables)


@settings(max_examples=examples(300), deadline=None)
@given(pairs, st.booleans())
def test_g36_only_listed_headers_reach_a_caller(given_: list[tuple[str, str]], passed: bool) -> None:
    listed = rules.RETURNED | (rules.PASSED if passed else frozenset())
    for name, value in response_headers(given_, passed=passed).items():
        assert name.lower() in listed or name.lower().startswith(rules.RETURNED_BEGIN)
        assert value.isascii()
        assert value.isprintable()
        assert len(value) <= 256


LISTED = [*sorted(rules.RETURNED), "openai-organization", "openai-model", "openai-version", "openai-processing-ms"]
LISTED += ["x-ratelimit-limit-requests", "x-ratelimit-reset-tokens", "anthropic-ratelimit-requests-reset"]


@settings(max_examples=examples(300), deadline=None)
@given(
    st.sampled_from(LISTED),
    st.text("ab0. -:", max_size=20),
    st.sampled_from(["john@example.com", "4111 1111 1111 1111", "+49 170 1234567", "a b c d e f g", "", "/", '"x"']),
    st.text("ab0. -:", max_size=20),
)
def test_g36_a_listed_header_says_what_one_of_its_name_says(name: str, ahead: str, said: str, behind: str) -> None:
    assert not {"@", "+", "/", '"'} & set("".join(response_headers([(name, ahead + said + behind)]).values()))
    assert not response_headers([(name, said)])


@pytest.mark.parametrize("name", ["x-request-id", "apim-request-id", "openai-model", "cf-ray"])
@pytest.mark.parametrize("said", ["4111111111111111", "4111-1111-1111-1111", "123-45-6789", "2020-13-41"])
def test_g36_an_id_without_letters_is_a_number_or_a_day_and_no_card(name: str, said: str) -> None:
    assert not response_headers([(name, said)])
    assert response_headers([(name, "17")])


@pytest.mark.parametrize("name", ["retry-after", "x-ratelimit-reset-requests"])
def test_g36_a_moment_has_no_room_for_a_card(name: str) -> None:
    assert response_headers([(name, "2026-01-01T00:00:00.411111111Z")])
    assert not response_headers([(name, "2026-01-01T00:00:00.4111111111111111Z")])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-request-id", "req_0a1B-2c:3.d"),
        ("x-request-id", "6a0f2b1e-3c4d-4e5f-8a9b-0c1d2e3f4a5b"),
        ("traceresponse", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("cf-ray", "8f2a7c1d2e3f4a5b-SJC"),
        ("openai-organization", "user-abc123"),
        ("openai-version", "2020-10-01"),
        ("openai-processing-ms", "213"),
        ("x-ms-region", "East US 2"),
        ("x-should-retry", "true"),
        ("retry-after", "7"),
        ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"),
        ("retry-after-ms", "250.5"),
        ("x-ratelimit-remaining-requests", "-1"),
        ("x-ratelimit-reset-tokens", "1m30.951s"),
        ("x-ratelimit-reset", "1793000000000"),
        ("x-ratelimit-limit", "100, 100;w=60, 1000;w=3600"),
        ("anthropic-ratelimit-requests-reset", "2026-11-23T07:43:52Z"),
    ],
)
def test_what_servers_say_in_listed_headers_reaches_the_caller(name: str, value: str) -> None:
    assert dict(response_headers([(name, value)])) == {name: value}


SECRETS = ["AKIAIOSFODNN7EXAMPLQ", "x4111-1111-1111-1111", "card:4111111111111111", "id-521-45-6789"]
SECRETS += [SPECIMENS["GITHUB_TOKEN"], "QUtJQUlPU0ZPRE5ON0VYQU1QTFE", b"AKIAIOSFODNN7EXAMPLQ".hex()]
IDS = st.uuids(version=4).map(str) | st.uuids(version=4).map(lambda each: f"req_{each.hex}")
IDS |= st.text("0123456789abcdef", min_size=16, max_size=16).map(lambda each: f"{each}-FRA")
ENTITIES = """
pack: {name: t, version: 1.0.0}
policies:
  - {name: e, id: E-1, stage: [midstream], entities: ["group:pii", "group:secret"], actions: [{type: redact}]}
"""
FINDS = partial(holds, compile_sources([("p.yaml", ENTITIES)]))
NAMED = ["x-request-id", "request-id", "cf-ray", "openai-organization", "apim-request-id", "traceresponse", "x-ours"]


@given(st.sampled_from(NAMED), st.sampled_from(SECRETS), st.sampled_from(["", "a.", "x:"]), IDS)
def test_g36_an_id_in_which_a_rule_would_find_something_stays_behind(
    name: str, secret: str, ahead: str, other: str
) -> None:
    headers = response_headers([(name, ahead + secret), ("x-ms-request-id", other)], names=["x-ours", "x-ms-*"])
    assert condemned(headers.items(), FINDS) == set(headers) - {"x-ms-request-id"}


@given(st.lists(IDS, min_size=1, max_size=3))
def test_ids_as_servers_give_them_reach_the_caller(ids: list[str]) -> None:
    headers = [
        *zip(NAMED, ids, strict=False),
        ("x-ratelimit-reset-requests", "1m30.951s"),
        ("openai-model", "gpt-4o-mini"),
    ]
    assert condemned(headers, FINDS) == set()


@given(st.text("AaBb0123456789", min_size=21, max_size=21))
def test_ids_of_letters_and_figures_are_asked_about(said: str) -> None:
    asked: list[str] = []

    def nothing(text: str) -> bool:
        asked.append(text)
        return False

    condemned([("request-id", f"req_011C{said}"), ("x-request-id", "1234")], nothing)
    assert asked == [f"req_011C{said}"]


def test_the_operator_adds_to_the_list_and_can_not_add_what_is_the_proxys() -> None:
    given_ = [
        ("X-Litellm-Call-Id", "1"),
        ("X-Litellm-Cost", "2"),
        ("Set-Cookie", "a"),
        ("Content-Type", "x/y"),
        ("TE", "1"),
    ]
    assert list(response_headers(given_)) == []
    assert list(response_headers(given_, names=["x-litellm-*", "Set-Cookie"])) == [
        "X-Litellm-Call-Id",
        "X-Litellm-Cost",
        "Set-Cookie",
    ]
    assert list(response_headers(given_, names=["content-*", "te"])) == []


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("application/json", "application/json"),
        ("Application/JSON;charset=UTF-8;", "application/json"),
        ('application/json; charset="utf-8"; profile=x', "application/json"),
        ("multipart/form-data; boundary=----a7", 'multipart/form-data; boundary="----a7"'),
        ("audio/wav", "audio/wav"),
    ],
)
def test_a_content_type_is_said_anew(said: str, read: str) -> None:
    assert str(read_media(said)) == read
    assert str(media_of_request([said], ["gzip"])) == read


@pytest.mark.parametrize(
    "said",
    [
        "application/json; charset=utf-7",
        "application/json; charset=utf-16",
        "application/json; charset=ISO-8859-1",
        "application/json; charset=utf-8; charset=utf-7",
        'application/json; charset="utf-7"',
        "application/json; CHARSET=UTF-7",
        "application/json; charset*=utf-8''utf-7",
        "application/json; charset*0=utf; charset*1=-7",
        "application/json; charset = utf-7",
        "application/json; charset=",
        'application/json; x="; charset=utf-7"',
        "application/json, text/plain; charset=utf-7",
        "application/json\u2028; charset=utf-7",
        "json",
        "/",
        "",
    ],
)
def test_g31_a_body_in_another_charset_or_of_two_types_is_refused(said: str) -> None:
    with pytest.raises(MediaRefused, match="UTF-8"):
        media_of_request([said], [])


@pytest.mark.parametrize(
    ("types", "encodings"),
    [([JSON, JSON], []), ([JSON], ["gzip", "br"]), ([JSON], ["gzip, br"]), ([JSON], ["compress"]), ([], ["x-gzip"])],
)
def test_g31_a_body_that_is_said_to_be_two_things_is_refused(types: list[str], encodings: list[str]) -> None:
    with pytest.raises(MediaRefused):
        media_of_request(types, encodings)


@settings(max_examples=examples(300), deadline=None)
@given(st.text("ajson/;= \"'\\*,chretutf-78CHR\t", max_size=40).map(lambda rest: "application/json;" + rest))
def test_g31_what_is_taken_on_has_one_reading(said: str) -> None:
    media = read_media(said)
    if media is not None:
        parameters = [each.strip().partition("=") for each in said.lower().split(";")[1:]]
        charsets = [value.strip('"') for name, _, value in parameters if name.strip().startswith("charset")]
        assert charsets in ([], ["utf-8"], ["utf8"])
        assert "charset" not in str(media)
