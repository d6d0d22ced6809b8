"""How the API says what is wrong with a request, and where in it."""

from __future__ import annotations

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was not answered."""

    type: str
    code: str
    message: str
    """What is wrong, and what to do."""
    param: str | None
    """Where in the request, as a JSON path; null when it is about all of it."""


class ProblemBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of every answer that is no success."""

    error: Problem


def refused(what: str, error: Exception) -> str:
    """Return why a body or a query is not of the form that is asked for."""
    if isinstance(error, RecursionError):
        return f"the {what} is nested too deep; send fewer levels"
    return f"the {what} is not of the form that is asked for: {error}"
