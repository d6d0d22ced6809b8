"""The prompt of one exchange: read, judged channel by channel, then forwarded or refused."""

from __future__ import annotations

import msgspec

from checkstream.core.actions import disclaimer_text
from checkstream.core.checking import Checking
from checkstream.core.judge import Judge
from checkstream.core.plan import Plan
from checkstream.core.policy.program import Reject, RuleMeta
from checkstream.core.terms import Stage
from checkstream.core.wire.surface import Request, Surface
from checkstream.errors import RequestInvalid


class Refusal(msgspec.Struct, frozen=True):
    """Why a prompt is not forwarded."""

    status: int
    kind: str
    message: str
    rule_id: str | None = None


class Prompt:
    """A request on its way to the upstream."""

    def __init__(self, surface: Surface, plan: Plan, checking: Checking) -> None:
        """Start before the request.

        Args:
            surface: The API that the caller speaks.
            plan: What the route asks for.
            checking: Makes judges and asks classifiers.
        """
        self.prefixes: list[str] = []
        """Disclaimers that the prompt's rules put before every answer."""
        self.suffixes: list[str] = []
        """Disclaimers that they put behind it."""
        self.request: Request | None = None
        self._surface = surface
        self._plan = plan
        self._checking = checking
        self._judges: list[Judge] = []
        self._rejects: list[tuple[RuleMeta, Reject]] = []
        self._failed: RuleMeta | None = None

    def take(self, body: bytes) -> Refusal | None:
        """Read the body and begin to judge it; return why it is refused, if that is clear already."""
        try:
            request = self._surface.read_request(body)
        except RequestInvalid as error:
            return Refusal(400, "invalid_request_error", str(error))
        self.request = request
        fault = self._fault(request)
        if fault is not None:
            return fault
        for delta in request.unit.deltas:
            judge = self._checking.judge(delta, Stage.INGRESS, grid=False)
            self._judges.append(judge)
            checks = judge.feed(delta.text)
            self._checking.ask(judge, [*checks, *judge.holdback.end()])
        for judge in self._judges:
            self.rule(judge)
        return None

    def _fault(self, request: Request) -> Refusal | None:
        """Return why the request may not be forwarded, whatever the policy says."""
        chars = sum(len(delta.text) for delta in request.unit.deltas)
        if chars > self._plan.prompt_chars:
            limit = self._plan.prompt_chars
            return Refusal(
                413, "prompt_too_large", f"the prompt has {chars} characters, the limit is {limit}; send less"
            )
        if request.unknown_fields:
            names = ", ".join(f"`{name}`" for name in request.unknown_fields)
            if self._plan.fail_mode == "closed":
                return Refusal(
                    400, "unknown_field", f"fields that can't be checked are not forwarded: {names}; leave them out"
                )
            for name in request.unknown_fields:
                self._checking.ledger.unscanned(f"ingress:{name}")
        for name in request.unit.unscanned:
            if self._plan.parts == "refuse":
                return Refusal(
                    400, "unsupported_part", f"`{name}` can't be checked and this route refuses it; send text only"
                )
            self._checking.ledger.unscanned(f"ingress:{name}")
        return None

    def rule(self, judge: Judge) -> None:
        """Take the decisions of one channel that can be taken now."""
        for ruling in self._checking.advance(judge):
            if ruling.outcome.reject is not None:
                self._rejects.append(ruling.outcome.reject)
            self._failed = self._failed or ruling.failed
            for disclaimer in ruling.outcome.disclaimers:
                texts = self.prefixes if disclaimer.position == "start" else self.suffixes
                text = disclaimer_text(disclaimer)
                if text not in texts:
                    texts.append(text)

    @property
    def refusal(self) -> Refusal | None:
        """Why the judged prompt is refused; None when it may be forwarded."""
        if self._rejects:
            rule, reject = self._rejects[0]
            return Refusal(reject.status, "request_blocked", reject.message, rule.id)
        if self._failed is not None:
            message = "a check of the prompt could not be completed; try again later"
            return Refusal(503, "guard_unavailable", message, self._failed.id)
        return None

    def render(self, request: Request) -> bytes:
        """Return the body as it is forwarded: as it came where no rule has changed it."""
        texts = {
            place: judge.holdback.render(0, judge.holdback.received)
            for place, judge in enumerate(self._judges)
            if judge.holdback.changed(0, judge.holdback.received)
        }
        return self._surface.write_request(request, texts)

    @property
    def chars(self) -> int:
        """Characters of text in the prompt."""
        return sum(judge.holdback.received for judge in self._judges)
