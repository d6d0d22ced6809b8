"""Tool calls that reach the caller whole or not at all: which of them are torn, and what stands in their place."""

from __future__ import annotations

from collections.abc import Generator, Iterable

from checkstream.core.channel.execution import NOT_ADDED
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.ingress.prompt import Prompt
from checkstream.core.exchange.json_texts import whether_json
from checkstream.core.exchange.meter import CHANNEL_WORK, Steps
from checkstream.core.exchange.midstream.choice import Choice

_BROKEN_OFF = "the upstream broke off in it"
_WITHHELD = {
    "not_json": "its arguments are no valid JSON",
    "length": f"{_BROKEN_OFF}, at its limit of length",
    "content_filter": f"{_BROKEN_OFF}, by a filter of its own",
}
"""Why the upstream's call is not in the answer, for its reader."""

_READ_WORK = 300
"""Of a step of reading arguments."""
_CLOSED = ("{", "[", '"')
"""How JSON begins that shows where it ends; a number may go on."""


def _being_whole(choice: Choice, number: int, *, over: bool) -> Generator[None, None, bool]:
    """Tell, in steps, whether a call of a choice that has ended is complete: nothing that is missing could change it.

    JSON that is closed is complete wherever the answer breaks off. Of what is not JSON frameworks make another
    call: they close it, or take characters off its end until it is JSON.

    Args:
        choice: Whose call it is.
        number: Which call.
        over: The choice has come to its end, so no call has to go on.
    """
    for judge in choice.calls[number]:
        holdback = judge.holdback
        if holdback.cut is not None and holdback.cut < holdback.received:
            return False
        told = judge.channel.kind == "tool_arguments" and not judge.channel.tells_ahead
        if told and number in choice.functions:
            text = choice.arguments(judge).strip()
            said = bool(text) and (yield from whether_json(text))
            if text and (not said or text.startswith(_CLOSED)):
                return said
    return number not in choice.torn and (over or number not in choice.calling)


class Calls:
    """The tool calls of one answer."""

    def __init__(self, prompt: Prompt, checking: Checking) -> None:
        """Begin with none.

        Args:
            prompt: Says whether the answer is to have a form, which no text may be put into.
            checking: Notes what is withheld.
        """
        self._prompt = prompt
        self._checking = checking

    def being_whole(self, choice: Choice, number: int) -> Generator[None, None, bool]:
        """Tell, in steps, whether nothing is missing of a call that is over."""
        self._checking.meter.spent += CHANNEL_WORK
        whole = _being_whole(choice, number, over=True)
        return (yield from self._checking.meter.stepping(whole, _READ_WORK))

    def drop(self, choice: Choice, number: int) -> None:
        """Let nothing of a tool call leave."""
        choice.dropped.add(number)
        for judge in choice.calls[number]:
            judge.holdback.stop(judge.holdback.sent)

    def dropping_torn(self, choice: Choice, *, over: bool) -> Generator[None, None, bool]:
        """Let nothing leave, in steps, of calls of which something is missing: frameworks mend half a call and run it.

        Args:
            choice: Whose calls.
            over: The choice has come to its end, so no call has to go on.

        Returns:
            Whether there were any.
        """
        torn = False
        for number in choice.calls.keys() - choice.dropped:
            whole = _being_whole(choice, number, over=over)
            if not (yield from self._checking.meter.stepping(whole, _READ_WORK)):
                torn = True
                self.drop(choice, number)
            self._checking.meter.spent += CHANNEL_WORK
            yield
        return torn

    def withholding_torn(self, choice: Choice, broken: str | None) -> Steps:
        """Drop what the upstream has left torn, and say so: in the record, and in the answer in place of the call."""
        if not (yield from self.dropping_torn(choice, over=broken is None)):
            return
        reason = broken or ("no_end" if choice.torn else "not_json")
        self.note(reason)
        self._say(choice, f"[a tool call was withheld: {_WITHHELD.get(reason, _BROKEN_OFF)}]", over=broken is None)

    def withhold(self, choice: Choice, numbers: Iterable[int], rule_id: str) -> None:
        """Drop calls of a choice that has ended, since a rule condemns what they say together, and say so."""
        for number in numbers:
            self.drop(choice, number)
        self.note("together")
        self._say(choice, f"[a tool call was withheld by policy: {rule_id}]", over=True)

    def _say(self, choice: Choice, why: str, *, over: bool) -> None:
        choice.calls_nothing = over and not choice.calls.keys() - choice.dropped
        if self._prompt.structured:
            self._checking.degrade(NOT_ADDED)
        else:
            choice.withheld = why

    def note(self, reason: str) -> None:
        """Note for the record, the metric and the caller that a call was withheld, and why."""
        self._checking.degrade(f"call_withheld:{reason}")
        self._checking.ledger.withheld = f"call_withheld:{reason}"
