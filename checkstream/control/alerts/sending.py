"""Sends notices: to webhooks, to what speaks as Slack does, and by e-mail."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from typing import Protocol

import msgspec

from checkstream.control.alerts.standing import Notice
from checkstream.control.alerts.wording import letter, slack_body, webhook_body
from checkstream.errors import NoticeUnsent
from checkstream.webhooks import Hook, call, post

_MAIL_S = 15.0


class Sender(Protocol):
    """One way for notices to leave."""

    async def send(self, notice: Notice) -> None:
        """Send one.

        Raises:
            NoticeUnsent: it did not arrive, or nobody knows; sending it again is safe.
        """


class WebhookSender:
    """Calls a webhook, signed after Standard Webhooks."""

    def __init__(self, name: str, hook: Hook, runbook: str) -> None:
        """Call `hook`, which is called `name` where it fails."""
        self._name, self._hook, self._runbook = name, hook, runbook

    async def send(self, notice: Notice) -> None:
        """Send one; the receiver knows by its id what it has had.

        Raises:
            NoticeUnsent: the receiver can't be reached, or did not answer with 2xx.
        """
        body = webhook_body(notice, self._runbook)
        await call(self._name, self._hook, f"{self._name}:{notice.id}", int(notice.at_s), body)


class SlackSender:
    """Posts to an address that takes Slack's messages. The address itself is the secret."""

    def __init__(self, name: str, url: str, runbook: str) -> None:
        """Post to `url`, which is called `name` where it fails."""
        self._name, self._url, self._runbook = name, url, runbook

    async def send(self, notice: Notice) -> None:
        """Send one.

        Raises:
            NoticeUnsent: the receiver can't be reached, or did not answer with 2xx.
        """
        await post(self._name, self._url, {}, slack_body(notice, self._runbook))


class Mailbox(msgspec.Struct, frozen=True, kw_only=True):
    """A server that takes e-mail, and who writes to whom."""

    host: str
    port: int
    security: str
    """tls: from the first byte; starttls: after the greeting; none: only to this machine."""
    user: str = ""
    password: str = ""
    sender: str
    receiver: str
    """One address: where one of several is refused, the others would get it again and again."""


class MailSender:
    """Sends letters. Blocking work of the standard library, off the loop."""

    def __init__(self, name: str, mailbox: Mailbox, runbook: str) -> None:
        """Send by `mailbox`, which is called `name` where it fails."""
        self._name, self._mailbox, self._runbook = name, mailbox, runbook

    async def send(self, notice: Notice) -> None:
        """Send one.

        Raises:
            NoticeUnsent: the server can't be reached, or does not take it.
        """
        try:
            await asyncio.to_thread(self._send, notice)
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise NoticeUnsent(f"no e-mail can be sent by `{self._name}`: {type(error).__name__}; check it") from error

    def _send(self, notice: Notice) -> None:
        box = self._mailbox
        trusted = ssl.create_default_context()
        if box.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(box.host, box.port, timeout=_MAIL_S, context=trusted)
        else:
            server = smtplib.SMTP(box.host, box.port, timeout=_MAIL_S)
        with server:
            if box.security == "starttls":
                server.starttls(context=trusted)
            if box.user:
                server.login(box.user, box.password)
            server.send_message(letter(notice, box.sender, box.receiver, self._runbook))
