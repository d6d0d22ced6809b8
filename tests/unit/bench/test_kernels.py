"""What the bench of kernels may be asked for."""

from __future__ import annotations

import pytest

from bench import kernels


@pytest.mark.parametrize("rounds", ["0", "-3", "1.5", "many", "9" * 9, ""])
def test_rounds_that_are_none_are_told(rounds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        kernels.main([f"--rounds={rounds}"])
    assert ended.value.code == 2
    assert f"`{rounds}` is no number of rounds; give a whole number from 1" in capsys.readouterr().err
