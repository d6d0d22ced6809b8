"""Runs client libraries of others as an application does: a line of JSON asks, another says what came out.

    .venv-sdks/bin/python -m tests.e2e.sdks.client

It runs in the environment of these libraries, which is not the product's. `driver` is its other end, and says what
can be asked. A library is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any

from tests.e2e.sdks import tools

Asked = Mapping[str, Any]


def done(asked: Asked) -> dict[str, Any]:
    """Return what came of one request: `value` or `error`, and the runs of tools, which are told in both cases."""
    tools.RAN.clear()
    library = importlib.import_module(f"tests.e2e.sdks.with_{_program(asked['sdk'])}")
    try:
        told: dict[str, Any] = {"value": getattr(library, asked["do"])(asked)}
    except Exception as error:  # noqa: BLE001 - what an application would have to catch is what is asked about
        told = {"error": _told(error)}
    return told | {"ran": list(tools.RAN)}


def _program(sdk: str) -> str:
    """Return the program of an SDK: the Responses API has one of its own in OpenAI's."""
    return sdk if sdk == "openai_responses" else sdk.removesuffix("_messages").removesuffix("_responses")


def _told(error: BaseException) -> dict[str, Any]:
    kinds = [kind.__name__ for kind in type(error).__mro__]
    trace = "".join(traceback.format_exception(error))
    return {"kinds": kinds, "text": str(error), "trace": trace}


def main() -> None:
    """Serve until the end of the input."""
    answers, sys.stdout = sys.stdout, sys.stderr  # some of these libraries print
    for line in sys.stdin:
        told = done(json.loads(line))
        answers.write(json.dumps(told, default=str) + "\n")
        answers.flush()
    os._exit(0)  # some of these libraries keep threads that the end of the interpreter waits for, for seconds


if __name__ == "__main__":
    main()
