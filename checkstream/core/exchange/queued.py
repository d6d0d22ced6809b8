"""What classifiers are to be asked, and have not been yet, in its order.

A long answer that comes in one piece has a hundred thousand windows to ask about. Questions about one text that follow
each other are one run, so that a text which ends, or an exchange, is done with by runs and not by questions (G33).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from checkstream.core.channel.checks import Check
from checkstream.core.channel.judge import Judge
from checkstream.core.match.hidden import legible


class Question(msgspec.Struct, frozen=True, eq=False):
    """What classifiers are asked about: one text, or several short ones together."""

    ticket: int
    about: tuple[tuple[Judge, Check], ...]
    besides: str | None = None
    """A text that stands encoded in the one that it is about."""

    @property
    def judges(self) -> list[Judge]:
        """Whose texts they are."""
        return [judge for judge, _ in self.about]

    @property
    def chars(self) -> int:
        """How long they are together."""
        return sum(check.window.end - check.window.start for _, check in self.about)

    @property
    def texts(self) -> list[str]:
        """What each of them says."""
        return [_said(*pair) for pair in self.about] if self.besides is None else [legible(self.besides)]

    def matters(self, judges: Sequence[Judge]) -> bool:
        """Tell whether an answer still matters to some text, now that some judges have got further."""
        return any(judge not in judges or not check.over for judge, check in self.about)


def _said(judge: Judge, check: Check) -> str:
    """Return what classifiers are shown of a check's text, which may not have been fed yet."""
    return legible(judge.holdback.text(check.window)) if check.said is None else check.said


class _Run(msgspec.Struct, frozen=True, eq=False):
    """Questions about one text in its order, or one about several texts."""

    questions: deque[Question]

    def takes(self, question: Question) -> bool:
        """Tell whether a question goes on with it."""
        last, new = self.questions[-1].about, question.about
        return len(last) == len(new) == 1 and last[0][0] is new[0][0] and last[0][1].position <= new[0][1].position


class Queue:
    """Questions that wait."""

    __slots__ = ("_count", "_runs")

    def __init__(self) -> None:
        """Begin with none."""
        self._runs: deque[_Run] = deque()
        self._count = 0

    def __len__(self) -> int:
        """Return how many wait."""
        return self._count

    def put(self, question: Question) -> None:
        """Put a question behind all others."""
        self._count += 1
        if self._runs and self._runs[-1].takes(question):
            self._runs[-1].questions.append(question)
        else:
            self._runs.append(_Run(deque((question,))))

    def put_first(self, questions: Sequence[Question]) -> None:
        """Put questions before all others."""
        self._count += len(questions)
        self._runs.extendleft(_Run(deque((question,))) for question in reversed(questions))

    def take(self) -> Question:
        """Take the first one out; there is one."""
        self._count -= 1
        questions = self._runs[0].questions
        question = questions.popleft()
        if not questions:
            self._runs.popleft()
        return question

    def take_all(self) -> Iterable[deque[Question]]:
        """Take all out, in their order."""
        runs, self._runs, self._count = self._runs, deque(), 0
        return [run.questions for run in runs]

    def judges(self) -> Iterator[Judge]:
        """Yield whose texts are asked about, each once at least."""
        for run in self._runs:
            yield from run.questions[0].judges

    def forget(self, judges: Sequence[Judge]) -> list[deque[Question]]:
        """Leave out what can no longer matter to some judges; return it, or what of it is much."""
        runs, self._runs, self._count = self._runs, deque(), 0
        behind: list[deque[Question]] = []
        for run in runs:
            questions = run.questions
            while questions and not _behind(questions[0], judges):
                question = questions.popleft()
                if question.matters(judges):
                    self.put(question)
            if questions:
                behind.append(questions)  # so are all that follow, in the order of their text
        return behind


def _behind(question: Question, judges: Sequence[Judge]) -> bool:
    """Tell whether a question is about what stands behind the end of a text of these judges."""
    judge, check = question.about[0]
    return len(question.about) == 1 and check.behind and judge in judges
