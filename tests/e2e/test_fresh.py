"""The README's first command on a machine that has nothing of the project: a clone, python3 with venv, make and git."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_TOOLS = ("make", "git")
_SYSTEM = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.mark.nightly
def test_a_fresh_clone_shows_the_demo_with_python_and_make_alone(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    for name in _TOOLS:
        found = shutil.which(name)
        assert found is not None, f"the README asks for {name}"
        (tools / name).symlink_to(found)
    clone = tmp_path / "checkstream"
    subprocess.run(["git", "clone", "-q", str(_ROOT), str(clone)], check=True)
    # Where packages come from is the machine's; nothing else of this environment is there.
    given = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}
    env = {"HOME": os.environ["HOME"], "LANG": "C.UTF-8", "PATH": f"{tools}:{_SYSTEM}", **given}
    run = subprocess.run(["make", "demo"], cwd=clone, env=env, capture_output=True, text=True, timeout=900, check=False)
    assert run.returncode == 0, run.stderr[-4000:]
    assert "conversations, all as they must be" in run.stdout
    assert subprocess.run(["git", "status", "--short"], cwd=clone, capture_output=True, check=True).stdout == b""
