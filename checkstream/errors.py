"""Every error that the project raises, in one tree.

CheckstreamError
├── FaultyFile              a file that a person wrote is wrong; carries every fault of it
│   ├── ConfigError         the configuration
│   ├── PolicyError         a policy file
│   └── CasesError          the test cases beside a policy
├── ExpressionError         a condition can't be read, or its types don't agree; says at which character
├── TemplateError           a text has a variable that can't be read or isn't known; says at which character
├── CodeInvalid             compiled conditions are not safe to run
├── ProgramInvalid          a stored program can't be trusted or read
├── FileUnreadable          a file that a command was given is not there or can't be read
├── MetricsUnreadable       what a proxy counts can't be had, or is not what a command needs
├── PatternError            a pattern can't be compiled or has no bound
│   └── PatternSyntaxError  a pattern is not RE2 as we read it; says at which character
├── FingerprintsInvalid     a file of fingerprints is none, is damaged, or can't be made
├── WireError               bytes from outside don't follow their protocol
│   ├── Unremovable         what policies remove of a request can't go without what stands around it
│   ├── EventTooLarge       one SSE event passed its cap
│   └── RequestInvalid      a caller's request body is not what its surface accepts
├── RequestRefused          the proxy does not take this request; nothing was sent to the upstream
│   ├── RouteUnknown        no route matches
│   ├── MethodWrong         the path is known, the method is not
│   ├── SessionUnknown      the session of a server of tools is another caller's, or none
│   ├── CallerUnknown       no key, or a key that nobody has
│   │   └── TokenRefused    a token is none of the provider that the operator trusts, or its time is not now
│   │       └── KeyUnknown  it names a key that the provider had not when it was asked last
│   ├── BodyTooLarge        the request's body passes its cap
│   ├── HostForeign         a request without a key was meant for another machine's name
│   ├── OriginForeign       a page of another site asks where nobody needs a key
│   ├── MediaRefused        the request's body is said to be what two readers could read differently
│   ├── BodyTooSlow         the request's body did not arrive in time
│   ├── Overloaded          a cap on streams or held bytes is reached
│   ├── TookTooLong         an answer of the scoring API was not ready in time
│   └── NotReady            draining, or the audit chain can't be written
├── UpstreamError           the model server failed
├── ScoringError            a classifier gave no usable score
├── ChatError               a language model that was asked gave no usable answer
├── UnmaskableError         an exchange can't be recorded without what must not be kept
├── ModelError              a model's manifest or files can't be trusted or read
├── NamesUnreadable         what stands for whose data in a conversation is not what was kept
├── ToolsUnreadable         how the tools of a server were described is not what was kept
├── VaultFailed             what is sealed for conversations can't be read or kept
├── JobError                the background queue can't do what it was asked
│   ├── JobInvalid          a job can't be read, is too large, or nobody here can do it
│   └── StoreFailed         the queue's store can't be used; whether the call was carried out is not known
├── EvidenceError           trusted documents can't be kept or searched
│   ├── StoreUnusable       the store can't be reached, or holds what this version or embedder can't use
│   ├── SourceRefused       a source is not allowed: its kind, its host, its address, its size
│   └── DocumentUnreadable  a document can't be fetched or read; the others go on
├── GateError               the reliability gate can't read what it is asked, or a step of it failed
│   ├── StepFailed          one item of a step failed, and with it the run; names both
│   └── RunsUnusable        the file that runs are kept in can't be opened, read or written
├── AuditError              the audit chain is broken or can't be written
├── CertificateUnusable     certificates or keys of TLS can't be read, or don't go together
├── ProviderUnusable        an OpenID provider can't be reached, or says what can't be used
├── NoticeUnsent            a notice did not reach whom it is for, or nobody could know it for ours
├── BundleError             a bundle of policies can't be made, signed, published or fetched
│   ├── BundleRefused       it, or what vouches for it, is not what may be trusted
│   └── BundleUnreachable   where bundles come from can't be read now
├── ControlError            the control server, or a node's agent, can't do what it was asked
│   ├── ActForbidden        who asks may not do this
│   ├── NodeRefused         a node is not who it says, or not what its fleet allows
│   ├── ActConflicts        it does not go with how things stand, such as a rollout beside another
│   ├── ThingUnknown        there is no fleet, rollout or node of this name
│   └── ControlUnusable     the control server's store can't be used, or the server can't be reached
└── BenchError              a scenario of the bench is faulty, or what it measures does not start

Blocked content is a `Verdict`, never an exception. Messages are lower case, without a full stop,
with user input in backticks, and say what to do.
"""

from __future__ import annotations

from typing import Literal

import msgspec

ScoringReason = Literal["deadline", "crash", "garbage", "rested", "overload"]
"""Why there is no score. The first four say that the detector is broken: it was worked on for too long or hung, it
crashed, it answered nonsense, or it failed so often that it is not asked for a while. `overload` says that there is too
much to do, or that no more is taken: the detector is none the worse."""


