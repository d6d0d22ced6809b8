"""What is the same value in two spellings, and what is not."""

from __future__ import annotations

import base64

import pytest

from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.entities.canonical import domain_of, keys

SAME = [
    ("DATE_OF_BIRTH", "01/02/1980", "0 1 / 0 2 / 1 9 8 0"),
    ("CREDIT_CARD", "4111 1111 1111 1111", "4111<b>1111</b>11111111"),
    ("PHONE", "+15550104477", "+1<b>555</b>0104477"),
    ("MAC_ADDRESS", "00-1A-2b-3c-4d-5e", "00:1a:2b:3c:4d:5e"),
    ("EMAIL", "Ann.Lee@Example.COM", "ann.lee@example.com"),
    ("EMAIL", "ann.lee [at] example [dot] com", "ann.lee@example.com"),
    ("EMAIL", "ann.lee%40example.com", "ann.lee@example.com"),
    ("EMAIL", "ann@b\u00fccher.example", "ann@xn--bcher-kva.example"),
    ("EMAIL", "\uff41nn\u200b@example.com", "ann@example.com"),
    ("EMAIL", r"ann\_lee\.x@example\.com", "ann_lee.x@example.com"),
    ("EMAIL", "ann**@**example.com", "ann@example.com"),
    ("EMAIL", "ann&#64;example&period;com", "ann@example.com"),
    ("EMAIL", "ann%2elee%2540example.com", "ann.lee@example.com"),
    ("EMAIL", r"ann\u0040example.com", "ann@example.com"),
    ("URL", r"https://example.com/a\_b?c=1&amp;d=2", "https://example.com/a_b?c=1&d=2"),
    ("URL", r"https:\/\/example.com\/a", "https://example.com/a"),
    ("PHONE", "(415) 555-0132", "+1 415 555 0132"),
    ("PHONE", "1-415-555-0132", "415.555.0132"),
    ("PHONE", "0151 23456789", "+49 151 23456789"),
    ("PHONE", "+44 20 7946 0958", "020 7946 0958"),
    ("PHONE", "+44 (0)20 7946 0958", "0044 20 7946 0958"),
    ("PHONE", "415-555-0132 ext. 4", "(415) 555 0132"),
    ("PHONE_LOOSE", "4155550132", "+14155550132"),
    ("CREDIT_CARD", "4111 1111 1111 1111", "4111-1111-1111-1111"),
    ("IBAN", "GB82 WEST 1234 5698 7654 32", "gb82west12345698765432"),
    ("US_SSN", "078-05-1120", "078051120"),
    ("IP_ADDRESS", "2001:DB8::1", "2001:db8:0:0:0:0:0:1"),
    ("MAC_ADDRESS", "00-1A-2B-3C-4D-5E", "00:1a:2b:3c:4d:5e"),
    ("DATE_OF_BIRTH", "02/11/1980", "2.11.1980"),
    ("DATE_OF_BIRTH", "2 November 1980", "02-november-1980"),
    ("CREDIT_CARD", "4111&nbsp;1111%201111 1111", "4111111111111111"),
    ("EMAIL", "ann@STRA\u1e9eE.example", "ann@stra\u00dfe.example"),
]
OTHER = [
    ("DATE_OF_BIRTH", "1 1 / 2 / 1 9 8 0", "1 / 1 2 / 1 9 8 0"),
    ("CREDIT_CARD", "4111<b>1111</b>11111111", "4111<b>1111</b>11111112"),
    ("EMAIL", "ann@example.com", "bob@example.com"),
    ("EMAIL", "ann@example.com", "ann@mail.example.com"),
    ("EMAIL", "ann+a@example.com", "ann@example.com"),
    ("EMAIL", "ann_lee@example.com", "annlee@example.com"),
    ("EMAIL", r"ann\_lee@example.com", "annlee@example.com"),
    ("URL", "https://example.com/a_b", "https://example.com/ab"),
    ("PHONE", "+1 415 555 0132", "+44 415 555 0132"),
    ("PHONE", "415-555-0132", "415-555-0133"),
    ("PHONE", "+44 20 7946 0958", "020 7946 0959"),
    ("CREDIT_CARD", "4111 1111 1111 1111", "4012 8888 8888 1881"),
    ("AWS_ACCESS_KEY", "AKIAZ7QX2B4N6M8P0R1T", "akiaz7qx2b4n6m8p0r1t"),
    ("DATE_OF_BIRTH", "11/2/1980", "1/12/1980"),
    ("DATE_OF_BIRTH", "1980-11-2", "1980-1-12"),
    ("EMAIL", "ann@stra\u00dfe.example", "ann@strasse.example"),
    ("CREDIT_CARD", "4111 llll 1111 1111", "4111 OOOO 1111 1111"),
]
ENCODED = [
    ("CREDIT_CARD", "4111111111111111", "4935608413919632"),
    ("PHONE", "+1 415 555 0101", "+1 415 555 0102"),
    ("EMAIL", "joa@x.example", "joG@x.example"),
    ("IBAN", "gba2west12345698765432", "gbG2west12345698765432"),
]


@pytest.mark.parametrize(("entity", "one", "other"), SAME)
def test_two_spellings_of_a_value_are_the_same(entity: str, one: str, other: str) -> None:
    assert set(keys(entity, one).known) & set(keys(entity, other).asked)
    assert set(keys(entity, other).known) & set(keys(entity, one).asked)


@pytest.mark.parametrize(("entity", "one", "other"), OTHER)
def test_two_values_are_never_the_same(entity: str, one: str, other: str) -> None:
    assert not set(keys(entity, one).known) & set(keys(entity, other).asked)
    assert not set(keys(entity, other).known) & set(keys(entity, one).asked)


@pytest.mark.parametrize(("entity", "one", "other"), ENCODED)
def test_two_values_that_stand_encoded_are_not_the_same_because_their_figures_are(
    entity: str, one: str, other: str
) -> None:
    mine, theirs = (keys(entity, base64.b64encode(text.encode()).decode()) for text in (one, other))
    assert set(mine.known) & set(mine.asked)
    assert not set(mine.known) & set(theirs.asked)


@pytest.mark.parametrize("entity", sorted(ENTITIES))
@pytest.mark.parametrize(
    "text", ["", "x", "+", "()", "@", "%40", "\u200b", "0" * 2000, "a" * 2000, "+999", "(0)", "\ud800"]
)
def test_every_text_has_keys_and_is_the_same_as_itself(entity: str, text: str) -> None:
    found = keys(entity, text)
    assert set(found.known) & set(found.asked)


@pytest.mark.parametrize(
    ("entity", "text", "domain"),
    [
        ("EMAIL", "Ann@B\u00dccher.example", "xn--bcher-kva.example"),
        ("URL", "https://user@Sub.Example.com:8443/a?b@c.org", "sub.example.com"),
        ("URL", "https://evil.org\\@example.com/", "evil.org"),
        ("URL", "www.example.com/x", "www.example.com"),
        ("URL", "www.evil.org/://example.com/", "www.evil.org"),
        ("URL", "evil.org/?to=http://example.com/", "evil.org"),
        ("URL", "evil.org:443://example.com/", "evil.org"),
        ("PHONE", "415-555-0132", ""),
    ],
)
def test_the_domain_is_the_one_that_is_meant(entity: str, text: str, domain: str) -> None:
    assert domain_of(entity, text) == domain
