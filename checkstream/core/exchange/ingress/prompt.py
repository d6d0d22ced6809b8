"""The prompt of one exchange: read, judged channel by channel, then forwarded or refused."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from checkstream.core.cel.values import from_json
from checkstream.core.channel.actions import Firing, Outcome, Refusing, Removal, resolve
from checkstream.core.channel.brief import Manner
from checkstream.core.channel.judge import Judge
from checkstream.core.channel.page import Page
from checkstream.core.channel.replacements import Replacement
from checkstream.core.commands import Remember
from checkstream.core.events import Recalled, RequestReceived
from checkstream.core.exchange.checking import Checking, some_together
from checkstream.core.exchange.heard import Spoken
from checkstream.core.exchange.ingress.dialogue import circumstances_of, dialogue_of
from checkstream.core.exchange.ingress.joined import EDITS_WORK, Joined, rewriting
from checkstream.core.exchange.ingress.joining import Joining
from checkstream.core.exchange.ingress.known import told_of
from checkstream.core.exchange.ingress.naming import Naming
from checkstream.core.exchange.ingress.outside import Outside
from checkstream.core.exchange.ingress.recollection import Recollection
from checkstream.core.exchange.ingress.refusal import Objections, Refusal, refused
from checkstream.core.exchange.ingress.removed import Removed, is_frame
from checkstream.core.exchange.ingress.shaping import Wishes
from checkstream.core.exchange.meter import CHANNEL_WORK, Steps
from checkstream.core.exchange.plan import Plan
from checkstream.core.exchange.quiet import found_by
from checkstream.core.match.decoded import decoded
from checkstream.core.match.hidden import made_legible
from checkstream.core.match.work import Work
from checkstream.core.policy.action import AdaptTone, Reject, SafeMode
from checkstream.core.policy.capabilities import PROMPT_ONLY, RESPONSES, STORED
from checkstream.core.policy.vm import Machine, counts_undecided, exchange_facts
from checkstream.core.terms import Channel, Dialogue, Document, Facts, Span, Stage
from checkstream.core.wire.context import named_in, read_context, with_known
from checkstream.core.wire.json_text.strict import place_of
from checkstream.core.wire.requests.extension import DOCUMENTS
from checkstream.core.wire.requests.prompt import unit_of
from checkstream.core.wire.surface import Request, Requests, Shaping
from checkstream.errors import RequestInvalid, WireError

_MANY_TEXTS = 100
"""Above so many, classifiers are asked about several short ones at a time: a question for each costs more than to
read it."""

_KEYED_WORK = 300
"""Of a step of telling texts that count from those that have counted."""
_NOT_KNOWN = Refusal(503, "overloaded", "what this conversation has come to can't be read; try again")
_RECENT = 5, 9
"""Indexes of the channels that the user's last texts are read as one in; `joining` has those beside them."""
READ_WORK = 700
"""Of one step of reading a body."""
_PLACED_WORK = 1
"""Of looking where one text belongs."""
_EDIT_WORK = 10
"""Of an edit of one text."""
_ASKED_WORK = 10
"""Of asking a question."""
_LEGIBLE_WORK = 400
"""Of looking at a piece of a text for what it spells out of sight."""
_NOTED_WORK, _HASHED_CHARS = 2, 1000
"""Of remembering a text, and how much of it is as much work."""
_SCORES_WORK = 600
"""Of a step of adding scores up."""
_RULING_WORK = 15
"""Of looking what can be decided about one text."""
_RULINGS_A_STEP = 32
"""Rulings on one text that are noted at a time ..."""
_RULINGS_WORK = 200
"""... and what that costs."""


