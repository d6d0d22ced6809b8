"""The process that reads documents for `sandbox`: frames in, frames out, until its input ends."""

from __future__ import annotations

import os
import resource
import sys
from typing import BinaryIO

import msgspec

from checkstream.errors import DocumentUnreadable
from checkstream.evidence.extraction import extract
from checkstream.evidence.sandbox import MEMORY_BYTES, Answered, Asked

_LENGTH_BYTES = 4


def main() -> None:
    """Answer until standard input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # a library that prints must not break the frames
    serve(sys.stdin.buffer, out)


def serve(source: BinaryIO, out: BinaryIO) -> None:
    """Read one frame after the other, and answer each."""
    while len(head := source.read(_LENGTH_BYTES)) == _LENGTH_BYTES:
        asked = msgspec.msgpack.decode(source.read(int.from_bytes(head)), type=Asked)
        body = msgspec.msgpack.encode(_answer(asked))
        out.write(len(body).to_bytes(_LENGTH_BYTES) + body)
        out.flush()


def _answer(asked: Asked) -> Answered:
    try:
        return Answered(text=extract(asked.data, asked.kind, asked.media_type))
    except DocumentUnreadable as error:
        return Answered(error=str(error))
    except MemoryError:
        return Answered(error="reading it takes more memory than is given; split it")
    except Exception as error:  # noqa: BLE001 - whatever a library raises at hostile bytes is about this document alone
        return Answered(error=f"it can't be read: {type(error).__name__}; make it anew")


if __name__ == "__main__":
    main()
