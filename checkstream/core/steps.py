"""Work that can be interrupted: a generator that yields wherever a turn may end. Nothing depends on where it does."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from typing import TypeVar

Steps = Iterator[None]
"""Work that can be interrupted between its steps."""
Walk = Generator[None, None, None]
"""The same, as `done` takes it."""
Result = TypeVar("Result")


_FIRST_CHARS = 128
_LEAST_CHARS = 96
_MOST_CHARS = 512
_PIECE_WORK = 1200
_DROPS_A_STEP = 2048
_FEW_DROPPED = 32
"""Values of one container that are let go at once."""
_FEW_BYTES = 4096
"""Of JSON that has no more values than are let go in one step."""
_JOINED_CHARS, _A_TEXT_CHARS = 262_144, 128
"""That are joined in one step; each text is as dear as so many."""
_TAKEN_APART = (list, dict, set, deque)


class Pace:
    """How long the next piece of a text may be: as long as the last one lets expect so much work of it."""

    __slots__ = ("_least", "chars")

    def __init__(self, least: int = _LEAST_CHARS) -> None:
        """Begin with a short one; none is shorter than `least`."""
        self.chars = _FIRST_CHARS
        self._least = least

    def took(self, chars: int, work: int) -> None:
        """Note what a piece of so many characters has cost (see `match.work`)."""
        self.chars = min(max(chars * _PIECE_WORK // max(work, 1), self._least), 2 * self.chars, _MOST_CHARS)


def done(steps: Generator[None, None, Result]) -> Result:
    """Do all of some steps at once, and return what they come to."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


def joining(texts: Iterable[str], between: str = "") -> Generator[None, None, str]:
    """Return some texts as one, in steps, however long they are: to join them at once would be one step."""
    joined, since, first = "", 0, True
    for text in texts:
        joined += "" if first else between
        first = False
        for at in range(0, len(text), _JOINED_CHARS):
            joined += text[at : at + _JOINED_CHARS]  # it grows in its place
            since += min(len(text) - at, _JOINED_CHARS) + _A_TEXT_CHARS
            if since >= _JOINED_CHARS:
                since = 0
                yield
    return joined


def freeing(value: object, steps: Generator[None, None, Result], size: int) -> Generator[None, None, Result]:
    """Do some steps, then take a value apart that they have used, also where they fail; return what they come to.

    Args:
        value: What was read of some bytes.
        steps: What uses it.
        size: How many bytes: what stands in few of them is free as soon as nobody has it.
    """
    result = yield from freeing_if_failed(value, steps)
    if size > _FEW_BYTES:
        yield from dropping(value)
    return result


def freeing_if_failed(value: object, steps: Generator[None, None, Result]) -> Generator[None, None, Result]:
    """Do some steps, and take a value apart that they have used if they fail; return what they come to."""
    try:
        return (yield from steps)
    except Exception as error:
        error.__traceback__ = None  # its frames have parts of the value
        yield from dropping(value)
        raise


def dropping(value: object, a_step: int = _DROPS_A_STEP) -> Generator[None, None, None]:
    """Take a value apart, in steps: to free a million values takes as long as one goes without the interpreter."""
    pending, count = [value], 0
    while pending:
        found = pending.pop()
        if isinstance(found, _TAKEN_APART) and len(found) <= _FEW_DROPPED:
            inners = found.values() if isinstance(found, dict) else found
            pending += [inner for inner in inners if isinstance(inner, _TAKEN_APART) and inner]
            count += len(found)
            found.clear()
            if count >= a_step:
                count = 0
                yield
            continue
        while isinstance(found, _TAKEN_APART) and found:
            inner = found.popitem()[1] if isinstance(found, dict) else found.pop()
            if isinstance(inner, _TAKEN_APART) and inner:
                pending.append(inner)
            count += 1
            if count % a_step == 0:
                yield
