"""What an answer says outside of its text channels: which of it rules must judge, and what of it is joined.

Most of it is the same in every event (ids, names of models, counts) and quiet: nothing is found in it. That is settled
once for each value. What is found there, and what callers could join over events, gets a channel, `extra`, for each
place in the events.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

import msgspec

from checkstream.core.channel.judge import Judge
from checkstream.core.exchange.checking import is_token
from checkstream.core.exchange.meter import FEW_CHARS, Meter
from checkstream.core.exchange.silent import Look
from checkstream.core.policy.program import Program
from checkstream.core.pseudonyms.register import Register
from checkstream.core.steps import Steps, joining
from checkstream.core.terms import COMMON, Channel, Delta, Extra, Stage, Unit
from checkstream.core.wire.answers.answer import LEGACY_CALL
from checkstream.core.wire.answers.extras import is_known
from checkstream.core.wire.json_text.lists import ANYWHERE, told_by
from checkstream.core.wire.json_text.spans import NAME, Path

_STAGES = (Stage.MIDSTREAM, Stage.EGRESS)
_BETWEEN = "\n|\n"
"""Stands between texts that are searched at once: what a pattern finds over it is looked at again, apart."""
_MOST_SEARCHES = 512
"""For what is loud in one unit; what is left then is judged, whatever it says."""
_EXTRAS, _CHARS_A_STEP = 256, 16_384
"""That are looked at in one step."""
_JOINING_WORK = 300
"""Of a step of joining texts."""
_MOST_QUIET = 4096
_MOST_QUIET_CHARS = 256
_MOST_ENDS = 128
"""Quiet texts of one event that begin or end what it says at a place; those between are joined within the event."""
_MOST_WORDS = 1024
"""Places at which words of the protocol are kept for what may come behind them."""
_LEAST_STATE_CHARS = 3
_LEAST_FIGURE_CHARS = 8
"""Of a state that has no letters, such as a date: a shorter one may be a piece of a number."""
_MOST_WORDS_CHARS = 256
"""Of words of the protocol that are kept for what may come behind them."""
_REPEATED_CHARS = 40
"""What has no letters, such as a date, is looked at as it would be repeated: `4242` four times is a card's number."""


class _Place(msgspec.Struct):
    """What has been said at one place of the events."""

    channel: Channel
    key: tuple[int, Path, int]
    """What stands there of a unit (see `key_of`)."""
    known: bool
    """Servers are known to send what stands there."""
    before: _Place | None = None
    """The entry of the same list that had begun before it."""
    judge: Judge | None = None
    open: bool = False
    """What has come may go on with the next unit."""


