"""Keys for evidence, as people make and use them; what is opened is told by tests/e2e/test_evidence.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkstream.cli import control_evidence as module
from checkstream.cli import main
from checkstream.control.telemetry.evidence import Exhibit, OpeningKey, Parcel, info_of, opening_key, sealing_key
from checkstream.errors import ControlError

HASH = "ab" * 32
HEADER = '{"surface": "openai.chat"}\n'
ASKED = '{"at": 0.0, "event": {"type": "RequestReceived", "body": "aGVsbG8bWzMxbQ=="}}\n'


def test_a_pair_is_made_once_and_its_private_half_is_its_owners(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "k.pem"
    assert main(["control", "evidence-key", str(file)]) == 0
    said = capsys.readouterr()
    private, public = file.read_bytes(), Path(f"{file}.pub").read_bytes()
    assert opening_key(private, "k").sealing.name == sealing_key(public, "k").name
    assert said.out == f"{file}.pub {sealing_key(public, 'k').name}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert main(["control", "evidence-key", str(file)]) == 2
    assert "file exists" in capsys.readouterr().err
    assert file.read_bytes() == private
    assert main(["control", "evidence-key", str(tmp_path / "none" / "k.pem")]) == 2


@pytest.mark.parametrize("content", [None, b"", b"not a key"])
def test_what_is_no_key_is_told_before_anybody_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    file = tmp_path / "k.pem"
    if content is not None:
        file.write_bytes(content)
    assert main(["control", "evidence", "s1", "--key", str(file), "--server", "http://127.0.0.1:9"]) == 2
    assert str(file) in capsys.readouterr().err


class Server:
    """Gives evidence of one exchange, and tells of the records that it has."""

    def __init__(self, key: OpeningKey, *records: dict[str, Any]) -> None:
        exhibit = Exhibit(stream="s1", route="chat", caller=None, transcript=HEADER + ASKED, released=b"bye\x1b[31m")
        sealed = key.sealing.seal(exhibit, info_of("n1", "c1", 7, HASH))
        self.parcel = Parcel(
            chain="c1", seq=7, hash=HASH, stream="s1", route="chat", key=key.sealing.name, at_ms=1, sealed=sealed
        )
        self.records = records

    def ask(self, _: object, method: str, path: str, body: object = None) -> Any:
        assert (method, body) == ("GET", None)
        if path.startswith("/v1/evidence/"):
            return msgspec.to_builtins({"evidence": [{"node": "n1", "parcel": self.parcel}]})
        if not self.records:
            raise ControlError("no exchange is known")
        return {"records": self.records}


def record(**more: object) -> dict[str, Any]:
    return {"exchange": {"node": "n1", "chain": "c1", "seq": 7, "more": 1}, "hash": HASH, "signed": True, **more}


@pytest.mark.parametrize(
    ("records", "code", "says"),
    [
        ([record()], 0, "a signed head vouches"),
        ([record(signed=False)], 0, "no head speaks of its record yet"),
        ([record(hash="cd" * 32)], 1, "NO RECORD OF ITS HASH IS KNOWN"),
        ([], 1, "NO RECORD OF ITS HASH IS KNOWN"),
    ],
)
def test_evidence_is_shown_harmlessly_and_held_to_the_record(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    records: list[dict[str, Any]],
    code: int,
    says: str,
) -> None:
    key = OpeningKey.made()
    (tmp_path / "k.pem").write_bytes(key.private_pem)
    monkeypatch.setattr(module, "ask", Server(key, *records).ask)
    transcript = tmp_path / "t.jsonl"
    told = ["control", "evidence", "s1", "--key", str(tmp_path / "k.pem"), "--transcript", str(transcript)]
    assert main(told) == code
    out = capsys.readouterr().out
    assert says in out
    assert "hello" in out
    assert "bye" in out
    assert "\x1b" not in out, "no text of a caller reaches the terminal as a command"
    assert transcript.read_text() == HEADER + ASKED
