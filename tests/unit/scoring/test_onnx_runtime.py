"""The runtime of models keeps to itself what it runs."""

import subprocess
import sys
from pathlib import Path


def test_the_runtime_neither_marks_the_machine_nor_sends_events(tmp_path: Path) -> None:
    # What it writes first, wherever it is allowed to send, is an identifier in the folder for temporary files.
    code = "from checkstream.scoring import load_models, open_session; import checkstream.config as c; import sys\n"
    code += "open_session(load_models(c.bundled('models'), ('domain',))[0])\n"
    code += "assert 'onnxruntime' in sys.modules"
    environment = {"TMPDIR": str(tmp_path), "HOME": str(tmp_path), "PATH": ""}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=60, cwd=tmp_path)
    assert not list(tmp_path.iterdir())
