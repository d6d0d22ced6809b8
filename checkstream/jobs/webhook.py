"""Calls webhooks: one signed POST a job. A call that fails is a job that failed, so the queue tries it again.

The address comes from the configuration and from nowhere else, redirects are not followed, proxies of the environment
are not used, and of the answer only the status is read.

Source: Standard Webhooks 1.0 (headers `webhook-id`, `webhook-timestamp`, `webhook-signature`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping

import aiohttp
import msgspec

from checkstream.errors import JobError, JobInvalid
from checkstream.jobs.clock import wall_ms
from checkstream.jobs.reaction import read_webhook_job
from checkstream.jobs.terms import Job
from checkstream.jobs.worker import Outcome

_PREFIX = "whsec_"
_TIMEOUT = aiohttp.ClientTimeout(total=15.0, connect=5.0)


class Hook(msgspec.Struct, frozen=True):
    """Where a route's notices go."""

    url: str
    key: bytes
    """Signs them."""


def signing_key(secret: str) -> bytes:
    """Return the key of a secret: what `whsec_` and base64 say, else the secret's own bytes.

    Raises:
        JobError: it begins as one of the standard, and holds no key.
    """
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError:
        key = b""
    if not key:  # anybody could sign with it
        raise JobError("the secret of a webhook begins with `whsec_`, but no key in base64 follows; copy it anew")
    return key


def sign(key: bytes, id_: str, at_s: int, body: bytes) -> str:
    """Return the signature of a call as its header holds it."""
    digest = hmac.new(key, f"{id_}.{at_s}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


class WebhookCaller:
    """Handles jobs of kind `webhook`."""

    def __init__(self, hooks: Mapping[str, Hook], *, now_ms: Callable[[], int] = wall_ms) -> None:
        """Call `hooks`, by route; `now_ms` is the wall clock."""
        self._hooks = hooks
        self._now_ms = now_ms

    async def __call__(self, job: Job) -> Outcome:
        """Call the webhook.

        Raises:
            JobInvalid: the route has no webhook any more, or the job can't be read.
            JobError: the receiver can't be reached, or did not answer with 2xx.
        """
        route, notice = read_webhook_job(job)
        hook = self._hooks.get(route)
        if hook is None:
            raise JobInvalid(f"the route `{route}` has no webhook; name one under its `grounding`, or leave it so")
        body = msgspec.json.encode(notice)
        # of the id only letters that a header takes
        id_ = "msg_" + hashlib.sha256(job.id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        at_s = self._now_ms() // 1000
        headers = {
            "content-type": "application/json",
            "user-agent": "checkstream",
            "webhook-id": id_,
            "webhook-timestamp": str(at_s),
            "webhook-signature": sign(hook.key, id_, at_s, body),
        }
        try:
            async with (
                aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=False) as session,
                session.post(hook.url, data=body, headers=headers, allow_redirects=False) as response,
            ):
                status = response.status
        except (aiohttp.ClientError, TimeoutError) as error:
            raise JobError(f"the webhook of `{route}` can't be reached: {type(error).__name__}; check it") from error
        if not 200 <= status < 300:
            raise JobError(f"the webhook of `{route}` answered {status}; check it")
        return Outcome()
