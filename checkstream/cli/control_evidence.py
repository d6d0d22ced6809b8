"""What the holder of a key asks a control server: evidence of an exchange, opened here, and that it be erased."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from urllib.parse import quote

import msgspec

from checkstream.api.evidence import EvidenceFound
from checkstream.cli.control_ask import ask
from checkstream.cli.results import safe, write_json
from checkstream.config import read_file
from checkstream.control.server.evidence import Erased, Found, Standing
from checkstream.control.telemetry.evidence import Exhibit, OpeningKey, opening_key
from checkstream.core.events import RequestReceived
from checkstream.core.transcript import decode
from checkstream.errors import ControlError, WireError

_SHOWN = 20_000
"""Characters of a text that are shown; `--transcript` has all."""


_SAID: dict[Standing, str] = {
    "signed": "a signed head vouches for its record",
    "unsigned": "no head speaks of its record yet: ask again in some seconds",
    "unproven": "ITS RECORD DID NOT FIT ITS CHAIN",
    "unknown": "NO RECORD OF ITS HASH IS KNOWN",
}


def key(args: argparse.Namespace) -> int:
    """Make a pair.

    Raises:
        ControlError: a file can't be written, or is there.
    """
    made, file = OpeningKey.made(), Path(args.file)
    for path, content, mode in ((file, made.private_pem, 0o600), (Path(f"{file}.pub"), made.public_pem, 0o644)):
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
        except OSError as error:
            reason = (error.strerror or "no reason given").lower()
            raise ControlError(f"`{path}` can't be written: {reason}; give another name") from error
    sys.stderr.write(f"{file} opens evidence: keep it from nodes and from the control server\n")
    sys.stdout.write(f"{file}.pub {made.sealing.name}\n")
    return 0


def evidence(args: argparse.Namespace) -> int:
    """Open what was kept of an exchange, and hold it to the record that the server has.

    Returns:
        0: all that is there opens, and belongs to records whose chains hold and that signed heads vouch for; 1: there
        is none, or something of it doesn't.

    Raises:
        ControlError: the key is none, or the server can't be asked.
    """
    try:
        pem = read_file(args.key)
    except OSError as error:
        raise ControlError(f"`{args.key}` can't be read: {(error.strerror or 'no reason given').lower()}") from error
    opens = opening_key(pem, str(args.key))
    name = quote(args.stream, safe="")
    found = msgspec.convert(ask(args, "GET", f"/v1/evidence/{name}"), EvidenceFound).evidence
    if not found:
        sys.stderr.write(f"checkstream control: no evidence of `{safe(args.stream)}` is kept there\n")
        return 1
    sound, transcript = True, ""
    for each in found:
        try:
            exhibit, texts = _opened(opens, each, args.stream)
        except ControlError as error:  # a node may have sent it to hide the one that matters
            sound = False
            _refuse(args, each, str(error))
            continue
        sound = sound and each.record == "signed"
        transcript = transcript or exhibit.transcript
        _show(args, each, exhibit, texts)
    if args.transcript is not None and transcript:
        try:
            args.transcript.write_text(transcript)
        except OSError as error:
            raise ControlError(f"`{args.transcript}` can't be written: {(error.strerror or '').lower()}") from error
    return 0 if sound else 1


def _opened(opens: OpeningKey, found: Found, stream: str) -> tuple[Exhibit, dict[str, str]]:
    """Return a piece, and what was asked and released.

    Raises:
        ControlError: it is not for this key, not of this exchange, or was not made as evidence is.
    """
    exhibit = opens.open(found.parcel, found.node)
    if exhibit.stream != stream:
        raise ControlError(f"this is of another exchange, `{exhibit.stream}`")
    try:
        lines = decode(exhibit.transcript.encode()).lines
    except (WireError, UnicodeEncodeError) as error:
        raise ControlError(f"its transcript can't be read: {error}") from error
    asked = b"".join(line.event.body for line in lines if isinstance(line.event, RequestReceived))
    return exhibit, {"asked": asked.decode("utf-8", "replace"), "released": exhibit.released.decode("utf-8", "replace")}


def _refuse(args: argparse.Namespace, found: Found, reason: str) -> None:
    if args.json:
        write_json({**_place(found), "unopened": reason})
    else:
        parcel = found.parcel
        sys.stdout.write(safe(f"{found.node} {parcel.chain}/{parcel.seq}: NOT OPENED: {reason}") + "\n")


def _place(found: Found) -> dict[str, object]:
    parcel = found.parcel
    return {
        "node": found.node, "chain": parcel.chain, "seq": parcel.seq, "hash": parcel.hash, "record": found.record,
    }  # fmt: skip


def _show(args: argparse.Namespace, found: Found, exhibit: Exhibit, texts: dict[str, str]) -> None:
    if args.json:
        whose = {"stream": exhibit.stream, "route": exhibit.route, "caller": exhibit.caller}
        write_json({**_place(found), **whose, **texts})
        return
    place = f"{found.node} {found.parcel.chain}/{found.parcel.seq}"
    sys.stdout.write(safe(f"{place} {exhibit.route} {exhibit.caller or '-'}: {_SAID[found.record]}"))
    for title, text in texts.items():
        sys.stdout.write(f"\n\n{title}:\n")
        sys.stdout.write("\n".join(map(safe, text[:_SHOWN].splitlines())))
    sys.stdout.write("\n")


def erase(args: argparse.Namespace) -> int:
    """Erase evidence of an exchange, or of a caller."""
    body = {"stream": args.stream, "caller": args.caller, "reason": args.reason}
    erased = msgspec.convert(ask(args, "POST", "/v1/evidence/erase", body), Erased)
    if args.json:
        write_json(erased)
    else:
        sys.stdout.write(f"{erased.pieces} pieces were erased\n")
    return 0
