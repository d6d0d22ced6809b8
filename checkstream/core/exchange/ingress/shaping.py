"""What the rules that fired on a prompt ask of the request and of every answer to it, put together."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from checkstream.core.channel.actions import Ask
from checkstream.core.channel.page import Page
from checkstream.core.exchange.closing import Closing, closing_of
from checkstream.core.policy.action import (
    AdaptTone,
    AllowConstrained,
    AttributeSources,
    ConstrainTools,
    InjectDisclaimer,
    LowerTemp,
    RequireDisclaimer,
    SafeMode,
)
from checkstream.core.policy.program import RuleMeta
from checkstream.core.wire.requests.tools import allowed
from checkstream.core.wire.surface import Document, Shaping


class ToolLimit(msgspec.Struct, frozen=True):
    """The only tools that the answer may call, and who says so."""

    rule: RuleMeta
    allow: tuple[str, ...]
    message: str

    def permits(self, name: str) -> bool:
        """Tell whether a tool may be called."""
        return allowed(name, self.allow)


class Wishes:
    """What policies ask of one exchange besides edits of its texts. Repeated wishes count once; the stricter wins."""

    def __init__(self) -> None:
        """Start with none."""
        self.prefixes: list[str] = []
        """Texts before every answer."""
        self.closings: list[Closing] = []
        """Texts behind every answer."""
        self.limits: list[ToolLimit] = []
        self._temperatures: list[float] = []
        self._bad_words: dict[str, None] = {}
        self._logit_bias: dict[int, int] = {}
        self._instructions: dict[str, None] = {}
        self._json_schema: str | None = None
        self._grammar: str | None = None

    def add(self, ask: Ask, page: Page, documents: Sequence[Document] = ()) -> None:
        """Take what a rule asks for; its texts are filled from `page`."""
        match ask.action:
            case InjectDisclaimer(text=text, position="start"):
                prefix = f"{page.fill(text, ask.firing)}\n\n"
                if prefix not in self.prefixes:
                    self.prefixes.append(prefix)
            case InjectDisclaimer() | RequireDisclaimer() | AttributeSources():
                closing = closing_of(ask, page, documents)
                if closing is not None and closing not in self.closings:
                    self.closings.append(closing)
            case ConstrainTools(allow=allow, message=message):
                self.limits.append(ToolLimit(ask.rule, allow, page.fill(message, ask.firing)))
            case LowerTemp(temperature=temperature):
                self._temperatures.append(temperature)
            case AllowConstrained():
                self._json_schema = self._json_schema or ask.action.json_schema
                self._grammar = self._grammar or ask.action.grammar
            case AdaptTone(instruction=instruction):
                self._instructions.setdefault(page.fill(instruction, ask.firing))
            case SafeMode():
                filled = msgspec.structs.replace(ask.action, message=page.fill(ask.action.message, ask.firing))
                self.be_safe(filled, ask.rule, page.fill(ask.action.instruction or "", ask.firing))
            case _:
                pass

    def be_safe(self, action: SafeMode, rule: RuleMeta, instruction: str) -> None:
        """Take the parameters of the safe mode; its message and `instruction` are filled."""
        self._temperatures.append(action.temperature)
        self._bad_words.update(dict.fromkeys(action.bad_words))
        for token, bias in action.logit_bias:
            self._logit_bias[token] = min(bias, self._logit_bias.get(token, bias))
        if action.tools is not None:
            self.limits.append(ToolLimit(rule, action.tools, action.message))
        if instruction:
            self._instructions.setdefault(instruction)

    @property
    def fixes_form(self) -> bool:
        """The answer is to have a fixed form."""
        return self._json_schema is not None or self._grammar is not None

    def shaping(self, continue_from: str | None = None) -> Shaping | None:
        """Return what is to be changed of the request, None when nothing is."""
        found = Shaping(
            max_temperature=min(self._temperatures, default=None),
            tools=None if not self.limits else tuple(sorted(_common(self.limits))),
            bad_words=tuple(self._bad_words),
            logit_bias=tuple(sorted(self._logit_bias.items())),
            json_schema=self._json_schema,
            grammar=self._grammar,
            instructions=tuple(self._instructions),
            continue_from=continue_from,
        )
        return None if found == Shaping() else found


def _common(limits: Sequence[ToolLimit]) -> set[str]:
    """Return the names and beginnings of names that every limit permits."""
    every = {item for limit in limits for item in limit.allow}
    return {item for item in every if all(_within(item, limit) for limit in limits)}


def _within(item: str, limit: ToolLimit) -> bool:
    """Tell whether a limit permits all that `item` stands for."""
    if not item.endswith("*"):
        return limit.permits(item)
    return any(other.endswith("*") and item[:-1].startswith(other[:-1]) for other in limit.allow)
