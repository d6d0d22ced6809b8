"""What the console reads of the audit log: the newest that is wanted, bounded, and proofs that can fail."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.audit import chain as format_
from checkstream.audit.bodies import body_of
from checkstream.audit.entries import AnyEntry, PassEntry, StreamEntry
from checkstream.audit.keys import AuditKey
from checkstream.config import AuditSettings, Secret
from checkstream.console import records
from checkstream.console.opening import public_key
from checkstream.console.queries import Query
from checkstream.console.records import Folder, Proof, _backwards
from checkstream.errors import AuditError
from tests.records import CHAIN, KEY, OTHER_KEY, head, record, seal_all, start, two_segments, verdict, write_chain

ALL = Query()


def folder(tmp_path: Path, key: AuditKey = KEY) -> Folder:
    return Folder(tmp_path / "audit", lambda: key.public.pem().decode())


def write(tmp_path: Path, items: list[AnyEntry], cuts: int = 0, heads: tuple[int, ...] = ()) -> list[format_.Sealed]:
    sealed = seal_all(items)
    lines = [each.line for each in sealed]
    parts = [lines[:cuts], lines[cuts:]] if cuts else [lines]
    write_chain(tmp_path / "audit", parts, [head(sealed[at - 1]) for at in heads])
    return sealed


def found(of: Folder, query: Query = ALL, **more: int) -> list[str]:
    return [entry.body.stream for entry in of.search(query, **more).entries]


@given(st.lists(st.binary(max_size=9), max_size=40), st.binary(max_size=9), st.sampled_from([1, 2, 3, 7, 64]))
def test_whole_lines_come_from_the_last_to_the_first_however_blocks_cut_them(
    tmp_path_factory: pytest.TempPathFactory, given_lines: list[bytes], torn: bytes, block: int
) -> None:
    wanted = [line.replace(b"\n", b"") for line in given_lines]
    path = tmp_path_factory.mktemp("log") / "file"
    path.write_bytes(b"".join(line + b"\n" for line in wanted) + torn.replace(b"\n", b""))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(records, "_BLOCK", block)
        patched.setattr(records, "_PAUSE_S", 0)
        patched.setattr(format_, "MAX_LINE_BYTES", 8)
        assert list(_backwards(path)) == [line for line in wanted[::-1] if len(line) <= 8]


def test_the_newest_exchanges_come_first_over_segments_and_nothing_but_exchanges(tmp_path: Path) -> None:
    write(tmp_path, two_segments(6, 5), cuts=6)
    assert found(folder(tmp_path)) == ["s8", "s7", "s6", "s5", "s3", "s2", "s1", "s0"]
    assert found(folder(tmp_path), most=2) == ["s8", "s7"]


def test_each_field_of_a_search_is_held_against_what_the_record_says(tmp_path: Path) -> None:
    items: list[AnyEntry] = [start()]
    for at in range(12):
        verdicts = (verdict("R-1"),) if at % 2 else (verdict('R"\\\u00e9'), verdict("R-3"))
        told = record(verdicts=verdicts, action="stop" if at % 3 else "redact")
        items.append(StreamEntry(stream=f"{at:x}abc", route="one" if at < 6 else "two", caller=None, record=told))
    items.append(PassEntry(stream="f00", route="models", caller=None, method="GET", path="/v1/models", status=200))
    sealed = write(tmp_path, items)
    entries = [format_.read(each.line[:-1]) for each in sealed][::-1]
    of = folder(tmp_path)
    for query in (
        Query(stream="3"), Query(stream="3abc"), Query(stream="bc"), Query(rule="R-1"), Query(rule="R-"),
        Query(rule='R"\\\u00e9'), Query(route="two"), Query(action="stop"), Query(action="pass"),
        Query(route="one", rule="R-3", action="redact"), Query(since="2027"), Query(until="2025"),
        Query(since="2026-01-02T03:04", until="2026-01-02T03:04"), Query(stream='"'), Query(route="\x00"),
    ):  # fmt: skip
        slow = [
            str(each.body["stream"])
            for each in entries
            if each.kind in ("stream", "pass") and query.fits(each, body_of(each))
        ]
        assert found(of, query) == slow, query
    assert found(of, Query(stream="3")) == ["3abc"]
    assert len(found(of, Query(rule="R-3"))) == 6
    assert found(of, Query(action="pass")) == ["f00"]


def test_chains_are_merged_by_time(tmp_path: Path) -> None:
    for chain, times in (("c1", ("01", "04")), ("c2", ("02", "03"))):
        prev, lines = format_.GENESIS, b""
        for at, minute in enumerate(times, 1):
            entry = StreamEntry(stream=f"s{minute}", route="r", caller=None, record=record())
            sealed = format_.seal(
                entry, chain=chain, seq=at, prev=prev, process="p", time=f"2026-01-02T03:{minute}:00.000Z"
            )
            prev, lines = sealed.hash, lines + sealed.line
        (tmp_path / "audit").mkdir(exist_ok=True)
        (tmp_path / "audit" / f"{chain}-000001.jsonl").write_bytes(lines)
    assert found(folder(tmp_path)) == ["s04", "s03", "s02", "s01"]


def test_a_search_reads_so_much_and_says_how_far_it_came(tmp_path: Path) -> None:
    sealed = write(tmp_path, two_segments(6, 5), cuts=6)
    told = folder(tmp_path).search(Query(rule="nobody"), most_bytes=3 * len(sealed[-2].line))
    assert told.entries == ()
    assert told.back_to == "2026-01-02T03:04:05.678Z"
    assert folder(tmp_path).search(Query(rule="nobody")).back_to == ""


def test_where_nothing_is_nothing_is_found(tmp_path: Path) -> None:
    of = folder(tmp_path)
    assert of.search(ALL).entries == ()
    assert of.line("c1", 1) is None
    assert of.proof("../c1", 1) is None


def test_hostile_files_are_named_or_left_alone(tmp_path: Path) -> None:
    write(tmp_path, [start(), *two_segments(4, 3)[1:3]])
    log = tmp_path / "audit" / f"{CHAIN}-000001.jsonl"
    log.write_bytes(log.read_bytes() + b'{"kind":"stream"}\n\xff\x00\n{"body":{"rec')
    (tmp_path / "audit" / "notes.txt").write_text("mine")
    told = folder(tmp_path).search(ALL)
    assert [entry.body.stream for entry in told.entries] == ["s1", "s0"]
    assert len(told.unreadable) == 1
    assert told.unreadable[0].startswith("c1-000001.jsonl: ")
    os.mkfifo(tmp_path / "audit" / "c2-000001.jsonl")
    with pytest.raises(AuditError, match="not a regular file"):
        folder(tmp_path).search(ALL)


def holds(proof: Proof) -> bool:
    """Check a proof as the specification says, with nothing of the code that made it."""
    told = msgspec.json.decode(base64.b64decode(proof.line))
    claimed, prev = told.pop("hash"), bytes.fromhex(told.pop("prev"))
    own = hashlib.sha256(b"\0" + format_.canonical(told)).digest()
    at = hashlib.sha256(b"\1" + prev + own).digest()
    if at.hex() != claimed or not proof.head or proof.gap:
        return False
    for each in proof.after:
        at = hashlib.sha256(b"\1" + at + bytes.fromhex(each)).digest()
    signed = format_.read_head(base64.b64decode(proof.head))
    key = KEY.public if proof.key == KEY.public.pem().decode() else OTHER_KEY.public
    return at.hex() == signed.hash and key.verify(bytes.fromhex(signed.sig), format_.head_message(signed))


@pytest.mark.parametrize("step", [1, 500, 65_536])
@pytest.mark.parametrize("heads", [(11,), (2, 7, 11), (3, 9), tuple(range(1, 12))])
def test_a_proof_leads_from_a_record_to_the_next_head_over_segments(
    tmp_path: Path, heads: tuple[int, ...], step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "_HEADS_STEP", step)
    write(tmp_path, two_segments(6, 5), cuts=6, heads=heads)
    of = folder(tmp_path)
    for seq in range(1, 12):
        proof = of.proof(CHAIN, seq)
        assert proof is not None
        covered = [at for at in heads if at >= seq]
        assert holds(proof) is bool(covered)
        assert len(proof.after) == (covered[0] - seq if covered else 0)
    assert of.proof(CHAIN, 12) is None
    assert of.proof("c2", 1) is None


@pytest.mark.parametrize("place", ["record", "behind", "prev", "gone", "key", "head"])
def test_what_was_changed_is_not_proved(tmp_path: Path, place: str) -> None:
    sealed = write(tmp_path, two_segments(6, 5), cuts=6, heads=(9,))
    log, heads = tmp_path / "audit" / f"{CHAIN}-000001.jsonl", tmp_path / "audit" / f"{CHAIN}.heads"
    before = folder(tmp_path).proof(CHAIN, 3)
    assert before is not None
    assert holds(before)
    match place:
        case "record":
            log.write_bytes(log.read_bytes().replace(b'"stream":"s1"', b'"stream":"s7"'))
        case "behind":
            log.write_bytes(log.read_bytes().replace(b'"stream":"s3"', b'"stream":"s7"'))
        case "prev":
            other = sealed[2].line.replace(sealed[1].hash.encode(), b"0" * 64)
            log.write_bytes(log.read_bytes().replace(sealed[2].line, other))
        case "gone":
            log.write_bytes(log.read_bytes().replace(sealed[4].line, b""))
        case "key":
            pass
        case "head":
            heads.write_bytes(head(sealed[7]).replace(b'"seq":8', b'"seq":9'))
    proof = folder(tmp_path, OTHER_KEY if place == "key" else KEY).proof(CHAIN, 3)
    assert proof is not None
    assert not holds(proof)


def test_a_way_that_is_too_long_is_not_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_MOST_LINKS", 3)
    write(tmp_path, two_segments(6, 5), cuts=6, heads=(11,))
    proof = folder(tmp_path).proof(CHAIN, 2)
    assert proof is not None
    assert (proof.gap, proof.after) == ("the next head is 9 records away", ())
    assert not proof.head, "nothing is wrong with the log: a browser is not to say that there is"


@pytest.mark.parametrize("junk", [b"", b"\n", b'{"seq":1,', b'{"seq":99,"x":1}\n'])
def test_the_head_of_a_record_is_found_among_those_of_weeks(
    tmp_path: Path, junk: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "_MOST_HEADS_BYTES", 200_000)
    sealed = write(tmp_path, two_segments(6, 5), cuts=6)
    line = head(sealed[0])
    one = line if line.endswith(b"\n") else line + b"\n"
    many = b"".join(one.replace(b'"seq":1,', b'"seq":%d,' % -(-at // 300_000)) for at in range(1, 600_001, 150))
    heads = tmp_path / "audit" / f"{CHAIN}.heads"
    late = head(sealed[10])
    heads.write_bytes(many + junk + (late if late.endswith(b"\n") else late + b"\n"))
    proof = folder(tmp_path).proof(CHAIN, 5)
    assert proof is not None
    assert holds(proof) is (junk != b'{"seq":1,')  # which runs on into the head's line


def test_the_public_key_is_had_from_its_file_or_the_environment_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = AuditSettings(dir=str(tmp_path / "audit"))
    assert public_key(settings) == ""
    for given_key, told in ((b"nonsense", ""), (KEY.public.pem(), KEY.public.pem().decode())):
        (tmp_path / "audit.key.pub").write_bytes(given_key)
        assert public_key(settings) == told
    settings = AuditSettings(dir=str(tmp_path / "audit"), key=Secret(env="AUDIT_KEY"))
    assert public_key(settings) == ""
    monkeypatch.setenv("AUDIT_KEY", bytes(range(32)).hex())
    assert public_key(settings) == KEY.public.pem().decode()