class Prompt:
    """A request on its way to the upstream."""

    _of_tools: ClassVar[bool] = False
    """It is a message to or from a server of tools."""

    def __init__(self, surface: Requests, plan: Plan, checking: Checking) -> None:
        """Start before the request.

        Args:
            surface: The API that the caller speaks.
            plan: What the route asks for.
            checking: Makes judges and asks classifiers.
        """
        self.request: Request | None = None
        self.chars = 0
        """Of all texts that are judged; ids, names and numbers don't count."""
        self.wishes = Wishes()
        """What the prompt's rules ask of the request and of every answer."""
        self.outside = Outside(checking)
        """What it says outside its body."""
        self.conversation = Recollection(plan.program, checking.digest, keeps_texts=plan.recalls_texts)
        """What is known of the conversation that the request is part of."""
        self.naming = Naming(checking, plan, says_again=surface.name in PROMPT_ONLY)
        """What stands for values that the model is not to know."""
        self._surface = surface
        self._plan = plan
        self._checking = checking
        self._event = RequestReceived(b"")
        self._context: object = None
        self._settled = False
        self._decided: set[int] = set()
        """Rules that ask for all of the prompt and have fired."""
        self._recent: tuple[tuple[frozenset[str], Judge], ...] | None = None
        """Have what the user said last, read as one text, and what asks for that; None: nobody has looked."""
        self._joined: list[Joined] = []
        self._objections = Objections()
        self._places: dict[Channel, Joined] = {}
        self._removed = self._nothing_removed()
        self._forwarded: dict[int, str] = {}
        """Place of a text that was changed -> what was forwarded in its place."""

    @property
    def documents(self) -> tuple[Document, ...]:
        """What the answer is to be true to."""
        extension = self.request.extension if self.request is not None else None
        given = extension.documents if extension is not None else ()
        return tuple(document for at, document in enumerate(given) if self._removed.rule_at((*DOCUMENTS, at)) is None)

    @property
    def structured(self) -> bool:
        """The answer has a fixed form, which text added to it would break."""
        return self.wishes.fixes_form or (self.request is not None and self.request.structured)

    def take(self, event: RequestReceived) -> Generator[None, None, Refusal | None]:
        """Read the request; return why it is refused, if that is clear already."""
        try:
            request = yield from self._reading(event)
            extension = named_in(event.conversation, request.extension)
            request = msgspec.structs.replace(request, extension=extension)
            context = with_known(read_context(event.context, request.extension), event.known)
        except RequestInvalid as error:
            return Refusal(400, "invalid_request_error", str(error))
        self.request = request = self.outside.taken_into(request, event.envelope)
        self._event, self._context, self._objections.confirmed = event, context, event.confirmed
        fault = yield from refused(request, self._plan, self._checking, event.envelope.strange)
        if fault is None and self._plan.recalls and self._surface.name not in STORED:
            if self._surface.name == RESPONSES:
                self.conversation.mentions.begin(event.caller or "")
            finding = self.conversation.finding(event.caller, request, self._session(event))
            yield from self._checking.meter.stepping(finding, READ_WORK)
        again = self.outside.said("path", "id") if self._surface.name in STORED else ""
        if again and self._plan.recalls:
            self.conversation.ask_again(event.caller, again)
        self.naming.begin(event.caller or "", request, again)
        return fault

    def _session(self, event: RequestReceived) -> str:
        """Return the name of what the request is part of, where its transport has one; empty: none."""
        del event
        return ""

    def recalled(self, event: Recalled) -> Refusal | None:
        """Take what is known of the conversation; return why the request is refused without it."""
        if event.failed:
            if self._plan.fail_mode == "closed" and self.conversation.loses:
                return _NOT_KNOWN
            self._checking.degrade("conversation_not_known")
        self.conversation.recall(event.conversation)
        if self._surface.name in STORED and self.request is not None:
            self.request = msgspec.structs.replace(self.request, sent=self.conversation.sent())
        return None

    def looked_again(self, event: Recalled) -> Refusal | None:
        """Take what others of the conversation have come to meanwhile; return why the request is refused without it."""
        if event.failed:
            if self._plan.fail_mode == "closed" and self.conversation.loses:
                return _NOT_KNOWN
            self._checking.degrade("conversation_not_known")
        elif self.conversation.look_again(event.conversation):
            self._settled, self._recent = False, None
            self._checking.exchange.known.clear()  # what conditions came to is of what was known then
        return None

    def begin(self) -> Steps:
        """Begin to judge the request that has been read, and of which is known what was before it."""
        request = self.request
        if request is None:
            raise AssertionError("what is judged has been read")
        yield from self._know(request, self._event, self._context)
        yield from self._join(request)
        yield from self._checking.meter.stepping(self.conversation.read(request, self._joined), _KEYED_WORK)
        self._judge_request()
        yield from self._judging()

    def _reading(self, event: RequestReceived) -> Generator[None, None, Request]:
        """Return, in steps, what the request says.

        Raises:
            RequestInvalid: it is not what the surface takes.
        """
        request = yield from self._checking.meter.stepping(self._surface.reading_request(event.body), READ_WORK)
        self._checking.keep_request(request)
        return request

    def _join(self, request: Request) -> Steps:
        """Put the texts together that are judged as one."""
        joining = Joining(request, self._checking, of_tools=self._of_tools)
        self._joined = yield from joining.steps()
        self._checking.left += (self._joined, self._places)
        for joined in self._joined:
            self._checking.left += joined.memory
            self._checking.meter.spend(_PLACED_WORK)
            yield
        self.chars = joining.chars

    def _judging(self) -> Steps:
        """Begin to judge the texts that were put together."""
        meter = self._checking.meter
        yield from self._ask()
        for joined in self._joined:
            self._places[joined.judge.channel] = joined
            checks = yield from meter.feeding(joined.judge, joined.text)
            self._checking.ask(joined.judge, [*checks, *joined.judge.holdback.end()])
            meter.spend(joined.judge.take_work() + CHANNEL_WORK)
            yield
        for joined in self._joined:
            yield from self.ruling(joined.judge)
            meter.spend(_RULING_WORK)
            yield

    def _ask(self) -> Steps:
        """Ask classifiers about all texts, so that they read while patterns are matched: they see a text as it came."""
        checking = self._checking
        checking.together = len(self._joined) > _MANY_TEXTS
        for joined in self._joined:
            for check in joined.judge.holdback.ahead(joined.text):
                check.said = yield from checking.meter.stepping(made_legible(joined.text), _LEGIBLE_WORK)
                if joined.reads:
                    checking.ask(joined.judge, [check])
            checking.meter.spend(1)
            yield
        checking.ask_gathered()
        checking.together = False  # what is asked about later would wait for others that don't come
        for joined in self._joined:
            yield from self._ask_besides(joined)

    def _ask_besides(self, joined: Joined) -> Steps:
        """Ask classifiers about what stands encoded in a text."""
        checking = self._checking
        for check in joined.judge.holdback.checks.due:
            if joined.reads:
                work = Work()
                joined.besides = yield from checking.meter.counting(decoded(joined.text, work), work)
            for text in some_together(joined.besides):
                checking.ask_besides(joined.judge, check, text)
                checking.meter.spend(_ASKED_WORK)
                yield
        checking.meter.spend(1)
        yield

    def _know(self, request: Request, event: RequestReceived, context: object) -> Steps:
        """Settle what policies know of the exchange, and which rules take part in it."""
        said: dict[str, Any] = {
            "route": self._plan.route,
            "model": request.model,
            "surface": self._surface.name,
            "stream": request.streaming,
            "tools": request.tools,
            "temperature": request.temperature,
            "caller": event.caller,
            "user": request.user,
            "metadata": dict(request.metadata),
            "earlier_risk": event.earlier_risk,
            "conversation": request.conversation or (request.extension and request.extension.conversation),
            "previous_response_id": request.previous,
            **self._plan.said,
        }
        person = context.get("user") if isinstance(context, dict) else None
        user = said["user"] or (person.get("id") if isinstance(person, dict) else None)
        facts, undecided = exchange_facts(
            self._plan.program,
            from_json(context),
            {name: value for name, value in said.items() if value is not None},
            who=(event.caller or "", str(user or "")),
            fail_mode=self._plan.fail_mode,
        )
        checking = self._checking
        told = yield from told_of(
            self._plan.program,
            request,
            checking.meter,
            checking.degrade,
            checking.quiet,
            mentions=self.conversation.mentions,
        )
        checking.exchange = msgspec.structs.replace(facts, told=told, conversation=self.conversation.past)
        for rule_id in undecided:
            self._checking.degrade(f"rule_undecided:{rule_id}")

    def settling(self) -> Generator[None, None, bool]:
        """Decide, in steps, what asks for all of the prompt, now that it has been read; return whether it can be.

        Where the risk has added up, what the user said last is first read as one text.
        """
        if self._settled or self.rejected or self._objections.failed is not None:
            return True
        conversation = self.conversation
        if self._recent is None:
            yield from self._checking.meter.stepping(conversation.settling(), _SCORES_WORK)
            self._recent = self._read_as_one()
            if self._recent:
                return False
        for kinds, judge in self._recent:
            conversation.hear(kinds, judge)
        self._settled = True
        self._judge_request(late=True, about=conversation.raised)
        return True

    def _read_as_one(self) -> tuple[tuple[frozenset[str], Judge], ...]:
        """Ask classifiers about what the user said last; return what hears their answers."""
        checking, scope, found = self._checking, self._plan.program.recent, list[tuple[frozenset[str], Judge]]()
        readings = self.conversation.readings() if scope is not None else {}
        for index, (text, kinds) in zip(_RECENT, readings.items(), strict=False):
            manner = Manner(grid=False, scope=scope)
            judge = checking.judge(Channel("user", 0, index), Stage.INGRESS, manner)
            checks = judge.feed(text)
            checking.ask(judge, [*checks, *judge.holdback.end()])
            checking.meter.spend(judge.take_work() + CHANNEL_WORK)
            found.append((kinds, judge))
        return tuple(found)

    def _judge_request(self, *, late: bool = False, about: Joined | None = None) -> None:
        """Decide the rules without triggers, those that ask for all of the prompt when it has been read.

        Args:
            late: It has been.
            about: The text that they are about, as far as there is one.
        """
        program, exchange = self._plan.program, self._checking.exchange
        machine = Machine(program, Facts(Stage.INGRESS, "request", exchange))
        firings: list[Firing] = []
        for entry in program.bare:
            if (entry.rule in program.late) is not late or entry.rule in self._decided:
                continue
            rule, fires = program.rules[entry.rule], machine.decide(entry)
            if fires is None:
                self._checking.degrade(f"rule_undecided:{rule.id}")
            if fires or (fires is None and counts_undecided(rule, self._plan.fail_mode)):
                self._decided.add(entry.rule)
                firings.append(
                    Firing(
                        rule=rule,
                        signal=None,
                        span=Span(0, 0),
                        mode="enforce" if rule.mode == "enforce" and entry.rule not in exchange.shadowed else "shadow",
                        undecided=fires is None,
                    )
                )
        if firings:
            channel, page = Channel("request"), self._checking.page()
            outcome = resolve(firings, Stage.INGRESS, channel, page)
            self._checking.decided(outcome.verdicts)
            self._note(outcome, page, channel, about)

    def ruling(self, judge: Judge) -> Steps:
        """Take the decisions of one channel that can be taken now."""
        rulings = yield from self._checking.advancing(judge)
        rulings.reverse()
        while rulings:
            ruling = rulings.pop()  # freed here: thousands at once take long
            if len(rulings) % _RULINGS_A_STEP == 0:
                self._checking.meter.spend(_RULINGS_WORK)
                yield
            channel = ruling.judge.channel
            if ruling.failed is not None and self._objections.failed is None:
                self._objections.failed = ruling.failed, self._place(channel, Span(0, 1))
            self._note(ruling.outcome, ruling.judge.page, channel)

    def _place(self, channel: Channel, span: Span, about: Joined | None = None) -> str | None:
        """Return the message or field that a span stands in, as callers write it; None: the request as a whole."""
        joined = self._places.get(channel, about)
        if joined is None or self.request is None:
            return None
        return place_of(self._removed.unit_of(joined.judge.channel.kind, joined.path(self.request, span)))

    @staticmethod
    def _nothing_removed() -> Removed:
        """Return what is taken out of the request, which is nothing yet."""
        return Removed(unit_of, is_frame)

    def _note(self, outcome: Outcome, page: Page, channel: Channel, about: Joined | None = None) -> None:
        ledger = self._checking.ledger
        for removal in outcome.removals:
            self._remove(removal, channel)
        for refusing in outcome.refusing:
            rule, place = refusing.rule, self._place(channel, refusing.span, about)
            if isinstance(refusing.action, Reject):
                self._reject(refusing, place, channel)
            elif rule.id not in self._objections.confirmed:
                self._objections.confirmations.append((refusing, place))
            elif rule.id not in ledger.confirmed:
                ledger.confirmed = (*ledger.confirmed, rule.id)
        for ask in outcome.asks:
            # What is written into the answer is judged as the answer is.
            for_model = isinstance(ask.action, AdaptTone | SafeMode)
            self.wishes.add(ask, page if for_model else self._checking.page(), self.documents)

    def _reject(self, refusing: Refusing, place: str | None, channel: Channel) -> None:
        """Refuse what a span stands in: the request."""
        del channel
        self._objections.rejects.append((refusing, place))

    def remember_found(self) -> Steps:
        """Note what was found in the texts: they come again with the next request."""
        quiet, meter = self._checking.quiet, self._checking.meter
        for joined in self._joined if quiet is not None else ():
            size = len(joined.text)
            found = found_by(joined.judge, size)
            if quiet is not None and found is not None:
                quiet.keep(joined.judge.channel.kind, joined.text, found)
            meter.spend(_NOTED_WORK + size // _HASHED_CHARS)
            yield

    def _remove(self, removal: Removal, channel: Channel) -> None:
        """Take out all that a span touches; refuse what can't go without the message that it frames."""
        joined, request = self._places.get(channel), self.request
        if joined is None or request is None:
            raise AssertionError("what is removed stands in a text of the request")
        for place in joined.touched(removal.span):
            delta = request.unit.deltas[place]
            unit, outside = self._removed.unit(delta), self.outside.has(place)
            if outside or self._removed.is_frame(delta.path):
                refusing = Refusing(removal.rule, Reject(), removal.span)
                self._objections.rejects.append((refusing, place_of(unit)))
            if outside:
                continue
            self._removed.add(unit, removal.rule.id, removal.note)

    @property
    def judged(self) -> Sequence[Joined]:
        """The texts that were judged."""
        return self._joined

    @property
    def rejected(self) -> bool:
        """It is refused, whatever is still to be said of it."""
        return bool(self._objections.rejects)

    @property
    def refusal(self) -> Refusal | None:
        """Why the judged prompt is refused; None when it may be forwarded."""
        return self._objections.refusal(self._plan.program.hash)

    def _named(self, edits: dict[int, list[Replacement]]) -> Generator[None, None, frozenset[int]]:
        """Leave out, in steps, edits of what stands outside the body; return the places where a name is put in."""
        named = set[int]()
        for place in list(edits):
            if self.outside.has(place):
                del edits[place]
            elif any(edit.alias is not None for edit in edits[place]):
                named.add(place)
            self._checking.meter.spend(_PLACED_WORK)
            yield
        return frozenset(named)

    def rendering(self, request: Request, continue_from: str | None = None) -> Generator[None, None, bytes]:
        """Return, in steps, the body as it is forwarded: as it came where no rule has changed it.

        Args:
            request: What was read.
            continue_from: What the answer has said so far, when the model is to go on from there; None: it begins.

        Raises:
            WireError: it can't be edited as policy wants.
        """
        edits: dict[int, list[Replacement]] = {}
        meter, texts = self._checking.meter, dict[int, str]()
        for joined in self._joined:
            if joined.edited:
                yield from meter.stepping(joined.edits(edits), EDITS_WORK)
            meter.spend(1)
            yield
        named = yield from self._named(edits)
        if named:
            yield from self.naming.steps(request, edits)
        for place, found in edits.items():
            texts[place] = yield from meter.stepping(rewriting(request.unit.deltas[place], found), EDITS_WORK)
            meter.spend(_EDIT_WORK)
            yield
        self._forwarded = texts
        self._checking.left += (edits, texts)
        shaping = self.wishes.shaping(continue_from or None)
        if self._removed:
            deltas = request.unit.deltas
            texts = {place: text for place, text in texts.items() if not self._removed.takes(deltas[place])}
            shaping = msgspec.structs.replace(shaping or Shaping(), removed=self._removed.notes)
        if texts or shaping is not None:
            said = shaping.instructions if shaping is not None else ()
            again = continue_from is not None
            self.request = msgspec.structs.replace(request, forwarded=texts, instructed=said, goes_on=again)
        undone = self._surface.undone(self.request or request, shaping or Shaping())
        self._checking.ledger.removed(map(place_of, undone))
        if continue_from is None and self._surface.name == RESPONSES:
            sending = self.conversation.send(self.request or request, named)
            yield from meter.stepping(sending, READ_WORK)
        writing = self._surface.writing_request(request, texts, shaping)
        return (yield from meter.stepping(writing, READ_WORK))

    def unwritable(self, error: WireError) -> Refusal:
        """Return why a request is refused that can't be edited as policy wants."""
        return self._removed.unwritable(error)

    def dialogue(self, answers: Mapping[int, str]) -> Dialogue:
        """Return the prompt as it was forwarded, with what was answered."""
        request = self.request
        if request is None:
            raise AssertionError("only the answer to a request is heard")
        deltas = enumerate(request.unit.deltas) if self._removed else ()
        removed = {place: self._removed.instead(delta) for place, delta in deltas if self._removed.takes(delta)}
        edited = bool(self._forwarded or removed)
        about = circumstances_of(self._event, request, self._checking.exchange.request, edited=edited)
        said = dialogue_of(request, self._forwarded, removed, answers)
        return msgspec.structs.replace(said, circumstances=about)

    def begun(self) -> Sequence[Remember]:
        """Return what others of the conversation are to know while the exchange runs."""
        return self.conversation.begun(self._checking.ledger, self._places)

    def remembered(self, outcome: str, spoken: Spoken | None) -> Sequence[Remember]:
        """Return what is to be remembered of the exchange, `spoken` the content of its answer."""
        return self.conversation.outcome(self._checking.ledger, self._places, outcome, spoken)
