"""What an endpoint is: one record that requests are answered by and that the description is made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from checkstream.listen import Identity


def for_anyone(work: Callable[[Any], Awaitable[object]]) -> Callable[[Any, Identity], Awaitable[object]]:
    """Return work that is the same whoever asks."""

    def done(asked: Any, _: Identity) -> Awaitable[object]:
        return work(asked)

    return done


@dataclass(frozen=True, slots=True)
class Operation:
    """One method on one path."""

    method: Literal["GET", "POST"]
    path: str
    """Its last part may be a parameter in braces: `/runs/{run_id}`."""
    summary: str
    """One sentence for readers of the description."""
    asks: Any
    """Type of what is asked: the body of a POST; of a GET a record of the query and the path's parameter."""
    gives: tuple[Any, ...]
    """Types of what is answered, one of them each time."""
    work: Callable[[Any, Identity], Awaitable[object]]
    """Takes what is asked and who asks; what it returns is sent as JSON."""
    seconds: float | None = None
    """Longest that the work may take; None: as long as the caller waits."""
    asker: Literal["caller", "node"] = "caller"
    """Who asks: a caller with a key, or a node, which signs what it sends and is called by its name."""
    also: Mapping[str, str] = field(default_factory=dict)
    """Statuses that it may have besides those that all have, and why."""
    packed: bool = False
    """The body is packed by Zstandard, and `work` gets it as it came: what unpacks it bounds what comes out."""

    @property
    def parameter(self) -> str | None:
        """Name of the path's parameter."""
        last = self.path.rpartition("/")[2]
        return last[1:-1] if last.startswith("{") else None

    def taken(self, path: str) -> str | None:
        """Return the parameter's value if the path is this one's, empty if it has none; None for another path."""
        if self.parameter is None:
            return "" if path == self.path else None
        head = self.path[: self.path.rindex("{")]
        value = path.removeprefix(head)
        return value if path.startswith(head) and value and "/" not in value else None
