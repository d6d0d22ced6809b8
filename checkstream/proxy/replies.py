"""The one table: an error class or a guard's `Reply` -> status, headers and body in the surface's own form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec
from aiohttp.web import Response
from multidict import CIMultiDict

from checkstream.core.commands import Reply
from checkstream.errors import (
    AuditError,
    BenchError,
    BodyTooLarge,
    BodyTooSlow,
    BundleError,
    CallerUnknown,
    CertificateUnusable,
    ChatError,
    CheckstreamError,
    CodeInvalid,
    ConfigError,
    ControlError,
    EventTooLarge,
    EvidenceError,
    ExpressionError,
    FaultyFile,
    FileUnreadable,
    FingerprintsInvalid,
    GateError,
    HostForeign,
    JobError,
    MediaRefused,
    MethodWrong,
    MetricsUnreadable,
    ModelError,
    NamesUnreadable,
    NoticeUnsent,
    NotReady,
    OriginForeign,
    Overloaded,
    PatternError,
    ProgramInvalid,
    ProviderUnusable,
    RequestInvalid,
    RequestRefused,
    RouteUnknown,
    ScoringError,
    SessionUnknown,
    TemplateError,
    ToolsUnreadable,
    UnmaskableError,
    UpstreamError,
    VaultFailed,
    WireError,
)
from checkstream.proxy.ids import identify

POLICY = "x-checkstream-policy"
ACTION = "x-checkstream-action"


class ErrorReply(msgspec.Struct, frozen=True):
    """How callers see one class of errors."""

    status: int
    kind: str
    retry_after_s: int | None = None
    own_words: bool = False
    """The error's message is written for the caller; else they get the class's general one."""
    message: str = "something inside failed; the operator's log says what"


TABLE: Mapping[type[CheckstreamError], ErrorReply] = {
    RouteUnknown: ErrorReply(404, "not_found", own_words=True),
    MethodWrong: ErrorReply(405, "method_not_allowed", own_words=True),
    SessionUnknown: ErrorReply(404, "session_unknown", own_words=True),
    CallerUnknown: ErrorReply(401, "authentication_error", own_words=True),
    BodyTooLarge: ErrorReply(413, "request_too_large", own_words=True),
    HostForeign: ErrorReply(421, "host_not_allowed", own_words=True),
    OriginForeign: ErrorReply(403, "origin_not_allowed", own_words=True),
    MediaRefused: ErrorReply(415, "invalid_request_error", own_words=True),
    BodyTooSlow: ErrorReply(408, "request_timeout", own_words=True),
    Overloaded: ErrorReply(429, "overloaded", own_words=True),
    NotReady: ErrorReply(503, "unavailable", 5, own_words=True),
    RequestRefused: ErrorReply(400, "invalid_request_error", own_words=True),
    RequestInvalid: ErrorReply(400, "invalid_request_error", own_words=True),
    EventTooLarge: ErrorReply(502, "upstream_error", message="the model server sent more than is allowed"),
    WireError: ErrorReply(502, "upstream_error", message="the model server sent what can't be read"),
    UpstreamError: ErrorReply(502, "upstream_error", message="the model server could not be reached"),
    ScoringError: ErrorReply(503, "guard_unavailable", 1, message="a check could not be completed; try again"),
    ChatError: ErrorReply(502, "judge_unavailable", message="the model that judges gave no answer; try again"),
    AuditError: ErrorReply(503, "unavailable", 5, message="requests can't be recorded now; try again later"),
    JobError: ErrorReply(503, "unavailable", 5, message="the queue of background jobs is out of use; try again later"),
    ToolsUnreadable: ErrorReply(
        503, "unavailable", 5, message="how tools were described can't be read; try again later"
    ),
    NamesUnreadable: ErrorReply(
        503, "unavailable", 5, message="the names of conversations can't be read; try again later"
    ),
    VaultFailed: ErrorReply(503, "unavailable", 5, message="the names of conversations can't be read; try again later"),
    EvidenceError: ErrorReply(503, "unavailable", 5, message="trusted documents can't be read now; try again later"),
    GateError: ErrorReply(400, "invalid_request_error", own_words=True),
    BenchError: ErrorReply(500, "internal_error"),
    BundleError: ErrorReply(500, "internal_error"),
    CertificateUnusable: ErrorReply(500, "internal_error"),
    ProviderUnusable: ErrorReply(500, "internal_error"),
    NoticeUnsent: ErrorReply(500, "internal_error"),
    ControlError: ErrorReply(500, "internal_error"),
    ConfigError: ErrorReply(400, "invalid_configuration", own_words=True),
    FaultyFile: ErrorReply(400, "invalid_file", own_words=True),
    PatternError: ErrorReply(500, "internal_error"),
    FingerprintsInvalid: ErrorReply(500, "internal_error"),
    ExpressionError: ErrorReply(500, "internal_error"),
    TemplateError: ErrorReply(500, "internal_error"),
    CodeInvalid: ErrorReply(500, "internal_error"),
    ProgramInvalid: ErrorReply(500, "internal_error"),
    FileUnreadable: ErrorReply(500, "internal_error"),
    MetricsUnreadable: ErrorReply(500, "internal_error"),
    UnmaskableError: ErrorReply(500, "internal_error"),
    ModelError: ErrorReply(500, "internal_error"),
    CheckstreamError: ErrorReply(500, "internal_error"),
}
"""A class that is not listed is shown as its nearest parent."""


class ErrorShape(Protocol):
    """The part of a surface that writes its error object."""

    id_headers: tuple[str, ...]

    def error_body(self, kind: str, message: str, rule_id: str | None = None) -> bytes:
        """Return the surface's error object."""


def row(error: BaseException) -> ErrorReply:
    """Return how callers see `error`; what is not ours is a bug, and shown as an internal error."""
    return next((TABLE[parent] for parent in type(error).__mro__ if parent in TABLE), TABLE[CheckstreamError])


def error_response(error: BaseException, shape: ErrorShape, headers: Mapping[str, str]) -> Response:
    """Return the whole response for an error before the first byte."""
    reply = row(error)
    message = str(error) if reply.own_words else reply.message
    sent = {**headers, "server": "checkstream", ACTION: reply.kind}
    if isinstance(error, Overloaded):
        sent["retry-after"] = str(error.retry_after_s)
    elif reply.retry_after_s is not None:
        sent["retry-after"] = str(reply.retry_after_s)
    if isinstance(error, MethodWrong) and error.args[1:]:
        sent["allow"] = ", ".join(error.args[1])
        message = str(error.args[0])
    identify(sent, shape.id_headers)
    return Response(
        status=reply.status,
        body=shape.error_body(reply.kind, message),
        headers=sent,
        content_type="application/json",
    )


def guard_response(reply: Reply, headers: Mapping[str, str]) -> Response:
    """Return the whole response that the guard asked for."""
    sent = CIMultiDict(headers)  # several of one name stay several, such as cookies
    sent[ACTION] = reply.action
    if reply.retry is not None:
        sent["x-should-retry"] = "true" if reply.retry else "false"
    if reply.retry_after_s is not None:
        sent.setdefault("retry-after", str(reply.retry_after_s))  # an upstream that says when is believed
    return Response(status=reply.status, body=reply.body, headers=sent, content_type="application/json")
