"""What the requests of one conversation came to, so that an attack spread over turns adds up. Pure.

A user's texts are folded in the order in which they were said. Each adds to the risk what its score has above `FLOOR`,
and takes a share of the earlier risk away, so calm texts lower it and several borderline ones raise it; no text alone
comes to more than `MOST`::

    risk = 1 - (1 - KEPT * risk) * (1 - weight(score))

A client sends its history again with every request, or doesn't: a text counts once, however often it comes. So a
history that is sent whole comes to the same with what was remembered and without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

KEPT = 0.85
"""Share of the risk that is left when one more text has been said."""
FLOOR = 0.05
"""A lower score says nothing."""
MOST = 0.6
"""Risk of one text alone, whatever its score: what that says by itself other rules decide."""
ALARM = 0.3
"""From this risk on it is worth to read together what was said last."""
KEY_BYTES = 8
MOST_TEXTS = 512
"""Texts of one conversation that are known again, and that one request can add; of more the latest count."""
MOST_MARKS = 16
"""Texts of one conversation that are named by their number: of more the latest."""
RECENT_TEXTS, RECENT_CHARS = 3, 1000
"""How many of the user's last texts are read as one, and how much of the end of each."""
SHORT_TEXTS, SHORT_CHARS = 8, 300
"""How many more are, where they are short: with what stands between them, so many characters together at most."""
VALUE_BYTES, WORD_BYTES = 16, 5
"""Of the digest of a value, and of a word: it is not often that one of a thousand words is taken for another."""
MOST_VALUES, MOST_WORDS = 512, 1024
"""Digests of values and of words of one conversation that are known for each role: of more the latest."""
MOST_SENT = 512
"""Digests of texts that were sent with the requests of one answer: of more the latest."""
_MOST_NAMES = 256
"""Rules, and kinds of entities, of one conversation."""


def short(texts: Sequence[str]) -> Sequence[str]:
    """Return the last of some texts that are short enough to be read as one, however many there are."""
    chars, count = -1, 0
    for text in reversed(texts[-SHORT_TEXTS:]):
        chars += 1 + len(text)
        if chars > SHORT_CHARS:
            break
        count += 1
    return texts[len(texts) - count :]


