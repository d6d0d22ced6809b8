"""argparse, with what helps who mistyped: the word that was probably meant, at the command that it is about.

What a command takes is read in when somebody asks for that command: `--version` needs no model and no proxy.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn


class Parser(argparse.ArgumentParser):
    """A parser whose subcommands are its like. The deepest one that took part stands in the result as `parser`."""

    def __init__(self, *args: object, later: Callable[[Parser], None] | None = None, **settings: object) -> None:
        """As argparse's, without options by their beginnings: scripts would break at the next option.

        Args:
            args: As argparse's.
            later: Says what the command takes; called once, when it is asked for.
            settings: As argparse's.
        """
        super().__init__(*args, **{"allow_abbrev": False, **settings})  # type: ignore[arg-type]
        self.set_defaults(parser=self)
        self._later = later

    def describe(self, description: str, *, examples: str) -> None:
        """Say what the command does; examples stand as they are written."""
        self.description = description
        self.epilog = examples
        self.formatter_class = argparse.RawDescriptionHelpFormatter

    def read_in(self) -> None:
        """Find out what the command takes, if nobody has asked yet."""
        later, self._later = self._later, None
        if later is not None:
            later(self)

    def parse_known_args(  # type: ignore[override]  # one signature in place of argparse's overloads
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse's, of a command that is read in."""
        self.read_in()
        return super().parse_known_args(args, namespace)

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


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Parser]  # noqa: SLF001 - argparse gives it no other name
else:
    Commands = argparse._SubParsersAction  # noqa: SLF001 - no generic class outside of the stubs
