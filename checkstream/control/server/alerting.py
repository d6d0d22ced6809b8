"""Alerts of the control server: it looks by the clock, keeps what stands, and sends notices until they arrive.

What stands and what is to be sent because of it change in one transaction. So a server that is killed says nothing
twice and forgets nothing; and of several servers on one database each look is one's, since it begins with what the
last one kept. INVARIANT: a notice leaves the table when its receiver has said that it has it, or when it has failed for
`GIVE_UP_MS`, which is an event of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec

from checkstream.audit.entries import ActEntry
from checkstream.control.alerts.conditions import Limits, Severity, findings
from checkstream.control.alerts.facts import Facts
from checkstream.control.alerts.sending import Sender
from checkstream.control.alerts.standing import Notice, Pace, Silence, Trouble, advance
from checkstream.control.server.database import Database, Session
from checkstream.control.server.people import Asker
from checkstream.control.server.tables import note_event
from checkstream.errors import ActConflicts, NoticeUnsent, ThingUnknown

HISTORY = ("alert_fired", "alert_reminded", "alert_recovered", "notice_lost")
"""Kinds of events that say what was told, and what could not be."""
GIVE_UP_MS = 24 * 3_600_000
_LEASE_MS = 120_000
"""For so long a notice is one server's to send; were it killed, another sends it then."""
_FIRST_MS, _LONGEST_MS = 5_000, 900_000
"""Between two tries: twice as long each time."""
_AT_ONCE = 20
_TURN_S = 30.0
"""So long after its turn began a receiver is sent nothing more in it, so that one that hangs keeps nobody for long."""
_MOST_SILENCES = 1000
_TROUBLE = msgspec.json.Decoder(Trouble)
_NOTICE = msgspec.json.Decoder(Notice)


class Channel(msgspec.Struct, frozen=True):
    """Who is told."""

    sender: Sender
    least: Severity
    """ticket: of everything; page: of what pages alone."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A trouble, as people see it."""

    key: str
    kind: str
    severity: Severity
    subject: str
    says: str
    state: Literal["pending", "firing", "silenced"]
    """pending: nobody was told yet; silenced: nobody wants to hear of it."""
    since_ms: int
    told_ms: int | None


class Silenced(msgspec.Struct, frozen=True, kw_only=True):
    """A silence, as people see it."""

    id: int
    pattern: str
    until_ms: int
    by: str
    reason: str


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A notice that could not be sent yet."""

    channel: str
    key: str
    event: str
    tries: int
    failure: str


class Alerts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that stands."""

    troubles: tuple[Standing, ...]
    silences: tuple[Silenced, ...]
    waiting: tuple[Waiting, ...]


class _Due(msgspec.Struct, frozen=True):
    """A notice that is sent now."""

    id: int
    channel: str
    notice: Notice
    tries: int


