"""Who mistypes is told what was probably meant, by the command that it is about, with exit code 2."""

from __future__ import annotations

import argparse

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
    above: argparse.ArgumentParser = root
    below = above.add_subparsers(dest="one").add_parser("a").add_subparsers(dest="two").add_parser("b")
    assert root.parse(["a", "b"]).parser is below
    assert root.parse([]).parser is root
