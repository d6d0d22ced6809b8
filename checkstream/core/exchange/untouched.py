"""A short whole answer about which nothing is to be decided: it leaves as it came, and no judge is made for it.

INVARIANT: nobody can see whether an answer was taken so: the same commands come, and the record says the same.
"""

from __future__ import annotations

from collections.abc import Generator

from checkstream.core.exchange.course import Course
from checkstream.core.exchange.meter import CHANNEL_WORK
from checkstream.core.exchange.silent import SHORT_CHARS, finding_nothing
from checkstream.core.terms import Channel, Stage, Unit


def leaving_as_it_came(course: Course, unit: Unit) -> Generator[None, None, bool]:
    """Let a whole answer leave as it came, in steps, if nothing is to be decided about it; tell whether it does."""
    if not _says_one_text(unit) or not _asks_nothing(course) or (unit.kept_as and course.plan.keeps_names):
        return False
    program, meter, text = course.plan.program, course.checking.meter, unit.deltas[0].text
    midstream, egress = program.scope(Stage.MIDSTREAM, "content"), program.scope(Stage.EGRESS, "content")
    if midstream.hold_classifiers or any(each.watch_classifiers or each.bare for each in (midstream, egress)):
        return False
    for patterns in (midstream.hold, midstream.watch, egress.watch):
        if not (yield from finding_nothing(patterns, text, meter)):
            return False
    meter.spent += CHANNEL_WORK
    course.ledger.read(Stage.MIDSTREAM, "content", len(text))
    if len(egress.watch):
        course.ledger.read(Stage.EGRESS, "content")
    course.prompt.conversation.keep_as(unit.kept_as)
    course.writer.hand_over(unit.choices[0], text)
    course.whole.leave_as_it_came(unit, course.now)
    return True


def _says_one_text(unit: Unit) -> bool:
    """Tell whether a whole answer is one choice that says one short text, and nothing of it is to be noted."""
    if len(unit.deltas) != 1 or len(unit.choices) != 1 or unit.finished != unit.choices or unit.terminator:
        return False
    if unit.failure is not None or unit.unscanned or unit.sealed or unit.stray:
        return False
    delta = unit.deltas[0]
    return delta.channel == Channel("content", unit.choices[0]) and 0 < len(delta.text) <= SHORT_CHARS


def _asks_nothing(course: Course) -> bool:
    """Tell whether nothing was said before, and rules on the prompt want nothing of the answer."""
    wishes = course.prompt.wishes
    if wishes.prefixes or wishes.closings or len(course.checking.register):
        return False
    return not (course.answer.choices or course.answer.common.closings or course.whole.turned)
