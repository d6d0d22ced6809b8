"""Who mistypes is told what was probably meant, by the command that it is about, with exit code 2."""

from __future__ import annotations

import subprocess
import sys

import pytest

from checkstream.cli import main
from checkstream.cli.parser import Parser


def refused(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serv"], "checkstream: argument COMMAND: `serv` is not known here; did you mean `serve`?"),
        (["config", "chek"], "checkstream config: argument COMMAND: `chek` is not known here; did you mean `check`?"),
        (["serve", "--upsteam", "http://h"], "serve: unknown: `--upsteam` `http://h`; did you mean `--upstream`?"),
        (["serve", "--upsteam=x"], "serve: unknown: `--upsteam=x`; did you mean `--upstream`?"),
        (["config", "check", "f", "--jsn"], "checkstream config check: unknown: `--jsn`; did you mean `--json`?"),
        (["config", "check", "f", "g"], "checkstream config check: unknown: `g`; `checkstream config check --help`"),
        (["serve", "--up", "http://h"], "unknown: `--up` `http://h`"),
        (["serve", "--log", "xml"], "argument --log: `xml` is not known here; known: console, json"),
        (["serve"], "checkstream serve: give `--upstream URL`, or `--config FILE`"),
        (["serve", "\x1b[2J"], "`\\x1b[2J`"),
    ],
)
def test_the_word_that_was_meant_is_named(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(*words, capsys=capsys)
    assert said in line
    assert "--help` says more" in line


def test_the_deepest_parser_speaks() -> None:
    root = Parser(prog="p")
    below = root.add_subparsers(dest="one").add_parser("a").add_subparsers(dest="two").add_parser("b")
    assert root.parse(["a", "b"]).parser is below
    assert root.parse([]).parser is root


def test_what_a_command_takes_is_read_in_once_and_only_when_it_is_asked_for() -> None:
    read: list[str] = []
    root = Parser(prog="p")
    commands = root.add_subparsers(dest="one")
    for name in ("a", "b"):
        commands.add_parser(name, later=lambda parser: read.append(parser.prog))
    root.format_help()
    assert read == []
    root.parse(["b"])
    root.parse(["b"])
    assert read == ["p b"]


@pytest.mark.parametrize(
    ("words", "spared"),
    [
        (["--version"], {"checkstream.config", "checkstream.scoring", "checkstream.proxy", "numpy", "aiohttp"}),
        (["--help"], {"checkstream.config", "checkstream.scoring", "checkstream.proxy", "numpy", "aiohttp"}),
        (["audit", "show", "--help"], {"checkstream.scoring", "checkstream.proxy", "onnxruntime", "aiohttp"}),
    ],
)
def test_what_needs_no_proxy_loads_none(words: list[str], spared: set[str]) -> None:
    code = (
        "import sys\nfrom checkstream.cli import main\n"
        f"try:\n    main({words!r})\nexcept SystemExit: pass\n"
        f"print(sorted({spared!r} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"
