"""Recipes that rebuild the models that ship. Nothing here is imported by the proxy; it needs the extra `train`."""

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # see checkstream/scoring/onnx_runtime.py
