"""What a request says outside its body: parts of the path, parameters of the query, headers.

It is read as the quiet texts of the body are; what several headers, parameters or parts of the path say is also read as
one text, since a reader may put it together. It can't be edited: a header that rules would change stays behind, and for
the sake of a path or a parameter the request is refused.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import msgspec

from checkstream.core.channel.replacements import Replacement
from checkstream.core.events import Envelope, Said
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.ingress.joined import EDITS_WORK, Joined, Spelled
from checkstream.core.exchange.ingress.refusal import Refusal
from checkstream.core.terms import Channel, Delta, Span
from checkstream.core.wire.json_text.strict import place_of
from checkstream.core.wire.surface import Request

_ITEMS_A_STEP = 256
"""Replacements that are looked at at a time."""


class Outside:
    """The texts outside the body of one request."""

    def __init__(self, checking: Checking) -> None:
        """Begin with none."""
        self.left_out: frozenset[str] = frozenset()
        """Headers that stay behind."""
        self._checking = checking
        self._first = 0
        self._said: tuple[Said, ...] = ()
        self._deltas: tuple[Delta, ...] = ()

    def taken_into(self, request: Request, envelope: Envelope) -> Request:
        """Return the request with these texts behind its own."""
        if envelope.behind:
            self._checking.ledger.removed(f"header.{name}" for name in envelope.behind)
            self._checking.degrade("header_dropped")
        self._first = len(request.unit.deltas)
        self._said = tuple(said for said in envelope.said if said.text)
        if not self._said:
            return request
        self._deltas = tuple(
            Delta(Channel("user", 0, at), said.text, (_where(said),)) for at, said in enumerate(self._said)
        )
        places = range(self._first, self._first + len(self._deltas))
        runs: dict[str, list[int]] = {}
        for place, said in zip(places, self._said, strict=True):
            if not said.is_name:
                runs.setdefault(said.place, []).append(place)
        together = (tuple(run) for run in runs.values() if len(run) > 1)
        return msgspec.structs.replace(
            request,
            unit=msgspec.structs.replace(request.unit, deltas=(*request.unit.deltas, *self._deltas)),
            quiet=request.quiet | frozenset(places),
            runs=(*request.runs, *together),
        )

    def said(self, place: str, name: str) -> str:
        """Return what stands in a part of the path, a parameter or a header of a name; empty: nothing."""
        return next((each.text for each in self._said if (each.place, each.name) == (place, name)), "")

    def has(self, place: int) -> bool:
        """Tell whether a place of the request's texts is one outside its body."""
        return bool(self._deltas) and place >= self._first

    def looking(self, judged: Sequence[Joined]) -> Generator[None, None, Refusal | None]:
        """Settle, in steps, what becomes of what rules would edit here; return why the request is refused, if it is."""
        for joined in judged if self._deltas else ():
            if not joined.edited:
                continue
            edits: dict[int, list[Replacement]] = {}
            yield from self._checking.meter.stepping(joined.edits(edits), EDITS_WORK)
            places = [place for place in sorted(edits) if self.has(place)]
            if places and not isinstance(joined, Spelled):
                places = yield from self._staying(joined)
            for place in places:
                said, where = self._said[place - self._first], place_of(self._deltas[place - self._first].path)
                if said.place != "header":
                    return self._refusal(joined, where)
                self.left_out |= {said.name}
                self._checking.ledger.removed((where,))
        return None

    def _staying(self, joined: Joined) -> Generator[None, None, list[int]]:
        """Return, in steps, the places that edits touch.

        Where headers touched stay behind already, one that is left holds but the edge of what stays, and can go on.
        """
        found = set[int]()
        for count, item in enumerate(joined.judge.holdback.replacements, 1):
            touched = [place for place in joined.touched(Span(item.start, item.end)) if self.has(place)]
            rest = [place for place in touched if not self._is_left_out(self._said[place - self._first])]
            if len(rest) > 1 or len(rest) == len(touched):
                found.update(rest)
            if count % _ITEMS_A_STEP == 0:
                self._checking.meter.spend(EDITS_WORK)
                yield
        return sorted(found)

    def _is_left_out(self, said: Said) -> bool:
        return said.place == "header" and said.name in self.left_out

    def _refusal(self, joined: Joined, where: str) -> Refusal:
        channel = joined.judge.channel
        found = (verdict for verdict in self._checking.ledger.verdicts if verdict.channel == channel)
        rule = next((each.rule_id for each in found if each.mode == "enforce" and each.excepted_by is None), None)
        message = f"`{where}` says what a rule would change, and it can't be changed there"
        return Refusal(400, "request_blocked", message, rule, param=where)


def _where(said: Said) -> str:
    """Return a place as callers and records may have it."""
    return f"{said.place}.{'name' if said.is_name else said.name}"