class Extras:
    """Sifts the units of one answer."""

    __slots__ = (
        "_anchored",
        "_asked",
        "_by_channel",
        "_entries",
        "_first",
        "_last",
        "_meter",
        "_next",
        "_open",
        "_places",
        "_program",
        "_quiet",
        "_register",
        "_runs",
        "_states",
        "_words",
        "calm",
        "otherwise",
    )

    def __init__(self, program: Program, meter: Meter, register: Register) -> None:
        """Start with nothing known.

        Args:
            program: Its rules for the channel `extra` say what is quiet.
            meter: Counts the work of looking.
            register: Where it has something, what stands for values of the prompt is looked for, too.
        """
        self._meter = meter
        self._register = register
        self.calm = True
        """Nothing of the latest unit was left for a judge."""
        self._program = program
        scopes = [program.scope(stage, "extra") for stage in _STAGES]
        self._anchored = any(scope.anchored for scope in scopes)
        self._asked = any(scope.hold_classifiers or scope.watch_classifiers for scope in scopes)
        self._quiet: set[str] = set()
        self._places: dict[tuple[int, Path, int], _Place] = {}
        self._by_channel: dict[Channel, _Place] = {}
        self._words: dict[tuple[int, Path, int], str] = {}
        """Words of the protocol at places where nothing else has been said."""
        self._entries: dict[tuple[int, Path, int], str] = {}
        """Of the entries of one list that say something once, how the last ones have ended."""
        self._runs: set[tuple[int, Path, int]] = set()
        """Lists of which all entries in the latest unit are quiet as one text, behind those before them."""
        self._last: dict[tuple[int, Path, int], _Place] = {}
        """Of the entries of one list that have an index, each a place of its own, the one that has begun last."""
        self._open: dict[Channel, None] = {}
        """Those whose text may go on with the next unit."""
        self._next: dict[int, int] = {}
        self._first: dict[tuple[int, Path], str] = {}
        """What all units of the answer say at a place."""
        self._states: dict[tuple[Path, int], str | None] = {}
        """What all units that were judged said just there; None: several things, so it is no state."""
        self.otherwise: dict[Path, str | None] = {}
        """What is to be said in the latest unit in place of what it says; None: nothing."""

    @property
    def known(self) -> tuple[object, ...]:
        """What is known of the places, to be taken apart when the exchange is forgotten: there may be thousands."""
        places = (self._places, self._by_channel, self._last, self._words, self._first, self._entries)
        return *places, self._states, self._quiet

    def sift(self, unit: Unit, *, whole: bool, most: int) -> Generator[None, None, Unit]:
        """Return a unit with those of its extras among its deltas that a judge must see.

        Args:
            unit: As it was read.
            whole: Nothing will follow that callers could join to it.
            most: Of those that a judge must see; what has more is refused, so none behind them is looked at.
        """
        self.calm = True
        self.otherwise = {}
        if not unit.extras:
            return unit
        loud = yield from self._loud(unit.extras, whole=whole)
        unit = yield from self._without_loud(unit, loud)
        yield from self._loud_together(unit.extras, loud)
        amid = set[int]() if whole else self._amid(unit.extras, loud)
        self._runs = set[tuple[int, Path, int]]() if whole else (yield from self._quiet_runs(unit.extras, loud))
        judged: list[Delta] = []
        for number, extra in enumerate(unit.extras):
            if number % _EXTRAS == _EXTRAS - 1:
                self._meter.spent += 2 * _EXTRAS
                yield
            if extra.part and self._has_found(extra):
                self.otherwise[extra.path] = None
                continue
            if number not in loud and (whole or number in amid or (yield from self._is_said(extra))):
                continue
            place = self._place(extra)
            place.open = extra.joins and not whole
            self._note_state(extra)
            judged.append(Delta(place.channel, extra.text, extra.path))
            if len(judged) > most:
                break  # nobody reads so many
        self.calm = self.calm and not judged and not self.otherwise
        return msgspec.structs.replace(unit, deltas=(*unit.deltas, *judged)) if judged else unit

    def _has_found(self, extra: Extra) -> bool:
        """Tell whether something was found in a rank of alternatives: no word stands in its place, so no more leave.

        What is said behind a gap would be joined to what stood before it.
        """
        place = self._places.get(key_of(extra))
        return place is not None and place.judge is not None and bool(place.judge.noted.digests)

    def _is_said(self, extra: Extra) -> Generator[None, None, bool]:
        """Tell whether nothing of a quiet text is left to judge: it joins nothing, or has been said before."""
        if extra.again != "read" and (extra.again == "never" or (yield from self._is_steady(extra.text))):
            if extra.again == "first" and (yield from self._goes_on(extra)):
                return False
            self._say_once(extra)
            return True
        if not extra.joins:
            return True
        key = key_of(extra)
        if key not in self._places:
            if not extra.word or (key not in self._words and len(self._words) >= _MOST_WORDS):
                return False  # it opens a place; how many there may be is bounded where channels are
            self._words[key] = (self._words.get(key, "") + extra.text)[-_MOST_WORDS_CHARS:]
            return True
        if extra.part or extra.text != self._states.get((place_of(extra.path), extra.choice)):
            return False
        lettered = any(map(str.isalpha, extra.text[:_LEAST_FIGURE_CHARS]))
        least = _LEAST_STATE_CHARS if lettered else _LEAST_FIGURE_CHARS
        return len(extra.text) >= least and (yield from self._is_steady(extra.text))

    def _goes_on(self, extra: Extra) -> Generator[None, None, bool]:
        """Tell whether something is found in what is said once, read with what the entry before it has said so.

        Ids tell entries apart: nobody joins them, and clients refer to them.
        """
        key, entry = key_of(extra), self._entry_of(extra)
        if entry is None:
            return False
        before = self._entries.get(entry, "")
        self._entries[entry] = joined = (before + extra.text)[-_MOST_WORDS_CHARS:]
        if not before or entry in self._runs or joined in self._quiet:
            return False
        yield  # each is read by itself, and there may be thousands
        if not (yield from self._finds(joined)):
            self._remember([joined])
            return False
        self._words[key] = before
        return True

    def _entry_of(self, extra: Extra) -> tuple[int, Path, int] | None:
        """Return what all entries of a list have in common with one that says something once; None: not read so."""
        key = key_of(extra)
        entry = _of_any_index(key)
        return None if entry == key or key[:2] in self._first or str(extra.path[-1]).endswith("id") else entry

    def _quiet_runs(self, extras: Sequence[Extra], loud: set[int]) -> Generator[None, None, set[tuple[int, Path, int]]]:
        """Return the lists of which the entries in one unit are quiet, read at once behind those before them.

        Each of the entries would be read with all that is kept of those before it, which is many times as much.
        """
        runs: dict[tuple[int, Path, int], dict[tuple[int, Path, int], str]] = {}
        for number, extra in enumerate(extras):
            if number % _EXTRAS == _EXTRAS - 1:
                self._meter.spent += 2 * _EXTRAS
                yield
            if extra.again != "first" or number in loud or (entry := self._entry_of(extra)) is None:
                continue
            if (yield from self._is_steady(extra.text)):
                runs.setdefault(entry, {}).setdefault(key_of(extra), extra.text)
        quiet = set[tuple[int, Path, int]]()
        for entry, texts in () if self._anchored else runs.items():
            joined = self._entries.get(entry, "") + "".join(texts.values())
            if len(texts) > 1 and not (yield from self._finds(joined)):
                quiet.add(entry)
        return quiet

    def _amid(self, extras: Sequence[Extra], loud: set[int]) -> set[int]:
        """Return the numbers of quiet texts that no other event goes on with: those amid many at one place."""
        places: dict[tuple[int, Path, int], list[int]] = {}
        if len(extras) > _MOST_ENDS:
            for number, extra in enumerate(extras):
                if extra.joins and extra.again == "read" and number not in loud:
                    places.setdefault(key_of(extra), []).append(number)
        share = max(1, _MOST_ENDS // 2 // max(1, len(places)))
        return {number for numbers in places.values() for number in numbers[share:-share]}

    def _note_state(self, extra: Extra) -> None:
        at = place_of(extra.path), extra.choice
        if at in self._states or len(self._states) < _MOST_QUIET:
            same = self._states.setdefault(at, extra.text) == extra.text
            self._states[at] = extra.text if same else None

    def _say_once(self, extra: Extra) -> None:
        """Let what stands at a place be said by the first unit that says something there."""
        key = key_of(extra)[:2]
        first = self._first.get(key)
        if first is None:
            self._first[key] = extra.text
            self.calm = self.calm and extra.again == "first"
        elif extra.again == "never":
            self.otherwise[extra.path] = None
        elif first != extra.text:
            self.otherwise[extra.path] = first

    def _is_steady(self, text: str) -> Generator[None, None, bool]:
        """Tell whether nothing is found in a text however often it is said again, as states are."""
        for at in range(0, len(text), _CHARS_A_STEP):
            if any(map(str.isalpha, text[at : at + _CHARS_A_STEP])):
                return True
            if len(text) > _CHARS_A_STEP:
                self._meter.spent += _EXTRAS
                yield
        repeated = _BETWEEN.join(text * times for times in range(2, max(2, _REPEATED_CHARS // len(text)) + 1))
        if repeated not in self._quiet:
            if (yield from self._finds(repeated)):
                return False
            self._remember([repeated])
        return True

    def _place(self, extra: Extra) -> _Place:
        key = key_of(extra)
        place = self._places.get(key)
        if place is None:
            number = self._next.get(extra.choice, 0)
            self._next[extra.choice] = number + 1
            place = _Place(Channel("extra", extra.choice, number), key, is_known(extra))
            entry = _of_any_index(key)
            if entry != key:
                place.before = self._last.get(entry)
                self._last[entry] = place
            self._places[key] = self._by_channel[place.channel] = place
        return place

    def _loud(self, extras: Sequence[Extra], *, whole: bool) -> Generator[None, None, set[int]]:
        """Return the numbers of extras in which, each by itself, something is found, or that classifiers must read."""
        loud = set[int]()
        new: dict[str, None] = {}
        long: list[int] = []
        """What is not remembered, and takes as long to hash as it is."""
        for number, extra in enumerate(extras):
            if number % _EXTRAS == _EXTRAS - 1:
                self._meter.spent += 2 * _EXTRAS
                yield
            asked = self._asked and not extra.word
            alone = whole or not extra.joins or extra.again == "first"
            if asked and alone and extra.path[-1] != NAME and not is_token(extra.text):
                loud.add(number)
            elif len(extra.text) > _MOST_QUIET_CHARS:
                long.append(number)
            elif not extra.word and extra.text not in self._quiet:
                new[extra.text] = None
        texts = [*new, *(extras[number].text for number in long)]
        found = yield from self._search(texts)
        for at in range(0, len(new), _EXTRAS):
            self._remember(texts[each] for each in range(at, min(at + _EXTRAS, len(new))) if each not in found)
            self._meter.spent += _EXTRAS
            yield
        loud.update(number for at, number in enumerate(long, len(new)) if at in found)
        said = {texts[at] for at in found if at < len(new)}
        for at in range(0, len(extras) if said else 0, _EXTRAS):
            some = enumerate(extras[at : at + _EXTRAS], at)
            loud.update(number for number, extra in some if len(extra.text) <= _MOST_QUIET_CHARS and extra.text in said)
            self._meter.spent += _EXTRAS
            yield
        return loud

    def _without_loud(self, unit: Unit, loud: set[int]) -> Generator[None, None, Unit]:
        """Return a unit that puts no words together in which, each by itself, something is found: those are edited.

        What is edited for the sake of several is all that they stand in. Those of which nothing is left are not `loud`.
        """
        several = list[int]()
        for count, number in enumerate(loud, 1):
            if unit.extras[number].words:
                several.append(number)
            if count % _EXTRAS == 0:
                self._meter.spent += _EXTRAS // 4
                yield
        extras = list(unit.extras) if several else []
        for number in several:
            words = extras[number].words
            different = list(dict.fromkeys(words))
            found = {different[at] for at in (yield from self._search(different))}
            if found:
                told = told_by([word for word in words if word not in found])
                extras[number] = msgspec.structs.replace(extras[number], text=told)
                if not told or not (self._asked or (yield from self._finds(told))):
                    loud.discard(number)
            yield
        return msgspec.structs.replace(unit, extras=tuple(extras)) if several else unit

    def _loud_together(self, extras: Sequence[Extra], loud: set[int]) -> Steps:
        """Put into `loud` the numbers of quiet extras in which something is found as one text: entries of one list."""
        together: dict[tuple[int, Path, int], list[int]] = {}
        for number, extra in enumerate(extras):
            if number % _EXTRAS == _EXTRAS - 1:
                self._meter.spent += 2 * _EXTRAS
                yield
            if extra.joins and number not in loud and extra.place is not None:
                key = key_of(extra)
                for each in dict.fromkeys((key, _of_any_index(key))):
                    together.setdefault(each, []).append(number)
        found: set[int] = set()
        for numbers in together.values():
            joined = "" if len(numbers) < 2 else (yield from self._joined(extras, numbers))
            if joined and (len(joined) > _MOST_QUIET_CHARS or joined not in self._quiet):
                if (yield from self._finds(joined)):
                    found.update(numbers)
                else:
                    self._remember([joined])
        loud |= found

    def _joined(self, extras: Sequence[Extra], numbers: Sequence[int]) -> Generator[None, None, str]:
        """Return what some extras say together; "" where all of it is words of the protocol."""
        words = True
        for at in range(0, len(numbers), _EXTRAS):
            words = words and all(extras[number].word for number in numbers[at : at + _EXTRAS])
            if len(numbers) > _EXTRAS:
                self._meter.spent += _EXTRAS // 8
                yield
        texts = joining(extras[number].text for number in numbers)
        return "" if words else (yield from self._meter.stepping(texts, _JOINING_WORK))

    def _search(self, texts: Sequence[str]) -> Generator[None, None, set[int]]:
        """Return the places of texts in which something is found; many are searched at once, then halves of them."""
        pending, found = [range(len(texts))], set[int]()
        searches = 0
        while pending:
            part = pending.pop()
            searches += 1
            if not part or (not self._anchored and not (yield from self._finds_in(texts, part))):
                continue
            if searches > _MOST_SEARCHES or (
                len(part) == 1 and (not self._anchored or (yield from self._finds_in(texts, part)))
            ):
                found.update(part)
            elif len(part) > 1:
                middle = len(part) // 2
                pending += (part[middle:], part[:middle])
            yield
        return found

    def _finds_in(self, texts: Sequence[str], part: range) -> Generator[None, None, bool]:
        """Tell whether something is found in some of many texts."""
        joined = joining((texts[at] for at in part), _BETWEEN)
        text = texts[part[0]] if len(part) == 1 else (yield from self._meter.stepping(joined, _JOINING_WORK))
        return (yield from self._finds(text))

    def _remember(self, texts: Iterable[str]) -> None:
        for text in texts:
            if len(self._quiet) < _MOST_QUIET and len(text) <= _MOST_QUIET_CHARS:
                self._quiet.add(text)

    def _finds(self, text: str) -> Generator[None, None, bool]:
        for stage in _STAGES:
            scope = self._program.scope(stage, "extra")
            restored = scope.restored if len(self._register) else None
            for patterns in (restored or scope.hold, scope.watch):
                if len(patterns):
                    look = Look(patterns, late=len(text) <= FEW_CHARS)  # all that is put off is one step
                    if (yield from self._meter.feeding(look, text)) or look.end():
                        return True
        return False

    # --- what may go on

    @property
    def has_open(self) -> bool:
        """Something has been judged that what comes may go on with, or not."""
        return bool(self._open)

    def judged(self, judge: Judge) -> str | None:
        """Note who judges one of the channels; return where its text stands, for the record, if nobody knows it."""
        place = self._by_channel[judge.channel]
        place.judge = judge
        return None if place.known else spelled(place.key[1])

    def call_of(self, channel: Channel) -> int | None:
        """Return the number of the call, block or item that one of the channels is a member of, if it is of one."""
        match self._by_channel[channel].key[1]:
            case (
                ("delta" | "message", "tool_calls", int() as number, *_)
                | ("", "message", "tool_calls", int() as number, *_)
                | ("", "content" | "items", int() as number, *_)
                | ("", _, "items", int() as number, *_)
                | ("", "events", str(), int() as number, *_)
            ):
                return number
            case ("delta" | "message", "function_call", *_):
                return LEGACY_CALL
            case _:
                return None

    def said_before(self, channel: Channel) -> str:
        """Return what readers join to the text of a new channel: words of the protocol that have come at its place.

        To an entry of a list they join what the one before it says.
        """
        place = self._by_channel[channel]
        before = place.before.judge if place.before is not None else None
        return ("" if before is None else before.holdback.end_of(_MOST_WORDS_CHARS)) + self._words.get(place.key, "")

    def passed(self, unit: Unit) -> list[Judge]:
        """Return the judges of what could have gone on with a unit, which has been taken, and did not."""
        if not self._by_channel:
            return []
        said = {delta.channel: None for delta in unit.deltas if delta.channel.kind == "extra"}
        over = [channel for channel in self._open if channel not in said and _speaks_of(unit, channel.choice)]
        for channel in said:
            if self._by_channel[channel].open:
                self._open[channel] = None
            else:
                over.append(channel)
        for channel in over:
            self._open.pop(channel, None)
        judges = (self._by_channel[channel].judge for channel in over)
        return [judge for judge in judges if judge is not None]


def _speaks_of(unit: Unit, choice: int) -> bool:
    if choice == COMMON:
        return bool(unit.choices or unit.extras or unit.usage or unit.terminator)
    return choice in unit.choices


def key_of(extra: Extra) -> tuple[int, Path, int]:
    """Return what callers join: what stands at one place of all units, for a choice, and which text of several."""
    return extra.choice, place_of(extra.place or extra.path), extra.part


def _of_any_index(key: tuple[int, Path, int]) -> tuple[int, Path, int]:
    """Return where the entries of a list stand together, whatever their index."""
    choice, path, part = key
    return choice, tuple(ANYWHERE if isinstance(name, int) else name for name in path), part


def place_of(path: Path) -> Path:
    """Return where a path leads in any event: a choice stands at any place in its list."""
    return path[2:] if path[:1] == ("choices",) and len(path) > 1 else ("", *path)


def spelled(path: Path) -> str:
    """Return a general path as people write it."""
    parts = [str(part) for part in path if part not in ("", NAME)]
    return ".".join(parts)
