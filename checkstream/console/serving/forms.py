"""Forms that do something: read with the bounds that the API has, and shown again where that can not be done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec
from aiohttp.web import BaseRequest, Response

from checkstream.console.serving.shell import FORM_BYTES, Shell, status_of
from checkstream.control.server.people import Act, Asker
from checkstream.errors import ActConflicts, ActForbidden, RequestInvalid, ThingUnknown

_Asked = TypeVar("_Asked")
Given = Mapping[str, str]
"""What somebody has written into a form."""
Again = Callable[[str, Given, int], Awaitable[Response]]
"""Shows a form again: what is wrong, what was written into it, and the status."""


def read_form(given: Given | None, asks: type[_Asked]) -> _Asked:
    """Read a form; fields that are left empty are those that are not given.

    Raises:
        RequestInvalid: it is none, is too large, or a field is not of the form that is asked for; says which.
    """
    if given is None:
        raise RequestInvalid("what was sent is no form, or is too large; fill in the form of this page")
    try:
        return msgspec.convert({name: value for name, value in given.items() if value}, asks, strict=False)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).rpartition(" - at `$.")
        raise RequestInvalid(f"`{place.rstrip('`')}`: {reason}" if reason else f"the form: {error}") from error


@dataclass(frozen=True, slots=True)
class Form(Generic[_Asked]):
    """A form that does something."""

    act: Act
    asks: type[_Asked]
    """Its fields, as a struct."""
    work: Callable[[Asker, _Asked], Awaitable[Response]]
    """Does it, and answers."""


async def sent(
    shell: Shell, request: BaseRequest, form: Form[_Asked], again: Again, *, most: int = FORM_BYTES
) -> Response:
    """Do what a form asks for, if who has sent it may; where that is refused, `again` answers. `most`: bytes."""
    given = await shell.form(request, most)
    try:
        who = shell.asker(request, form.act)
        return await form.work(who, read_form(given, form.asks))
    except (RequestInvalid, ActForbidden, ThingUnknown, ActConflicts) as error:
        return await again(str(error), given or {}, status_of(error))
