from __future__ import annotations

import socket
from pathlib import Path

from checkstream.processes.notify import tell


def test_a_service_manager_hears_it_and_without_one_nothing_happens(tmp_path: Path) -> None:
    tell(None, "READY=1")
    tell(str(tmp_path / "nobody"), "READY=1")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(5)
        tell(str(tmp_path / "notify"), "READY=1\nMAINPID=7")
        assert manager.recv(100) == b"READY=1\nMAINPID=7"
