"""The processes that read documents."""

from __future__ import annotations

import io
import sys

import pytest

from checkstream.errors import DocumentUnreadable, EvidenceError
from checkstream.evidence.kinds import Kind
from checkstream.evidence.sandbox import Sandbox
from checkstream.evidence.sandbox_child import serve

HANGS = (sys.executable, "-c", "import time; time.sleep(600)")
DIES = (sys.executable, "-c", "import sys; sys.stdin.buffer.read(4); sys.exit(9)")
LIES = (
    sys.executable,
    "-c",
    "import sys; sys.stdout.buffer.write(b'\\xff' * 99); sys.stdout.flush(); sys.stdin.read()",
)


async def test_documents_are_read_one_after_the_other_and_a_bad_one_harms_no_other() -> None:
    async with Sandbox() as sandbox:
        assert await sandbox.extract(b"# A\n\nb", Kind.MARKDOWN) == "# A\n\nb"
        with pytest.raises(DocumentUnreadable, match="PDF is damaged"):
            await sandbox.extract(b"%PDF-", Kind.PDF)
        assert await sandbox.extract("é".encode("latin-1"), Kind.TEXT, "text/plain; charset=latin-1") == "é"


async def test_what_takes_more_memory_than_is_given_is_told() -> None:
    page = b"<html><body>" + b"<div>" * 400_000 + b"text" + b"</body></html>"
    async with Sandbox() as sandbox:
        with pytest.raises(DocumentUnreadable):
            await sandbox.extract(page, Kind.HTML)
        assert await sandbox.extract(b"alive", Kind.TEXT) == "alive"


@pytest.mark.parametrize(("command", "reason"), [(HANGS, "within 0.2 s"), (DIES, "crashed"), (LIES, "crashed")])
async def test_a_process_that_hangs_dies_or_lies_is_ended_and_told(command: tuple[str, ...], reason: str) -> None:
    async with Sandbox(1, 0.2 if command is HANGS else 60, command=command) as sandbox:
        for _ in range(2):
            with pytest.raises(DocumentUnreadable, match=reason):
                await sandbox.extract(b"x", Kind.TEXT)


async def test_a_process_that_can_not_be_started_is_no_fault_of_a_document() -> None:
    async with Sandbox(1, command=("/no/such/program",)) as sandbox:
        with pytest.raises(EvidenceError, match="no process can be started"):
            await sandbox.extract(b"x", Kind.TEXT)


def test_the_child_ends_with_its_input_even_inside_a_frame() -> None:
    out = io.BytesIO()
    serve(io.BytesIO(b""), out)
    serve(io.BytesIO(b"\x00\x00"), out)
    assert out.getvalue() == b""
