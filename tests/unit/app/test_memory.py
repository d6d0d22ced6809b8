"""What a process doesn't need it doesn't load."""

from __future__ import annotations

import json
import subprocess
import sys

_PROGRAM = """
import json, sys
from checkstream.app import App
from checkstream.app.force import load, warm
from checkstream.app.models import open_models
from checkstream.app.parts import open_parts
from checkstream.cli import serve
from checkstream.config import default_config

loaded = load(lambda: default_config("http://127.0.0.1:9", policies=[sys.argv[1]]))
print(json.dumps([name for name in json.loads(sys.argv[2]) if name in sys.modules]))
"""
_LARGE = (
    "numpy",
    "onnxruntime",
    "tokenizers",
    "redis",
    "checkstream.grounding.claims",
    "checkstream.gate",
    "jinja2",
    "re2",
)


def test_policies_that_ask_no_model_load_nothing_that_runs_one() -> None:
    told = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "builtin:pci-dss", json.dumps(_LARGE)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(told.stdout) == ["re2"]  # the one of them that patterns need
