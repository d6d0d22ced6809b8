"""A control server's alerts, made of what its file says, and the turns in which they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from checkstream.config import ControlConfig, reveal
from checkstream.config.alerts import MailSettings, ReceiverSettings
from checkstream.control.alerts.conditions import Limits
from checkstream.control.alerts.sending import Mailbox, MailSender, Sender, SlackSender, WebhookSender
from checkstream.control.alerts.standing import Pace
from checkstream.control.server.acts import Acts
from checkstream.control.server.alerting import Alerting, Channel
from checkstream.control.server.database import Database
from checkstream.control.server.seen import facts_of
from checkstream.telemetry.logs import Log
from checkstream.webhooks import Hook, signing_key


def open_alerting(config: ControlConfig, database: Database, acts: Acts, now_ms: Callable[[], int]) -> Alerting:
    """Return the alerts of a control server. Blocks on files of secrets.

    Raises:
        ConfigError: a secret can't be read.
        NoticeUnsent: a webhook's secret holds no key.
    """
    settings = config.alerts
    channels = {
        name: Channel(sender, receiver.least)
        for given, receiver in settings.to.items()
        for name, sender in _senders(given, receiver, settings.runbook)
    }
    return Alerting(
        database,
        channels,
        partial(facts_of, config.fleets, settings.decision_ms, config.silent_s),
        record=acts.record,
        limits=_limits(config),
        pace=Pace(after_s=settings.after_s, calm_s=settings.calm_s, again_s=settings.again_s),
        now_ms=now_ms,
    )


def _limits(config: ControlConfig) -> Limits:
    settings = config.alerts
    return Limits(
        spike_ratio=settings.spike_ratio,
        spike_least=settings.spike_least,
        drift_sigma=settings.drift_sigma,
        chain_silent_s=config.silent_s,
        precision_points=settings.precision_points,
    )


def _senders(name: str, receiver: ReceiverSettings, runbook: str) -> Iterator[tuple[str, Sender]]:
    if receiver.webhook is not None:
        hook = Hook(receiver.webhook.url, signing_key(reveal(receiver.webhook.secret)))
        yield name, WebhookSender(name, hook, runbook)
    elif receiver.slack is not None:
        yield name, SlackSender(name, reveal(receiver.slack), runbook)
    elif receiver.mail is not None:
        for to in receiver.mail.to:
            yield f"{name}/{to}", MailSender(name, _mailbox(receiver.mail, to), runbook)


def _mailbox(mail: MailSettings, to: str) -> Mailbox:
    return Mailbox(
        host=mail.host,
        port=mail.port,
        security=mail.security,
        user=mail.user,
        password="" if mail.password is None else reveal(mail.password),
        sender=mail.sender,
        receiver=to,
    )


async def look(alerting: Alerting, log: Log) -> None:
    """Look at alerts once.

    Raises:
        ControlUnusable: the store can't be used.
    """
    for notice in await alerting.look():
        finding = notice.finding
        log.warning("alert", state=notice.event, key=finding.key, severity=finding.severity, says=finding.says)


async def send(alerting: Alerting) -> None:
    """Send what is due. Apart from looking, which waits for no receiver.

    Raises:
        ControlUnusable: the store can't be used.
    """
    while await alerting.send_due():
        pass
