from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from checkstream.processes.folder import Folder


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_it_is_this_users_alone_and_goes_with_its_process() -> None:
    folder = Folder()
    assert folder.path.stat().st_mode & 0o777 == 0o700
    (folder.path / "x").write_bytes(b"x")
    folder.close()
    assert not folder.path.exists()


def test_what_a_killed_process_has_left_is_removed_and_what_another_uses_is_not(tmp_path: Path) -> None:
    program = "import os, signal; from checkstream.processes.folder import Folder; Folder(); os.kill(os.getpid(), 9)"
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=False, timeout=60)
    assert done.returncode == -9
    (left,) = tmp_path.glob("checkstream-graphs-*")
    first = Folder()
    assert not left.exists()
    second = Folder()
    assert first.path.exists()
    first.close()
    second.close()
    assert not list(tmp_path.iterdir())
