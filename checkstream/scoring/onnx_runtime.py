"""The one importer of ONNX Runtime, which must not call home.

Its packages for Linux and macOS write an identifier to the folder for temporary files and send events about sessions
and models to their maker, from the moment of the import, unless this variable is set before it. What a guardrail
runs, and that it runs, is its operator's business alone.

Source: microsoft/onnxruntime#27379.
"""

from __future__ import annotations

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime as ort

__all__ = ["ort"]
