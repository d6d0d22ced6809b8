"""What a request says outside its body: parts of the path, parameters of the query, headers.

It is read as the quiet texts of the body are. It can't be edited: a header that rules would change stays behind, and
for the sake of a path or a parameter the request is refused.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import msgspec

from checkstream.core.channel.replacements import Replacement
from checkstream.core.events import Envelope
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.joined import EDITS_WORK, Joined
from checkstream.core.exchange.refusal import Refusal
from checkstream.core.terms import Channel, Delta
from checkstream.core.wire.json_text.strict import place_of
from checkstream.core.wire.surface import Request


class Outside:
    """The texts outside the body of one request."""

    def __init__(self, checking: Checking) -> None:
        """Begin with none."""
        self.left_out: frozenset[str] = frozenset()
        """Headers that stay behind."""
        self._checking = checking
        self._first = 0
        self._deltas: tuple[Delta, ...] = ()

    def taken_into(self, request: Request, envelope: Envelope) -> Request:
        """Return the request with these texts behind its own."""
        self._first = len(request.unit.deltas)
        self._deltas = tuple(
            Delta(Channel("user", 0, at), said.text, (f"{said.place}.{said.name}",))
            for at, said in enumerate(envelope.said)
            if said.text
        )
        if not self._deltas:
            return request
        places = range(self._first, self._first + len(self._deltas))
        unit = msgspec.structs.replace(request.unit, deltas=(*request.unit.deltas, *self._deltas))
        return msgspec.structs.replace(request, unit=unit, quiet=request.quiet | frozenset(places))

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
            for place in filter(self.has, sorted(edits)):
                where = place_of(self._deltas[place - self._first].path)
                kind, _, name = where.partition(".")
                if kind != "header":
                    return self._refusal(joined, where)
                self.left_out |= {name}
                self._checking.ledger.removed((where,))
        return None

    def _refusal(self, joined: Joined, where: str) -> Refusal:
        channel = joined.judge.channel
        found = (verdict for verdict in self._checking.ledger.verdicts if verdict.channel == channel)
        rule = next((each.rule_id for each in found if each.mode == "enforce" and each.excepted_by is None), None)
        message = f"`{where}` says what a rule would change, and it can't be changed there"
        return Refusal(400, "request_blocked", message, rule, param=where)
