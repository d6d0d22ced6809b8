"""A body that is not streamed, as it comes, piece by piece."""

from __future__ import annotations

from io import BytesIO


class Body:
    """Keeps what has come; it is handed over without a copy, which would be one step as long as the body."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        """Begin before the first byte."""
        self._kept = BytesIO()

    def __len__(self) -> int:
        """Return how many bytes have come."""
        return self._kept.tell()

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self._kept.write(data)

    @property
    def data(self) -> bytes:
        """All that has come."""
        return self._kept.getvalue()
