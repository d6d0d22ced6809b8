"""Collects the texts of one request of OpenAI's older surfaces, each in a channel of its own (G13, G31).

Of a field every string, member name and number is read. Ids, mode words, names and numbers are *quiet*: patterns read
them and no classifier does, to which they would only be noise between sentences.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Literal

from checkstream.core.match.spelled import LEAST_WORDS, names
from checkstream.core.steps import Steps, Walk, done
from checkstream.core.terms import Channel, Delta, Unit
from checkstream.core.wire.json_text.lists import ANYWHERE, LEAST_NAMES, MOST_WORDS, is_wordy, telling, told_by
from checkstream.core.wire.json_text.spans import NAME, Path
from checkstream.core.wire.json_text.strict import shown
from checkstream.core.wire.json_text.strings import clean
from checkstream.core.wire.requests import fields
from checkstream.core.wire.sealed import SEALED, is_sealed
from checkstream.core.wire.surface import Request
from checkstream.core.wire.text_files import Encoding, is_data_url, is_media, looks_encoded, reading_file
from checkstream.errors import RequestInvalid

_MAX_PLAIN_ID = 64
_MAX_PLAIN_WORDS = 6
"""Words of a name that may be an id; one of more is a sentence in the dress of a name."""
_MAX_PLAIN_BLOB = 500_000
"""Data of more is looked at as text: a prompt has not that many characters."""
_WORK_A_STEP = 256
"""Values, or so many times `_CHARS_A_VALUE`, that are read before others may have their turn."""
_CHARS_A_VALUE = 1024
_IDS_AT_ONCE = 2048
_RUNS_A_STEP = 1024
_MIN_SENTENCE = 12
"""Characters of a name that may be a sentence (see `match.spelled`)."""
LEAST_DIGITS = 4
"""A number of fewer says nothing."""
_MAX_MODEL_WORD, _MAX_MODEL_FIGURES = 12, 8
_ID_MARKS = str.maketrans("-.:/$", "_____")
_TYPE_MARKS = str.maketrans(";=+", "___")
_BLOB_MARKS = str.maketrans("", "", "+/=_-")

Piece = tuple[Literal["text", "name", "number", "bytes", "nothing"], str, Path]


def pieces(value: object, path: Path) -> Iterator[Piece]:
    """Yield every string, member name and number of a JSON value with its path, in document order.

    A list of numbers that spells text byte by byte is that text, too: `bytes`, before its numbers. What says nothing by
    itself, such as any other container, is yielded as well: there may be many, and who takes the pieces counts them.
    """
    open_: list[Iterator[tuple[object, Path]]] = [iter([(value, path)])]
    while open_:
        entry = next(open_[-1], None)
        if entry is None:
            open_.pop()
            continue
        found, at = entry
        if isinstance(found, str):
            yield ("name" if at[-1] == NAME else "text"), found, at
        elif isinstance(found, list | dict):
            spelled = done(telling(found))
            yield ("nothing", "", at) if spelled is None else ("bytes", spelled, at)
            open_.append(_entries(found, at))
        elif isinstance(found, int | float) and not isinstance(found, bool):
            yield "number", _digits(found), at
        else:
            yield "nothing", "", at


def _entries(found: list[object] | dict[str, object], at: Path) -> Iterator[tuple[object, Path]]:
    """Yield what stands in a container with its path, a member's name before its value; as it is asked for."""
    if isinstance(found, list):
        for i, each in enumerate(found):
            yield each, (*at, i)
        return
    for name, each in found.items():
        yield name, (*at, name, NAME)
        yield each, (*at, name)


def _digits(number: float) -> str:
    """Return a number as a server would print it that read it as what it is: `4e15` is a number of 16 digits."""
    return str(int(number)) if isinstance(number, int) or (number.is_integer() and abs(number) < 1e21) else repr(number)