class CheckstreamError(Exception):
    """Any error that the project raises on purpose; everything else is a bug."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong in a file that a person wrote."""

    file: str
    """Name of the file as the user gave it."""
    line: int = 0
    """Line, from 1; 0 when the fault is about the whole file."""
    column: int = 0
    """Column, from 1; 0 when the fault is about a whole line or file."""
    reason: str
    """What is wrong, with the user's input in backticks."""
    advice: str = ""
    """What to do about it."""
    source: str = ""
    """The line as it stands in the file, for the caret."""

    def render(self) -> str:
        """Return `file:line:column: reason; advice`, then the source line with a caret under the fault."""
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        head = f"{place}: {self.reason}" + (f"; {self.advice}" if self.advice else "")
        if not self.source:
            return head
        return f"{head}\n  {self.source}\n  {' ' * max(self.column - 1, 0)}^"


class FaultyFile(CheckstreamError):
    """A file with one or more faults, all of them reported at once."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        """Carry `faults` (at least one) and render them one below the other."""
        super().__init__("\n".join(fault.render() for fault in faults))
        self.faults = faults


class ConfigError(FaultyFile):
    """The configuration can't be used."""


class PolicyError(FaultyFile):
    """A policy file can't be used."""


class CasesError(FaultyFile):
    """A file of test cases can't be used."""


class ExpressionError(CheckstreamError):
    """A condition that can't be read or whose types don't agree; whoever knows its file makes a `Fault` of it."""

    def __init__(self, reason: str, position: int, advice: str = "") -> None:
        """Carry what is wrong, at which code point of the expression (`position`, from 0), and what to do."""
        super().__init__(f"character {position + 1}: {reason}" + (f"; {advice}" if advice else ""))
        self.reason = reason
        self.position = position
        self.advice = advice


class TemplateError(CheckstreamError):
    """A text whose variables can't be read; whoever knows its file makes a `Fault` of it."""

    def __init__(self, reason: str, position: int, advice: str = "") -> None:
        """Carry what is wrong, at which code point of the text (`position`, from 0), and what to do."""
        super().__init__(f"character {position + 1}: {reason}" + (f"; {advice}" if advice else ""))
        self.reason = reason
        self.position = position
        self.advice = advice


class CodeInvalid(CheckstreamError):
    """Compiled conditions that could leave the machine's bounds or never end; nothing of them is run."""


class ProgramInvalid(CheckstreamError):
    """A stored program is damaged, from another version, or could leave the machine's bounds; nothing of it is run."""


class FileUnreadable(CheckstreamError):
    """A file that a command was given is not there or can't be read."""


class MetricsUnreadable(CheckstreamError):
    """What a proxy counts can't be had, or is not what a command needs."""


class PatternError(CheckstreamError):
    """A pattern is not valid RE2, can't be given a live-prefix companion, or has no bound on its length."""


class PatternSyntaxError(PatternError):
    """A regular expression that can't be read; says where and why."""

    def __init__(self, regex: str, position: int, reason: str) -> None:
        """Carry the place (`position`, from 0) and render the expression with a caret under it."""
        shown = "".join(char if char.isprintable() else " " for char in regex)
        start = max(0, position - 60)
        caret = " " * (position - start) + "^"
        super().__init__(f"pattern at character {position + 1}: {reason}\n  {shown[start : position + 60]}\n  {caret}")
        self.regex = regex
        self.position = position
        self.reason = reason


class FingerprintsInvalid(CheckstreamError):
    """A file of fingerprints is none, is damaged or of another version, or can't be made of what was given."""


class WireError(CheckstreamError):
    """Bytes from outside don't follow their protocol."""


class Unremovable(WireError):
    """What policies remove of a request can't go without what stands around it."""

    def __init__(self, message: str, path: tuple[str | int, ...]) -> None:
        """Say why it has to stay, and where it is."""
        super().__init__(message)
        self.path = path


class EventTooLarge(WireError):
    """One SSE event is larger than the configured cap."""


class RequestInvalid(WireError):
    """A request body is not what its surface accepts; the caller gets a 400 that says why."""


class RequestRefused(CheckstreamError):
    """The proxy does not take this request; nothing was sent to the upstream."""


class RouteUnknown(RequestRefused):
    """No route matches the request."""


class MethodWrong(RequestRefused):
    """A route matches the path, but not with this method."""


class SessionUnknown(RequestRefused):
    """The request names a session of a server of tools, or an event of one, that its caller was never given."""


class CallerUnknown(RequestRefused):
    """The request has no key, or one that no caller has."""


class TokenRefused(CallerUnknown):
    """A token is none, or none of the provider that the operator trusts, or its time is not now."""


class KeyUnknown(TokenRefused):
    """A token names a key that the provider had not when it was asked last."""


class BodyTooLarge(RequestRefused):
    """The request's body is larger than the configured cap."""


class HostForeign(RequestRefused):
    """A request without a key was meant for another machine's name."""


class OriginForeign(RequestRefused):
    """A page of another site asks where nobody needs a key."""


