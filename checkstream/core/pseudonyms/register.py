"""What stands for which value in one exchange.

Equal values of one kind have one placeholder, whatever message they stand in and however they are spelled
(`policy.spares.keys_of` says what is equal). A number that the prompt itself uses is given to nobody, so that what the
caller has written as `Person 1` is never taken for somebody's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from itertools import islice
from typing import Annotated

import msgspec
from msgspec import Meta

from checkstream.core.match.placeholders import MAX_NUMBER, Label
from checkstream.core.match.surrogates import surrogate_key
from checkstream.core.pseudonyms.quoting import PLAIN
from checkstream.core.pseudonyms.spelling import is_plain, written_as
from checkstream.core.steps import Walk
from checkstream.errors import NamesUnreadable

MOST_VALUES = 20_000
"""Of one register; what is found beyond them has no pseudonym."""
MOST_CHARS = 16_777_216
"""That are put back into one answer."""
_VALUES_A_STEP = 256
_NUMBERS_TRIED = 64
"""In their order; then the next is one behind all that are taken."""
_FIRST_OF_SEEDS = 100_000
_SEEDS = MAX_NUMBER - _FIRST_OF_SEEDS - MOST_VALUES
"""Of the numbers that follow from a value; behind them there is room for those that are taken."""


class Given(msgspec.Struct):
    """One value and what stands for it."""

    label: Label
    value: str
    """As it says where it stood in the prompt first."""
    comes_back: bool
    """The caller may see it: it stood in a message whose values come back."""
    stood: tuple[str, ...] = ()
    """Kinds of the messages that it has stood in."""
    surrogate: str = ""
    """What stands for it in place of the label; empty: the label."""
    spelled: str = ""
    """As it stood there, where it would be written otherwise in such a place; empty: it would not ..."""
    way: int = PLAIN
    """... and what that was written in (see `quoting`)."""

    @property
    def written(self) -> str:
        """What the model gets."""
        return self.surrogate or str(self.label)


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """The same, as it is kept for a conversation: whether it comes back is for the policy of who asks for it."""

    kind: str
    number: Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
    key: str
    value: str
    stood: tuple[str, ...]
    surrogate: str = ""
    spelled: str = ""
    way: int = PLAIN


_KEPT = msgspec.json.Decoder(list[_Kept])


class Register:
    """The pseudonyms of one exchange."""

    __slots__ = (
        "_by_key",
        "_by_label",
        "_by_surrogate",
        "_chars",
        "_counts",
        "_last",
        "_next",
        "_reserved",
        "_used",
        "changed",
        "not_given",
        "reserved",
        "restored",
    )

    def __init__(self) -> None:
        """Start with none."""
        self._by_key: dict[tuple[str, str], Given] = {}
        self._by_label: dict[Label, Given] = {}
        self._by_surrogate: dict[str, tuple[Given, str]] = {}
        """Key of a surrogate, or of a word of a name -> whose, and what comes back for it."""
        self._reserved: set[Label | str] = set()
        self._next: dict[str, int] = {}
        self._last: dict[str, int] = {}
        """Of each kind the greatest number that is taken, of those that are counted up to."""
        self._used: set[Label] = set()
        self._counts = Counter[str]()
        self.reserved = False
        """What the prompt itself uses is known."""
        self.changed = False
        """Something has been given, or stands somewhere, that was not known before."""
        self.restored = 0
        """How often a value has been put back."""
        self._chars = 0
        """Of all values that were put back."""
        self.not_given = 0
        """How often the model has said a placeholder that stands for nothing."""

    def __len__(self) -> int:
        """Return how many values have a pseudonym."""
        return len(self._by_label)

    def reserve(self, used: Label | str) -> None:
        """Give this placeholder, or the surrogate of this key, to no value."""
        self._reserved.add(used)
        if isinstance(used, Label):
            self._note_taken(used)
        if isinstance(used, str):
            self._reserved.update(used.split())

    def is_taken(self, key: str) -> bool:
        """Tell whether the surrogate of a key, or a word of one, stands for something, or in the prompt."""
        return key in self._by_surrogate or key in self._reserved

    def give(
        self,
        kind: str,
        key: str,
        value: str,
        *,
        stood: str,
        comes_back: bool,
        make: Callable[[], str | None] | None = None,
        seed: int | None = None,
        spelled: str = "",
        way: int = PLAIN,
    ) -> Given | None:
        """Return what stands for a value, the same as for all that are equal to it.

        Args:
            kind: Of the placeholder.
            key: The same for values that are equal.
            value: As it says in the prompt.
            stood: Kind of the message that it stands in.
            comes_back: The caller may see it.
            make: Makes a surrogate, None: a label stands for it.
            seed: Of the value: the number follows from it, and is none that is counted up to. None: numbers are
                counted.
            spelled: As it stands there, where that differs from what `written_as` makes of it.
            way: What it is written in there.

        Returns:
            None: no number is left for one more value of the kind.
        """
        given = self._by_key.get((kind, key))
        if given is None:
            if len(self._by_label) >= MOST_VALUES:
                return None
            label = self._free(kind, self._next.get(kind, 1) if seed is None else _FIRST_OF_SEEDS + seed % _SEEDS)
            if label.number > MAX_NUMBER:
                return None
            if seed is None:
                self._next[kind] = label.number + 1
            made = (make() if make is not None else None) or ""
            given = self._add(key, Given(label, value, comes_back, (stood,), made, spelled, way))
            self.changed = True
        if given.label not in self._used:
            self._used.add(given.label)
            self._counts[kind] += 1
        given.comes_back = given.comes_back or comes_back
        if stood not in given.stood:
            given.stood, self.changed = (*given.stood, stood), True
        return given

    def _free(self, kind: str, number: int) -> Label:
        """Return the first placeholder from a number on that is nobody's, or one behind all, where many are taken."""
        for _ in range(_NUMBERS_TRIED):
            if (label := Label(kind, number)) not in self._reserved and label not in self._by_label:
                return label
            number += 1
        number = max(number, self._last.get(kind, 0) + 1)
        while (label := Label(kind, number)) in self._reserved or label in self._by_label:
            number += 1
        return label

    def _note_taken(self, label: Label) -> None:
        if label.number < _FIRST_OF_SEEDS:
            self._last[label.kind] = max(self._last.get(label.kind, 0), label.number)

    def _add(self, key: str, given: Given) -> Given:
        self._note_taken(given.label)
        self._by_key[given.label.kind, key] = self._by_label[given.label] = given
        if given.surrogate:
            self._by_surrogate[surrogate_key(given.surrogate)] = given, given.value
            words, own = given.surrogate.split(), given.value.split()
            if (
                given.label.kind == "PERSON" and len(words) > 1 and len(own) > 1
            ):  # who has been named in full is called by one name or two of three, too
                self._by_surrogate[surrogate_key(words[0])] = given, own[0]
                self._by_surrogate[surrogate_key(words[-1])] = given, own[-1]
                for word in words[1:-1]:
                    self._by_surrogate.setdefault(surrogate_key(word), (given, " ".join(own[1:-1])))
        return given

    def beginning_with(self, state: bytes | None, restores: Mapping[str, frozenset[str]]) -> Walk:
        """Know, in steps, what an earlier request has given, and nothing else.

        Args:
            state: What it has told; None: nothing was given.
            restores: Kind of a placeholder -> kinds of the messages whose values come back for it now.

        Raises:
            NamesUnreadable: it is no state.
        """
        for known in (self._by_key, self._by_label, self._by_surrogate):
            while known:
                for _ in range(min(_VALUES_A_STEP, len(known))):
                    known.popitem()
                yield
        self._next.clear()
        self._used.clear()
        self._counts.clear()
        for line in (state or b"").splitlines():
            try:
                kept = _KEPT.decode(line)
            except msgspec.DecodeError as error:
                raise NamesUnreadable("what stands for values in the conversation can't be read") from error
            for each in kept:
                label = Label(each.kind, each.number)
                back = not restores.get(each.kind, frozenset()).isdisjoint(each.stood)
                given = Given(label, each.value, back, each.stood, each.surrogate, each.spelled, each.way)
                self._add(each.key, given)
            yield
        self.changed = False

    def telling(self) -> Generator[None, None, bytes]:
        """Return, in steps, all that has been given, for a later request of the conversation."""
        lines, items = list[bytes](), iter(self._by_key.items())
        while some := tuple(islice(items, _VALUES_A_STEP)):
            kept = [
                _Kept(kind, each.label.number, key, each.value, each.stood, each.surrogate, each.spelled, each.way)
                for (kind, key), each in some
            ]
            lines.append(msgspec.json.encode(kept))
            yield
        return b"\n".join(lines)

    def value(self, found: Label | str) -> str | None:
        """Return what comes back for a placeholder or the key of a surrogate; None: it stands for nothing that does."""
        if isinstance(found, str):
            given, value = self._by_surrogate.get(found, (None, ""))
        else:
            given = self._by_label.get(found)
            value = given.value if given is not None else ""
        return value if given is not None and given.comes_back else None

    def written(self, found: Label | str, placeholder: str, way: int) -> str | None:
        """Return what stands in place of a placeholder, as the model has written it in such a place; None: itself."""
        value = self.value(found)
        if value is None:
            return None
        given = self._by_surrogate[found][0] if isinstance(found, str) else self._by_label[found]
        if given.spelled and given.way == way and value == given.value and is_plain(placeholder):
            return given.spelled
        return written_as(value, placeholder, way)

    def has_room(self, chars: int) -> bool:
        """Tell whether so many characters more may be put back, and count them: what is short may stand for much."""
        self._chars += chars
        return self._chars <= MOST_CHARS

    def is_given(self, found: Label | str) -> bool:
        """Tell whether a placeholder, or the surrogate of a key, stands for something."""
        return found in (self._by_surrogate if isinstance(found, str) else self._by_label)

    @property
    def counts(self) -> dict[str, int]:
        """Kind -> how many values of it have got a pseudonym in this exchange."""
        return dict(sorted(self._counts.items()))
