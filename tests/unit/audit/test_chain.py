from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.audit import chain, links
from checkstream.audit.chain import GENESIS, Head, Reason, canonical, plain, read, read_head, seal
from checkstream.audit.entries import KINDS, AnyEntry, PassEntry, StopEntry, StreamEntry
from checkstream.audit.links import Links
from checkstream.errors import AuditError
from tests.records import CHAIN, KEY, TIME, head, record, seal_all, stream, two_segments, verdict


def sealed_stop() -> chain.Sealed:
    return seal(StopEntry(reason="SIGTERM"), chain="c1", seq=1, prev=GENESIS, process="p1", time=TIME)


def test_worked_example_of_the_format_by_hand() -> None:
    members = b'{"body":{"reason":"SIGTERM"},"chain":"c1","kind":"stop","process":"p1","seq":1,"time":"' + TIME.encode()
    members += b'","v":1}'
    inner = hashlib.sha256(b"\x00" + members).digest()
    should = hashlib.sha256(b"\x01" + bytes(32) + inner).hexdigest()
    sealed = sealed_stop()
    assert sealed.hash == should
    assert should in (chain.__doc__ or "")
    assert sealed.line.endswith(b'"v":1}\n')
    assert json.loads(sealed.line)["hash"] == should


def test_canonical_is_sorted_compact_utf8() -> None:
    assert canonical({"b": [1, None, True], "a": 'é"\\\n\u0001\u007f\u2028'}) == (
        '{"a":"é\\"\\\\\\n\\u0001\u007f\u2028","b":[1,null,true]}'.encode()
    )


_WORDS = st.text(st.characters(), max_size=8)  # with all of Unicode, lone surrogates and control characters too
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | _WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_WORDS, inner, max_size=4),
)


@given(_VALUES)
def test_canonical_bytes_are_the_same_whatever_writes_them(value: chain.Json) -> None:
    slowly = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    with contextlib.suppress(UnicodeEncodeError):  # of a lone surrogate there are none
        slowly.encode()
        assert canonical(value) == slowly.encode()
        return
    with pytest.raises(UnicodeEncodeError):
        canonical(value)


def test_values_as_deep_as_no_record_is_are_spelled_alike() -> None:
    deep: chain.Json = 1
    for _ in range(300):
        deep = [deep]
    assert canonical(deep) == b"[" * 300 + b"1" + b"]" * 300


@pytest.mark.parametrize(
    ("value", "form"),
    [(0.93, "0.930000"), (-0.0000001, "-0.000000"), (1e20, "100000000000000000000.000000"), ((1, 2), [1, 2]),
     ("a\ud800b", "a\ufffdb"), ({"x": (0.5,)}, {"x": ["0.500000"]}), (True, True), (None, None)],
)  # fmt: skip
def test_plain_forms(value: object, form: object) -> None:
    assert plain(value) == form


@pytest.mark.parametrize("value", [math.nan, math.inf, 2**53, -(2**53), object(), {"x": b"bytes"}, {1, 2}])
def test_what_has_no_form_is_refused(value: object) -> None:
    with pytest.raises(AuditError):
        plain(value)


def test_every_kind_of_entry_is_known_and_reads_back() -> None:
    tags = {kind.__struct_config__.tag for kind in AnyEntry.__args__}
    assert tags == KINDS
    passed = PassEntry(stream="s", route="models", caller=None, method="GET", path="/v1/models", status=200)
    sealed = seal(passed, chain=CHAIN, seq=5, prev="ab" * 32, process="p1", time=TIME)
    found = read(sealed.line.removesuffix(b"\n"))
    assert (found.kind, found.seq, found.prev, found.hash) == ("pass", 5, "ab" * 32, sealed.hash)
    assert found.body["path"] == "/v1/models"
    assert chain.record_hash(found) == sealed.hash


def test_stream_record_reads_back_typed() -> None:
    sealed = seal(stream(), chain=CHAIN, seq=1, prev=GENESIS, process="p1", time=TIME)
    body = read(sealed.line[:-1]).body
    back = msgspec.convert({**body, "kind": "stream"}, StreamEntry, strict=False)
    assert back == stream()


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{}", b"[]", b"null", b"\xff\xfe", b"{", b'{"v":1.0}', b'{"v":NaN}', b"[" * 100_000, b"9" * 5000,
        b'"\\ud800"', b"\x00" * 100, b'{"v":1,"v":1}',
    ],
)  # fmt: skip
def test_garbage_is_no_record_and_no_head(line: bytes) -> None:
    with pytest.raises(AuditError):
        read(line)
    with pytest.raises(AuditError):
        read_head(line)


def test_other_spellings_of_a_record_are_refused() -> None:
    line = sealed_stop().line[:-1]
    for other in (
        line.replace(b'":', b'": ', 1),
        line + b" ",
        line.replace(b"SIGTERM", b"\\u0053IGTERM"),
        line.replace(b'"seq":1', b'"seq":01'),
        line.replace(b'"v":1', b'"v":1,"w":1'),
        line.replace(b'"v":1', b'"v":2'),
        line.replace(GENESIS.encode(), b"A" * 64),
    ):
        assert other != line
        with pytest.raises(AuditError):
            read(other)


def test_a_line_that_is_too_long_is_refused_without_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "MAX_LINE_BYTES", 100)
    monkeypatch.setattr(links, "MAX_LINE_BYTES", 100)
    with pytest.raises(AuditError, match="longer than"):
        read(b"x" * 101)
    assert Links(CHAIN).receive(b"x" * 101).reason is Reason.TOO_LONG  # type: ignore[union-attr]


