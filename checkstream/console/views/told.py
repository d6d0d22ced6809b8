"""Exchanges that nodes have told of: in a list, by what is asked for, and what proves one. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from checkstream.console.records import Proof
from checkstream.console.views.exchange import Row
from checkstream.control.server.logs import Place, Told, Vouched
from checkstream.control.server.traffic import Exchanged, Filter

MOST_ROWS = 50
FIELDS = ("stream", "rule", "route", "action", "outcome", "node", "caller", "since", "until", "before")
_MOST_CHARS = 200
_LASTS = {
    4: None,
    7: None,
    10: timedelta(days=1),
    13: timedelta(hours=1),
    16: timedelta(minutes=1),
    19: timedelta(seconds=1),
}
"""Characters of a time -> how long what they say lasts."""
_FORM = "2000-01-01T00:00:00"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What an address asks for."""

    given: Mapping[str, str]
    """Field -> what was written into it; what is very long is cut."""
    filter: Filter
    faults: tuple[str, ...]
    """What is written as a time and is none."""

    @property
    def everything(self) -> bool:
        """Nothing is asked for."""
        return not any(self.given.values())


def wanted_of(query: Mapping[str, str]) -> Wanted:
    """Return what an address asks for."""
    given = {name: query.get(name, "").strip()[:_MOST_CHARS] for name in FIELDS}
    faults: list[str] = []
    times: dict[str, int] = {}
    for name, end in (("since", False), ("until", True)):
        moment = 0
        if given[name]:
            found = moment_of(given[name], end=end)
            if found is None:
                faults.append(given[name])
            moment = found or 0
        times[f"{name}_ms"] = moment
    named = {name: given[name] for name in FIELDS if name not in ("since", "until")}
    return Wanted(given=given, filter=Filter(**named, **times, most=MOST_ROWS), faults=tuple(faults))  # type: ignore[arg-type]  # texts and numbers, each where it belongs


def moment_of(text: str, *, end: bool) -> int | None:
    """Return a time, or a beginning of one, as milliseconds since 1970; None: it is none.

    Args:
        text: `YYYY-MM-DDTHH:MM:SS` in UTC, or a day, hour or minute, as `2026-01-31T08`.
        end: Of where it ends rather than where it begins: what is of that minute is wanted, too.
    """
    text = text.replace(" ", "T").removesuffix("Z")
    lasts = _LASTS.get(len(text))
    if lasts is None or not text.isascii():
        return None
    try:
        moment = datetime.strptime(text + _FORM[len(text) :], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
        return max(int((moment + lasts if end else moment).timestamp() * 1000), 0)
    except (ValueError, OverflowError):
        return None


def row_told(each: Exchanged, rules: Mapping[Place, tuple[str, ...]]) -> Row:
    """Return an exchange that a node has told of as a row."""
    notes = ["passed on unread"] if each.kind == "pass" else []
    if not each.proven:
        notes.append("does not fit the log")
    return Row(
        time=datetime.fromtimestamp(each.at_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        chain=each.chain,
        seq=each.seq,
        stream=each.stream,
        route=each.route,
        action="pass" if each.kind == "pass" else each.action,
        outcome=each.outcome,
        rules=rules.get((each.node, each.chain, each.seq), ()),
        held_ms=f"{each.held_ms:g}" if each.kind == "stream" else "",
        notes=tuple(notes),
        node=each.node,
    )


class Chained(msgspec.Struct, frozen=True, kw_only=True):
    """What proves a record of which only the digest has come."""

    chain: str
    seq: int
    digest: str
    hash: str
    prev: str | None
    """null: the record before is not kept any more."""


class NodeProof(Proof, frozen=True, kw_only=True):
    """What a browser needs to prove a record that a node has told of."""

    private: Chained | None = None
    """Where `line` is empty: its content has stayed on the node."""


def proof_of(told: Told, vouched: Vouched) -> NodeProof:
    """Return what proves a record."""
    private = None
    if told.line is None:
        private = Chained(chain=told.chain, seq=told.seq, digest=told.digest, hash=told.hash, prev=told.prev)
    return NodeProof(
        line=_base64(told.line or ""),
        after=vouched.after,
        head=_base64(vouched.head),
        key=vouched.key,
        gap=vouched.gap,
        private=private,
    )


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")
