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
from checkstream.control.server.evidence import Erased, Found
from checkstream.control.telemetry.evidence import Exhibit, OpeningKey, opening_key
from checkstream.core.events import RequestReceived
from checkstream.core.transcript import decode
from checkstream.errors import ControlError

_SHOWN = 20_000
"""Characters of a text that are shown; `--transcript` has all."""


class _Place(msgspec.Struct):
    node: str
    chain: str
    seq: int


class _Proof(msgspec.Struct):
    exchange: _Place
    hash: str
    signed: bool


class _Proofs(msgspec.Struct):
    records: tuple[_Proof, ...]


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
        0: it belongs to a record whose chain holds; 1: there is none, or no such record vouches for it.

    Raises:
        ControlError: the key is none, or it is not for this key.
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
    try:
        proofs = msgspec.convert(ask(args, "GET", f"/v1/exchanges/{name}"), _Proofs).records
    except ControlError:  # its record has not come, or is not kept any more
        proofs = ()
    proven = {(each.exchange.node, each.exchange.chain, each.exchange.seq, each.hash): each.signed for each in proofs}
    sound = True
    for each in found:
        exhibit = opens.open(each.parcel, each.node)
        signed = proven.get((each.node, each.parcel.chain, each.parcel.seq, each.parcel.hash))
        sound = sound and signed is not None
        _show(args, each, exhibit, signed=signed)
    return 0 if sound else 1


def _show(args: argparse.Namespace, found: Found, exhibit: Exhibit, *, signed: bool | None) -> None:
    lines = decode(exhibit.transcript.encode()).lines
    asked = b"".join(line.event.body for line in lines if isinstance(line.event, RequestReceived))
    texts = {"asked": asked.decode("utf-8", "replace"), "released": exhibit.released.decode("utf-8", "replace")}
    if args.transcript is not None:
        try:
            args.transcript.write_text(exhibit.transcript)
        except OSError as error:
            raise ControlError(f"`{args.transcript}` can't be written: {(error.strerror or '').lower()}") from error
    parcel = found.parcel
    if args.json:
        write_json(
            {
                "node": found.node, "chain": parcel.chain, "seq": parcel.seq, "hash": parcel.hash,
                "stream": exhibit.stream, "route": exhibit.route, "caller": exhibit.caller,
                "proven": signed is not None, "signed": bool(signed), **texts,
            }
        )  # fmt: skip
        return
    vouched = {True: "a signed head vouches for its record", False: "no head speaks of its record yet", None: ""}
    proof = vouched[signed] or "NO RECORD OF ITS HASH IS KNOWN"
    sys.stdout.write(safe(f"{found.node} {parcel.chain}/{parcel.seq} {exhibit.route} {exhibit.caller or '-'}: {proof}"))
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
