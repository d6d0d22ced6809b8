"""The review of what fired: what is drawn of the decisions that nodes tell, and what people say of it.

INVARIANT: each decision is drawn from once, whenever a node tells of it, with the share that stands beside the item; so
that precision can be reckoned from items alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from checkstream.control.alerts.facts import Reviewed
from checkstream.control.review.choosing import drawn, share_of
from checkstream.control.review.judging import Agreement, Outcome, agreement, outcome
from checkstream.control.review.precision import WEEK_S, Precision, precision
from checkstream.control.review.terms import Item, Queue, Word
from checkstream.control.server.arrivals import as_kept
from checkstream.control.server.database import Database, Row, Session
from checkstream.control.server.people import Asker
from checkstream.errors import ActConflicts, ThingUnknown

_DAY_MS = 86_400_000
_BATCH = 2000
"""Decisions that are looked at in one transaction."""
_WEEKS = 12
"""That precision is told of."""
_MOST_ITEMS = 100_000
_DECISION = "at_ms, chain, node, stream, route, rule_id, action, mode, stage, policy, confidence_ppm, model"
_COLUMNS = "id, queue, share, stream, route, rule, policy, action, stage, probability, at_ms, model"


class Open(msgspec.Struct, frozen=True, kw_only=True):
    """An item that waits for somebody's word."""

    id: str
    queue: Queue
    node: str
    stream: str
    route: str
    rule: str
    policy: str
    action: str
    stage: str
    probability: float
    at_ms: int
    state: str
    """`open`, or `contested`: people have said different things."""
    model: str = ""
    """`name@version` of the model that has scored; empty: none did."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What reviews have come to."""

    precision: tuple[Precision, ...]
    """Of each rule and week, of what was drawn by chance."""
    models: tuple[Precision, ...]
    """The same of each model that has scored."""
    agreement: Agreement
    waiting: int
    """Items that are not settled."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What one person says of an item, and why."""

    who: str
    word: Word
    note: str


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """An item that people have spoken of."""

    id: str
    rule: str
    stream: str
    at_ms: int
    """When somebody has spoken last."""
    labels: tuple[Said, ...]
    outcome: Outcome