class Alerting:
    """Looks, keeps and sends."""

    def __init__(
        self,
        database: Database,
        channels: Mapping[str, Channel],
        facts: Callable[[Session, int], Facts],
        *,
        record: Callable[[ActEntry], None],
        limits: Limits,
        pace: Pace,
        now_ms: Callable[[], int],
    ) -> None:
        """Look at nothing yet.

        Args:
            database: Where troubles and notices stand.
            channels: Who is told, by name.
            facts: Returns what the conditions look at; part of a transaction. Gets the time in milliseconds.
            record: Puts what people do into the audit chain. Blocks; part of a transaction.
            limits: From where on a condition holds.
            pace: When notices come.
            now_ms: The server's clock.
        """
        self._database = database
        self._channels = channels
        self._facts = facts
        self._record = record
        self._limits = limits
        self._pace = pace
        self._now_ms = now_ms

    async def look(self) -> tuple[Notice, ...]:
        """Look once, and put what has to be said among what is to be sent.

        Raises:
            ControlUnusable: the store can't be used.
        """
        now = self._now_ms()

        def turn(session: Session) -> tuple[Notice, ...]:
            found = findings(self._facts(session, now), self._limits)
            before = troubles(session)
            after, notices = advance(before, found, now / 1000, self._pace, _silences(session, now))
            for key in before.keys() - after.keys():
                session.execute("delete from troubles where name = ?", (key,))
            for key, trouble in after.items():
                if trouble != before.get(key):
                    _keep(session, key, trouble)
            for notice in notices:
                self._put(session, notice, now)
            session.execute("delete from silences where until_ms <= ?", (now,))
            return notices

        return await self._database.transact(turn)

    def _put(self, session: Session, notice: Notice, now: int) -> None:
        content = msgspec.json.encode(notice).decode()
        for name, channel in self._channels.items():
            if channel.least == "ticket" or notice.finding.severity == "page":
                session.execute(
                    "insert into notices(channel, notice, tries, due_ms, failure) values(?, ?, 0, ?, '')",
                    (name, content, now),
                )
        finding = notice.finding
        note_event(session, now, kind=f"alert_{notice.event}", fleet="", reason=f"{finding.key}: {finding.says}")

    async def send_due(self) -> int:
        """Send what is due; return how many arrived.

        Raises:
            ControlUnusable: the store can't be used.
        """
        of: dict[str, list[_Due]] = {}
        for due in await self._database.transact(self._claim):
            of.setdefault(due.channel, []).append(due)
        return sum(await asyncio.gather(*map(self._send_to, of.values())))

    async def _send_to(self, waiting: Sequence[_Due]) -> int:
        """Send to one receiver, in order, beside all others; return how many arrived."""
        clock, arrived = asyncio.get_running_loop().time, 0
        end = clock() + _TURN_S
        for due in waiting:
            if clock() > end:  # what is left comes again when its lease is over
                break
            failure = await self._sent(due)
            arrived += not failure
            await self._database.transact(partial(self._settle, due, failure))
        return arrived

    def _claim(self, session: Session) -> list[_Due]:
        now = self._now_ms()
        rows = session.execute(
            "select id, channel, notice, tries from notices where due_ms <= ? order by id limit ?", (now, _AT_ONCE)
        )
        for row in rows:
            session.execute("update notices set due_ms = ? where id = ?", (now + _LEASE_MS, row[0]))
        return [_Due(int(row[0]), str(row[1]), _NOTICE.decode(row[2]), int(row[3])) for row in rows]

    async def _sent(self, due: _Due) -> str:
        """Send a notice; return why it did not arrive."""
        channel = self._channels.get(due.channel)
        if channel is None:
            return "there is no such receiver any more"
        try:
            await channel.sender.send(due.notice)
        except NoticeUnsent as error:
            return str(error)
        return ""

    def _settle(self, due: _Due, failure: str, session: Session) -> None:
        now, notice = self._now_ms(), due.notice
        lost = failure and (due.channel not in self._channels or now - notice.at_s * 1000 > GIVE_UP_MS)
        if failure and not lost:
            wait = min(_LONGEST_MS, _FIRST_MS << min(due.tries, 16))
            values = due.tries + 1, now + wait, failure, due.id
            session.execute("update notices set tries = ?, due_ms = ?, failure = ? where id = ?", values)
            return
        session.execute("delete from notices where id = ?", (due.id,))
        if lost:
            reason = f"{notice.finding.key}, {notice.event}, to `{due.channel}`: {failure}"
            note_event(session, now, kind="notice_lost", fleet="", reason=reason)

    @property
    def receivers(self) -> tuple[tuple[str, Severity], ...]:
        """Who is told, by name, and from which severity on."""
        return tuple((name, channel.least) for name, channel in self._channels.items())

    async def shown(self) -> Alerts:
        """Return what stands.

        Raises:
            ControlUnusable: the store can't be used.
        """
        now = self._now_ms()
        return await self._database.ask(lambda session: _shown(session, now))

    async def silence(self, who: Asker, pattern: str, seconds: int, reason: str) -> Silenced:
        """Mute what has these keys for some time.

        Raises:
            ActConflicts: there are too many silences.
            ControlUnusable: the store can't be used.
        """
        now = self._now_ms()

        def add(session: Session) -> Silenced | None:
            if session.execute("select count(*) from silences")[0][0] >= _MOST_SILENCES:
                return None
            until = now + 1000 * seconds
            self._act(who, "silence", pattern, reason, seconds=str(seconds))
            rows = session.execute(
                "insert into silences(pattern, until_ms, who, reason, at_ms) values(?, ?, ?, ?, ?) returning id",
                (pattern, until, who.name, reason, now),
            )
            return Silenced(id=int(rows[0][0]), pattern=pattern, until_ms=until, by=who.name, reason=reason)

        made = await self._database.transact(add)
        if made is None:
            raise ActConflicts(f"there are {_MOST_SILENCES} silences; end one first")
        return made

    async def speak(self, who: Asker, number: int) -> Silenced:
        """End a silence, and return it.

        Raises:
            ThingUnknown: there is none of this number.
            ControlUnusable: the store can't be used.
        """

        def end(session: Session) -> Silenced | None:
            found = [each for each in _all_silences(session) if each.id == number]
            if not found:
                return None
            self._act(who, "speak", found[0].pattern, "")
            session.execute("delete from silences where id = ?", (number,))
            return found[0]

        ended = await self._database.transact(end)
        if ended is None:
            raise ThingUnknown(f"there is no silence {number}; `GET /v1/alerts` lists them")
        return ended

    def _act(self, who: Asker, act: str, pattern: str, reason: str, **detail: str) -> None:
        self._record(
            ActEntry(who=who.name, role=who.role, act=act, fleet="", subject=pattern, reason=reason, detail=detail)
        )


