"""Gives the values of one prompt that rules want pseudonymised what stands for them.

It is done when all of the prompt has been decided, in the order of its texts: the numbers depend on nothing but the
prompt, and none is taken that stands in it already.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from heapq import merge
from typing import NamedTuple

import msgspec

from checkstream.core.channel.json_leaves import outside_json_string
from checkstream.core.channel.replacements import Alias, Replacement
from checkstream.core.commands import KeepNames, RecallNames
from checkstream.core.events import NamesKnown
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.ingress.joined import EDITS_WORK
from checkstream.core.exchange.json_texts import whether_json
from checkstream.core.exchange.meter import Steps
from checkstream.core.exchange.plan import Plan
from checkstream.core.match.language import language_of
from checkstream.core.match.placeholders import Placeholders
from checkstream.core.match.surrogates import surrogate_key
from checkstream.core.policy.spares import keys_of
from checkstream.core.pseudonyms.quoting import PLAIN, Quoting
from checkstream.core.pseudonyms.spelling import says, written_as
from checkstream.core.pseudonyms.surrogates import surrogate
from checkstream.core.terms import Delta
from checkstream.core.wire.requests.prompt import is_plain
from checkstream.core.wire.surface import Request

_NAME_WORK = 30
"""Of one value (see `match.work`)."""
_NAMES_A_STEP, _EDITS_A_STEP = 16, 256
_KEPT_WORK = 400
"""Of as many values as are read of what is kept, or written, in one step."""
_SURROGATE_WORK = 150
"""Of making a surrogate, besides."""
_CHARS_A_STEP = 2048
_READ_WORK = 200
"""Of a step of reading what values are written in."""
_VALUE = "<"
"""How what stands for a value begins: what it is written in must follow from the text that the model gets."""
_LABEL_WORK = 60
"""Of a placeholder that stands in the prompt."""


_SALT_CHARS = 4096
_SEED_DIGITS = 15
_LANGUAGE_CHARS = 256
_MOST_TRIES = 8
"""How often names are given anew because other requests of the conversation have kept some meanwhile."""


class Naming:
    """Puts placeholders into the edits of one request."""

    def __init__(self, checking: Checking, plan: Plan, *, says_again: bool) -> None:
        """Begin with no names.

        Args:
            checking: Counts the work and keeps the names.
            plan: What the route asks for.
            says_again: No model speaks in the answer, which says documents again: who has sent them reads them.
        """
        self._conversation = ""
        """Under which names are kept, the caller's name for it or the provider's; empty: they are of this request."""
        self._caller = ""
        """Who calls; empty: callers have no names."""
        self._is_named = False
        """It has a name that stays: what is given is kept under it before the prompt is sent."""
        self._says_again = says_again
        self._checking = checking
        self._register = checking.register
        self._meter = checking.meter
        self._keeps = plan.keeps_names and plan.program.placeholders is not None
        self._upstream = plan.upstream
        self._restores = plan.program.restores
        self._asked = False
        self._settled = False
        self._seen = 0
        self._is_known = False
        """Names of it were kept."""
        self._goes_on = False
        """The provider keeps what was said before, with placeholders of which nobody here knows what they stand for."""
        self._language: str | None = None
        """Of the first text in which something is named, as a BCP 47 primary tag."""
        self._salt = ""
        """Of the surrogates: what the request begins with, so that the next one of a conversation has the same."""
        self._tries = 0
        self._is_kept = False
        """They are kept for what goes on from the answer."""

    # --- what is kept of a conversation

    def begin(self, caller: str, request: Request, again: str) -> None:
        """Take whose conversation the request is part of, and which: what its caller says, or its provider.

        Args:
            caller: Who calls.
            request: What is asked.
            again: Id of an answer that is asked for again; empty: it is none.
        """
        self._caller, self._is_kept = caller, bool(again)
        own = request.extension.conversation if request.extension is not None else None
        self._is_named = bool(own or request.conversation)
        self._goes_on = bool(request.previous or request.conversation)
        if own:
            self._conversation = f"own:{own}"
        elif request.conversation:
            self._conversation = self._of_provider("conversation", request.conversation)
        elif request.previous or again:
            self._conversation = self._of_provider("answer", request.previous or again)

    def _of_provider(self, what: str, name: str) -> str:
        """Return the name of what a provider calls so: two of them may call different things alike."""
        return f"{what}:{len(self._upstream)}:{self._upstream}:{name}"

    @property
    def asks(self) -> bool:
        """It is not known yet which names the conversation has."""
        return self._keeps and bool(self._conversation) and not self._asked

    def recall(self) -> RecallNames:
        """Return what asks for them."""
        self._asked = True
        return RecallNames(self._conversation)

    def taking(self, event: NamesKnown) -> Generator[None, None, bool]:
        """Take, in steps, the names that are kept, in place of those given here; tell whether more may be given.

        Raises:
            NamesUnreadable: nobody here has kept them.
        """
        self._tries += 1
        self._seen = event.version
        self._is_known = event.state is not None
        yield from self._meter.stepping(self._register.beginning_with(event.state, self._restores), _KEPT_WORK)
        return self._tries <= _MOST_TRIES

    def keeping(self) -> Generator[None, None, KeepNames | None]:
        """Return, in steps, what keeps the names that have been given; None: nothing is to be kept."""
        if not self._asked or not self._is_named or self._settled or not self._register.changed:
            return None
        state = yield from self._meter.stepping(self._register.telling(), _KEPT_WORK)
        return KeepNames(self._conversation, state, self._seen)

    def keeping_as(self, answers: Sequence[str]) -> Generator[None, None, KeepNames | None]:
        """Return, in steps, what keeps the names for a request that goes on from the answer, by its first id.

        That it has none is kept, too: else one that goes on from it would read those of an earlier answer of that id.
        """
        if not answers or not self._keeps or self._is_kept:
            return None
        self._is_kept = True
        state = yield from self._meter.stepping(self._register.telling(), _KEPT_WORK)
        return KeepNames(self._of_provider("answer", answers[0]), state, 0, later=True)

    def settle(self) -> None:
        """Keep nothing any more: it is kept, or can't be."""
        self._settled = True

    # --- what stands for which value

    def steps(self, request: Request, edits: dict[int, list[Replacement]]) -> Steps:
        """Write into edits, by place, what stands for the texts that are to be named; those that overlap become one."""
        placeholders = self._checking.program.placeholders
        if placeholders is None:
            raise AssertionError("only rules that have placeholders ask for them")
        if not self._register.reserved:
            yield from self._reserve(request, placeholders)
        for place in sorted(edits):
            found = edits[place]
            if all(edit.alias is None for edit in found):
                continue
            delta = request.unit.deltas[place]
            if place in request.signed:
                found = [edit for edit in found if not self._stands_for_another(edit, delta.text)]
                if not found:
                    del edits[place]
                    continue
            is_call = delta.path[-1] == "arguments" and (
                yield from self._meter.stepping(whether_json(delta.text), _READ_WORK)
            )
            bare = place in request.quiet or _is_name(delta)
            edits[place] = named = []
            quoting, at = Quoting(), 0
            merged = yield from self._meter.stepping(_merging(found), EDITS_WORK)
            for count, edit in enumerate(merged, 1):
                yield from self._meter.stepping(_reading(quoting, delta.text[at : edit.start]), _READ_WORK)
                quoting.feed(_VALUE)
                at = edit.end
                stood = _stood(delta.text[edit.start : edit.end], quoting.last, is_call=is_call)
                named.append(self._named(edit, stood, delta, bare=bare))
                self._meter.spend(_NAME_WORK)
                if count % _NAMES_A_STEP == 0:
                    yield
            yield

    def _stands_for_another(self, edit: Replacement, text: str) -> bool:
        """Tell whether what is to be named is a surrogate itself: the model has said it, and signed that it has."""
        return edit.alias is not None and self._register.is_given(surrogate_key(text[edit.start : edit.end]))

    def _reserve(self, request: Request, placeholders: Placeholders) -> Steps:
        """Leave out the numbers that the prompt itself uses, or the model's name: answers say that again.

        What the model has signed comes back as it got it, with the placeholders of an earlier request.
        """
        self._register.reserved = True
        self._salt = self._checking.digest(request.unit.deltas[0].text[:_SALT_CHARS])
        said = (delta.text for place, delta in enumerate(request.unit.deltas) if place not in request.signed)
        for text in (request.model, *said):
            search = placeholders.search()
            spans = yield from self._meter.feeding(search, text)
            for span in (*spans, *search.end()):
                used = placeholders.read(text[span.start : span.end])
                if used is not None:
                    self._register.reserve(used)
                self._meter.spend(_LABEL_WORK)
                yield
            self._meter.spend(search.take_work())
            yield

    def _named(self, edit: Replacement, said: _Stood, delta: Delta, *, bare: bool) -> Replacement:
        """Return an edit with what stands for a value; where no number is left, with the plain label."""
        alias, value = edit.alias, said.value
        if alias is None:
            return edit
        kind, key = alias.signal.kind_of_placeholder, _key(alias, value)

        def made() -> str | None:
            self._meter.spend(_SURROGATE_WORK)
            if self._language is None:  # of all the request: to tell it takes long
                self._language = language_of(delta.text[:_LANGUAGE_CHARS])
            seed = int(self._checking.digest(f"surrogate:{self._salt}:{kind}:{key}")[:_SEED_DIGITS], 16)
            return surrogate(kind, value, self._language, seed, self._register.is_taken)

        stood = "user" if self._says_again else delta.channel.kind
        given = self._register.give(
            kind,
            key,
            value,
            stood=stood,
            comes_back=stood in alias.action.restore,
            make=made if alias.action.style == "surrogate" and (self._is_known or not self._goes_on) else None,
            seed=self._number_seed(kind, key) if self._goes_on else None,
            spelled=said.spelled,
            way=said.way,
        )
        if given is None:
            self._checking.degrade("values_not_remembered")
            return edit
        text = given.label.bare if bare and not given.surrogate else given.written
        return msgspec.structs.replace(edit, text=text)

    def _number_seed(self, kind: str, key: str) -> int:
        """Return what a value's number follows from: `<EMAIL_1>` of an earlier request must be nobody else in this."""
        self._meter.spend(_NAME_WORK)
        return int(self._checking.digest(f"number:{len(self._caller)}:{self._caller}:{kind}:{key}")[:_SEED_DIGITS], 16)