class Reviewing:
    """Draws items, and takes people's words."""

    def __init__(self, database: Database, now_ms: Callable[[], int], *, per_day: int, keep_days: int) -> None:
        """Draw `per_day` findings of each rule a day, as people can look at (0: none); keep them `keep_days`."""
        self._database = database
        self._per_day = per_day
        self._now_ms = now_ms
        self._keep_ms = keep_days * _DAY_MS

    async def draw(self) -> None:
        """Draw from the decisions that have come since the last time.

        Raises:
            ControlUnusable: the store can't be used.
        """
        while await self._database.transact(self._draw) == _BATCH:
            pass

    def _draw(self, session: Session) -> int:
        """Draw from one batch; return how many decisions were in it. They come late too, so each is marked itself."""
        rows = session.execute(
            f"select {_DECISION}, seq, place from decisions where drawn = 0 order by node, chain, seq, place limit ?",  # noqa: S608
            (_BATCH,),
        )
        now = self._now_ms()
        shares: dict[str, float] = {}
        for row in rows:
            rule = str(row[5])
            if self._per_day and row[7] == "enforce" and row[6] not in _NOT_REVIEWED:
                if rule not in shares:
                    shares[rule] = share_of(_per_day(session, rule, now), self._per_day)
                if drawn(str(row[3]), rule, shares[rule]):
                    _add(session, "sampled", shares[rule], row, now)
            session.execute(
                "update decisions set drawn = 1 where node = ? and chain = ? and seq = ? and place = ?",
                (row[2], row[1], row[12], row[13]),
            )
        _forget(session, now - self._keep_ms)
        return len(rows)

    async def flag(self, stream: str, rule: str) -> str:
        """Have people look at what a rule did in an exchange; return the item.

        Raises:
            ThingUnknown: no node has told of it.
            ActConflicts: there are too many items.
            ControlUnusable: the store can't be used.
        """

        def add(session: Session) -> str:
            if session.execute("select count(*) from review_items")[0][0] >= _MOST_ITEMS:
                raise ActConflicts(f"{_MOST_ITEMS} items are kept already; settle some, or shorten `retention_days`")
            rows = session.execute(
                f"select {_DECISION} from decisions "  # noqa: S608
                "where stream = ? and rule_id = ? order by seq, place limit 1",
                (as_kept(stream), as_kept(rule)),
            )
            if not rows:
                raise ThingUnknown(f"no node has told that rule `{rule[:100]}` fired in the exchange `{stream[:100]}`")
            return _add(session, "flagged", 1.0, rows[0], self._now_ms())

        return await self._database.transact(add)

    async def open(self, who: Asker, rule: str, most: int) -> list[Open]:
        """Return what waits for the word of somebody, the oldest first; of one rule, or of all.

        Raises:
            ControlUnusable: the store can't be used.
        """

        def find(session: Session) -> list[Open]:
            rows = session.execute(
                f"select {_COLUMNS}, node from review_items i where settled = 0 "  # noqa: S608
                "and (? = '' or rule = ?) "
                "and not exists (select 1 from review_labels l where l.item = i.id and l.who = ?) "
                "order by at_ms, id limit ?",
                (as_kept(rule), as_kept(rule), who.name, most),
            )
            return [_open(row, outcome(_words_of(session, str(row[0])))) for row in rows]

        return await self._database.ask(find)

    async def label(self, who: Asker, item: str, word: Word, note: str = "") -> Outcome:
        """Take somebody's word on an item, and why, in place of what they had said; return what it has come to.

        Raises:
            ThingUnknown: there is no such item.
            ControlUnusable: the store can't be used.
        """

        def put(session: Session) -> Outcome:
            if not session.execute("select 1 from review_items where id = ?", (as_kept(item),)):
                raise ThingUnknown(f"there is no item `{item[:100]}`; `GET /v1/reviews` lists those that wait")
            session.execute(
                "insert into review_labels(item, who, word, at_ms, note) values(?, ?, ?, ?, ?) on conflict(item, who) "
                "do update set word = excluded.word, at_ms = excluded.at_ms, note = excluded.note",
                (item, who.name, word, self._now_ms(), as_kept(note, 500)),
            )
            found = outcome(_words_of(session, item))
            session.execute("update review_items set settled = ? where id = ?", (int(found.state == "settled"), item))
            return found

        return await self._database.transact(put)

    async def figures(self) -> Figures:
        """Return how often rules were right, and how far people agree, in the last weeks.

        Raises:
            ControlUnusable: the store can't be used.
        """
        since_ms = self._now_ms() - _WEEKS * WEEK_S * 1000

        def reckon(session: Session) -> Figures:
            words = _words(session, since_ms)
            waiting = session.execute("select count(*) from review_items where settled = 0")[0][0]
            items = _items(session, since_ms)
            return Figures(
                precision=precision(items, words),
                models=precision(items, words, "model"),
                agreement=agreement(words.values()),
                waiting=int(waiting),
            )

        return await self._database.ask(reckon)

    async def spoken(self, most: int) -> list[Spoken]:
        """Return the items that people have spoken of last, and what each has said.

        Raises:
            ControlUnusable: the store can't be used.
        """

        def find(session: Session) -> list[Spoken]:
            rows = session.execute(
                "select i.id, i.rule, i.stream, max(l.at_ms) from review_items i join review_labels l on l.item = i.id "
                "group by i.id, i.rule, i.stream order by 4 desc, i.id limit ?",
                (most,),
            )
            found = []
            for id_, rule, stream, at_ms in rows:
                said = session.execute("select who, word, note from review_labels where item = ? order by who", (id_,))
                labels = tuple(Said(who=who, word=word, note=note) for who, word, note in said)
                come = outcome({each.who: each.word for each in labels})
                found.append(Spoken(id=id_, rule=rule, stream=stream, at_ms=int(at_ms), labels=labels, outcome=come))
            return found

        return await self._database.ask(find)

    async def settled(self) -> tuple[list[Item], dict[str, dict[str, Word]]]:
        """Return what has been settled in the last weeks, and what was said of it.

        Raises:
            ControlUnusable: the store can't be used.
        """
        since_ms = self._now_ms() - _WEEKS * WEEK_S * 1000
        items, words = await self._database.ask(lambda s: (_items(s, since_ms), _words(s, since_ms)))
        return [item for item in items if outcome(words.get(item.id, {})).state == "settled"], words


