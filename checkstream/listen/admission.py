"""The room of the whole process, and what each request has of it.

Four kinds: places of exchanges that run, places of bodies that are being read, bytes of bodies, bytes of answers. A
caller has a share of each, so that none can take all; a route can set less. Bodies and answers have halves of the
bytes, so that nobody's upload ends anybody's stream, and of the answers' half each stream has a part of its own that no
other can take: whoever holds little is never kept waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Literal, NamedTuple, Self

from checkstream.config import Quota
from checkstream.errors import BodyTooLarge, Overloaded
from checkstream.listen.board import Board
from checkstream.listen.callers import Who
from checkstream.listen.room import Room

_SHED_S = 1.0
"""Requests are refused for this time after a check that took longer than its budget; the `retry-after` of 429 too."""
_LOOK_S = 0.05
_WAIT_S = 5.0
"""How long a body waits for room before it is refused."""
PIECE_BYTES = 16_384
"""The most of an answer that is read at once."""

Kind = Literal["streams", "bodies", "uploads", "answers"]


class _Rooms:
    """The room of the process, or what one route's requests have of it."""

    def __init__(self, streams: int, held_bytes: int) -> None:
        self.own_bytes = held_bytes // 4 // max(streams, 1)
        self.of: dict[Kind, Room] = {
            "streams": Room(streams),
            "bodies": Room(streams),
            "uploads": Room(held_bytes // 2),
            "answers": Room(held_bytes // 2 - self.own_bytes * streams),
        }


class Place(NamedTuple):
    """Where something is taken, for whom, and how much he may have."""

    room: Room
    party: str
    most: int | None
    board: Board | None = None
    """Where other processes see what he has, and he what they say; None: what he has counts here alone."""
    key: int = 0
    """Of what he has, on the board."""

    @property
    def has(self) -> int:
        """What he has, in all processes for which it counts."""
        own = self.room.of(self.party)
        return own if self.board is None else own + self.board.elsewhere(self.key)

    def fits(self, amount: int) -> bool:
        """Tell whether so much more may be taken."""
        if self.board is None or self.most is None:
            return self.room.fits(self.party, amount, self.most)
        return self.room.taken + amount <= self.room.whole and self.has + amount <= self.most

    def take(self, amount: int) -> bool:
        """Take so much more, if it may be taken; tell whether it was."""
        if self.board is None:
            fits = self.fits(amount)
            if fits:
                self.room.add(self.party, amount)
            return fits
        written = self.add(amount)  # first: then nobody else takes the same
        if written and self.fits(0):
            return True
        self.give(amount)
        return False

    def add(self, amount: int) -> bool:
        """Count what he has taken; tell whether all can see it."""
        self.room.add(self.party, amount)
        return self.board is None or self.board.write(self.key, self.room.of(self.party))

    def give(self, amount: int) -> None:
        """Count what he has given back."""
        self.room.give(self.party, amount)
        if self.board is not None:
            self.board.write(self.key, self.room.of(self.party))


class Admission:
    """The room of the whole process."""

    def __init__(
        self,
        *,
        streams: int,
        held_bytes: int,
        quota: Quota | None = None,
        when_idle: Callable[[], None] = lambda: None,
        board: Board | None = None,
    ) -> None:
        """Start empty.

        Args:
            streams: Exchanges that may run at once.
            held_bytes: Bytes that may be held for all of them.
            quota: What one caller may have; None: all.
            when_idle: Called when the last exchange that runs has ended.
            board: What callers have in other processes, here and on other machines, where quotas count for all; None:
                this process is alone.
        """
        self._board = board
        self._looking: asyncio.TimerHandle | None = None
        self._most_streams, self._most_held = streams, held_bytes
        self._quota = quota
        self._rooms = _Rooms(streams, held_bytes)
        self.own_bytes = self._rooms.own_bytes
        """Bytes of its answer that each exchange may hold, whatever the others do."""
        self._of_routes: dict[str, _Rooms] = {}
        self._visits = 0
        self.answer_bytes = 0
        self._shed: dict[str, float] = {}
        """Route -> until when its new requests are refused, seconds of the loop's clock."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._when_idle = when_idle
        self.bodies_waiting: list[asyncio.Future[None]] = []
        self.answers_waiting: dict[Visit, Callable[[], None]] = {}

    @property
    def streams(self) -> int:
        """Exchanges that run."""
        return self._rooms.of["streams"].taken

    @property
    def held_bytes(self) -> int:
        """Bytes that are held: bodies of requests, and answers received and not yet sent."""
        return self._rooms.of["uploads"].taken + self.answer_bytes

    def visit(self, who: Who | None = None) -> Visit:
        """Begin a request, which has nothing yet."""
        return Visit(self, who or Who())

    def shed(self, route: str) -> None:
        """Refuse new requests of a route until a second has passed in which nobody asks for it again."""
        self._shed[route] = asyncio.get_running_loop().time() + _SHED_S
        if self._board is not None:
            self._board.write(self._board.key_of_moment("shed", route), round(self._shed[route] * 1000))

    def look_whether_shed(self, route: str) -> None:
        """Go on with a request of a route.

        Raises:
            Overloaded: its new requests are refused at present.
        """
        until = self._shed.get(route, 0.0)
        if self._board is not None:
            until = max(until, self._board.highest_elsewhere(self._board.key_of_moment("shed", route)) / 1000)
        if not until:
            return
        if asyncio.get_running_loop().time() < until:  # the clock of the machine, in every process
            raise Overloaded("checks take longer than they should at present; try again in a moment")
        self._shed.pop(route, None)

    async def wait_idle(self, seconds: float) -> None:
        """Return when nothing runs, or after this time."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)

    def place(self, kind: Kind, who: Who) -> Place:
        """Return where something of a kind is taken."""
        quota, room = self._quota, self._rooms.of[kind]
        if quota is None:
            return Place(room, "", room.whole)
        return self._placed(room, who.party(quota.per), _most(quota, kind), kind, "")

    def place_of_route(self, kind: Kind, who: Who, route: str, quota: Quota) -> Place:
        """Return where it is taken besides, as the route's own quota has it."""
        rooms = self._of_routes.get(route)
        if rooms is None:
            rooms = self._of_routes[route] = _Rooms(self._most_streams, self._most_held)
        most = _most(quota, kind)
        if most is None:
            return Place(rooms.of[kind], who.party(quota.per), rooms.of[kind].whole)
        return self._placed(rooms.of[kind], who.party(quota.per), most, kind, route)

    def _placed(self, room: Room, party: str, most: int | None, kind: Kind, route: str) -> Place:
        """Return a place. What is a caller's by a quota counts in all processes; a share of the room is of this one."""
        if self._board is None or most is None:
            return Place(room, party, most)
        return Place(room, party, most, self._board, self._board.key(kind, route, party))

    def look_again(self) -> None:
        """Let those try again, in a moment, who wait for what other processes may give back."""
        if self._board is not None and self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        self._looking = None
        self.freed("uploads")
        self.freed("answers")

    def begun(self) -> None:
        """Count a request that has begun."""
        self._visits += 1
        self._idle.clear()

    def left(self) -> None:
        """Count one that has ended."""
        self._visits -= 1
        if not self._visits:
            self._idle.set()
            self._when_idle()

    def freed(self, kind: Kind) -> None:
        """Let those try again who wait for room of a kind."""
        if kind == "uploads":
            waiting, self.bodies_waiting = self.bodies_waiting, []
            for each in waiting:
                if not each.done():
                    each.set_result(None)
        elif kind == "answers" and self.answers_waiting:
            asking = tuple(self.answers_waiting.values())
            self.answers_waiting.clear()
            for ask in asking:
                ask()


def _most(quota: Quota, kind: Kind) -> int | None:
    """Return what a quota says of a kind of room: bodies and answers have halves of the bytes."""
    if kind == "streams":
        return quota.streams
    if kind == "bodies":
        return quota.bodies
    return None if quota.held_bytes is None else quota.held_bytes // 2


class Visit:
    """What one request has; all of it is given back when it is left."""

    def __init__(self, admission: Admission, who: Who) -> None:
        """Begin with nothing."""
        self._admission = admission
        self._who = who
        self._places: dict[Kind, list[Place]] = {}
        self._has: dict[Kind, int] = {"streams": 0, "bodies": 0, "uploads": 0, "answers": 0}
        self.held = 0
        """Bytes of the answer."""
        admission.begun()
        self._over = False

    def __enter__(self) -> Self:
        """Go on."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give all back."""
        self.leave()

    @property
    def uploaded(self) -> int:
        """Bytes of room that the body has."""
        return self._has["uploads"]

    def begin(self, routes: Sequence[tuple[str, Quota | None]] = ()) -> None:
        """Take a place for the body, which is still to come.

        Args:
            routes: Those that could take the request: the loosest counts as long as nobody knows which does.

        Raises:
            Overloaded: there is none, or none to run in afterwards.
        """
        admission, who = self._admission, self._who
        running = admission.place("streams", who)
        if not running.fits(1):
            raise full(running, "streams")
        places = [admission.place("bodies", who)]
        quotas = [(name, quota) for name, quota in routes if quota is not None and quota.bodies is not None]
        if quotas and len(quotas) == len(routes):
            name, quota = max(quotas, key=lambda each: each[1].bodies or 0)
            places.append(admission.place_of_route("bodies", who, name, quota))
        self._take("bodies", places)

    async def upload(self, amount: int) -> None:
        """Take room for more of the body, when there is some.

        Raises:
            BodyTooLarge: so much never fits.
            Overloaded: there was none for a while.
        """
        place = self._admission.place("uploads", self._who)
        most = place.room.whole if place.most is None else min(place.most, place.room.whole)
        if self._has["uploads"] + amount > most:
            raise BodyTooLarge(f"the request body has more bytes than there is room for ({most}); send less")
        deadline = asyncio.get_running_loop().time() + _WAIT_S
        while not place.take(amount):
            waiting = asyncio.get_running_loop().create_future()
            self._admission.bodies_waiting.append(waiting)
            self._admission.look_again()
            try:
                async with asyncio.timeout_at(deadline):
                    await waiting
            except TimeoutError:
                raise full(place, "uploads") from None
        self._places["uploads"] = [place]
        self._has["uploads"] += amount

    def enter(self, route: str = "", quota: Quota | None = None) -> None:
        """Take a place to run in, now that the body is whole.

        Raises:
            Overloaded: there is none, or none of the route's for this caller.
        """
        admission, who = self._admission, self._who
        kinds: tuple[Kind, ...] = ("streams", "answers")
        places = {kind: [admission.place(kind, who)] for kind in kinds}
        if quota is not None:
            bytes_of_route = admission.place_of_route("uploads", who, route, quota)
            if not bytes_of_route.take(self._has["uploads"]):
                raise full(bytes_of_route, "uploads")
            for kind in kinds:
                places[kind].append(admission.place_of_route(kind, who, route, quota))
            self._places.setdefault("uploads", []).append(bytes_of_route)
        self._take("streams", places["streams"])
        self._places["answers"] = places["answers"]
        self._give("bodies", self._has["bodies"])

    def hold(self, change: int) -> None:
        """Count bytes of the answer taken on, or, if negative, let go."""
        admission = self._admission
        self.held += change
        admission.answer_bytes += change
        over = self.held - admission.own_bytes
        more = max(over, 0) - self._has["answers"]
        if more > 0:
            for place in self._places["answers"]:
                place.add(more)
            self._has["answers"] += more
        elif more < 0:
            self._give("answers", -more)

    def has_room(self, when_there_is: Callable[[], None]) -> bool:
        """Tell whether more of the answer may be read; if not, `when_there_is` is called when to ask again."""
        more = self.held + PIECE_BYTES - self._admission.own_bytes - self._has["answers"]
        if more <= 0 or all(place.fits(more) for place in self._places["answers"]):
            return True
        self._admission.answers_waiting[self] = when_there_is
        self._admission.look_again()
        return False

    def leave(self) -> None:
        """Give back all that is left."""
        if self._over:
            return
        self._over = True
        self._admission.answers_waiting.pop(self, None)
        self.hold(-self.held)
        for kind in ("streams", "bodies", "uploads"):
            self._give(kind, self._has[kind])
        self._admission.left()

    def _take(self, kind: Kind, places: list[Place]) -> None:
        for count, place in enumerate(places):
            if not place.take(1):
                for taken in places[:count]:
                    taken.give(1)
                raise full(place, kind)
        self._places[kind] = places
        self._has[kind] = 1

    def _give(self, kind: Kind, amount: int) -> None:
        if amount:
            for place in self._places[kind]:
                place.give(amount)
            self._has[kind] -= amount
            self._admission.freed(kind)


def full(place: Place, kind: Kind) -> Overloaded:
    """Return the refusal of a request for which there is no room of a kind."""
    room, has = place.room, place.has
    what = {
        "streams": ("streams run", "streams"),
        "bodies": ("requests are being read", "requests whose bodies are still to come"),
        "uploads": ("bytes of request bodies are held", "bytes of request bodies"),
        "answers": ("bytes of answers are held", "bytes of answers"),
    }[kind]
    if room.taken >= room.whole or not has:
        return Overloaded(f"{room.taken} {what[0]}, which is the limit; try again in a moment")
    bound = f"which is your share of {room.whole}" if place.most is None else f"and your quota is {place.most}"
    return Overloaded(f"you have {has} {what[1]}, {bound}; try again in a moment")
