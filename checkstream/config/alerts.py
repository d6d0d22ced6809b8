"""Settings of a control server's alerts: from where on something is one, and who is told."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from checkstream.config.background import WebhookSettings
from checkstream.config.parts import Name, Secret, Settings

Address = Annotated[str, Meta(pattern=r"\A[!#-'*+./0-9=?A-Z^_`a-z{|}~-]{1,64}@[A-Za-z0-9.-]{1,190}\Z")]
"""Of e-mail."""
_HERE = ("localhost", "127.0.0.1", "::1")


class MailSettings(Settings, frozen=True):
    """A server that takes e-mail, and who writes to whom."""

    host: Annotated[str, Meta(min_length=1, max_length=253)]
    sender: Address
    to: Annotated[tuple[Address, ...], Meta(min_length=1, max_length=50)]
    """Each gets a letter of its own."""
    port: Annotated[int, Meta(ge=1, le=65535)] = 587
    security: Literal["tls", "starttls", "none"] = "starttls"
    """tls: from the first byte, as port 465 has it; none: to this machine only."""
    user: str = ""
    password: Secret | None = None

    def __post_init__(self) -> None:
        """A password goes to nobody in the clear."""
        if self.security == "none" and self.host not in _HERE:
            raise ValueError(f"mail to `{self.host}` would go in the clear; write `security: starttls`, or `tls`")
        if bool(self.user) != (self.password is not None):
            raise ValueError("`user` and `password` belong together; write both, or neither")


class ReceiverSettings(Settings, frozen=True):
    """One way for alerts to leave: exactly one of `webhook`, `slack` and `mail`."""

    webhook: WebhookSettings | None = None
    """Gets JSON, signed after Standard Webhooks."""
    slack: Secret | None = None
    """Where the address of an incoming webhook is read from, of Slack or of what takes its messages; whoever knows it
    can write there."""
    mail: MailSettings | None = None
    """Gets letters."""
    least: Literal["ticket", "page"] = "ticket"
    """page: hears only of what somebody should look at now."""

    def __post_init__(self) -> None:
        """One way."""
        if sum(way is not None for way in (self.webhook, self.slack, self.mail)) != 1:
            raise ValueError("a receiver has exactly one of `webhook`, `slack` and `mail`")


class AlertSettings(Settings, frozen=True):
    """What people are told unasked. The guide says what each alert means."""

    to: Annotated[dict[Name, ReceiverSettings], Meta(max_length=20)] = msgspec.field(default_factory=dict)
    """Who is told. Nobody: alerts stand in `GET /v1/alerts` alone."""
    every_s: Annotated[int, Meta(ge=1, le=3600)] = 15
    """Time between two looks."""
    after_s: Annotated[int, Meta(ge=0, le=86_400)] = 120
    """A trouble that doesn't page is told when it is as old as that."""
    calm_s: Annotated[int, Meta(ge=0, le=86_400)] = 300
    """A trouble is over when nothing of it was seen for so long."""
    again_s: Annotated[int, Meta(ge=60, le=30 * 86_400)] = 14_400
    """A trouble that lasts is told again after this."""
    spike_ratio: Annotated[float, Meta(gt=1, le=1000)] = 10.0
    """So many times its baseline the number of exchanges of high risk in 5 minutes is too much."""
    spike_least: Annotated[int, Meta(ge=1)] = 10
    """Fewer exchanges are none."""
    drift_sigma: Annotated[float, Meta(gt=0, le=100)] = 3.0
    """Standard deviations of the hours before, by which the mean score of an hour may be off."""
    decision_ms: Annotated[float, Meta(gt=0)] = 15.0
    """What 95 % of decisions may take."""
    precision_points: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    """By how much the precision of a rule may fall from one week to the next."""
    runbook: Annotated[str, Meta(max_length=500)] = "deploy/RUNBOOK.md"
    """Where it says what to do; stands in each notice, followed by `#` and the alert's name."""

    def __post_init__(self) -> None:
        """It stands in heads and messages as one word."""
        if not self.runbook.isprintable() or " " in self.runbook:
            raise ValueError(f"`{self.runbook}` is no address; write one without spaces and line breaks")
