"""What stands for which value in one exchange.

Equal values of one kind have one placeholder, whatever message they stand in and however they are spelled
(`policy.spares.keys_of` says what is equal). A number that the prompt itself uses is given to nobody, so that what the
caller has written as `Person 1` is never taken for somebody's name.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import msgspec
from msgspec import Meta

from checkstream.core.match.placeholders import MAX_NUMBER, Label
from checkstream.errors import NamesUnreadable

MOST_VALUES = 20_000
"""Of one register; what is found beyond them has no pseudonym."""


class Given(msgspec.Struct):
    """One value and what stands for it."""

    label: Label
    value: str
    """As it stood in the prompt first."""
    comes_back: bool
    """The caller may see it: it stood in a message whose values come back."""


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """The same, as it is kept for a conversation."""

    kind: str
    number: Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
    key: str
    value: str
    comes_back: bool


_KEPT = msgspec.json.Decoder(list[_Kept])


class Register:
    """The pseudonyms of one exchange."""

    __slots__ = ("_by_key", "_by_label", "_next", "_reserved", "_used", "changed", "reserved", "restored")

    def __init__(self) -> None:
        """Start with none."""
        self._by_key: dict[tuple[str, str], Given] = {}
        self._by_label: dict[Label, Given] = {}
        self._reserved: set[Label] = set()
        self._next: dict[str, int] = {}
        self._used: set[Label] = set()
        self.reserved = False
        """What the prompt itself uses is known."""
        self.changed = False
        """Something has been given, or may be seen, that was not known before."""
        self.restored = 0
        """How often a value has been put back."""

    def __len__(self) -> int:
        """Return how many values have a pseudonym."""
        return len(self._by_label)

    def reserve(self, label: Label) -> None:
        """Give this placeholder to no value."""
        self._reserved.add(label)

    def give(self, kind: str, key: str, value: str, *, comes_back: bool) -> Given | None:
        """Return what stands for a value, the same as for all that are equal to it.

        Args:
            kind: Of the placeholder.
            key: The same for values that are equal.
            value: As it stands in the prompt.
            comes_back: The caller may see it.

        Returns:
            None: no number is left for one more value of the kind.
        """
        given = self._by_key.get((kind, key))
        if given is None:
            if len(self._by_label) >= MOST_VALUES:
                return None
            number = self._next.get(kind, 1)
            while (label := Label(kind, number)) in self._reserved or label in self._by_label:
                number += 1
            if number > MAX_NUMBER:
                return None
            self._next[kind] = number + 1
            given = self._by_key[kind, key] = self._by_label[label] = Given(label, value, comes_back)
            self.changed = True
        self._used.add(given.label)
        if comes_back and not given.comes_back:
            given.comes_back = self.changed = True
        return given

    def begin_with(self, state: bytes | None) -> None:
        """Know what an earlier request has given, and nothing else; None: nothing was given.

        Raises:
            NamesUnreadable: it is no state.
        """
        try:
            kept = [] if state is None else _KEPT.decode(state)
        except msgspec.DecodeError as error:
            raise NamesUnreadable("what stands for values in the conversation can't be read") from error
        self._by_key.clear()
        self._by_label.clear()
        self._next.clear()
        self._used.clear()
        for each in kept:
            given = Given(Label(each.kind, each.number), each.value, each.comes_back)
            self._by_key[each.kind, each.key] = self._by_label[given.label] = given
        self.changed = False

    def state(self) -> bytes:
        """Return all that has been given, for a later request of the conversation."""
        return msgspec.json.encode(
            [
                _Kept(kind, given.label.number, key, given.value, given.comes_back)
                for (kind, key), given in self._by_key.items()
            ]
        )

    def value(self, label: Label) -> str | None:
        """Return the value that comes back for a placeholder; None: it stands for none, or for one that doesn't."""
        given = self._by_label.get(label)
        return given.value if given is not None and given.comes_back else None

    def is_given(self, label: Label) -> bool:
        """Tell whether a placeholder stands for something."""
        return label in self._by_label

    @property
    def counts(self) -> dict[str, int]:
        """Kind -> how many values of it have got a pseudonym in this exchange."""
        return dict(sorted(Counter(label.kind for label in self._used).items()))
