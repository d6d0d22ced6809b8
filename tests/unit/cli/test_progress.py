from __future__ import annotations

import io

import pytest

from checkstream.cli import progress as module
from checkstream.cli.progress import Counter, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("terminal", "shown"), [(Terminal(), True), (io.StringIO(), False)])
def test_a_bar_is_shown_on_a_terminal_only(terminal: io.StringIO, shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AFTER_S", -1)
    monkeypatch.setattr("sys.stderr", terminal)
    assert list(progress([1, 2, 3], "things")) == [1, 2, 3]
    assert ("2/3 things" in terminal.getvalue()) is shown


def test_a_bar_that_is_interrupted_leaves_a_clean_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(module, "_AFTER_S", -1)
    monkeypatch.setattr("sys.stderr", terminal)
    bar = progress([1, 2, 3], "things")
    assert next(bar) == 1
    bar.close()
    assert terminal.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(("terminal", "shown"), [(Terminal(), True), (io.StringIO(), False)])
def test_a_counter_is_shown_on_a_terminal_only_and_cleaned(
    terminal: io.StringIO, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", terminal)
    with Counter() as counter:
        counter.show("model.onnx: 1.0 MB")
    assert ("model.onnx: 1.0 MB" in terminal.getvalue()) is shown
    assert terminal.getvalue().endswith("\r\x1b[K") is shown
