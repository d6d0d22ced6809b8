from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from checkstream.audit.entries import PassEntry, ReloadEntry, StreamEntry
from checkstream.audit.segments import segment_name
from checkstream.cli import audit
from checkstream.cli.parser import Parser
from tests.records import (
    CHAIN,
    KEY,
    OTHER_KEY,
    head,
    record,
    rescored,
    seal_all,
    start,
    stream,
    two_segments,
    verdict,
    write_chain,
)

SEALED = seal_all(two_segments())
LINES = [sealed.line for sealed in SEALED]


def run(*arguments: str | Path) -> int:
    return audit.run(Parser(prog="checkstream audit", later=audit.add_arguments).parse_args([*map(str, arguments)]))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_chain(tmp_path / "audit", [LINES[:4], LINES[4:]], [head(SEALED[5])])
    (tmp_path / "key.pub").write_bytes(KEY.public.pem())
    (tmp_path / "other.pub").write_bytes(OTHER_KEY.public.pem())
    return tmp_path / "audit"


def test_verify_of_a_good_chain_is_0(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", log) == 0
    told = capsys.readouterr()
    ok, behind = told.out.splitlines()
    assert ok == "c1: ok, 7 records in 2 segments, heads up to 6, signatures not checked"
    assert behind.startswith("  1 record stands behind the last head: no signature vouches for that")
    assert "could have written all of it anew" in told.err
    assert run("verify", log, "--strict") == 1
    capsys.readouterr()
    assert run("verify", log, "--key", log.parent / "key.pub") == 0
    assert "signed up to 6" in capsys.readouterr().out


def test_verify_of_a_broken_chain_is_1_and_names_the_record(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", log, "--key", log.parent / "other.pub") == 1
    assert "c1.heads:1: seq 6: head signature wrong" in capsys.readouterr().out
    segment = log / segment_name(CHAIN, 1)
    segment.write_bytes(segment.read_bytes().replace(b'"s0"', b'"s8"'))
    assert run("verify", log) == 1
    out = capsys.readouterr().out
    assert "broken after 1 records" in out
    assert "c1-000001.jsonl:2: seq 2: hash mismatch" in out
    assert run("verify", log, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["bad"]["file"], found["bad"]["line"], found["bad"]["reason"]) == (
        "c1-000001.jsonl",
        2,
        "hash mismatch",
    )


def test_wrong_use_is_2(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = log.parent / "empty"
    empty.mkdir()
    for arguments in (
        ("verify", log / "nowhere"), ("verify", empty), ("verify", log, "--key", log / "none"),
        ("verify", log, "--key", log / segment_name(CHAIN, 1)), ("show", empty), ("show", log / "nowhere"),
    ):  # fmt: skip
        assert run(*arguments) == 2
        assert "checkstream audit: " in capsys.readouterr().err
    for wrong in (("show", log, "--last", "0"), ("show", log, "--last", "x"), (), ("verify",)):
        with pytest.raises(SystemExit) as stopped:
            run(*wrong)
        assert stopped.value.code == 2


def test_show_is_a_table(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", log) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split() == list(audit._COLUMNS)
    assert [row.split()[2:4] for row in rows[1:]] == [
        ["1", "start"], ["2", "stream"], ["3", "stream"], ["4", "rotate"], ["5", "stream"], ["6", "stream"],
        ["7", "stop"],
    ]  # fmt: skip
    assert rows[2].split()[4:9] == ["s0", "chat", "redact", "complete", "PII-001"]
    assert rows[7].endswith("SIGTERM")


def test_show_selects(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("show", log, "--stream", "s1", "--json")
    (line,) = capsys.readouterr().out.splitlines()
    assert line.encode() + b"\n" == LINES[2]
    run("show", log, "--stream", "s", "--json")
    assert [json.loads(line)["seq"] for line in capsys.readouterr().out.splitlines()] == [2, 3, 5, 6], "a beginning"
    assert run("show", log, "--stream", "1") == 1
    assert capsys.readouterr() == ("", f"checkstream audit: no entry of stream `1...` in `{log}`\n")
    run("show", log, "--last", "2", "--json")
    assert [json.loads(line)["seq"] for line in capsys.readouterr().out.splitlines()] == [6, 7]
    run("show", log, "--rule", "PII-001", "--json")
    assert len(capsys.readouterr().out.splitlines()) == 4
    run("show", log, "--rule", "PII-002")
    assert capsys.readouterr() == ("", f"checkstream audit: no entry of rule `PII-002` in `{log}`\n")


def test_show_of_one_stream_says_what_each_rule_decided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    about = {"regulation": "GDPR Art. 5", "citation": "https://gdpr.example/5", "severity": "high"}
    verdicts = (
        msgspec.structs.replace(verdict("PII-001"), **about),
        msgspec.structs.replace(verdict("PAY-001"), undecided=True, mode="shadow", spans=()),
        msgspec.structs.replace(verdict("R\x1b[2J"), regulation="\x07", excepted_by="OK-1"),
    )
    told = msgspec.structs.replace(record(verdicts=verdicts), confirmed=("PAY-001",))
    entry = StreamEntry(stream="one", route="chat", caller=None, record=told)
    write_chain(tmp_path, [[one.line for one in seal_all([start(), entry, stream()])]])
    assert run("show", tmp_path) == 0
    assert "GDPR" not in capsys.readouterr().out
    assert run("show", tmp_path, "--stream", "one") == 0
    out = capsys.readouterr().out
    pii, pay, hostile = out.splitlines()[2:]
    first = verdicts[0]
    where = f"{first.stage}:{first.channel.kind}/{first.channel.choice}"
    assert pii.startswith(f"  PII-001 of {first.policy}@{first.version} -> {first.action}: {where} ")
    assert pii.endswith("; severity high; GDPR Art. 5; https://gdpr.example/5")
    assert f"{first.spans[0].start}..{first.spans[0].end}" in pii
    assert pay.endswith("; not enforced; confirmed; a condition could not be decided")
    assert hostile.endswith("; set aside by OK-1; \\x07")
    assert all(character.isprintable() or character == "\n" for character in out)


def test_g17_show_says_what_was_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = msgspec.structs.replace(record(), unscanned=("midstream:delta.audio.data", "midstream:\x1b[2J"))
    entry = StreamEntry(stream="one", route="chat", caller=None, record=told)
    write_chain(tmp_path, [[one.line for one in seal_all([start(), entry])]])
    assert run("show", tmp_path, "--stream", "one") == 0
    out = capsys.readouterr().out
    assert "1 finding, 2 not read" in out
    assert out.splitlines()[-2:] == ["  not read: midstream:delta.audio.data", "  not read: midstream:\\x1b[2J"]


def test_g37_show_says_which_fields_nobody_knows_and_which_were_taken_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = msgspec.structs.replace(
        record(),
        scanned=("ingress:provider", "midstream:content"),
        removed=("mirostat", "chat_template_kwargs.messages"),
    )
    entry = StreamEntry(stream="one", route="chat", caller=None, record=told)
    write_chain(tmp_path, [[one.line for one in seal_all([start(), entry])]])
    assert run("show", tmp_path, "--stream", "one") == 0
    out = capsys.readouterr().out
    assert "1 finding, 1 unknown field, 2 removed fields" in out
    assert out.splitlines()[-3:] == [
        "  not known, read as text: ingress:provider",
        "  taken out of the request, as it could undo a rule: mirostat",
        "  taken out of the request, as it could undo a rule: chat_template_kwargs.messages",
    ]


def test_g37_show_says_where_an_answer_was_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = StreamEntry(stream="one", route="chat", caller=None, record=msgspec.structs.replace(record(), turned_at=37))
    write_chain(tmp_path, [[one.line for one in seal_all([start(), entry])]])
    assert run("show", tmp_path, "--stream", "one") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "  the answer was cut at character 37, and goes on in a second one"


def test_show_reads_around_what_can_not_be_read(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (log / segment_name(CHAIN, 2)).open("ab") as segment:
        segment.write(b'{"body":{\n\xff\n')
    assert run("show", log, "--json") == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 7
    assert "c1-000002.jsonl:4: left out" in captured.err


def test_names_from_outside_do_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = StreamEntry(
        stream="s\x1b[2J", route="a\nb", caller=None, record=record(verdicts=(verdict("R\u202e1"),), action="\x07")
    )
    passed = PassEntry(stream="s", route="models", caller=None, method="GET", path="/v1/models", status=200)
    reload = ReloadEntry(accepted=False, programs=(), policies=("old@1",), reason="bad file")
    loaded = ReloadEntry(accepted=True, programs=(), policies=("new@2",))
    again = rescored(route="c\x1bd", violated=True, cutoff_ms=31.5)
    sealed = seal_all([start(), stream(), hostile, passed, reload, loaded, again])
    write_chain(tmp_path, [[one.line for one in sealed]])
    assert run("show", tmp_path) == 0
    out = capsys.readouterr().out
    assert all(character.isprintable() or character == "\n" for character in out)
    assert "s\\x1b[2J" in out
    assert "a\\nb" in out
    assert "GET /v1/models" in out
    assert "refused, bad file\n" in out
    assert "accepted, new@2\n" in out
    assert "judged again: violation, 31.5 ms before the stop\n" in out
    assert " BLUE-1 " in out
