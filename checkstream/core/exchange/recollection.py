"""What an exchange knows of its conversation, and what it adds to that.

A text of the user is one message, however many parts it has. What the user's texts come to is known when classifiers
have read all of them: rules that ask for it are decided then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from checkstream.core.channel.judge import Judge
from checkstream.core.commands import ConversationRecord, Remember
from checkstream.core.conversation import ALARM, KEY_BYTES, Conversation, Course, Said, Turn
from checkstream.core.exchange.joined import Joined
from checkstream.core.exchange.ledger import Ledger
from checkstream.core.policy.program import Program
from checkstream.core.terms import Past, Span, Stage
from checkstream.core.wire.surface import Request

_SAID_IN = frozenset({"messages", "prompt", "input"})
"""Fields in which users speak."""
_RECENT_TEXTS, _RECENT_CHARS = 3, 1000
"""How many of the user's last texts are read as one, and how much of the end of each."""
_DIGITS = 4


class Recollection:
    """The conversation of one exchange."""

    def __init__(self, program: Program, digest: Callable[[str], str]) -> None:
        """Know nothing, and of no conversation.

        Args:
            program: The compiled policies.
            digest: Keyed digest of a text, hex.
        """
        self.key = ""
        """What the conversation is kept under; empty: it has no name."""
        self.raised: Joined | None = None
        """The last text that has raised the risk."""
        self.past = Past()
        """What rules know of it."""
        self._digest = digest
        self._labels = program.scope(Stage.INGRESS, "user").accumulates
        self._before = Conversation()
        self._texts: list[Joined] = []
        self._said: tuple[Said, ...] = ()
        self._new: list[bool] = []
        """Beside each: it has not counted in an earlier request."""
        self._settled = False

    def name(self, caller: str | None, conversation: str) -> None:
        """Take the caller's name for the conversation: two callers that name theirs alike share nothing."""
        caller = caller or ""
        self.key = self._digest(f"conversation:{len(caller)}:{caller}:{conversation}")

    def recall(self, conversation: Conversation | None) -> None:
        """Take what is known of it."""
        before = self._before = conversation or Conversation()
        self.past.fired, self.past.refused, self.past.entities = before.fired, before.refused, before.entities

    def read(self, request: Request, joined: Sequence[Joined]) -> None:
        """Take the texts of the request, before they are judged."""
        self._texts = [each for each in joined if _is_said(each, request)]
        self._said = tuple(Said(key, {}) for key in self._keys(self._texts))
        self._new = self._before.new(self._said)
        self.past.turns = self._before.turns + sum(self._new)

    def _keys(self, texts: Iterable[Joined]) -> Iterable[bytes]:
        """Yield what each text is known by; one that is said again is another one."""
        times = Counter[str]()
        for joined in texts:
            times[joined.text] += 1
            yield self._key("user", joined.text, times[joined.text]) if self.key else b""

    def _key(self, kind: str, text: str, times: int = 1) -> bytes:
        return bytes.fromhex(self._digest(f"{kind}:{times}:{text}"))[:KEY_BYTES]

    def settle(self) -> None:
        """Add up the scores, which are all there."""
        self._settled = True
        labels = self._labels
        scores = [joined.judge.decider.peaks(labels) for joined in self._texts]
        self._said = tuple(Said(said.key, given) for said, given in zip(self._said, scores, strict=True))
        course, unknown = Course(self._before), set[str]()
        for joined, said, new in zip(self._texts, self._said, self._new, strict=True):
            if new:
                unknown.update(labels.keys() - (said.scores or {}).keys())
                self.raised = joined if course.take(said) else self.raised
        for name, signal in labels.items():
            if name not in unknown:
                self.past.risks[signal] = course.highest.get(name, course.risks.get(name, 0.0))
                self.past.peaks[signal] = course.peaks.get(name, 0.0)
            self.past.recents[signal] = 0.0

    @property
    def recent(self) -> str:
        """What the user said last, to be read as one text; empty: there is no reason to."""
        if len(self._texts) < 2 or max(self.past.risks.values(), default=0.0) < ALARM:
            return ""
        return "\n".join(joined.text[-_RECENT_CHARS:] for joined in self._texts[-_RECENT_TEXTS:])

    def hear(self, judge: Judge) -> None:
        """Take the scores of what the user said last."""
        known = judge.decider.peaks(self._labels)
        self.past.recents.clear()
        self.past.recents.update((signal, known[name]) for name, signal in self._labels.items() if name in known)

    def outcome(self, ledger: Ledger, places: Iterable[Joined], outcome: str) -> Remember | None:
        """Return what is to be remembered of the exchange; None: nothing, since it was not judged, or has no name."""
        refused = outcome == "refused"
        if not self.key or not (self._settled or refused):
            return None
        own = {joined.judge.channel: joined for joined in places}
        keys = {joined.judge.channel: said.key for joined, said in zip(self._texts, self._said, strict=True)}
        fired: dict[bytes, list[str]] = {}
        besides: dict[str, None] = {}
        for channel, rule in ledger.fired_on:
            if refused or channel not in own:
                besides[rule] = None
                continue
            key = keys[channel] if channel in keys else self._key(channel.kind, own[channel].text)
            fired.setdefault(key, []).append(rule)
        said = [Said(each.key, each.scores, tuple(fired.pop(each.key, ()))) for each in self._said]
        said += (Said(key, None, tuple(rules)) for key, rules in fired.items())
        turn = Turn(
            said=() if refused else tuple(said), fired=tuple(besides), entities=ledger.entities(), refused=refused
        )
        return Remember(self.key, turn)

    @property
    def record(self) -> ConversationRecord | None:
        """Where in its conversation the exchange stands; None: it has none."""
        if not self.key:
            return None
        known = ((name, self.past.risks.get(signal)) for name, signal in self._labels.items())
        return ConversationRecord(
            id=self.key,
            turns=self.past.turns,
            refused=self.past.refused,
            risks={name: round(risk, _DIGITS) for name, risk in known if risk is not None},
        )


def _is_said(joined: Joined, request: Request) -> bool:
    """Tell whether a text is all that a message of the user says."""
    channel = joined.judge.channel
    return channel.kind == "user" and channel.index == 0 and joined.path(request, Span(0, 1))[0] in _SAID_IN
