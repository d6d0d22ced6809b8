"""Completion as a shell does it: the script is run by bash, and by the others where they are there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from checkstream.cli import main


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def completed(folder: Path, text: str, *words: str) -> set[str]:
    """Return what bash offers for the last of the words."""
    (folder / "completion.bash").write_text(text)
    typed = " ".join(f"'{word}'" for word in words)
    asked = (
        "source ./completion.bash; "
        f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; "
        'COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}; '
        "how=$(complete -p checkstream); how=${how##*-F }; ${how%% *} checkstream; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    ran = subprocess.run(["bash", "--norc", "-c", asked], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    return set(ran.stdout.split())


def test_bash_completes_commands_options_choices_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = script("bash", capsys)
    (tmp_path / "checkstream.yaml").touch()
    (tmp_path / "other.txt").touch()
    assert completed(tmp_path, text, "checkstream", "ser") == {"serve"}
    assert {"serve", "config", "audit", "completion"} <= completed(tmp_path, text, "checkstream", "")
    assert completed(tmp_path, text, "checkstream", "config", "") == {"init", "check", "schema", "reference"}
    assert completed(tmp_path, text, "checkstream", "serve", "--up") == {"--upstream"}
    assert completed(tmp_path, text, "checkstream", "serve", "--log", "") == {"console", "json"}
    assert completed(tmp_path, text, "checkstream", "serve", "--config", "ch") == {"checkstream.yaml"}
    assert completed(tmp_path, text, "checkstream", "completion", "") == {"bash", "zsh", "fish"}


@pytest.mark.parametrize(("shell", "says"), [("zsh", "#compdef checkstream"), ("fish", "complete -c checkstream")])
def test_other_shells_get_a_script_that_they_can_read(
    shell: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script(shell, capsys)
    assert says in text
    for word in ("serve", "upstream", "disassemble"):
        assert word in text
    program = shutil.which(shell)
    if program is not None:
        assert subprocess.run([program, "-n"], input=text, text=True, check=False).returncode == 0


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["completion", "tcsh"])
    assert refused.value.code == 2
    assert "known: bash, zsh, fish" in capsys.readouterr().err
