"""Zstandard, with a bound on what comes out."""

from __future__ import annotations

import sys

from checkstream.errors import RequestInvalid

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL = 3


def packed(content: bytes) -> bytes:
    """Return bytes as one frame."""
    return zstd.compress(content, _LEVEL)


def unpacked(frame: bytes, most: int) -> bytes:
    """Return what is in a frame, of which never more than `most` bytes are made.

    Raises:
        RequestInvalid: it is no whole frame, has anything behind it, or is longer.
    """
    reader = zstd.ZstdDecompressor()
    try:
        content = reader.decompress(frame, most + 1)
    except zstd.ZstdError as error:
        raise RequestInvalid("the body is not one frame of Zstandard; send it as this version packs it") from error
    if len(content) > most:
        raise RequestInvalid(f"the body is longer than {most} bytes unpacked; send less at once")
    if not reader.eof or reader.unused_data:
        raise RequestInvalid("the body is not one whole frame of Zstandard; send it as this version packs it")
    return content
