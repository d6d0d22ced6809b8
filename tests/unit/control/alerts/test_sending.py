from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from email import message_from_bytes
from email.policy import default

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.alerts.conditions import Finding
from checkstream.control.alerts.sending import Mailbox, MailSender, SlackSender, WebhookSender
from checkstream.control.alerts.standing import Event, Notice
from checkstream.control.alerts.wording import letter, slack_body, title, webhook_body
from checkstream.errors import NoticeUnsent
from checkstream.webhooks import Hook, sign

RUNBOOK = "https://docs.example/RUNBOOK.md"


def notice(subject: str = "eu-1", event: Event = "fired") -> Notice:
    finding = Finding(kind="node_stale", severity="page", subject=subject, says=f"nothing was heard of {subject}")
    return Notice(event=event, finding=finding, since_s=1_700_000_000, at_s=1_700_000_060)


class Inbox:
    """A server of somebody's that takes JSON, or e-mail."""

    def __init__(self) -> None:
        self.calls: list[tuple[dict[str, str], bytes]] = []
        self.letters: list[bytes] = []
        self.receivers: list[str] = []
        self.status = 204
        self.refuses = False
        self.url = ""
        self.port = 0

    async def answer(self, request: web.BaseRequest) -> web.Response:
        self.calls.append(({name.lower(): value for name, value in request.headers.items()}, await request.read()))
        return web.Response(status=self.status)

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak as much of SMTP as it takes to be sent a letter."""
        writer.write(b"220 here\r\n")
        while line := await reader.readline():
            word = line[:4].upper()
            if word == b"RCPT":
                self.receivers.append(line.decode().partition("<")[2].partition(">")[0])
            if word == b"DATA":
                writer.write(b"354 go on\r\n")
                self.letters.append((await reader.readuntil(b"\r\n.\r\n")).removesuffix(b".\r\n"))
            if word == b"QUIT":
                writer.write(b"221 farewell\r\n")
                break
            writer.write(b"550 no\r\n" if self.refuses and word == b"RCPT" else b"250 so be it\r\n")
        writer.close()


@pytest.fixture
async def inbox() -> AsyncIterator[Inbox]:
    made = Inbox()
    runner = web.ServerRunner(web.Server(made.answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    mail = await asyncio.start_server(made.take, "127.0.0.1", 0)
    made.port = mail.sockets[0].getsockname()[1]
    yield made
    mail.close()
    await runner.cleanup()


def mailbox(port: int, security: str = "none") -> Mailbox:
    return Mailbox(host="127.0.0.1", port=port, security=security, sender="guard@example.com", receiver="a@x.org")


async def test_a_webhook_is_signed_and_has_the_standards_members(inbox: Inbox) -> None:
    sender = WebhookSender("ops", Hook(inbox.url, b"key"), RUNBOOK)
    await sender.send(notice())
    await sender.send(notice())
    (headers, body), (again, _) = inbox.calls
    assert headers["webhook-signature"] == sign(b"key", headers["webhook-id"], 1_700_000_060, body)
    assert headers["webhook-id"] == again["webhook-id"]
    assert json.loads(body) == {
        "type": "alert.fired",
        "timestamp": "2023-11-14T22:14:20Z",
        "data": {
            "key": "node_stale:eu-1",
            "kind": "node_stale",
            "severity": "page",
            "subject": "eu-1",
            "title": "a node is not heard of (eu-1)",
            "says": "nothing was heard of eu-1",
            "since": "2023-11-14T22:13:20Z",
            "runbook": f"{RUNBOOK}#node-stale",
        },
    }


async def test_slack_gets_plain_text(inbox: Inbox) -> None:
    await SlackSender("chat", inbox.url, RUNBOOK).send(notice("<!channel> & *b*", "recovered"))
    ((_, body),) = inbox.calls
    message = json.loads(body)
    assert message["text"] == "over: a node is not heard of (&lt;!channel&gt; &amp; *b*)"
    assert {block["type"] for block in message["blocks"]} == {"header", "section", "context"}
    assert "mrkdwn" not in body.decode()


async def test_a_letter_arrives(inbox: Inbox) -> None:
    await MailSender("mail", mailbox(inbox.port), RUNBOOK).send(notice("eu-\u00e9"))
    (raw,) = inbox.letters
    read = message_from_bytes(raw, policy=default)
    assert inbox.receivers == ["a@x.org"]
    assert read["subject"] == "[checkstream] a node is not heard of (eu-\u00e9)"
    assert read["auto-submitted"] == "auto-generated"
    assert "nothing was heard of eu-\u00e9" in read.get_content()


@pytest.mark.parametrize("status", [302, 404, 410, 500])
async def test_what_is_not_taken_is_unsent(inbox: Inbox, status: int) -> None:
    inbox.status = status
    inbox.refuses = True
    with pytest.raises(NoticeUnsent, match=f"`ops` answered {status}"):
        await WebhookSender("ops", Hook(inbox.url, b"k"), RUNBOOK).send(notice())
    with pytest.raises(NoticeUnsent, match=f"`chat` answered {status}"):
        await SlackSender("chat", inbox.url, RUNBOOK).send(notice())
    with pytest.raises(NoticeUnsent, match="no e-mail can be sent by `mail`"):
        await MailSender("mail", mailbox(inbox.port), RUNBOOK).send(notice())


@pytest.mark.parametrize("security", ["none", "starttls", "tls"])
async def test_who_is_not_there_or_speaks_otherwise_is_told_by_name(inbox: Inbox, security: str) -> None:
    port = 1 if security == "none" else inbox.port
    with pytest.raises(NoticeUnsent, match="no e-mail can be sent by `mail`"):
        await MailSender("mail", mailbox(port, security), RUNBOOK).send(notice())


hostile = st.text(st.characters(), max_size=300) | st.sampled_from(
    ["a\r\nBcc: x@y.z", "\ud800", "=?utf-8?q?x?=", "<b>"]
)


@given(hostile, st.sampled_from(["fired", "reminded", "recovered"]))
def test_no_name_adds_a_line_to_a_head_or_breaks_a_form(name: str, event: Event) -> None:
    said = notice(name.encode("utf-8", "replace").decode(), event)
    assert "\n" not in title(said)
    assert "\r" not in title(said)
    read = message_from_bytes(letter(said, "guard@example.com", "a@x.org").as_bytes(), policy=default)
    assert set(read.keys()) >= {"From", "To", "Subject", "Message-ID"}
    assert "Bcc" not in read
    json.loads(webhook_body(said))
    blocks = json.loads(slack_body(said))["blocks"]
    assert len(blocks[0]["text"]["text"]) <= 150
    assert len(blocks[1]["text"]["text"]) <= 3000
