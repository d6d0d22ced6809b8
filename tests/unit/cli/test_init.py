from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from checkstream import cli

_COMMAND = [sys.executable, "-m", "checkstream"]
FAULTY = """\
pack: {name: faulty, version: 1.0.0}
policies:
  - {name: a, id: A-1, stage: midstream, entities: [MAIL], actions: [{type: redact}]}
"""


@pytest.fixture
def faulty(tmp_path: Path) -> str:
    file = tmp_path / "faulty.yaml"
    file.write_text(FAULTY)
    return str(file)


@pytest.mark.parametrize("command", [["check"], ["disassemble"], ["explain", "--text", "x", "--json"]])
def test_a_disk_that_is_full_is_said_in_one_line(command: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [*_COMMAND, "policy", *command, "builtin:default"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (ran.returncode, ran.stderr) == (2, b"checkstream: the output: no space left on device\n")


@pytest.mark.parametrize(("closed", "name", "code"), [(1, "builtin:default", 0), (2, "", 2)])
def test_an_output_that_is_closed_leaves_the_exit_code_as_it_is(closed: int, name: str, code: int, faulty: str) -> None:
    ran = subprocess.run(
        [*_COMMAND, "policy", "check", name or faulty],
        capture_output=True,
        preexec_fn=lambda: os.close(closed),
        check=False,
    )
    assert (ran.returncode, b"Traceback" in ran.stderr) == (code, False)


def test_a_reader_who_has_gone_gets_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        [*_COMMAND, "policy", "disassemble", "builtin:default"], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert (ran.returncode, ran.stderr) == (1, b"")


def test_an_interrupt_ends_a_command_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> int:  # not by a signal: a process in the background may ignore SIGINT
        raise KeyboardInterrupt

    monkeypatch.setattr("checkstream.cli.policy.run", interrupted)
    assert cli.main(["policy", "check", "builtin:default"]) == 130


def test_a_file_whose_name_is_no_text_is_named_all_the_same(tmp_path: Path) -> None:
    file = os.fsencode(tmp_path) + b"/\xff.yaml"
    with open(file, "w", encoding="utf-8") as out:  # noqa: PTH123 - paths of bytes
        out.write(FAULTY)
    ran = subprocess.run([*_COMMAND, "policy", "check", file], capture_output=True, check=False)
    assert (ran.returncode, b"\\udcff.yaml:3:" in ran.stderr) == (2, True)
    ran = subprocess.run([*_COMMAND, "policy", "check", "--json", file], capture_output=True, check=False)
    assert (ran.returncode, b'\\udcff.yaml","line":3' in ran.stdout) == (2, True)