def latest(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the last of some texts, of which those that follow are ever read as one with what is said then."""
    return tuple(texts[-max(RECENT_TEXTS, len(short(texts))) :])


class Said(msgspec.Struct, frozen=True):
    """A text of a request that counts once."""

    key: bytes
    """Digest of the text, of its role, and of how often it was said before; `KEY_BYTES` long."""
    scores: Mapping[str, float] | None = None
    """Of a text of the user: `model.label` -> its score. None: somebody else's."""
    fired: tuple[str, ...] = ()
    """Ids of the rules that were enforced on it."""

    @property
    def counts(self) -> bool:
        """It is more than one text more: it adds to a risk, or rules were enforced on it."""
        return bool(self.fired) or max((self.scores or {}).values(), default=0.0) > FLOOR


class Mentioned(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was said, as far as triggers spare it, for requests that don't say it again: keyed digests, by channel."""

    values: Mapping[str, bytes] = {}
    """Of what validators find, one behind the other, the latest last; each `VALUE_BYTES` long."""
    words: Mapping[str, bytes] = {}
    """Of words, in their order (see `match.names.word_digest`)."""

    def __bool__(self) -> bool:
        """There is something."""
        return bool(self.values or self.words)

    def after(self, new: Mentioned) -> Mentioned:
        """Return all that was said with one more request."""
        values, words = dict(self.values), dict(self.words)
        for channel, said in new.values.items():
            known = dict.fromkeys(parts_of(values.get(channel, b"")))
            latest = parts_of(said)
            for each in latest:
                known.pop(each, None)
            values[channel] = b"".join((*known, *latest))[-MOST_VALUES * VALUE_BYTES :]
        for channel, said in new.words.items():
            words[channel] = (words.get(channel, b"") + said)[-MOST_WORDS * WORD_BYTES :]
        return Mentioned(values, words)


NOTHING_SAID = Mentioned()


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What one request and its answer came to."""

    said: tuple[Said, ...] = ()
    """In the order of the request. Empty where it was refused: what is refused counts when it comes again."""
    fired: tuple[str, ...] = ()
    """Ids of the rules that were enforced on the answer, or on the request as a whole."""
    entities: tuple[str, ...] = ()
    """Kinds of entities that were found."""
    refused: bool = False
    id: str = ""
    """How the conversation is called in records, if it has no name there yet."""
    spoken: tuple[str, ...] = ()
    """Ends of the user's texts that are new with it, where no later request says them again: the latest."""
    mentioned: Mentioned = NOTHING_SAID
    """What is new with it, where no later request says it again."""
    sent: bytes = b""
    """Keyed digests of what was sent with it, one behind the other, each `KEY_BYTES` long: the provider says that again
    when its answer is asked for."""

    def behind(self, begun: Turn) -> Turn:
        """Return what is still to be kept where so much of it has been: texts count once, whoever says them again."""
        fired = Counter(_all_fired(self))
        fired.subtract(_all_fired(begun))
        return msgspec.structs.replace(
            self,
            said=tuple(msgspec.structs.replace(said, fired=()) for said in self.said),
            fired=tuple((+fired).elements()),
            spoken=(),
            mentioned=NOTHING_SAID,
        )


class Conversation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the requests so far came to."""

    id: str = ""
    """How it is called in records; empty: it isn't yet."""
    turns: int = 0
    """Texts of the user."""
    texts: bytes = b""
    """Keys of the texts that have counted, one behind the other, the latest last."""
    risks: Mapping[str, float] = {}
    """`model.label` -> the risk that has added up, 0..1."""
    peaks: Mapping[str, float] = {}
    """`model.label` -> the highest score of a text, 0..1."""
    fired: Mapping[str, int] = {}
    """Id of a rule -> how often it was enforced: once for each text, once for each answer."""
    refused: int = 0
    """Requests."""
    entities: tuple[str, ...] = ()
    """Kinds that were found, sorted."""
    marks: tuple[tuple[int, float], ...] = ()
    """Number of a text of the user that has added to a risk, from 1, and the highest of its scores."""
    spoken: tuple[str, ...] = ()
    """Ends of what the user said last, where no later request says it again; only what is sealed may keep it."""
    mentioned: Mentioned = NOTHING_SAID
    """What was said, where no later request says it again."""
    sent: bytes = b""
    """Of an answer: digests of what was sent with its requests, the latest last."""

    def after(self, turn: Turn) -> Conversation:
        """Return what the conversation has come to with one more request."""
        known = _keys(self.texts)
        course, fired = Course(self), dict(self.fired)
        new: list[bytes] = []
        for said in turn.said:
            if said.key in known:
                continue
            known.add(said.key)
            new.append(said.key)
            course.take(said)
            _count(fired, said.fired)
        _count(fired, turn.fired)
        return Conversation(
            id=self.id or turn.id,
            turns=course.turns,
            texts=(self.texts + b"".join(new))[-MOST_TEXTS * KEY_BYTES :],
            risks=course.risks,
            peaks=course.peaks,
            fired=fired,
            refused=self.refused + turn.refused,
            entities=tuple(sorted({*self.entities, *turn.entities})[:_MOST_NAMES]),
            marks=course.marks,
            spoken=latest((*self.spoken, *turn.spoken)),
            mentioned=self.mentioned.after(turn.mentioned) if turn.mentioned else self.mentioned,
            sent=_latest(self.sent, turn.sent) if turn.sent else self.sent,
        )

    def without(self, own: Turn, before: Conversation) -> Conversation:
        """Return what others have kept besides, where this has `own` and theirs on top of `before`.

        What adds up can't be taken apart: turns, risks and peaks are those of all, and a kind that `own` has,
        too, counts as its own. Nothing that was known before is lost.
        """
        mine = Counter(_all_fired(own))
        fired = {rule: max(before.fired.get(rule, 0), times - mine[rule]) for rule, times in self.fired.items()}
        kinds = {*before.entities, *(set(self.entities) - set(own.entities))}
        return msgspec.structs.replace(
            self,
            fired={**before.fired, **{rule: times for rule, times in fired.items() if times}},
            entities=tuple(sorted(kinds)),
            spoken=tuple(text for text in self.spoken if text not in own.spoken),
        )

    def new(self, said: Sequence[Said]) -> list[bool]:
        """Tell, for each text, whether it has not counted yet."""
        known = _keys(self.texts)
        return [each.key not in known for each in said]


class Course:
    """The risk of a conversation while texts are added to it."""

    __slots__ = ("highest", "marks", "peaks", "risks", "turns")

    def __init__(self, start: Conversation) -> None:
        """Start with what is known."""
        self.turns = start.turns
        self.risks = dict(start.risks)
        self.peaks = dict(start.peaks)
        self.marks = start.marks
        self.highest: dict[str, float] = {}
        """`model.label` -> the highest that the risk has been behind one of the texts that were added."""

    def take(self, said: Said) -> bool:
        """Add a text; return whether it has raised a risk."""
        if said.scores is None:
            return False
        self.turns += 1
        raised = False
        most = max(said.scores.values(), default=0.0)
        if most > FLOOR:
            self.marks = (*self.marks, (self.turns, most))[-MOST_MARKS:]
        for label in {**self.risks, **said.scores}:
            score = said.scores.get(label, 0.0)
            before = self.risks.get(label, 0.0)
            risk = 1.0 - (1.0 - KEPT * before) * (1.0 - _weight(score))
            raised = raised or risk > before
            self.risks[label] = risk
            self.peaks[label] = max(self.peaks.get(label, 0.0), score)
            self.highest[label] = max(self.highest.get(label, 0.0), risk)
        return raised


def parts_of(values: bytes) -> list[bytes]:
    """Return digests of values that stand one behind the other."""
    return [values[at : at + VALUE_BYTES] for at in range(0, len(values), VALUE_BYTES)]


def keys_of(said: bytes) -> list[bytes]:
    """Return digests of texts that stand one behind the other."""
    return [said[at : at + KEY_BYTES] for at in range(0, len(said), KEY_BYTES)]


def _latest(before: bytes, new: bytes) -> bytes:
    """Return digests of texts, those that are new behind all others."""
    latest = dict.fromkeys(keys_of(new))
    return b"".join((*(key for key in keys_of(before) if key not in latest), *latest))[-MOST_SENT * KEY_BYTES :]


def _all_fired(turn: Turn) -> tuple[str, ...]:
    return (*turn.fired, *(rule for said in turn.said for rule in said.fired))


def _weight(score: float) -> float:
    return min(max(0.0, (score - FLOOR) / (1.0 - FLOOR)), MOST)


def _keys(texts: bytes) -> set[bytes]:
    return set(keys_of(texts))


def _count(counts: dict[str, int], names: Sequence[str]) -> None:
    for name in names:
        if name in counts or len(counts) < _MOST_NAMES:
            counts[name] = counts.get(name, 0) + 1
