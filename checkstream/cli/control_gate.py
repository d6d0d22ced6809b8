"""`checkstream control tell`: what a run of the gate came to, for the control server."""

from __future__ import annotations

import argparse

import msgspec

from checkstream.cli.control_ask import ask
from checkstream.cli.results import safe, write_json
from checkstream.errors import FileUnreadable
from checkstream.gate.report import Report


def tell(args: argparse.Namespace) -> int:
    """Tell of a run: its decision and its counts; what it asked and heard stays here.

    Raises:
        FileUnreadable: the file can't be read, or is no report of the gate.
    """
    try:
        report = msgspec.json.decode(args.report.read_bytes(), type=Report)
    except OSError as error:
        raise FileUnreadable(f"`{args.report}` can't be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        advice = "`checkstream gate --reports FOLDER` writes a `report.json`"
        raise FileUnreadable(f"`{args.report}` is no report of the gate: {error}; {advice}") from error
    run = {name: getattr(report, name) for name in _SAME} | {"risk": report.score}
    kept = ask(args, "POST", "/v1/gate-runs", {"fleet": args.fleet or "", "run": run})
    if args.json:
        write_json(kept)
    else:
        print(safe(f"told: {report.target}, {report.decision}, risk {report.score:.4f} (run {report.run_id})"))
    return 0


_SAME = (
    "run_id", "target", "verifier", "config_hash", "snapshot", "begun", "ended", "decision", "reason", "total_claims",
    "supported", "weakly_supported", "unsupported",
)  # fmt: skip
"""What a run is told as, as its report has it."""