def is_plain(text: str) -> bool:
    """Tell whether a text is an id, a mode word or the name of a thing, or data that no reader takes for words."""
    if len(text) > _MAX_PLAIN_BLOB or not text.isascii():
        return False
    if len(text) > _MAX_PLAIN_ID:
        bare = text.translate(_BLOB_MARKS)
        return bare.isalnum() and not (bare.isalpha() or bare.islower() or bare.isupper())
    marked = text.translate(_ID_MARKS)
    if not f"_{marked}".isidentifier():
        return False
    return marked.count("_") < _MAX_PLAIN_WORDS or not marked.replace("_", "").isalpha()


def is_model(text: str) -> bool:
    """Tell whether a text is called as models are: in short words, with fewer figures than numbers of people have."""
    if len(text) > _MAX_PLAIN_ID or any(len(word) > _MAX_MODEL_WORD for word in text.translate(_ID_MARKS).split("_")):
        return False
    return is_plain(text) and sum(map(str.isdecimal, text)) <= _MAX_MODEL_FIGURES


def _is_word(text: str) -> bool:
    """Tell whether a plain text is a word of letters alone, as modes and members are called, and no sentence."""
    letters = text.translate(_ID_MARKS).replace("_", "a").isalpha() or not text
    return letters and (len(text) < _MIN_SENTENCE or next(filter(None, names(text, LEAST_WORDS)), None) is None)


