"""`checkstream completion bash | zsh | fish`: what a shell needs to complete commands, options and files."""

from __future__ import annotations

import argparse
import sys

from checkstream.cli.parser import Parser

_EXAMPLES = """examples:
  checkstream completion bash > ~/.local/share/bash-completion/completions/checkstream
  checkstream completion zsh > ~/.zfunc/_checkstream      # with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc
  checkstream completion fish > ~/.config/fish/completions/checkstream.fish
"""
_FILES = frozenset({"FILE", "TRANSCRIPT"})
_FOLDERS = frozenset({"FOLDER", "DIR"})


def add_arguments(parser: Parser) -> None:
    """Say what the command `completion` takes."""
    parser.describe(
        "Print a script with which a shell completes commands, options and files; a new shell knows it.",
        examples=_EXAMPLES,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell that reads the script")


def run(args: argparse.Namespace) -> int:
    """Print the script.

    Returns:
        0: done.
    """
    import shtab  # noqa: PLC0415 - no other command needs it

    root = args.root
    _name_places(root, file=shtab.FILE, folder=shtab.DIRECTORY)
    sys.stdout.write(shtab.complete(root, shell=args.shell) + "\n")
    return 0


def _name_places(parser: argparse.ArgumentParser, *, file: object, folder: object) -> None:
    """Tell which arguments are files and folders: their metavar says so. Every command is read in."""
    if isinstance(parser, Parser):
        parser.read_in()
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list of them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                _name_places(below, file=file, folder=folder)
        elif action.metavar in _FILES | _FOLDERS:
            place = file if action.metavar in _FILES else folder
            action.complete = place  # type: ignore[attr-defined]  # where shtab looks for it
