"""Logs: one JSON object a line on stderr, or a readable line on a terminal. Never callers' text by default.

`open_log` returns a logger that is passed on and bound (`log.bind(stream=...)`); nothing is configured
globally, so two logs in one process don't meet. Redaction is a gate, not a habit: a value under a key that
speaks of text is replaced by its length, long strings are cut, and of an exception only its class and place
remain, since its message may quote what a caller sent.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import sys
import traceback
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import BinaryIO, Literal

import orjson

from checkstream.errors import FaultyFile, ModelError, PatternError

EventDict = dict[str, object]

MAX_STRING_CHARS = 256
"""Longer strings are cut: no field that an operator needs is longer."""
MAX_ITEMS = 32
"""Longer lists and mappings are cut."""
MAX_DEPTH = 4

TEXT_KEYS = frozenset(
    {
        "answer", "arguments", "body", "chunk", "completion", "content", "data", "delta", "document", "documents",
        "input", "message", "messages", "output", "payload", "prompt", "raw", "reasoning", "refusal", "reply",
        "request", "response", "span_text", "system", "text", "texts", "value", "values", "window",
    }
)  # fmt: skip
"""Keys under which text of callers or models would stand."""

SECRET_KEYS = frozenset({"api_key", "apikey", "authorization", "cookie", "key", "password", "secret", "token"})
"""Keys under which credentials would stand."""

_Level = Literal["debug", "info", "warning", "error"]


def open_log(
    render: Literal["json", "console", "auto"], file: BinaryIO, *, level: _Level = "info", terminal: bool = False
) -> Log:
    """Open a log.

    Args:
        render: `json`, or `console` for people; `auto`: `console` on a terminal.
        file: where lines go, e.g. `sys.stderr.buffer`; each line is written and flushed as a whole.
        level: the least level that is written.
        terminal: The file is one, so that `console` uses colours.
    """
    is_json = render == "json" or (render == "auto" and not terminal)
    return Log(
        _Sink(file), _json if is_json else _Console(colors=terminal), logging.getLevelNamesMapping()[level.upper()]
    )


class Log:
    """What is passed on: `log.info("event", key=value)`, `log.bind(stream=...)`."""

    __slots__ = ("_bound", "_least", "_render", "_sink")

    def __init__(
        self, sink: _Sink, render: Callable[[EventDict], bytes], least: int, bound: Mapping[str, object] | None = None
    ) -> None:
        """Write to `sink` what `render` makes of events of at least the level `least`."""
        self._sink = sink
        self._render = render
        self._least = least
        self._bound = dict(bound or {})

    def bind(self, **fields: object) -> Log:
        """Return a log whose events all have these fields."""
        return Log(self._sink, self._render, self._least, self._bound | fields)

    def debug(self, event: str, **fields: object) -> None:
        """Log what only who looks for a fault wants to know."""
        self._say(logging.DEBUG, "debug", event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log what happens."""
        self._say(logging.INFO, "info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log what somebody may have to see to."""
        self._say(logging.WARNING, "warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Log what somebody has to see to."""
        self._say(logging.ERROR, "error", event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """Log the exception in flight."""
        self._say(logging.ERROR, "error", event, {"exc_info": True} | fields)

    def log(self, number: int, event: str, **fields: object) -> None:
        """Log at a level of the standard library's."""
        self._say(number, logging.getLevelName(number).lower(), event, fields)

    def _say(self, number: int, level: str, event: str, fields: EventDict) -> None:
        if number < self._least:
            return
        said = {"at": _now(), "level": level, "event": event, **self._bound, **fields}
        if "exc_info" in said:
            describe_exception(said)
        self._sink.write(self._render(redact(said)) + b"\n")


class _Console:
    """A line for people. Lists and mappings stand below it, an item a line, and so does what would make it too long."""

    _OWN = frozenset({"at", "level", "event"})
    _MOST_CHARS = 200
    """What a line holds of fields; in a longer one nobody finds the one that he looks for."""

    def __init__(self, *, colors: bool) -> None:
        from structlog.dev import ConsoleRenderer  # noqa: PLC0415 - large, and for who reads along alone

        self._line = ConsoleRenderer(colors=colors, sort_keys=False, timestamp_key="at")

    def __call__(self, event: EventDict) -> bytes:
        single = {
            key: value for key, value in event.items() if key not in self._OWN and not isinstance(value, list | dict)
        }
        long = sum(len(key) + len(str(value)) + 2 for key, value in single.items()) > self._MOST_CHARS
        below = {
            key: event.pop(key)
            for key, value in list(event.items())
            if isinstance(value, list | dict) or (long and key in single)
        }
        head = self._line(None, "", {key: _shown(value) for key, value in event.items()})
        width = max(map(len, below), default=0)
        lines = (head, *(line for key, value in below.items() for line in _items(key.ljust(width), value)))
        return "\n".join(lines).encode("utf-8", "backslashreplace")


def _items(name: str, value: object) -> list[str]:
    """Return the lines of a value, its name before the first."""
    match value:
        case dict():
            told = [f"{key}  {item}" for key, item in value.items()]
        case list():
            told = [str(item) for item in value]
        case _:
            told = [str(value)]
    lines = [_shown(line) for item in told for line in item.split("\n")] or ["none"]
    return [f"    {name if not place else ' ' * len(name)}  {line}" for place, line in enumerate(lines)]


def _shown(value: object) -> object:
    """Return text in which nothing can steer a terminal."""
    if not isinstance(value, str) or value.isprintable():
        return value
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)


class _Sink:
    """A file whose failure (a closed pipe, a full disk) loses lines and never fails a request."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, line: bytes) -> None:
        """Write a line as a whole, or lose it."""
        with contextlib.suppress(OSError, ValueError):
            self._file.write(line)
            self._file.flush()


def redact(event: EventDict) -> EventDict:
    """Replace text and secrets by what may be known of them, and cut what is long."""
    return {key: _allowed(key, value, 0) for key, value in event.items()}


def _allowed(key: str, value: object, depth: int) -> object:
    name = key.lower().replace("-", "_")
    if name in SECRET_KEYS:
        return "[secret]"
    if name in TEXT_KEYS and not isinstance(value, bool | int | float | None):
        size = len(value) if isinstance(value, str | bytes | list | tuple | Mapping) else "?"
        return f"[withheld, {size}]"
    return _short(key, value, depth)


def _short(key: str, value: object, depth: int) -> object:
    match value:
        case int() if value.bit_length() > 63:  # more than the JSON writer takes
            return hex(value)[:MAX_STRING_CHARS]
        case bool() | int() | float() | None:
            return value
        case str():
            text = _printable(value[: MAX_STRING_CHARS + 1])
            return text if len(value) <= MAX_STRING_CHARS else f"{text[:MAX_STRING_CHARS]}… [{len(value)}]"
        case bytes() | bytearray():
            return f"[withheld, {len(value)}]"
        case Mapping() if depth < MAX_DEPTH:
            pairs = list(value.items())[:MAX_ITEMS]
            return {_printable(str(inner)[:64]): _allowed(str(inner), item, depth + 1) for inner, item in pairs}
        case list() | tuple() | set() | frozenset() if depth < MAX_DEPTH:
            return [_short(key, item, depth + 1) for item in list(value)[:MAX_ITEMS]]
        case BaseException():
            return type(value).__name__
        case _:
            return f"[{type(value).__name__}]"


def _printable(text: str) -> str:
    """Replace lone surrogates, which are no valid JSON text."""
    return text.encode("utf-8", "backslashreplace").decode()


def describe_exception(event: EventDict) -> None:
    """Turn `exc_info` into the exception's class, its place, and those of its causes.

    Messages are kept only for errors about files that operators wrote.
    """
    given = event.pop("exc_info", None)
    error = _exception(given)
    if error is None:
        return
    event["error"] = type(error).__name__
    event["error_at"] = _places(error.__traceback__)
    if isinstance(error, FaultyFile | PatternError | ModelError):
        event["error_reason"] = str(error)
    cause = error.__cause__ or error.__context__
    if cause is not None:
        event["cause"] = type(cause).__name__
        event["cause_at"] = _places(cause.__traceback__)


def _exception(given: object) -> BaseException | None:
    if isinstance(given, BaseException):
        return given
    if isinstance(given, tuple) and len(given) == 3 and isinstance(given[1], BaseException):
        return given[1]
    if given:
        return sys.exc_info()[1]
    return None


def _places(trace: TracebackType | None) -> list[str]:
    """Name the last frames, innermost last."""
    frames = traceback.extract_tb(trace)[-6:]
    return [f"{'/'.join(frame.filename.rsplit('/', 3)[1:])}:{frame.lineno} {frame.name}" for frame in frames]


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")


def _json(event: EventDict) -> bytes:
    return orjson.dumps(event, option=orjson.OPT_NON_STR_KEYS)


class LibraryLogs(logging.Handler):
    """Passes what libraries log through the standard library on to a `Log`, under the same redaction.

    Only the logger's name, its unfilled format and the exception's class are kept: arguments of the format
    may be anything that went over the wire.
    """

    def __init__(self, log: Log, level: int = logging.WARNING) -> None:
        """Pass on records of at least `level`; the caller adds this to the root logger."""
        super().__init__(level)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Pass one record on."""
        template = record.msg if isinstance(record.msg, str) and record.args else "[withheld]"
        error = record.exc_info[1] if record.exc_info else None
        self._log.log(record.levelno, "library", logger=record.name, template=template, exc_info=error)
