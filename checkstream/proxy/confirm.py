"""One-time tokens with which a caller confirms a request that a policy holds back until then.

A token names the rules that are confirmed and holds for one request alone: its message authentication code is over the
caller, the route, the policies, the context and the body too, with a key that this process alone has, or those that
serve with it as one, here or on other machines. So a restart of all of them voids all tokens, as a change of policies
does, and the loss of what remembers those that are spent. Each is spent once; spent ones are remembered until they
expire.

Source: RFC 2104 (HMAC), RFC 4648 5 (base64url).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from aiohttp.web import Response

from checkstream.core.commands import ConfirmationWanted, Reply
from checkstream.errors import NotReady
from checkstream.proxy.replies import guard_response
from checkstream.proxy.spent import MOST, Spent

CONFIRM = "x-checkstream-confirm"
_MAC_BYTES = 32
_NONCE_BYTES = 16
_MAX_TOKEN_CHARS = 16_384
_FOREIGN = "the confirmation that came with it is for another request, caller or policy version, or has been altered"
_EXPIRED = "the confirmation that came with it has expired"
_SPENT = "the confirmation that came with it has been used before"
_FORGOTTEN = "the confirmation that came with it is from before a restart: nobody can tell whether it was used"
_SEVERAL = "more than one confirmation came with it; send one"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The request that a token is bound to."""

    caller: str | None
    route: str
    program: str
    """Hash of the policies that it runs under."""
    context: str | None
    """The header `x-checkstream-context`, as it came."""
    conversation: str | None = None
    """The header `x-checkstream-conversation`, as it came."""
    body: bytes


class _Claim(msgspec.Struct, frozen=True, array_like=True):
    """What a token says."""

    nonce: bytes
    expires_ms: int
    """On the clock of those who serve as one."""
    rules: tuple[str, ...]


_CLAIM = msgspec.msgpack.Decoder(_Claim)


class Confirming:
    """Confirmations of one request: those that came with it, and the answer that asks for one."""

    def __init__(self, rules: tuple[str, ...], fault: str | None, issue: Callable[[ConfirmationWanted], str]) -> None:
        """Take what came with the request.

        Args:
            rules: Ids of the rules that are confirmed.
            fault: Why a token that came does not count; None when it does, or none came.
            issue: Makes a token for this request.
        """
        self.rules = rules
        self._fault = fault
        self._issue = issue

    def respond(self, reply: Reply, headers: Mapping[str, str]) -> Response:
        """Return the whole response that the guard asked for, with a token where it wants a confirmation."""
        if reply.confirm is None:
            return guard_response(reply, headers)
        token = self._issue(reply.confirm)
        body = _with_token(reply.body, token, self._fault)
        response = guard_response(msgspec.structs.replace(reply, body=body, retry=False), headers)
        response.headers[CONFIRM] = token
        return response


def _with_token(body: bytes, token: str, fault: str | None) -> bytes:
    """Return an error body with the token, and why the last one did not count, where the surface has room for it."""
    found: Any = msgspec.json.decode(body)
    error = found.get("error") if isinstance(found, dict) else None
    if not isinstance(error, dict):
        return body
    error["confirm"] = token
    if fault is not None:
        error["message"] = f"{error.get('message', '')} ({fault})"
    return msgspec.json.encode(found)


class Spending(Protocol):
    """Who knows which tokens have been spent."""

    def spend(self, nonce: bytes, expires_ms: int, now_ms: int) -> bool | None:
        """Spend a token; tell whether it had not been; None: that was forgotten, so it is good no more.

        Raises:
            NotReady: that can't be told, or not be remembered.
        """


def _unmarked() -> bytes:
    return b""


def _always() -> bool:
    return True


class Together(msgspec.Struct, frozen=True):
    """What processes share whose tokens are good in each of them."""

    key: bytes
    spending: Spending
    """Takes its time: it is asked beside the event loop."""
    now_ms: Callable[[], int]
    """The time, on a clock of all of them."""
    mark: Callable[[], bytes] = _unmarked
    """Returns what every nonce begins with that is made now."""
    is_known: Callable[[], bool] = _always
    """Tells whether the time and the mark are known; else none can be spent, nor told to be over."""


class Confirmations:
    """Makes tokens, and knows those that have been spent. Belongs to one event loop."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        most_spent: int = MOST,
        together: Together | None = None,
    ) -> None:
        """Start with a fresh key and nothing spent, or with what is shared.

        Args:
            clock: Seconds that only grow.
            most_spent: How many spent tokens may be remembered at once.
            together: What is shared with other processes; None: this one is alone.
        """
        began = clock()  # tokens tell nobody how long the machine has run
        alone = Together(secrets.token_bytes(32), Spent(most_spent), lambda: math.floor((clock() - began) * 1000))
        self._with = together or alone
        self.waits = together is not None
        """`open` may take its time where there are tokens."""

    def open(self, asked: Asked, tokens: Sequence[str]) -> Confirming:
        """Spend the token that came with a request, if it is good.

        Raises:
            NotReady: it may be good, and nobody can tell now, or no more spent tokens can be remembered.
        """
        rules: tuple[str, ...] = ()
        fault: str | None = None
        if len(tokens) == 1:
            rules, fault = self._spend(asked, tokens[0])
        elif tokens:
            fault = _SEVERAL
        return Confirming(rules, fault, lambda wanted: self._issue(wanted, asked))

    def _issue(self, wanted: ConfirmationWanted, asked: Asked) -> str:
        expires_ms = self._with.now_ms() + wanted.expires_s * 1000
        nonce = self._with.mark() + secrets.token_bytes(_NONCE_BYTES)
        claim = msgspec.msgpack.encode(_Claim(nonce, expires_ms, wanted.rules))
        return _encode(self._mac(claim, msgspec.structs.replace(asked, program=wanted.program)) + claim)

    def _spend(self, asked: Asked, token: str) -> tuple[tuple[str, ...], str | None]:
        """Return the rules that the token confirms, or none and why."""
        sealed = _decode(token)
        mac, claimed = sealed[:_MAC_BYTES], sealed[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(claimed, asked)):
            return (), _FOREIGN
        if not self._with.is_known():
            raise NotReady("nobody can tell yet whether this confirmation was used before; try again")
        claim = _CLAIM.decode(claimed)  # ours: nobody else could have sealed it
        now = self._with.now_ms()
        if claim.expires_ms <= now:
            return (), _EXPIRED
        fresh = self._with.spending.spend(claim.nonce, claim.expires_ms, now)
        if not fresh:
            return (), _FORGOTTEN if fresh is None else _SPENT
        return claim.rules, None

    def _mac(self, claim: bytes, asked: Asked) -> bytes:
        body = hashlib.sha256(asked.body).digest()
        bound = (asked.caller, asked.route, asked.program, asked.context, asked.conversation, body, claim)
        return hmac.digest(self._with.key, msgspec.msgpack.encode(bound), "sha256")


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(token: str) -> bytes:
    """Return what a token holds; empty when it is not written as `_encode` writes it."""
    if len(token) > _MAX_TOKEN_CHARS or not token.isascii():
        return b""
    try:
        data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (binascii.Error, ValueError):
        return b""
    return data if _encode(data) == token else b""