_NOT_REVIEWED = ("allow", "log_event")
"""Actions that nobody feels: whether they were right is not worth somebody's time."""


def last_week(now_ms: int) -> int:
    """Return the last whole week, as `Precision.week` counts them."""
    return now_ms // 1000 // WEEK_S - 1


def weekly(session: Session, now_ms: int) -> tuple[Precision, ...]:
    """Return how often each rule was right in the last whole week, and in the week before."""
    week = last_week(now_ms)
    since_ms = (week - 1) * WEEK_S * 1000
    found = precision(_items(session, since_ms), _words(session, since_ms))
    return tuple(each for each in found if each.week in (week - 1, week))


def reviewed(session: Session, now_ms: int) -> tuple[Reviewed, ...]:
    """Return how often each rule was right in the last whole week, beside the week before; for alerts."""
    week = last_week(now_ms)
    by_week = {(each.rule, each.week): each for each in weekly(session, now_ms)}
    return tuple(
        Reviewed(
            subject=each.rule,
            right_before=by_week[each.rule, week - 1].right,
            all_before=by_week[each.rule, week - 1].reviewed,
            right=each.right,
            all=each.reviewed,
        )
        for each in by_week.values()
        if each.week == week and (each.rule, week - 1) in by_week
    )


def _forget(session: Session, before_ms: int) -> None:
    """Let go of items that are older than a moment, and of what was said of them."""
    session.execute(
        "delete from review_labels where item in (select id from review_items where at_ms < ?)", (before_ms,)
    )
    session.execute("delete from review_items where at_ms < ?", (before_ms,))


def _per_day(session: Session, rule: str, now_ms: int) -> float:
    """Return how often a rule has fired in the last day."""
    rows = session.execute("select count(*) from decisions where rule_id = ? and at_ms >= ?", (rule, now_ms - _DAY_MS))
    return float(rows[0][0])


def _add(session: Session, queue: Queue, share: float, row: Row, now_ms: int) -> str:
    """Put a decision among the items; of one exchange and rule there is one item, which was drawn or flagged first."""
    at_ms, _, node, stream, route, rule, action, _, stage, policy, ppm, model = row[:12]
    name = hashlib.sha256(f"{len(node)}:{node}:{len(stream)}:{stream}:{rule}".encode("utf-8", "surrogatepass"))
    item = name.hexdigest()[:24]
    session.execute(
        f"insert into review_items({_COLUMNS}, node, taken_ms, settled) values({'?, ' * 14}0) "
        "on conflict(id) do nothing",
        (item, queue, share, stream, route, rule, policy, action, stage, ppm / 1_000_000, at_ms, model, node, now_ms),
    )
    return item


def _words_of(session: Session, item: str) -> dict[str, Word]:
    return dict(session.execute("select who, word from review_labels where item = ?", (item,)))


def _words(session: Session, since_ms: int) -> dict[str, dict[str, Word]]:
    found: dict[str, dict[str, Word]] = {}
    rows = session.execute(
        "select l.item, l.who, l.word from review_labels l join review_items i on i.id = l.item where i.at_ms >= ?",
        (since_ms,),
    )
    for item, who, word in rows:
        found.setdefault(str(item), {})[str(who)] = word
    return found


def _items(session: Session, since_ms: int) -> list[Item]:
    rows = session.execute(f"select {_COLUMNS} from review_items where at_ms >= ? order by at_ms, id", (since_ms,))  # noqa: S608
    return [
        Item(
            id=row[0],
            queue=row[1],
            share=float(row[2]),
            stream=row[3],
            route=row[4],
            rule=row[5],
            policy=row[6],
            action=row[7],
            stage=row[8],
            at_s=int(row[10]) / 1000,
            model=row[11],
        )
        for row in rows
    ]


def _open(row: Row, found: Outcome) -> Open:
    id_, queue, _, stream, route, rule, policy, action, stage, probability, at_ms, model, node = row
    return Open(
        id=id_,
        queue=queue,
        node=node,
        stream=stream,
        route=route,
        rule=rule,
        policy=policy,
        action=action,
        stage=stage,
        probability=float(probability),
        at_ms=int(at_ms),
        state=found.state,
        model=model,
    )