class Prompt:
    """Collects the texts of one request, each in a channel of its own."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.deltas: list[Delta] = []
        self.unscanned: dict[str, None] = {}
        self.sealed: dict[str, None] = {}
        """Names of what servers have encrypted for themselves."""
        self.unknown: dict[str, None] = {}
        """Places of fields and members that nobody knows, as messages name them."""
        self.strange: frozenset[str] = frozenset()
        """Names of those that stand at the top."""
        self.quiet: set[int] = set()
        """Places of the deltas that only patterns are to read."""
        self.signed: set[int] = set()
        """Places of the deltas that stand in what the model has signed."""
        self.files: dict[int, Encoding] = {}
        """Place of a delta that is a file's text -> how it stands in the request."""
        self._runs: dict[tuple[str, int, Path], list[int]] = {}
        """Channel, position and place in the lists of a field that nobody knows -> the deltas that stand there."""
        self.runs: tuple[tuple[int, ...], ...] = ()
        """Places of the deltas that are entries of one list, which a reader may put together (see `settling`)."""
        self._told: list[tuple[int, ...]] = []
        """Deltas that are words of one value that nobody knows."""
        self._work = 0
        self._next: dict[tuple[str, int], int] = {}
        self._words: set[str] = set()
        """Names of members of schemas that were read, or are words."""

    @property
    def memory(self) -> list[object]:
        """The lists and objects that collect, whose entries nobody else keeps of a request that is refused."""
        sets = self.quiet, self.signed, self.files, self._runs
        return [self.deltas, *sets, self._told, self.unknown, self.unscanned, self.sealed]

    def request(
        self, body: bytes, members: Mapping[str, object], *, model: str, streaming: bool = False, counts: bool = False
    ) -> Request:
        """Return the request that all of these are the texts of; what else a surface knows of it is still to be said.

        Args:
            body: As it came.
            members: The same as an object.
            model: What it asks for.
            streaming: The caller wants events.
            counts: It wants to be told of tokens.
        """
        deltas, unscanned = tuple(self.deltas), tuple(self.unscanned)
        return Request(
            unit=Unit(raw=body, deltas=deltas, unscanned=unscanned, sealed=tuple(self.sealed)),
            members=members,
            strange=self.strange,
            quiet=self.quiet,
            signed=self.signed,
            files=self.files,
            runs=self.runs,
            told=tuple(self._told),
            streaming=streaming,
            usage_wanted=counts,
            model=model,
            unknown_fields=tuple(self.unknown),
        )

    def settling(self) -> Walk:
        """Settle, in steps, what readers may put together: places of the deltas that are entries of one list.

        What it is made of is forgotten. Nothing is read afterwards.
        """
        runs, count = list[tuple[int, ...]](), 0
        while self._runs:
            _, run = self._runs.popitem()
            if len(run) > 1:
                runs.append(tuple(run))
            count += 1
            if count % _RUNS_A_STEP == 0:
                yield
        runs.reverse()
        self.runs = tuple(runs)

    def spends(self, work: int = 1, *, chars: int = 0) -> bool:
        """Note that something was read, with a text or a name of so many `chars`; tell whether it is the others' turn.

        A long name is as dear as a long text.
        """
        self._work += work + chars // _CHARS_A_VALUE
        if self._work < _WORK_A_STEP:
            return False
        self._work = 0
        return True

    def add(self, kind: str, position: int, text: str, path: Path, *, quiet: bool = False) -> None:
        """Take `text` as the next part of the message (or field) at `position`."""
        if not text:
            return
        if path[-1] in SEALED and is_sealed(text):
            self.sealed[str(path[-1])] = None
            return
        index = self._next.get((kind, position), 0)
        self._next[kind, position] = index + 1
        if quiet:
            self.quiet.add(len(self.deltas))
        self.deltas.append(Delta(Channel(kind, position, index), text, path))

    def are_tokens(self, ids: list[object]) -> Generator[None, None, bool]:
        """Tell whether these are all ids of tokens."""
        for at in range(0, len(ids), _IDS_AT_ONCE):
            if self.spends(_IDS_AT_ONCE // 32):
                yield
            if not set(map(type, ids[at : at + _IDS_AT_ONCE])) <= {int}:
                return False
        return True

    def skip_to(self, kind: str, position: int, index: int) -> None:
        """Number the next part `index`, unless later numbers were given already."""
        self._next[kind, position] = max(index, self._next.get((kind, position), 0))

    def all(self, kind: str, position: int, value: object, path: Path) -> Steps:
        """Take a value that is there to be read: its strings as text, its member names and numbers quietly.

        Members of schemas (`system`) that are called by a word are the words of a programmer, and there are many.
        """
        for form, text, at in pieces(value, path):
            if self.spends(chars=len(text)):
                yield
            if form == "text":
                if is_data_url(text):
                    yield from self.file(position, text, at, str(path[-1]))
                elif not (at[-1] == "type" and text in fields.SCHEMA_TYPES):
                    self.add(kind, position, text, at)
            elif form == "name":
                if kind != "system" or not self._is_word_of_schemas(text):
                    self.add(kind, position, text, at, quiet=is_plain(text))
            elif form == "number" and len(text) >= LEAST_DIGITS:
                self.add(kind, position, text, at, quiet=True)

    def _is_word_of_schemas(self, text: str) -> bool:
        """Tell whether the name of a member of a schema is a word; what is none is read wherever it stands."""
        if text not in self._words and is_plain(text) and _is_word(text):
            self._words.add(text)
        return text in self._words

    def settings(
        self, kind: str, position: int, value: object, path: Path, *, words: bool = False, numbers: bool = True
    ) -> Steps:
        """Take a value of ids and mode words: as text what is no such, since a template may print it.

        Args:
            kind: Ingress channel.
            position: As for `add`.
            value: The value of a field or member.
            path: Where it stands.
            words: Nobody knows what it is for: single words are read, too.
            numbers: So are numbers.
        """
        wordy: list[int] = []
        named: list[int] = []
        for form, text, at in pieces(value, path):
            if self.spends(chars=len(text)):
                yield
            if form in ("number", "bytes", "nothing"):
                if numbers and len(text) >= LEAST_DIGITS:
                    self.add(kind, position, text, at, quiet=True)
            elif form == "text" and is_data_url(text):
                yield from self.file(position, text, at, str(path[-1]))
            else:
                plain = is_plain(text)
                if words or not plain or text not in fields.MODE_WORDS:
                    if words and text:
                        if form == "text":
                            self._note_entry(kind, position, at)
                        self._note_word(text, wordy if form == "text" else named)
                    self.add(kind, position, text, at, quiet=plain)
        self._take_told(wordy)
        if len(named) >= LEAST_NAMES:
            self._take_told(named)

    def _note_word(self, text: str, words: list[int]) -> None:
        """Note the next delta as one of the words of a value, if it is a word."""
        if is_wordy(text):
            words.append(len(self.deltas))

    def _take_told(self, words: Sequence[int]) -> None:
        """Note deltas that are words of one value, if they may be a sentence."""
        if len(words) <= MOST_WORDS and told_by([self.deltas[place].text for place in words]):
            self._told.append(tuple(words))

    def _note_entry(self, kind: str, position: int, path: Path) -> None:
        """Note that the next delta is an entry of a list, if it is one."""
        place = tuple(ANYWHERE if isinstance(name, int) else name for name in path)
        if ANYWHERE in place:
            self.note_run(kind, position, place)

    def note_run(self, kind: str, position: int, place: Path) -> None:
        """Note that the next delta is one of the texts at a place that a reader may put together."""
        self._runs.setdefault((kind, position, place), []).append(len(self.deltas))

    def name(self, kind: str, position: int, path: Path) -> None:
        """Take the name of a member that nobody knows; `path` is the member's."""
        name = clean(str(path[-1]))
        self.add(kind, position, name, (*path, NAME), quiet=is_plain(name))

    def file(self, position: int, value: str, path: Path, name: str, *, carries: bool = False) -> Steps:
        """Take a file: its text as a document; a picture or sound is not read, and recorded under `name`.

        Args:
            position: As for `add`.
            value: What may be a file: a data URL, base64, or its text.
            path: Where it stands.
            name: Of the member.
            carries: The member is known to hold files: what is no text is not read, whatever it is. Elsewhere bytes
                that nobody knows are read as they stand.
        """
        found = yield from reading_file(value)
        if found is not None:
            text, self.files[len(self.deltas)] = found
            self.add("document", position, text, path)
            return
        skipped = carries or is_media(value)
        if is_data_url(value):
            comma = value.find(",")
            said = value[len("data:") : comma if comma >= 0 else len(value)]
            if not is_plain(said.translate(_TYPE_MARKS)):
                self.add("document", position, said, path)  # a media type of many words; edited, nothing else is left
                self.unscanned[name] = None
                return
            encoded = True
        else:
            encoded = yield from looks_encoded(value)
        if encoded and skipped:
            self.unscanned[name] = None
        if not (encoded and skipped) or (len(value) <= _MAX_PLAIN_ID and not is_data_url(value)):
            self.add("document", position, value, path, quiet=encoded)  # as it stands

    def names(
        self, where: str, found: Mapping[str, object], known: frozenset[str] | set[str]
    ) -> Generator[None, None, frozenset[str]]:
        """Report the members outside `known`, and return them.

        Raises:
            RequestInvalid: a member differs from a known one in case only; some servers would read it as that.
        """
        strange = set[str]()
        for name in found:
            if name in known:
                continue
            if self.spends(chars=len(name)):
                yield
            strange.add(name)
            if name.casefold() in known:
                raise RequestInvalid(f"`{where}{shown(name)}` must be written `{name.casefold()}`")
            self.unknown[f"{where}{shown(name)}"] = None
        return frozenset(strange)


def unit_of(kind: str, path: Path) -> Path:
    """Return the path of what a caller would take out as one: a message, a file in it, a document, a field."""
    match path:
        case ("messages" | "input", int(), "content" | "output", int(), *_) if kind == "document":
            return path[:4]
        case ("messages", int(), "content", int(), "content" | "tool_use_id", *_) if kind == "tool_result":
            return path[:4]  # one of several in a message
        case ("checkstream", "documents", int(), *_):
            return path[:3]
        case (_, int(), *_):
            return path[:2]
        case _:
            return path[:1]
