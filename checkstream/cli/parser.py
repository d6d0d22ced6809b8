"""argparse, with what helps who mistyped: the word that was probably meant, at the command that it is about."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """A parser whose subcommands are its like. The deepest one that took part stands in the result as `parser`."""

    def __init__(self, *args: object, **settings: object) -> None:
        """As argparse's, without options by their beginnings: scripts would break at the next option."""
        super().__init__(*args, **{"allow_abbrev": False, **settings})  # type: ignore[arg-type]
        self.set_defaults(parser=self)

    def parse(self, arguments: Sequence[str] | None = None) -> argparse.Namespace:
        """Return what was asked; ends the process with 2 where it can't be understood."""
        found, unknown = self.parse_known_args(arguments)
        if unknown:
            found.parser.refuse(unknown)
        return found

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """End the process: this command does not know these arguments."""
        options = [name for action in self._actions for name in action.option_strings if name.startswith("--")]
        option = unknown[0].partition("=")[0]
        close = _close(option, options) if option.startswith("-") else ""
        self.error(f"unknown: {' '.join(f'`{_printable(word)}`' for word in unknown)}{close}")

    def error(self, message: str) -> NoReturn:
        """End the process, with the usage, what is wrong, and where more is said."""
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: {message}; `{self.prog} --help` says more\n")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        choices = [] if action.choices is None else [str(choice) for choice in action.choices]
        if action.choices is not None and value not in action.choices:
            close = _close(str(value), choices) or f"; known: {', '.join(choices)}"
            raise argparse.ArgumentError(action, f"`{_printable(str(value))}` is not known here{close}")


def _close(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _printable(word: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in word)
