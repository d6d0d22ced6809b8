"""Calls of webhooks: one signed POST, as receivers of Standard Webhooks check it.

The address comes from the configuration and from nowhere else, redirects are not followed, proxies of the environment
are not used, and of the answer only the status is read.

Source: Standard Webhooks 1.0 (headers `webhook-id`, `webhook-timestamp`, `webhook-signature`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping

import aiohttp
import msgspec

from checkstream.errors import NoticeUnsent

_PREFIX = "whsec_"
_TIMEOUT = aiohttp.ClientTimeout(total=15.0, connect=5.0)


class Hook(msgspec.Struct, frozen=True):
    """Where notices go."""

    url: str
    key: bytes
    """Signs them."""


def signing_key(secret: str) -> bytes:
    """Return the key of a secret: what `whsec_` and base64 say, else the secret's own bytes.

    Raises:
        NoticeUnsent: it begins as one of the standard, and holds no key.
    """
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError:
        key = b""
    if not key:  # anybody could sign with it
        raise NoticeUnsent("the secret of a webhook begins with `whsec_`, but no key in base64 follows; copy it anew")
    return key


def sign(key: bytes, id_: str, at_s: int, body: bytes) -> str:
    """Return the signature of a call as its header holds it."""
    digest = hmac.new(key, f"{id_}.{at_s}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


async def call(name: str, hook: Hook, of: str, at_s: int, body: bytes) -> None:
    """Send a signed notice.

    Args:
        name: What the hook is called in what is raised; the address may hold a secret.
        hook: Where it goes.
        of: Names the notice; a receiver that gets it again, knows it again.
        at_s: Seconds since 1970.
        body: In JSON.

    Raises:
        NoticeUnsent: the receiver can't be reached, or did not answer with 2xx.
    """
    # of the name only letters that a header takes
    id_ = "msg_" + hashlib.sha256(of.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    signed = {"webhook-id": id_, "webhook-timestamp": str(at_s), "webhook-signature": sign(hook.key, id_, at_s, body)}
    await post(name, hook.url, signed, body)


async def post(name: str, url: str, headers: Mapping[str, str], body: bytes) -> None:
    """Send a notice as it is.

    Args:
        name: What the receiver is called in what is raised.
        url: Where it goes.
        headers: Besides those of every call.
        body: In JSON.

    Raises:
        NoticeUnsent: the receiver can't be reached, or did not answer with 2xx.
    """
    own = {"content-type": "application/json", "user-agent": "checkstream"}
    try:
        async with (
            aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=False) as session,
            session.post(url, data=body, headers={**own, **headers}, allow_redirects=False) as response,
        ):
            status = response.status
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise NoticeUnsent(f"the webhook of `{name}` can't be reached: {type(error).__name__}; check it") from error
    if not 200 <= status < 300:
        raise NoticeUnsent(f"the webhook of `{name}` answered {status}; check it")
