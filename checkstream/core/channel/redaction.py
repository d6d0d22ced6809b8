"""What stands in place of edited text: labels, masks and hashes of redactions, and what editors make of a span.

Edits that overlap are one edit, of all they cover. A redaction is stricter than a rewrite: an editor sees only
what the redactions of its region have left, and its output counts only where it has changed something and no rule
objects to it; else what it should have rewritten is redacted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from checkstream.core.channel.editors import editor_of
from checkstream.core.channel.replacements import Alias, Replacement
from checkstream.core.policy.action import Pseudonymise, Redact, RewriteSpan
from checkstream.core.terms import Span

_HASH_DIGITS = 8


class Original(Protocol):
    """The text that is edited, as it says: in a JSON string, without its escapes."""

    def text(self, span: Span) -> str:
        """Return the text of a span."""

    def edits(self, span: Span) -> Sequence[Replacement]:
        """Return the edits that earlier decisions have made in a span or over its bounds, in order."""

    def digest(self, text: str) -> str:
        """Return the keyed digest of a text, hex."""

    def restored(self, text: str) -> str:
        """Return a text with the caller's own values in place of the pseudonyms that it has."""

    def objectionable(self, text: str) -> bool:
        """Tell whether a rule that holds text here would fire on this text, if it were written."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """An edit that one action of a rule asks for."""

    span: Span
    """What is edited: what was found, widened to the action's scope."""
    found: Span
    action: Redact | Pseudonymise | RewriteSpan
    label: str
    """How the detector calls what it found, e.g. `[EMAIL]`."""
    text: str = ""
    """What a redaction of the style `text` writes."""
    alias: Alias | None = None
    """What a pseudonym is asked for."""


class Region(msgspec.Struct):
    """Edits that overlap, by their start, the longest first."""

    span: Span
    wanted: list[Wanted]
    rewritten: bool
    """One of them is a rewrite."""


def regions(wanted: Iterable[Wanted], original: Original) -> list[Region]:
    """Return what is edited as one, in the order of the text.

    A region with a rewrite takes in all of the edits that have been made there before: they are rewritten with it.
    """
    joined: list[Region] = []
    for each in sorted(wanted, key=lambda each: (each.span.start, -each.span.end)):
        if each.found.start == each.found.end:
            continue  # nothing is left of it to edit
        region = Region(each.span, [each], isinstance(each.action, RewriteSpan))
        while True:
            if region.rewritten:
                region.span = _with(region.span, original.edits(region.span))
            if not joined or region.span.start >= joined[-1].span.end:
                break
            last = joined.pop()
            last.wanted += region.wanted
            region = Region(_union(last.span, region.span), last.wanted, last.rewritten or region.rewritten)
        joined.append(region)
    return joined


def written(region: Region, original: Original) -> list[Replacement]:
    """Return what is written in a region."""
    redactions = [each for each in region.wanted if isinstance(each.action, Redact | Pseudonymise)]
    holes = _redact(redactions, original)
    rewrites = [
        each
        for each in region.wanted
        if isinstance(each.action, RewriteSpan) and not any(_covers(hole, each.found) for hole in holes)
    ]
    if not rewrites:
        return holes
    text = _rewrite(region.span, rewrites, holes, original)
    if text is not None:
        said = original.restored(text)
        hidden = text if said != text else None
        return [Replacement(region.span.start, region.span.end, said, rewritten=True, hidden=hidden)]
    refused = [Wanted(span=each.found, found=each.found, action=Redact(), label=each.label) for each in rewrites]
    return _redact([*redactions, *refused], original)


def _redact(wanted: Iterable[Wanted], original: Original) -> list[Replacement]:
    """Join redactions that overlap; the style of the joined one is that of the longest, the first if equal.

    What is redacted doesn't come back: a pseudonym gives way.
    """
    merged: list[tuple[Span, Wanted]] = []
    for each in sorted(wanted, key=lambda each: (each.span.start, -each.span.end)):
        if merged and each.span.start < merged[-1][0].end:
            whole, longest = merged[-1]
            merged[-1] = (_union(whole, each.span), each if _weight(each) > _weight(longest) else longest)
        else:
            merged.append((each.span, each))
    return [
        Replacement(
            whole.start,
            whole.end,
            _redacted(whole, each, original),
            bare=_bare(each.action),
            alias=each.alias,
        )
        for whole, each in merged
    ]


def _bare(action: Redact | Pseudonymise | RewriteSpan) -> str:
    """Return what a number becomes in JSON, empty where it is to be a string."""
    match action.numbers if isinstance(action, Redact) else "label":
        case "label":
            return ""
        case "json_null":
            return "null"
        case number:
            return str(number)


def _weight(wanted: Wanted) -> tuple[bool, int]:
    return isinstance(wanted.action, Redact), wanted.span.end - wanted.span.start


def _redacted(whole: Span, wanted: Wanted, original: Original) -> str:
    style = wanted.action.style if isinstance(wanted.action, Redact) else "label"
    match style:
        case "label":
            return wanted.label
        case "text":
            return wanted.text
        case "mask":
            return "".join(char if char.isspace() else "*" for char in original.text(whole))
        case "hash":
            digest = original.digest(original.text(wanted.found))
            return f"{wanted.label.removesuffix(']')}:{digest[:_HASH_DIGITS]}]"


def _rewrite(span: Span, rewrites: Iterable[Wanted], holes: Sequence[Replacement], original: Original) -> str | None:
    """Return what the editors make of a span of which the holes are redacted; None when that won't do."""
    text = _filled_in(span, holes, original)
    for action in dict.fromkeys(each.action for each in rewrites):
        before = text
        text = editor_of(action).edit(text) if isinstance(action, RewriteSpan) else text
        if text == before:
            return None
    return None if original.objectionable(text) else text


def _filled_in(span: Span, holes: Sequence[Replacement], original: Original) -> str:
    """Return the text of a span with its redactions, and the edits that have been made there before."""
    earlier = [edit for edit in original.edits(span) if edit.start < edit.end]
    parts: list[str] = []
    at = span.start
    for edit in sorted((*holes, *earlier), key=lambda edit: (edit.start, -edit.end)):
        if edit.end <= at:
            continue
        if edit.start >= at:
            said = edit.text if edit.hidden is None else edit.hidden
            parts += (original.text(Span(at, edit.start)), said)
        at = edit.end
    parts.append(original.text(Span(at, span.end)))
    return "".join(parts)


def _with(span: Span, edits: Iterable[Replacement]) -> Span:
    for edit in edits:
        span = _union(span, Span(edit.start, edit.end))
    return span


def _union(one: Span, other: Span) -> Span:
    return Span(min(one.start, other.start), max(one.end, other.end))


def _covers(edit: Replacement, span: Span) -> bool:
    return edit.start <= span.start and span.end <= edit.end
