"""What an exchange knows of its conversation, and what it adds to that.

A text of the user is one message, however many parts it has. What the user's texts come to is known when classifiers
have read all of them: rules that ask for it are decided then.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence

import msgspec

from checkstream.core.channel.judge import Judge
from checkstream.core.commands import ConversationRecord, Remember
from checkstream.core.conversation import (
    ALARM,
    KEY_BYTES,
    MOST_SENT,
    MOST_TEXTS,
    NOTHING_SAID,
    RECENT_CHARS,
    RECENT_TEXTS,
    SHORT_TEXTS,
    Conversation,
    Course,
    Said,
    Turn,
    keys_of,
    short,
)
from checkstream.core.exchange.heard import Spoken
from checkstream.core.exchange.ingress.joined import Joined
from checkstream.core.exchange.ingress.mentions import Mentions
from checkstream.core.exchange.ledger import Ledger
from checkstream.core.policy.program import READ_AS_ONE, Program
from checkstream.core.terms import Channel, Delta, Past, Span, Stage
from checkstream.core.wire.responses import echo
from checkstream.core.wire.surface import Request

_SAID_IN = frozenset({"messages", "prompt", "input", "params"})
"""Fields in which users speak."""
_SPEAKERS = frozenset({"user", "assistant"})
_MOST_NAME_CHARS = 4096
_MESSAGES = frozenset({"messages", "input"})
_KEPT_ALONE = frozenset({"fired", "refused", "entities"})
"""What rules can ask of a conversation and no history tells."""
_TEXTS_A_STEP, _KEYS_A_STEP, _SCORES_A_STEP, _CHARS_A_STEP = 256, 64, 64, 16_384
_DIGITS = 4
_KEY_CHARS = 64


class History:
    """What user and model have said to each other, as something that tells the same history again.

    System prompts are left out, since some say what time it is, and so are calls of tools and what they brought.
    """

    def __init__(self, caller: str) -> None:
        """Start before the first message; two callers have no history in common."""
        self._hash = hashlib.blake2b(f"{len(caller)}:{caller}".encode("utf-8", "surrogatepass"), digest_size=32)
        self._of = ("", -1)
        self._spoken = Spoken()

    def take(self, kind: str, position: int, text: str) -> None:
        """Take the next text of the message at a position."""
        if (kind, position) != self._of:
            self._close()
            self._of = (kind, position)
        self._spoken.feed(text)

    def end(self, spoken: Spoken) -> None:
        """Take what the model has said last."""
        self._close()
        self._of, self._spoken = ("assistant", -1), spoken

    @property
    def told(self) -> str:
        """What it comes to, up to here."""
        self._close()
        return self._hash.hexdigest()

    def _close(self) -> None:
        if not self._spoken.empty:
            self._hash.update(self._of[0].encode() + b":" + self._spoken.digest)
        self._spoken = Spoken()


class Recollection:
    """The conversation of one exchange."""

    def __init__(self, program: Program, digest: Callable[[str], str], *, keeps_texts: bool = False) -> None:
        """Know nothing, and of no conversation.

        Args:
            program: The compiled policies.
            digest: Keyed digest of a text, hex: what records call a conversation.
            keeps_texts: What the user said last is kept where no later request says it again.
        """
        self.key = ""
        """What is asked for; empty: the conversation has no name, and no history."""
        self.keeps = False
        """What the exchange comes to is kept."""
        self.raised: Joined | None = None
        """The last text that has raised the risk."""
        self.past = Past()
        """What rules know of it."""
        self.mentions = Mentions(program, digest)
        """What triggers spare, where the provider keeps the history."""
        self._digest = digest
        self._labels = program.scope(Stage.INGRESS, "user").accumulates
        self._asked = program.recalls
        self._before = Conversation()
        self._texts: list[Joined] = []
        self._said: tuple[Said, ...] = ()
        self._new: list[bool] = []
        """Beside each: it has not counted in an earlier request."""
        self._settled = False
        self._marks: tuple[tuple[int, float], ...] = ()
        self._recalling = program.recalling
        self._read_as_one = frozenset(variable.kind for variable in program.variables) & READ_AS_ONE
        self._keeps_texts = keeps_texts and program.recent is not None
        self._history = History("")
        """All that the request has of the conversation."""
        self._id = ""
        self._is_named = self._is_told = False
        """It has a name that stays; its history tells which it is."""
        self._caller = ""
        self._after = ""
        """Id of the answer behind which all that the request says is said for the first time."""
        self._begun: Turn | None = None
        """What was kept of the request before its answer was there."""
        self._beside = Conversation()
        """What those have come to whose prompts were read at the same time, and this one with them."""
        self.kept_as: tuple[str, ...] = ()
        """Ids by which a later request goes on from the answer."""
        self._sent = b""
        """Digests of what is sent with the request, which the provider says again when its answer is asked for."""
        self._again = False
        """An answer is asked for again: that is no turn of its conversation."""

    def finding(self, caller: str | None, request: Request, session: str = "") -> Generator[None, None, None]:
        """Tell, in steps, which conversation a request is part of.

        That says its caller's name for it, or the provider's, or the answer that it goes on from, or its own history;
        `session` is the name that its transport has for what it is part of.
        """
        self._caller = caller or ""
        self.keeps = True
        own = request.extension.conversation if request.extension is not None else None
        names = (("conversation", own), ("provider", request.conversation), ("session", session))
        kind, name = next((each for each in names if each[1]), ("", ""))
        if name:
            self.key = self._named(kind, name)
            self._id = self._digest(self.key)
            self._is_named = True
        elif request.previous or request.referred:
            self.key = self._named("answer", request.previous or request.referred or "")
            self._after = request.previous or ""
        else:
            self._is_told = True
            yield from self._recognising(request)

    def ask_again(self, caller: str | None, answer: str) -> None:
        """Have it told what was sent with the request of an answer, which is asked for again by its id."""
        self._caller, self._again = caller or "", True
        self.key = self._named("answer", answer)

    def send(self, request: Request, named: frozenset[int]) -> Generator[None, None, None]:
        """Keep, in steps, what is sent: of a request as it is forwarded, whose answer its provider keeps.

        Args:
            request: What was read, and what was forwarded in place of its texts.
            named: Places of texts with placeholders.
        """
        if self.keeps and request.members.get("store") is not False:
            self._sent = b"".join((yield from echo.sent(request, named, self._key_of_sent, MOST_SENT)))

    def sent(self) -> tuple[bytes, frozenset[bytes]]:
        """Return what was sent with the request of an answer that is asked for again: the key, and digests."""
        return self._key_of_sent, frozenset(keys_of(self._sent))

    @property
    def _key_of_sent(self) -> bytes:
        return self._digest(f"sent:{self._caller}").encode()[:_KEY_CHARS]

    def _named(self, kind: str, name: str) -> str:
        """Return the key of a name: two callers that name theirs alike share nothing.

        It is no secret: what keeps conversations makes another of it. So all that share that know it.
        """
        if (
            len(name) > _MOST_NAME_CHARS
        ):  # in one step; nobody but the same caller can choose one that is told as this is
            name = f"{len(name)}:{name[:_MOST_NAME_CHARS]}{name[-_MOST_NAME_CHARS:]}"
        return _hashed(f"{kind}:{len(self._caller)}:{self._caller}:{name}").hex()

    def keep_as(self, ids: Sequence[str]) -> None:
        """Take ids by which a later request goes on from the answer, first its own; of its items two count.

        A client that refers to items does so to all of them, or to what the model thought first.
        """
        if ids:
            known = tuple(dict.fromkeys((*self.kept_as, *ids)))
            self.kept_as = (*known[:2], *known[2:][-1:])

    def _recognising(self, request: Request) -> Generator[None, None, None]:
        """Read the history of a request up to the last thing that the model said."""
        history = self._history = History(self._caller)
        last = yield from _last_answer(request.unit.deltas)
        of, begun = "", -1
        for count, delta in enumerate(request.unit.deltas):
            position, kind = _position(delta), delta.channel.kind
            if not self.key and 0 <= last < position:
                self.key = history.told
            if kind != of or kind != "assistant":  # what the model says in several items is one answer
                of, begun = kind, position
            if position >= 0 and kind in _SPEAKERS and _is_content(delta, request):
                for at in range(0, len(delta.text), _CHARS_A_STEP):
                    history.take(kind, begun, delta.text[at : at + _CHARS_A_STEP])
                    if at:
                        yield
            if count % _TEXTS_A_STEP == _TEXTS_A_STEP - 1:
                yield

    @property
    def memory(self) -> Sequence[object]:
        """Lists of texts that nobody else keeps."""
        return (self._texts,)

    def recall(self, conversation: Conversation | None) -> None:
        """Take what is known of it."""
        before = conversation or Conversation()
        if self._again:
            self._sent = before.sent
            return
        self._before = before
        self._id = before.id or self._id or self._digest(self.key)
        self._marks = before.marks
        self.mentions.recall(before.mentioned)
        self.past.fired, self.past.refused, self.past.entities = before.fired, before.refused, before.entities

    def read(self, request: Request, joined: Sequence[Joined]) -> Generator[None, None, None]:
        """Take, in steps, the texts of the request before they are judged."""
        texts, said = list[Joined](), list[Said]()
        for count, each in enumerate(joined):
            if _is_said(each, request):
                texts.append(each)
            if count % _TEXTS_A_STEP == _TEXTS_A_STEP - 1:
                yield
        self._texts = texts[-MOST_TEXTS:]
        times, who = Counter[str](), f"user:{self._after}" if self._after else "user"
        for count, each in enumerate(self._texts):
            text = each.text.strip() if self.keeps else ""  # as clients send it again
            times[text] += 1
            said.append(Said(self._key(who, text, times[text]) if self.keeps else b"", {}))
            if count % _KEYS_A_STEP == _KEYS_A_STEP - 1:
                yield
        self._said = tuple(said)
        self._new = self._before.new(self._said)
        self.past.turns = self._before.turns + sum(self._new)

    def _key(self, kind: str, text: str, times: int = 1) -> bytes:
        return _hashed(f"{kind}:{times}:{text}")[:KEY_BYTES]

    def settling(self) -> Generator[None, None, None]:
        """Add up the scores, which are all there, in steps."""
        labels = self._labels
        course, unknown, scored = Course(self._before), set[str](), list[Said]()
        for joined, said, new in zip(self._texts, self._said, self._new, strict=True):
            scores = joined.judge.decider.peaks(labels)
            scored.append(Said(said.key, scores))
            if new:
                unknown.update(labels.keys() - scores.keys())
                self.raised = joined if course.take(scored[-1]) else self.raised
            if len(scored) % _SCORES_A_STEP == 0:
                yield
        self._settled = True
        self._said = tuple(scored)
        self._marks = course.marks
        for name, signal in labels.items():
            if name not in unknown:
                risk = course.highest.get(name, course.risks.get(name, 0.0))
                self.past.risks[signal] = max(risk, self._beside.risks.get(name, 0.0))
                self.past.peaks[signal] = max(course.peaks.get(name, 0.0), self._beside.peaks.get(name, 0.0))
            self.past.recents[signal] = self.past.shorts[signal] = 0.0

    def readings(self) -> Mapping[str, frozenset[str]]:
        """Return what the user said last, to be read as one text, and what asks for that; none: nothing does."""
        if max(self.past.risks.values(), default=0.0) < ALARM:
            return {}
        before = self._before.spoken
        texts = (*before, *self._ends(new=bool(before)))
        found: dict[str, frozenset[str]] = {}
        for kind, said in (("recent", texts[-RECENT_TEXTS:]), ("short", short(texts))):
            if len(said) > 1 and kind in self._read_as_one:
                text = "\n".join(said)
                found[text] = found.get(text, frozenset()) | {kind}
        return found

    def _ends(self, *, new: bool) -> tuple[str, ...]:
        """Return the ends of what the user said last in this request; `new`: for the first time."""
        texts = zip(self._texts[-SHORT_TEXTS:], self._new[-SHORT_TEXTS:], strict=True)
        return tuple(joined.text[-RECENT_CHARS:] for joined, is_new in texts if is_new or not new)

    def hear(self, kinds: frozenset[str], judge: Judge) -> None:
        """Take the scores of what the user said last, as far as some ask for it."""
        known = judge.decider.peaks(self._labels)
        for kind in kinds:
            scores = self.past.recents if kind == "recent" else self.past.shorts
            scores.clear()
            scores.update((signal, known[name]) for name, signal in self._labels.items() if name in known)

    @property
    def is_begun(self) -> bool:
        """Others know of it while it runs."""
        return self._begun is not None

    def begun(self, ledger: Ledger, places: Mapping[Channel, Joined]) -> tuple[Remember, ...]:
        """Return what others of the conversation are to know while the exchange runs: nothing where nothing was found.

        An answer takes long, and an attack may be spread over requests that are sent at the same time.
        """
        if not (self.keeps and self._is_named and self._settled) or self._begun is not None:
            return ()
        turn = self._turn(ledger, places, refused=False)
        if not (turn.fired or turn.entities or any(said.counts for said in turn.said)):
            return ()
        self._begun = turn
        return (Remember(self.key, turn),)

    def look_again(self, conversation: Conversation | None) -> bool:
        """Take what is known now that this prompt is, too; tell whether rules are to decide anew.

        Each of two prompts that are read at the same time is kept before it looks: the later one sees the other.
        """
        if conversation is None or self._begun is None:
            return False
        known, past = conversation.without(self._begun, self._before), self.past
        risks = ((known.risks.get(name, 0.0), past.risks.get(signal, 1.0)) for name, signal in self._labels.items())
        more = any(now > before for now, before in risks) or known.refused > past.refused
        if not more and dict(known.fired) == dict(past.fired) and known.entities == past.entities:
            return False
        self._beside = known
        self._before = msgspec.structs.replace(self._before, spoken=known.spoken)
        past.turns, past.refused = max(past.turns, known.turns), max(past.refused, known.refused)
        past.fired, past.entities = known.fired, known.entities
        return True

    def outcome(
        self, ledger: Ledger, places: Mapping[Channel, Joined], outcome: str, spoken: Spoken | None
    ) -> tuple[Remember, ...]:
        """Return what is to be remembered of the exchange: nothing where it was not judged, or nobody goes on with it.

        Args:
            ledger: Has what rules did.
            places: Channel -> the text of the prompt that is judged there.
            outcome: How the exchange ended.
            spoken: The content of the answer as it was sent; None: there is not one.
        """
        refused = outcome == "refused"
        if not self.keeps or not (self._settled or refused):
            return ()
        turn = self._turn(ledger, places, refused=refused)
        # A history tells no refusals: many users of one caller may have begun alike, and none answers for another's.
        named = self._is_named or (refused and self.key and not self._is_told)
        found = [Remember(self.key, turn if self._begun is None else turn.behind(self._begun))] if named else []
        if refused:
            return tuple(found)  # what was not answered is in no history
        keys = [self._named("answer", each) for each in self.kept_as]
        turns = dict.fromkeys(keys, turn)
        if keys:  # its own id
            turns[keys[0]] = msgspec.structs.replace(turn, sent=self._sent)
        if self._is_told and spoken is not None:
            self._history.end(spoken)
            turns[self._history.told] = msgspec.structs.replace(turn, spoken=(), mentioned=NOTHING_SAID)
        for key, each in turns.items():
            self._id = self._id or self._digest(key)
            found.append(Remember(key, each, msgspec.structs.replace(self._before, id=self._id)))
        return tuple(found)

    def _turn(self, ledger: Ledger, places: Mapping[Channel, Joined], *, refused: bool) -> Turn:
        """Return what the exchange came to."""
        keys = {id(joined): said.key for joined, said in zip(self._texts, self._said, strict=True)}
        fired: dict[bytes, list[str]] = {}
        besides: dict[str, None] = {}
        for channel, rule in ledger.fired_on:
            joined = places.get(channel)
            if refused or joined is None:
                besides[rule] = None
                continue
            key = keys.get(id(joined)) or self._key(channel.kind, joined.text)
            fired.setdefault(key, []).append(rule)
        said = [Said(each.key, each.scores, tuple(fired.pop(each.key, ()))) for each in self._said]
        said += (Said(key, None, tuple(rules)) for key, rules in fired.items())
        return Turn(
            said=() if refused else tuple(said),
            fired=tuple(besides),
            entities=tuple(sorted(ledger.entities)),
            refused=refused,
            id=self._id,
            spoken=() if refused or not self._keeps_texts else self._ends(new=not self._is_told),
            mentioned=NOTHING_SAID if refused else self.mentions.new,
        )

    @property
    def loses(self) -> bool:
        """Rules in force may decide otherwise if nothing is known: a history that is sent tells the rest."""
        asked = self._asked
        if self._again:
            return False
        return bool(asked & _KEPT_ALONE) if self._is_told else bool(asked)

    def record(self, ledger: Ledger) -> ConversationRecord | None:
        """Return where in its conversation the exchange stands, and what of it counted; None: it has none."""
        rules = tuple(dict.fromkeys(rule for _, rule in ledger.fired_on if rule in self._recalling))
        if not self._id and not rules:
            return None
        known = ((name, self.past.risks.get(signal)) for name, signal in self._labels.items())
        return ConversationRecord(
            id=self._id,
            turns=self.past.turns,
            refused=self.past.refused,
            risks={name: round(risk, _DIGITS) for name, risk in known if risk is not None},
            rules=rules,
            counted={str(number): round(score, _DIGITS) for number, score in self._marks},
        )


def of_one_text(program: Program, scores: Mapping[str, float] | None) -> Past:
    """Return what rules know of a conversation of one text.

    Args:
        program: The compiled policies.
        scores: `model.label` -> the text's score; None: the user has said nothing.
    """
    course = Course(Conversation())
    course.take(Said(b"", scores))
    labels = program.scope(Stage.INGRESS, "user").accumulates
    return Past(
        turns=course.turns,
        risks={signal: course.risks.get(name, 0.0) for name, signal in labels.items()},
        peaks={signal: course.peaks.get(name, 0.0) for name, signal in labels.items()},
        recents=dict.fromkeys(labels.values(), 0.0),
        shorts=dict.fromkeys(labels.values(), 0.0),
    )


def _last_answer(deltas: Sequence[Delta]) -> Generator[None, None, int]:
    """Return, in steps, where in a history the model has said something last, -1: nowhere."""
    last = -1
    for count, delta in enumerate(deltas):
        if delta.channel.kind == "assistant":
            last = max(last, _position(delta))
        if count % _TEXTS_A_STEP == _TEXTS_A_STEP - 1:
            yield
    return last


def _hashed(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()


def _position(delta: Delta) -> int:
    """Return which message a text stands in, -1: it stands in none."""
    path = delta.path
    if path == ("input",):
        return 0
    return path[1] if len(path) > 2 and path[0] in _MESSAGES and isinstance(path[1], int) else -1


def _is_content(delta: Delta, request: Request) -> bool:
    """Tell whether a text of a message is what it says, and no thought."""
    if len(delta.path) == 1:
        return True
    items = request.members.get(str(delta.path[0]))
    item = items[_position(delta)] if isinstance(items, list) else None
    if isinstance(item, dict) and item.get("type") == "reasoning":
        return False
    return delta.path[2] == "content" and delta.path[-1] in {"content", "text"}


def _is_said(joined: Joined, request: Request) -> bool:
    """Tell whether a text is all that a message of the user says."""
    channel = joined.judge.channel
    return channel.kind == "user" and channel.index == 0 and joined.path(request, Span(0, 1))[0] in _SAID_IN