def troubles(session: Session) -> dict[str, Trouble]:
    """Return what stands, by key."""
    return {str(name): _TROUBLE.decode(state) for name, state in session.execute("select name, state from troubles")}


def _keep(session: Session, key: str, trouble: Trouble) -> None:
    session.execute(
        "insert into troubles(name, state) values(?, ?) on conflict(name) do update set state = excluded.state",
        (key, msgspec.json.encode(trouble).decode()),
    )


def _all_silences(session: Session) -> list[Silenced]:
    rows = session.execute("select id, pattern, until_ms, who, reason from silences order by id")
    return [Silenced(id=int(row[0]), pattern=row[1], until_ms=int(row[2]), by=row[3], reason=row[4]) for row in rows]


def _silences(session: Session, now: int) -> Sequence[Silence]:
    return [
        Silence(pattern=each.pattern, until_s=each.until_ms / 1000, by=each.by, reason=each.reason)
        for each in _all_silences(session)
        if each.until_ms > now
    ]


def _shown(session: Session, now: int) -> Alerts:
    silences = _silences(session, now)
    rows = session.execute("select channel, notice, tries, failure from notices where tries > 0 order by id limit 100")
    waiting = []
    for channel, content, tries, failure in rows:
        notice = _NOTICE.decode(content)
        key, event = notice.finding.key, notice.event
        waiting.append(Waiting(channel=channel, key=key, event=event, tries=int(tries), failure=failure))
    standing = (_standing(key, trouble, silences, now) for key, trouble in sorted(troubles(session).items()))
    return Alerts(
        troubles=tuple(standing),
        silences=tuple(each for each in _all_silences(session) if each.until_ms > now),
        waiting=tuple(waiting),
    )


def _standing(key: str, trouble: Trouble, silences: Sequence[Silence], now: int) -> Standing:
    finding = trouble.finding
    muted = any(silence.covers(key, now / 1000) for silence in silences)
    return Standing(
        key=key,
        kind=finding.kind,
        severity=finding.severity,
        subject=finding.subject,
        says=finding.says,
        state="silenced" if muted else "pending" if trouble.told_s is None else "firing",
        since_ms=int(trouble.since_s * 1000),
        told_ms=None if trouble.told_s is None else int(trouble.told_s * 1000),
    )