def test_a_flood_of_findings_is_shortened_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "MAX_ITEMS", 16)
    long = StreamEntry(
        stream="s", route="r", caller=None, record=record(findings=40, verdicts=(verdict(spans=20),) * 3)
    )
    body = read(seal(long, chain=CHAIN, seq=1, prev=GENESIS, process="p", time=TIME).line[:-1]).body
    assert body["omitted"] == {"findings": 24, "verdicts": 0, "spans": 12}
    assert len(body["record"]["findings"]) == 16  # type: ignore[index]
    monkeypatch.setattr(chain, "MAX_LINE_BYTES", 2500)
    body = read(seal(long, chain=CHAIN, seq=1, prev=GENESIS, process="p", time=TIME).line[:-1]).body
    assert body["omitted"] == {"findings": 38, "verdicts": 1, "spans": 36}


def test_what_can_not_be_shortened_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "MAX_LINE_BYTES", 500)
    with pytest.raises(AuditError, match="too long"):
        seal(StopEntry(reason="x" * 600), chain=CHAIN, seq=1, prev=GENESIS, process="p", time=TIME)
    with pytest.raises(AuditError, match="too long"):
        seal(stream(), chain="c" * 500, seq=1, prev=GENESIS, process="p", time=TIME)


def lines() -> list[bytes]:
    return [sealed.line[:-1] for sealed in seal_all(two_segments())]


def test_links_follow_a_good_chain_over_a_rotation() -> None:
    chained = Links(CHAIN)
    for number, line in enumerate(lines(), start=1):
        assert chained.receive(line) is None
        assert chained.seq == number
        assert (chained.next_segment == "c1-000002.jsonl") == (number == 4)


@pytest.mark.parametrize(
    ("change", "reason", "seq"),
    [
        (lambda ls: [ls[0], ls[1].replace(b'"s0"', b'"sX"'), *ls[2:]], Reason.HASH, 2),
        (lambda ls: ls[:2] + ls[3:], Reason.MISSING, 4),
        (lambda ls: [*ls[:2], ls[1], *ls[2:]], Reason.REPEATED, 2),
        (lambda ls: [ls[0], b"{}", *ls[2:]], Reason.UNREADABLE, 2),
        (lambda ls: ls[1:], Reason.MISSING, 2),
    ],
)
def test_links_name_the_first_bad_record(
    change: Callable[[list[bytes]], list[bytes]], reason: Reason, seq: int
) -> None:
    chained = Links(CHAIN)
    flaw = next(flaw for flaw in map(chained.receive, change(lines())) if flaw is not None)
    assert (flaw.reason, flaw.seq) == (reason, seq)


def test_a_record_rewritten_with_a_fitting_hash_breaks_the_link_after_it() -> None:
    good = seal_all(two_segments())
    forged = seal(StopEntry(reason="forged"), chain=CHAIN, seq=2, prev=good[0].hash, process="p1", time=TIME)
    chained = Links(CHAIN)
    assert chained.receive(good[0].line[:-1]) is None
    assert chained.receive(forged.line[:-1]) is None
    flaw = chained.receive(good[2].line[:-1])
    assert flaw is not None
    assert (flaw.reason, flaw.seq) == (Reason.LINK, 3)


def test_other_chains_and_unknown_kinds_are_found() -> None:
    flaw = Links("c2").receive(lines()[0])
    assert flaw is not None
    assert flaw.reason is Reason.OTHER_CHAIN
    members = {"body": {}, "chain": CHAIN, "kind": "party", "process": "p", "seq": 1, "time": TIME, "v": 1}
    digest = chain.link(GENESIS, members)  # type: ignore[arg-type]
    flaw = Links(CHAIN).receive(canonical({**members, "hash": digest, "prev": GENESIS}))  # type: ignore[dict-item]
    assert flaw is not None
    assert flaw.reason is Reason.UNKNOWN_KIND


def test_heads_read_back_and_their_message_leaves_the_signature_out() -> None:
    sealed = seal_all(two_segments())[-1]
    line = head(sealed)
    found = read_head(line[:-1])
    assert found.seq == sealed.seq
    assert KEY.public.verify(bytes.fromhex(found.sig), chain.head_message(found))
    assert not KEY.public.verify(bytes.fromhex(found.sig), chain.head_message(msgspec.structs.replace(found, seq=1)))
    assert chain.head_message(Head(chain="c", hash=GENESIS, key="k", seq=1, time="t")).startswith(b'\x02{"chain":"c"')
    with pytest.raises(AuditError):
        read_head(line[:-1].replace(b'"v":1', b'"v":2'))


def test_torn_lines_are_told_from_changed_ones() -> None:
    line = sealed_stop().line
    for cut in range(len(line)):
        assert chain.is_torn(line[:cut], chain.RECORD_OPENING)
    assert not chain.is_torn(line[:-1] + b"\x0b", chain.RECORD_OPENING)
    assert not chain.is_torn(line[:-1] + line[:20], chain.RECORD_OPENING)
    assert not chain.is_torn(b"\x00\x00", chain.RECORD_OPENING)
    assert chain.is_torn(b'{"chain":"c1","ha', chain.HEAD_OPENING)


@given(_WORDS)
def test_a_link_can_be_checked_by_who_knows_the_digest_alone(reason: str) -> None:
    sealed = seal(StopEntry(reason=reason), chain="c1", seq=1, prev=GENESIS, process="p1", time=TIME)
    members = json.loads(sealed.line)
    del members["hash"], members["prev"]
    digest = chain.record_digest(members)
    assert chain.linked(GENESIS, digest) == sealed.hash
    assert chain.linked(sealed.hash, digest) != sealed.hash
    assert chain.record_digest({**members, "seq": 2}) != digest
