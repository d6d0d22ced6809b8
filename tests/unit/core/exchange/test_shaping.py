from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.channel.actions import Ask
from checkstream.core.exchange.closing import Closing
from checkstream.core.exchange.ingress.shaping import Wishes
from checkstream.core.policy.action import (
    AdaptTone,
    AllowConstrained,
    AnyAction,
    ConstrainTools,
    InjectDisclaimer,
    LogEvent,
    LowerTemp,
    RequireDisclaimer,
    SafeMode,
)
from checkstream.core.wire.surface import Shaping
from tests.unit.core.exchange.test_closing import PAGE, ask


def wishes(*actions: AnyAction) -> Wishes:
    made = Wishes()
    for action in actions:
        made.add(ask(action), PAGE)
    return made


def test_nothing_asked_is_nothing_changed() -> None:
    assert wishes().shaping() is None
    assert wishes(LogEvent(), InjectDisclaimer(text="x")).shaping() is None
    assert not wishes().fixes_form


@pytest.mark.parametrize(
    ("actions", "shaping"),
    [
        ((LowerTemp(temperature=0.5), LowerTemp(temperature=0.2)), Shaping(max_temperature=0.2)),
        ((LowerTemp(temperature=0.0),), Shaping(max_temperature=0.0)),
        ((AdaptTone(instruction="For {model}."), AdaptTone(instruction="For m.")), Shaping(instructions=("For m.",))),
        ((AllowConstrained(grammar="g"), AllowConstrained(grammar="h")), Shaping(grammar="g")),
        (
            (SafeMode(bad_words=("x", "y"), instruction="Take care."), SafeMode(temperature=0.1, bad_words=("y", "z"))),
            Shaping(max_temperature=0.1, bad_words=("x", "y", "z"), instructions=("Take care.",)),
        ),
        (
            (
                SafeMode(logit_bias=((7, -100), (8, 5)), temperature=1),
                SafeMode(logit_bias=((7, 5), (9, 1)), temperature=1),
            ),
            Shaping(max_temperature=1, logit_bias=((7, -100), (8, 5), (9, 1))),
        ),
        ((ConstrainTools(allow=()),), Shaping(tools=())),
        ((ConstrainTools(allow=("a", "b*")), ConstrainTools(allow=("b*", "c"))), Shaping(tools=("b*",))),
        ((ConstrainTools(allow=("mail_*",)), SafeMode(temperature=2, tools=("mail_send",))),
         Shaping(max_temperature=2, tools=("mail_send",))),
    ],
)  # fmt: skip
def test_wishes_put_together(actions: tuple[AnyAction, ...], shaping: Shaping) -> None:
    assert wishes(*actions).shaping() == shaping
    if not any(isinstance(action, AllowConstrained | AdaptTone) for action in actions):
        assert wishes(*reversed(actions)).shaping() is not None


def test_texts_around_the_answer_stand_once() -> None:
    made = wishes(
        InjectDisclaimer(text="By {model}.", position="start"),
        InjectDisclaimer(text="By m.", position="start"),
        InjectDisclaimer(text="End."),
        RequireDisclaimer(text="End."),
        InjectDisclaimer(text="End."),
    )
    assert made.prefixes == ["By m.\n\n"]
    assert made.closings == [Closing("\n\nEnd."), Closing("\n\nEnd.", unless_said=True)]


def test_a_limit_says_what_stands_in_place_of_a_call_with_its_variables_filled() -> None:
    made = wishes(
        ConstrainTools(allow=("a",), message="Not with {model}."),
        SafeMode(tools=("b",), message="Not for {context.name}."),
    )
    assert [limit.message for limit in made.limits] == ["Not with m.", "Not for Ann."]


def test_what_the_answer_begins_with_is_handed_on() -> None:
    assert wishes().shaping("So far") == Shaping(continue_from="So far")


NAMES = st.sampled_from(("a", "ab", "abc", "b", "bc", "c", "ba"))
LIMITS = st.lists(
    st.lists(st.one_of(NAMES, NAMES.map(lambda name: f"{name}*")), max_size=3).map(tuple), min_size=1, max_size=3
)


@given(LIMITS, NAMES)
def test_what_is_left_of_several_limits_is_what_all_of_them_permit(limits: list[tuple[str, ...]], name: str) -> None:
    made = wishes(*(ConstrainTools(allow=allow) for allow in limits))
    shaping = made.shaping()
    assert shaping is not None
    assert shaping.tools is not None
    left = any(name.startswith(item[:-1]) if item.endswith("*") else name == item for item in shaping.tools)
    assert left == all(limit.permits(name) for limit in made.limits)


def test_an_ask_carries_its_rule_and_span() -> None:
    asked: Ask = ask(LogEvent())
    assert (asked.rule.id, asked.span.end) == ("R", 1)
