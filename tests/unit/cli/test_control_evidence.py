"""Keys for evidence, as people make and use them; what is opened is told by tests/e2e/test_evidence.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkstream.cli import control_evidence as module
from checkstream.cli import main
from checkstream.control.telemetry.evidence import Exhibit, OpeningKey, Parcel, info_of, opening_key, sealing_key

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


def piece(key: OpeningKey, node: str = "n1", record: str = "signed", **more: Any) -> dict[str, Any]:
    plain = {"stream": "s1", "route": "chat", "caller": None, "transcript": HEADER + ASKED, "released": b"bye\x1b[31m"}
    sealed = key.sealing.seal(Exhibit(**{**plain, **more}), info_of(node, "c1", 7, HASH))
    parcel = Parcel(
        chain="c1", seq=7, hash=HASH, stream="s1", route="chat", key=key.sealing.name, at_ms=1, sealed=sealed
    )
    return {"node": node, "parcel": parcel, "record": record}


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run the command over what a server gives."""

    def run(key: OpeningKey, *pieces: dict[str, Any], more: tuple[str, ...] = ()) -> int:
        def ask(_: object, method: str, path: str, body: object = None) -> Any:
            assert (method, path, body) == ("GET", "/v1/evidence/s1", None)
            return msgspec.to_builtins({"evidence": pieces})

        (tmp_path / "k.pem").write_bytes(key.private_pem)
        monkeypatch.setattr(module, "ask", ask)
        return main(["control", "evidence", "s1", "--key", str(tmp_path / "k.pem"), *more])

    return run


@pytest.mark.parametrize(
    ("record", "code", "says"),
    [
        ("signed", 0, "a signed head vouches"),
        ("unsigned", 1, "no head speaks of its record yet"),
        ("unproven", 1, "ITS RECORD DID NOT FIT ITS CHAIN"),
        ("unknown", 1, "NO RECORD OF ITS HASH IS KNOWN"),
    ],
)
def test_evidence_is_shown_harmlessly_and_held_to_the_record(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    opened: Callable[..., int],
    *,
    record: str,
    code: int,
    says: str,
) -> None:
    key, transcript = OpeningKey.made(), tmp_path / "t.jsonl"
    assert opened(key, piece(key, record=record), more=("--transcript", str(transcript))) == code
    out = capsys.readouterr().out
    assert says in out
    assert "hello" in out
    assert "bye" in out
    assert "\x1b" not in out, "no text of a caller reaches the terminal as a command"
    assert transcript.read_text() == HEADER + ASKED


def test_what_a_lying_node_has_sent_hides_nothing_and_is_told_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], opened: Callable[..., int]
) -> None:
    key, transcript = OpeningKey.made(), tmp_path / "t.jsonl"
    moved = piece(key, "a") | {"node": "moved"}
    lies = (
        piece(OpeningKey.made(), "other-key"), moved, piece(key, "other-stream", stream="s2\x1b[2J"),
        piece(key, "no-transcript", transcript="{"), piece(key, "empty", transcript=""),
    )  # fmt: skip
    again = piece(key, "z", transcript=HEADER)
    more = ("--transcript", str(transcript))
    assert opened(key, *lies, piece(key), again, more=more) == 1
    out = capsys.readouterr().out
    assert out.count("NOT OPENED") == len(lies)
    assert "n1 c1/7 chat -: a signed head vouches" in out
    assert "hello" in out
    assert "\x1b" not in out
    assert transcript.read_text() == HEADER + ASKED, "that of the first, which is vouched for best"
    assert opened(key, *lies, piece(key), more=("--json",)) == 1
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["node"] for one in told if "unopened" not in one] == ["n1"]
    assert told[-1]["record"] == "signed"
    assert opened(key) == 1
    assert "no evidence" in capsys.readouterr().err
