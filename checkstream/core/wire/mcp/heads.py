"""The frame of a JSON-RPC message: what it is, what it belongs to, and what is refused as none."""

from __future__ import annotations

import re  # noqa: TID251 - two fixed alphabets, each character of which stands for itself
from collections.abc import Mapping
from typing import Literal

import msgspec

from checkstream.core.wire.json_text.strict import shown
from checkstream.core.wire.mcp import fields
from checkstream.errors import RequestInvalid

_VERSION = "2.0"
_MOST_OF_AN_ID = 128
_is_id = re.compile(r"[!-~]{1,128}").fullmatch
_is_method = re.compile(r"[A-Za-z0-9_.$/-]{1,128}").fullmatch
_INT64 = range(-(2**63), 2**63)

Kind = Literal["request", "notification", "result", "error"]


class Head(msgspec.Struct, frozen=True):
    """What kind of message something is."""

    kind: Kind
    id: int | str | None = None
    """Of the request that it is, or answers; None: it has none."""
    method: str = ""
    """What is asked for, or told."""

    def answers(self, asked: Head) -> bool:
        """Tell whether it may stand as the answer to a request: an error without an id is none that waits for one."""
        return type(self.id) is type(asked.id) and self.id == asked.id


def head_of(members: Mapping[str, object]) -> Head:
    """Return the frame of a message.

    Raises:
        RequestInvalid: it is none, or readers could take it for two things.
    """
    if members.get("jsonrpc") != _VERSION:
        raise RequestInvalid('`jsonrpc` must be "2.0"')
    means = [name for name in ("method", "result", "error") if name in members]
    if len(means) != 1:
        raise RequestInvalid("a message has one of `method`, `result` and `error`")
    [means_] = means
    if means_ == "method":
        return _asking(members)
    if "params" in members:
        raise RequestInvalid(f"a message with `{means_}` has no `params`")
    if not isinstance(members[means_], dict):
        raise RequestInvalid(f"`{means_}` must be an object")
    number = members.get("id")
    if means_ == "error":
        error = members["error"]
        coded = isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str)
        if not coded:
            raise RequestInvalid("an `error` has a `code`, which is an integer, and a `message`")
        return Head("error", None if number is None else _id(number))
    return Head("result", _id(number))


def _asking(members: Mapping[str, object]) -> Head:
    method = members["method"]
    if not isinstance(method, str) or _is_method(method) is None:
        raise RequestInvalid("`method` must be a name, such as `tools/call`")
    if not isinstance(members.get("params", {}), dict):
        raise RequestInvalid("`params` must be an object")
    if "id" not in members:
        return Head("notification", None, method)
    return Head("request", _id(members["id"]), method)


def _id(value: object) -> int | str:
    if type(value) is int and value in _INT64:
        return value
    if isinstance(value, str) and _is_id(value):
        return value
    raise RequestInvalid(f"`id` must be an integer, or a string of 1 to {_MOST_OF_AN_ID} visible ASCII characters")


def one_message(body: bytes) -> None:
    """Refuse a batch, by name.

    Raises:
        RequestInvalid: the body is an array.
    """
    if body.lstrip(b" \t\r\n").startswith(b"["):
        raise RequestInvalid("batches of messages are not taken (the protocol has none since 2025-06-18); send one")


def tool_of(members: Mapping[str, object]) -> str | None:
    """Return the tool that a request calls; None: it calls none, or says which in no way that is one.

    Raises:
        RequestInvalid: a call without a name.
    """
    if members.get("method") != fields.CALL:
        return None
    params = members.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    if not isinstance(name, str) or not name:
        raise RequestInvalid(f"`params.name` of `{fields.CALL}` must be a string, not {shown(type(name).__name__)}")
    arguments = params.get("arguments") if isinstance(params, dict) else None
    if arguments is not None and not isinstance(arguments, dict):
        raise RequestInvalid(f"`params.arguments` of `{fields.CALL}` must be an object")
    return name
