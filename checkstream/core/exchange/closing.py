"""Texts for the end of an answer: disclaimers and the names of sources, set off by a blank line."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from checkstream.core.channel.actions import Ask
from checkstream.core.channel.page import Page
from checkstream.core.policy.action import AttributeSources, InjectDisclaimer, RequireDisclaimer
from checkstream.core.wire.surface import Document


class Closing(msgspec.Struct, frozen=True):
    """A text for the end of the answer, with what sets it off."""

    text: str
    unless_said: bool = False
    """Only where the answer doesn't have it already, whatever its letter case."""


def closing_of(ask: Ask, page: Page, documents: Sequence[Document]) -> Closing | None:
    """Return the text that an action asks for at the end of the answer, filled from `page`; None when there is none."""
    match ask.action:
        case InjectDisclaimer(text=text, position="end"):
            return Closing(f"\n\n{page.fill(text, ask.firing)}")
        case RequireDisclaimer(text=text):
            return required(page.fill(text, ask.firing))
        case AttributeSources(text=text, max_sources=most) if documents:
            sources = ", ".join(_name(document, number) for number, document in enumerate(documents[:most], 1))
            return Closing("\n\n" + page.written(text, ask.rule, sources=sources))
        case _:
            return None


def required(text: str) -> Closing:
    """Return a text that the answer must have."""
    return Closing(f"\n\n{text}", unless_said=True)


def _name(document: Document, number: int) -> str:
    """Return how an answer names a document that it rests on."""
    name = document.title or document.id or document.url or f"document {number}"
    return f"{name} ({document.url})" if document.url and document.url != name else name


class Said:
    """Reads an answer along and tells which of some texts stand in it."""

    __slots__ = ("_found", "_tail", "_wanted")

    def __init__(self) -> None:
        """Begin before the answer, looking for nothing."""
        self._tail = ""
        self._wanted: dict[str, None] = {}
        self._found: set[str] = set()

    def look_for(self, closing: Closing) -> None:
        """Look for a closing from here on."""
        self._wanted.setdefault(_folded(closing))

    def feed(self, text: str) -> None:
        """Take the next piece of the answer, as the caller gets it."""
        text = self._tail + text.casefold()  # `lower` looks at the characters beside, and the cut is anywhere
        self._found.update(wanted for wanted in self._wanted if wanted in text)
        longest = max(map(len, self._wanted), default=1)
        self._tail = text[-longest + 1 :] if longest > 1 else ""

    def has(self, closing: Closing) -> bool:
        """Tell whether the answer has a closing that counts only where it hasn't."""
        return closing.unless_said and _folded(closing) in self._found


def _folded(closing: Closing) -> str:
    return closing.text.strip().casefold()
