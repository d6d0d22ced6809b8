"""What people ask a control server of alerts, and of findings that they review."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlencode

import msgspec

from checkstream.cli.control_ask import ask
from checkstream.cli.results import safe, write_json
from checkstream.control.review.exporting import cases, rows, with_texts
from checkstream.control.review.judging import Outcome
from checkstream.control.review.precision import WEEK_S
from checkstream.control.review.terms import Item, Word
from checkstream.control.server.alerting import Alerts
from checkstream.control.server.reviewing import Figures, Open
from checkstream.errors import FileUnreadable
from checkstream.evaluation.rows import read_file_objects

_MOST = 200


class _Settled(msgspec.Struct, frozen=True):
    items: tuple[Item, ...]
    words: dict[str, dict[str, Word]]


def alerts(args: argparse.Namespace) -> int:
    """Show what stands.

    Returns:
        0: nothing; 1: something, silenced or not.
    """
    found = msgspec.convert(ask(args, "GET", "/v1/alerts"), Alerts)
    if args.json:
        write_json(found)
    else:
        for each in found.troubles:
            _say(f"{each.severity:<7}{each.state:<9}{each.key}  since {_at(each.since_ms)}: {each.says}")
        for quiet in found.silences:
            until = _at(quiet.until_ms)
            _say(f"silence {quiet.id} of {quiet.pattern} until {until}, by {quiet.by}: {quiet.reason}")
        for waits in found.waiting:
            said = f"{waits.key} ({waits.event}), tried {waits.tries} times: {waits.failure}"
            _say(f"`{waits.channel}` has not taken {said}")
    return 1 if found.troubles else 0


def silence(args: argparse.Namespace) -> int:
    """Mute alerts for some time."""
    reason = args.reason or "no reason was given"
    body = {"pattern": args.pattern, "seconds": 60 * args.minutes, "reason": reason}
    made = ask(args, "POST", "/v1/silences", body)
    if args.json:
        write_json(made)
    else:
        _say(f"silence {made['id']} of {made['pattern']} until {_at(made['until_ms'])}")
    return 0


def speak(args: argparse.Namespace) -> int:
    """End a silence."""
    ended = ask(args, "POST", "/v1/silences/end", {"id": args.silence})
    if args.json:
        write_json(ended)
    return 0


def reviews(args: argparse.Namespace) -> int:
    """Show what waits for the word of who asks, the oldest first."""
    query = urlencode({"rule": args.rule, "most": _MOST})
    for each in msgspec.convert(ask(args, "GET", f"/v1/reviews?{query}")["items"], tuple[Open, ...]):
        if args.json:
            write_json(each)
            continue
        marks = ", ".join(word for word in (each.queue, each.state) if word not in {"sampled", "open"})
        what = f"{each.rule} of {each.policy} -> {each.action} ({each.probability:.2f}, {each.stage})"
        _say(f"{each.id}  {_at(each.at_ms)}  {each.stream}  {each.route}  {what}  {marks}".rstrip())
    return 0


def review(args: argparse.Namespace) -> int:
    """Say whether a rule was right."""
    said = ask(args, "POST", "/v1/reviews/labels", {"item": args.item, "word": args.word})
    found = msgspec.convert(said, Outcome)
    if args.json:
        write_json(found)
    else:
        _say(f"{found.state}{f' as {found.word}' if found.word else ''}, by {found.people} of two or more people")
    return 0


def flag(args: argparse.Namespace) -> int:
    """Have people look at what a rule did."""
    _say(ask(args, "POST", "/v1/reviews/flags", {"stream": args.stream, "rule": args.rule})["item"])
    return 0


def precision(args: argparse.Namespace) -> int:
    """Show how often rules were right."""
    found = msgspec.convert(ask(args, "GET", "/v1/reviews/figures"), Figures)
    if args.json:
        write_json(found)
        return 0
    for each in found.precision:
        week = f"{datetime.fromtimestamp(each.week * WEEK_S, UTC):%Y-%m-%d}"
        share = f"{each.value:.1%} right ({each.low:.1%} to {each.high:.1%})"
        _say(f"week of {week}  {each.rule}: {share}, {each.reviewed} reviewed, {each.unsure} unsure")
    agreed = found.agreement
    if agreed.pairs:
        _say(f"two people agree in {agreed.share:.0%} of {agreed.pairs} pairs (kappa {agreed.kappa:.2f})")
    _say(f"{found.waiting} findings wait for somebody's word")
    return 0


def reviewed(args: argparse.Namespace) -> int:
    """Make test cases or labelled texts of what is settled. The server has no texts: they come from a file here.

    Raises:
        FileUnreadable: the file can't be read, or a line of it has no `stream` and `text`.
    """
    texts = _texts(args)
    settled = msgspec.convert(ask(args, "GET", "/v1/reviews/settled"), _Settled)
    items = with_texts(settled.items, texts)
    made = (cases if args.form == "cases" else rows)(items, settled.words)
    sys.stdout.buffer.write(made.content)
    sys.stdout.flush()
    sys.stderr.write(f"{made.kept} written, {made.left_out} left out: unsure, or not in `{args.texts}`\n")
    return 0


def _texts(args: argparse.Namespace) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for number, values in read_file_objects(args.texts):
        stream, text = values.get("stream"), values.get("text")
        if not isinstance(stream, str) or not isinstance(text, str):
            raise FileUnreadable(f"{args.texts.name}:{number}: `stream` or `text` is missing or no text")
        found[stream] = text
    return found


def _say(line: str) -> None:
    sys.stdout.write(safe(line) + "\n")


def _at(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M}Z"
