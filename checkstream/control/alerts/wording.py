"""Notices as those who get them read them: the JSON of a webhook, a message for Slack, a letter. Pure.

A finding's sentence is ours, but the names in it (nodes, routes, rules) are others': each form escapes them.

Source: Standard Webhooks 1.0 (payload); Slack's incoming webhooks and message text; RFC 5322 and 3834 (letters).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

import msgspec

from checkstream.control.alerts.conditions import Kind
from checkstream.control.alerts.standing import Notice

RUNBOOK = "deploy/RUNBOOK.md"
"""Says what to do about each kind; a file of the project, or where an operator has put a copy."""
TITLES: Mapping[Kind, str] = {
    "high_risk_spike": "many exchanges of high risk",
    "score_drift": "scores have drifted",
    "decision_latency": "decisions take too long",
    "chain_broken": "an audit chain is broken",
    "chain_silent": "an audit chain is silent",
    "node_refused": "a node is not let in",
    "node_stale": "a node is not heard of",
    "node_astray": "a node has another bundle",
    "precision_fall": "a rule finds less of what is right",
    "violations_burn_fast": "much has left that should not have",
    "violations_burn_slow": "more has left than should have",
    "cutoff_burn_fast": "many answers are stopped late",
    "cutoff_burn_slow": "more answers are stopped late than should be",
}
_WORDS = {"fired": "", "reminded": "still: ", "recovered": "over: "}
_MOST_SUBJECT = 160
"""Characters of a subject's name in a title."""


def title(notice: Notice) -> str:
    """Return a notice in one line, without line breaks and controls."""
    subject = "".join(c if c.isprintable() else "?" for c in notice.finding.subject)[:_MOST_SUBJECT]
    return f"{_WORDS[notice.event]}{TITLES[notice.finding.kind]} ({subject})"


def webhook_body(notice: Notice, runbook: str = RUNBOOK) -> bytes:
    """Return the payload of a Standard Webhook: `type`, `timestamp`, `data`."""
    finding = notice.finding
    return msgspec.json.encode(
        {
            "type": f"alert.{notice.event}",
            "timestamp": _iso(notice.at_s),
            "data": {
                "key": finding.key,
                "kind": finding.kind,
                "severity": finding.severity,
                "subject": finding.subject,
                "title": title(notice),
                "says": finding.says,
                "since": _iso(notice.since_s),
                "runbook": _at(runbook, notice),
            },
        }
    )


def slack_body(notice: Notice, runbook: str = RUNBOOK) -> bytes:
    """Return a message in the JSON that Slack's incoming webhooks take, and others after them.

    Its blocks are plain text, in which nothing is a link or a mention; `text` is for receivers that know no blocks.
    """
    finding = notice.finding
    context = f"{finding.severity}, since {_iso(notice.since_s)}; what to do: {_at(runbook, notice)}"
    escaped = title(notice).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return msgspec.json.encode(
        {
            "text": escaped,
            "blocks": [
                {"type": "header", "text": _plain(title(notice), 150)},
                {"type": "section", "text": _plain(finding.says, 3000)},
                {"type": "context", "elements": [_plain(context, 2000)]},
            ],
        }
    )


def _plain(text: str, most: int) -> dict[str, str]:
    """Return Slack's object for plain text, which may have so many characters."""
    return {"type": "plain_text", "text": text if len(text) <= most else text[: most - 1] + "\u2026"}


def letter(notice: Notice, sender: str, receiver: str, runbook: str = RUNBOOK) -> EmailMessage:
    """Return a notice as an e-mail. Sent again it has the same `Message-ID`, so it is shown once.

    Args:
        notice: What it says.
        sender: Address.
        receiver: Address.
        runbook: Where it says what to do.
    """
    message = EmailMessage(policy=SMTP)
    own = Address(addr_spec=sender)
    message["From"] = own
    message["To"] = Address(addr_spec=receiver)
    message["Subject"] = f"[checkstream] {title(notice)}"
    message["Date"] = datetime.fromtimestamp(notice.at_s, UTC)
    digest = hashlib.sha256(notice.id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    message["Message-ID"] = f"<{digest}@{own.domain}>"
    message["Auto-Submitted"] = "auto-generated"
    finding = notice.finding
    lines = (
        finding.says.encode("utf-8", "replace").decode(),
        "",
        f"Severity: {finding.severity}",
        f"Since: {_iso(notice.since_s)}",
        f"Key: {finding.key.encode('utf-8', 'replace').decode()}",
        f"What to do: {_at(runbook, notice)}",
    )
    message.set_content("\n".join(lines))
    return message


def _at(runbook: str, notice: Notice) -> str:
    return f"{runbook}#{notice.finding.kind.replace('_', '-')}"


def _iso(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
