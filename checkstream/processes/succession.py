"""One parent after another on the same sockets: the elder hands over and drains, the heir serves.

What all workers remember has one keeper at every moment. Until its last worker has ended that is the elder, whom the
heir asks; then the elder says all of it and is gone, and what it has not answered by then the heir answers itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import subprocess
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from checkstream.processes import frames
from checkstream.processes.child import command
from checkstream.processes.memory import Answer, Count, Get, Put, Question, Shared, Spend
from checkstream.sealed.memory_store import Kept
from checkstream.telemetry.totals import Figures, heard


class Estate(msgspec.Struct, frozen=True, array_like=True):
    """The first that an heir hears.

    Its descriptors: the board's memory, the listening sockets of all slots, then those of the admin listener.
    """

    secret: bytes
    began: float
    """As in `Welcome`."""
    half: int
    """Of the board, that its workers have pages of."""
    listen: str
    slots: int
    admin: str
    admins: int
    """Sockets of the admin listener; of the others each slot has as many as any."""
    machine: str = ""
    """What names this machine among others, for whom the elder speaks as long as it lives; empty: it knows of none."""


class Took(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The heir serves."""


class Sum(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What have your workers counted?"""

    id: int


class Counted(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The answer to `Sum`."""

    id: int
    figures: bytes


class Answered(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The answer to a question."""

    answer: Answer


class Legacy(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """All that was remembered and counted: the elder's last word."""

    blobs: list[Kept]
    spent: list[tuple[int, bytes]]
    figures: bytes


_FROM_HEIR = msgspec.msgpack.Decoder(Get | Put | Count | Spend | Took | Sum)
_FROM_ELDER = msgspec.msgpack.Decoder(Answered | Counted | Legacy)
_ESTATE = msgspec.msgpack.Decoder(Estate)
_ASK_S = 5.0
Counting = Callable[[], Awaitable[bytes]]


def start_heir(
    estate: Estate, descriptors: Sequence[int], arguments: Sequence[str], shared: Shared, count: Counting
) -> Heir:
    """Start this program anew, with the same arguments and what there is for it.

    Raises:
        OSError: the system lets nothing be started.
    """
    ours, theirs = socket.socketpair()
    try:
        frames.send_with(ours, estate, descriptors)
        process = subprocess.Popen(  # noqa: S603 - it is us; and no loop's child, which would end with the loop
            command(arguments, "--take-over", theirs.fileno()), pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return Heir(ours, process, shared, count)


class Heir:
    """The elder's end of the channel, and the process behind it."""

    def __init__(self, end: socket.socket, process: subprocess.Popen[bytes], shared: Shared, count: Counting) -> None:
        """Answer an heir's questions.

        Args:
            end: Of the channel.
            process: The heir.
            shared: What is remembered.
            count: Returns what all workers have counted, encoded.
        """
        self.process = process
        self._end = end
        self._shared = shared
        self._count = count
        self._writer: asyncio.StreamWriter | None = None
        self._said_all = False
        self.took = asyncio.Event()
        """It serves."""
        self.gone = asyncio.Event()

    async def serve(self) -> None:
        """Answer until it is gone."""
        try:
            reader, self._writer = await asyncio.open_connection(sock=self._end)
            while (body := await frames.read(reader)) is not None:
                message = _FROM_HEIR.decode(body)
                if self._said_all:
                    continue
                match message:
                    case Took():
                        self.took.set()
                    case Sum(id_):
                        counted = frames.encode(Counted(id_, await self._count()))
                        if not self._said_all:
                            self._writer.write(counted)
                    case _:
                        self._writer.write(frames.encode(Answered(self._shared.answer(message))))
        except OSError:
            pass  # it is gone
        finally:
            self.gone.set()
            if self._writer is not None:
                self._writer.close()

    async def leave_all(self) -> None:
        """Say the last word: nothing that the heir asks from here on is answered."""
        if self._writer is None or self.gone.is_set():
            return
        figures = await self._count()
        self._said_all = True
        with contextlib.suppress(OSError):
            self._writer.write(frames.encode(Legacy(self._shared.blobs.all(), self._shared.spent.all(), figures)))
            await self._writer.drain()
            self._writer.write_eof()


class Elder:
    """The heir's end of the channel. Made before there is an event loop."""

    def __init__(self, descriptor: int) -> None:
        """Hear what there is. Blocks until the elder has said it.

        Raises:
            OSError: the elder is gone.
        """
        self._end = socket.socket(fileno=descriptor)
        body, descriptors = frames.take_with(self._end)
        self.estate = _ESTATE.decode(body)
        self.board = descriptors[0]
        given = [socket.socket(fileno=each) for each in descriptors[1:]]
        split = len(given) - self.estate.admins
        each = split // self.estate.slots
        self.group = [given[at : at + each] for at in range(0, split, each)]
        """The listening sockets of each slot."""
        self.admin = given[split:]
        self._ids = itertools.count(1)
        self._open: dict[int, asyncio.Future[Answer | Counted | None]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._connected = asyncio.Event()
        self.gone = False
        self.figures: Figures = ()
        """What its workers had counted when it was asked last."""

    async def hear(self, shared: Shared) -> bool:
        """Listen until it is gone, and keep from then on what it has kept; tell whether it has said its last word."""
        reader, self._writer = await asyncio.open_connection(sock=self._end)
        self._connected.set()
        complete = False
        while (body := await frames.read(reader)) is not None:
            message = _FROM_ELDER.decode(body)
            match message:
                case Legacy():
                    shared.blobs.restore(message.blobs)
                    shared.spent.remember(message.spent)
                    self.figures, complete = heard(message.figures), True
                case Answered(answer):
                    self._settle(answer.id, answer)
                case Counted(id_):
                    self._settle(id_, message)
        self.gone = True
        for id_ in tuple(self._open):
            self._settle(id_, None)
        self._writer.close()
        return complete

    def _settle(self, id_: int, answer: Answer | Counted | None) -> None:
        waiting = self._open.pop(id_, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def answer(self, question: Question) -> Answer | None:
        """Have a worker's question answered; None: the elder is gone, and has not carried it out."""
        answer = await self._asked(msgspec.structs.replace(question, id=next(self._ids)))
        return msgspec.structs.replace(answer, id=question.id) if isinstance(answer, Answer) else None

    async def count(self) -> None:
        """Find out what its workers have counted."""
        with contextlib.suppress(TimeoutError):
            counted = await asyncio.wait_for(self._asked(Sum(next(self._ids))), _ASK_S)
            if isinstance(counted, Counted):
                self.figures = heard(counted.figures)

    async def _asked(self, message: Question | Sum) -> Answer | Counted | None:
        await self._connected.wait()
        if self.gone or self._writer is None:
            return None
        waiting: asyncio.Future[Answer | Counted | None] = asyncio.get_running_loop().create_future()
        self._open[message.id] = waiting
        self._writer.write(frames.encode(message))
        return await waiting

    def take(self) -> None:
        """Say that we serve: the elder takes nothing new from here on."""
        if self._writer is not None and not self.gone:
            self._writer.write(frames.encode(Took()))