class MediaRefused(RequestRefused):
    """The request's body is said to be what two readers could read differently."""


class BodyTooSlow(RequestRefused):
    """The request's body did not arrive in time."""


class Overloaded(RequestRefused):
    """A cap of the process is reached; the caller may try again later."""

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        """Say what is full; `retry_after_s` is when there may be room again."""
        super().__init__(message)
        self.retry_after_s = retry_after_s


class TookTooLong(RequestRefused):
    """What a request of the scoring API asked for was not ready in time."""


class NotReady(RequestRefused):
    """The process is ending, or can't record what it does."""


class UpstreamError(CheckstreamError):
    """The model server could not be reached or broke off."""

    def __init__(
        self, detail: str, *, kind: Literal["connect", "first_byte", "idle", "reset", "protocol"] = "protocol"
    ) -> None:
        """Say what happened; `kind` is what `UpstreamFailed` carries on to the guard."""
        super().__init__(detail)
        self.kind: Literal["connect", "first_byte", "idle", "reset", "protocol"] = kind


class ScoringError(CheckstreamError):
    """A classifier gave no usable score; the rule's fail mode decides what follows (G23)."""

    def __init__(self, message: str, *, reason: ScoringReason) -> None:
        """Say what happened; `reason` is what `ScoringFailed` carries on to the guard."""
        super().__init__(message)
        self.reason: ScoringReason = reason


class ChatError(CheckstreamError):
    """A language model that was asked (a judge, a model on trial) gave no usable answer."""

    def __init__(self, message: str, *, reason: Literal["deadline", "unreachable", "refused", "garbage"]) -> None:
        """Say what happened; `reason` is what a result that goes on without it names."""
        super().__init__(message)
        self.reason: Literal["deadline", "unreachable", "refused", "garbage"] = reason


class UnmaskableError(CheckstreamError):
    """An exchange holds what can't be read, so personal data in it can't be masked; it is not recorded."""


class ModelError(CheckstreamError):
    """A model's manifest or files can't be trusted or read; nothing of it is used."""


class JobError(CheckstreamError):
    """The background queue can't do what it was asked."""


class JobInvalid(JobError):
    """A job can't be read, is too large, or nobody here can do it; trying again would not help."""


class NamesUnreadable(CheckstreamError):
    """What is kept of a conversation says not what stands for whose data."""


class ToolsUnreadable(CheckstreamError):
    """What is kept of a server of tools says not how they were described."""


class VaultFailed(CheckstreamError):
    """A store of what is sealed can't be opened, read or written, or its content not be opened."""


class StoreFailed(JobError):
    """The queue's store can't be opened, read or written; whether the call was carried out is not known."""


class GateError(CheckstreamError):
    """The reliability gate can't read what it is asked, or a step of it failed."""


class StepFailed(GateError):
    """One item of a step of the gate failed, and with it the run."""

    def __init__(self, step: str, item: str, reason: str, *, told: str | None = None) -> None:
        """Say that `item` of `step` failed for `reason`; whoever isn't the operator is told `told` in its place."""
        where = f"step `{step}` failed at item `{item}`: "
        super().__init__(where + reason)
        self.step = step
        self.item = item
        self.told = where + (told or reason)


class RunsUnusable(GateError):
    """The file that runs of the gate are kept in can't be opened, read or written."""


class AuditError(CheckstreamError):
    """The audit chain is broken or can't be written."""


class ProviderUnusable(CheckstreamError):
    """An OpenID provider can't be reached, or says what can't be used."""


class CertificateUnusable(CheckstreamError):
    """Certificates or keys of TLS can't be read, or don't go together."""


class NoticeUnsent(CheckstreamError):
    """A notice did not reach whom it is for, or nobody could know it for ours."""


class EvidenceError(CheckstreamError):
    """Trusted documents can't be kept or searched."""


class StoreUnusable(EvidenceError):
    """The store of evidence can't be reached, or holds what this version or this embedder can't use."""


class SourceRefused(EvidenceError):
    """A source of documents is not allowed, or is more than what is taken."""


class DocumentUnreadable(EvidenceError):
    """A document can't be fetched or read."""


class BenchError(CheckstreamError):
    """A scenario of the bench is faulty, or what it measures does not start."""


class BundleError(CheckstreamError):
    """A bundle of policies can't be made, signed, published or fetched."""


class BundleRefused(BundleError):
    """A bundle, or what vouches for it, is not what may be trusted."""


class BundleUnreachable(BundleError):
    """Where bundles come from can't be read now."""


class ControlError(CheckstreamError):
    """The control server, or the agent of a node, can't do what it was asked."""


class ActForbidden(ControlError):
    """Who asks may not do this."""


class NodeRefused(ControlError):
    """A node is not who it says it is, or is not what its fleet allows."""


class ActConflicts(ControlError):
    """What was asked does not go with how things stand."""


class ThingUnknown(ControlError):
    """There is no fleet, rollout or node of this name."""


class ControlUnusable(ControlError):
    """The store of the control server can't be used, or the server can't be reached."""
