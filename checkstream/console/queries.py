"""What is looked for in an audit folder: exchanges, or acts of people. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from checkstream.audit.bodies import Body
from checkstream.audit.chain import Record, canonical


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Which exchanges are wanted; what is empty asks nothing."""

    stream: str = ""
    """How its id begins."""
    rule: str = ""
    route: str = ""
    action: str = ""
    since: str = ""
    """`YYYY-MM-DDTHH:MM`, UTC, or a beginning of that."""
    until: str = ""
    """Likewise; what is of that time is wanted, too."""
    node: str = ""
    """Of many, where there are many."""

    @property
    def empty(self) -> bool:
        """Everything is wanted."""
        return not any(msgspec.structs.astuple(self))

    def fits(self, record: Record, body: Body) -> bool:
        """Tell whether a record is one of an exchange that is wanted."""
        return (
            record.kind in ("stream", "pass")
            and body.stream.startswith(self.stream)
            and self.route in ("", body.route)
            and (not self.rule or self.rule in body.record.rules)
            and self.action in ("", body.record.action or "pass")
            and (not self.since or record.time >= self.since)
            and (not self.until or record.time[: len(self.until)] <= self.until)
        )

    def needles(self) -> Iterator[tuple[bytes, ...]]:
        """Yield what stands in the line of whatever is wanted: one of each, so that other lines need not be read."""
        yield b'"kind":"stream"', b'"kind":"pass"'
        if self.stream:
            yield (b'"stream":' + canonical(self.stream).removesuffix(b'"'),)
        if self.rule:
            yield (b'"rule_id":' + canonical(self.rule),)
        if self.route:
            yield (b'"route":' + canonical(self.route),)


class ActQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which acts at a control server are wanted; what is empty asks nothing."""

    who: str = ""
    act: str = ""
    fleet: str = ""
    until: str = ""
    """As `Query.until`."""
    since: str = ""

    @property
    def empty(self) -> bool:
        """Everything is wanted."""
        return not any(msgspec.structs.astuple(self))

    def fits(self, record: Record, body: Body) -> bool:
        """Tell whether a record is one of an act that is wanted."""
        return (
            record.kind == "act"
            and self.who in ("", body.who)
            and self.act in ("", body.act)
            and self.fleet in ("", body.fleet)
            and (not self.since or record.time >= self.since)
            and (not self.until or record.time[: len(self.until)] <= self.until)
        )

    def needles(self) -> Iterator[tuple[bytes, ...]]:
        """Yield what stands in the line of whatever is wanted."""
        yield (b'"kind":"act"',)
        for name, value in (("who", self.who), ("act", self.act), ("fleet", self.fleet)):
            if value:
                yield (b'"%b":' % name.encode() + canonical(value),)


def is_time(text: str) -> bool:
    """Tell whether it is a time as records have it, or a beginning of one."""
    form = "0000-00-00T00:00:00.000"
    return len(text) <= len(form) and all(
        each in "0123456789" if wanted == "0" else each == wanted for each, wanted in zip(text, form, strict=False)
    )