class _Stood(NamedTuple):
    """A value, and how it stood in the prompt."""

    value: str
    spelled: str
    """Empty: as such a value is written in such a place."""
    way: int


def _stood(text: str, way: int, *, is_call: bool) -> _Stood:
    """Return what a piece of a prompt says that is written in some way; arguments of calls are edited as JSON."""
    if is_call:
        text, way = outside_json_string(text), max(way - 1, PLAIN) if way > PLAIN else way
    value = says(text, way)
    return _Stood(value, "" if written_as(value, "", way) == text else text, way)


def _reading(quoting: Quoting, text: str) -> Generator[None, None, None]:
    """Read on, in steps."""
    for at in range(0, len(text), _CHARS_A_STEP):
        quoting.feed(text[at : at + _CHARS_A_STEP])
        yield


def _is_name(delta: Delta) -> bool:
    """Tell whether a text is the name of a tool or of somebody, which servers take no brackets in."""
    return delta.path[-1] == "name" and is_plain(delta.text)


def _key(alias: Alias, value: str) -> str:
    signal = alias.signal
    return keys_of(signal.name, value, by_model=signal.model is not None).known[0] or value


def _merging(edits: Sequence[Replacement]) -> Generator[None, None, list[Replacement]]:
    """Return, in steps, edits of which those that overlap are one; what is redacted there has no name."""
    runs = list[list[Replacement]]()
    for at in range(0, len(edits), _EDITS_A_STEP):
        runs.append(sorted(edits[at : at + _EDITS_A_STEP], key=_order))
        yield
    merged: list[Replacement] = []
    for count, edit in enumerate(merge(*runs, key=_order), 1):
        if count % _EDITS_A_STEP == 0:
            yield
        if not merged or edit.start >= merged[-1].end:
            merged.append(edit)
            continue
        last = merged[-1]
        chosen = edit if last.alias is not None and edit.alias is None else last
        merged[-1] = msgspec.structs.replace(chosen, start=last.start, end=max(last.end, edit.end))
    return merged


def _order(edit: Replacement) -> tuple[int, int]:
    return edit.start, -edit.end
