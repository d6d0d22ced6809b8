import io
import logging
import math
from collections.abc import Callable

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.errors import ConfigError, Fault, RequestInvalid
from checkstream.telemetry.logs import MAX_STRING_CHARS, SECRET_KEYS, TEXT_KEYS, LibraryLogs, Log, open_log

SECRET = "the caller's secret words"


def logged(write: Callable[[Log], object]) -> dict[str, object]:
    file = io.BytesIO()
    write(open_log("json", file))
    lines = file.getvalue().splitlines()
    assert len(lines) == 1
    loaded = orjson.loads(lines[0])
    assert isinstance(loaded, dict)
    return loaded


def test_a_line_is_json_with_time_level_event_and_what_was_bound() -> None:
    line = logged(lambda log: log.bind(stream="s-1").info("stream closed", held_ms=1.5, status=200, ok=True, none=None))
    assert line.pop("at", "").endswith("+00:00")  # type: ignore[attr-defined]
    assert line == {
        "event": "stream closed",
        "level": "info",
        "stream": "s-1",
        "held_ms": 1.5,
        "status": 200,
        "ok": True,
        "none": None,
    }


@pytest.mark.parametrize("key", sorted(TEXT_KEYS))
def test_text_is_withheld_under_every_key_that_speaks_of_text(key: str) -> None:
    assert logged(lambda log: log.info("x", **{key: SECRET}))[key] == f"[withheld, {len(SECRET)}]"
    assert SECRET not in str(
        logged(lambda log: log.info("x", **{key.upper(): [SECRET], "deep": {"a": [{key: SECRET}]}}))
    )


@pytest.mark.parametrize("key", [*sorted(SECRET_KEYS), "API-Key", "Authorization"])
def test_credentials_are_never_written(key: str) -> None:
    assert logged(lambda log: log.info("x", **{key: SECRET}))[key] == "[secret]"
    assert SECRET not in str(logged(lambda log: log.info("x", headers={key: SECRET})))


def test_counts_under_a_text_key_stay() -> None:
    assert logged(lambda log: log.info("x", data=17))["data"] == 17


def test_long_strings_lists_and_nesting_are_cut() -> None:
    deep: object = "end"
    for _ in range(50):
        deep = [deep]
    line = logged(lambda log: log.info("x", url="u" * 5_000, many=list(range(500)), deep=deep, blob=b"123"))
    assert line["url"] == "u" * MAX_STRING_CHARS + "\u2026 [5000]"
    assert len(line["many"]) == 32  # type: ignore[arg-type]
    assert "end" not in str(line["deep"])
    assert line["blob"] == "[withheld, 3]"


def test_odd_values_never_break_a_line() -> None:
    line = logged(
        lambda log: log.info(
            "x\n\ud800",
            odd=object(),
            lone="\ud800",
            big=1 << 80,
            nan=math.nan,
            keys={1: 2, None: 3, "\udfff": "\udfff"},
            err=ValueError(SECRET),
        )
    )
    assert SECRET not in str(line)
    assert line["odd"] == "[object]"
    assert line["err"] == "ValueError"


def test_an_exception_leaves_its_class_and_place_and_not_its_message() -> None:
    def write(log: Log) -> None:
        try:
            try:
                dict[str, int]()[SECRET]
            except KeyError as error:
                raise RequestInvalid(f"`{SECRET}` is no field") from error
        except RequestInvalid:
            log.exception("request failed")

    line = logged(write)
    assert SECRET not in str(line)
    assert line["error"] == "RequestInvalid"
    assert line["cause"] == "KeyError"
    assert line["level"] == "error"
    assert "test_logs.py" in str(line["error_at"])


def test_an_error_about_an_operators_file_keeps_its_message() -> None:
    error = ConfigError((Fault(file="checkstream.yaml", line=3, reason="`workers` is no number"),))
    line = logged(lambda log: log.error("reload refused", exc_info=error))
    assert line["error_reason"] == "checkstream.yaml:3: `workers` is no number"


def test_no_exception_in_flight_is_no_error() -> None:
    assert "error" not in logged(lambda log: log.error("x", exc_info=True))  # noqa: LOG014 - on purpose


def test_the_console_writes_readable_lines_under_the_same_gate() -> None:
    file = io.BytesIO()
    log = open_log("console", file)
    log.warning("stream closed", stream="s-1", text=SECRET)
    line = file.getvalue().decode()
    assert "stream closed" in line
    assert "s-1" in line
    assert SECRET not in line
    assert line.count("\n") == 1


def console(write: Callable[[Log], None]) -> list[str]:
    file = io.BytesIO()
    write(open_log("console", file))
    return file.getvalue().decode().splitlines()


def test_the_console_puts_lists_mappings_and_long_fields_on_lines_of_their_own() -> None:
    head, *below = console(lambda log: log.info("listening", listen="h:1", routes=["a -> b", "c -> d"], up={"u": "x"}))
    assert head.rstrip().endswith("listen=h:1")
    assert below == ["    routes  a -> b", "            c -> d", "    up      u  x"]
    head, *below = console(lambda log: log.info("long", a=1, b="x" * 200, c="three", d=None, e=[]))
    assert head.rstrip().endswith("long")
    assert below == ["    a  1", "    b  " + "x" * 200, "    c  three", "    d  None", "    e  none"]
    assert len(console(lambda log: log.info("short", a=1, b=2, c="three", d=4, e=5, f=6))) == 1


@given(st.text(), st.text(), st.dictionaries(st.text(min_size=1), st.text()))
def test_nothing_in_a_value_can_steer_a_terminal_or_forge_a_line(name: str, item: str, pairs: dict[str, str]) -> None:
    lines = console(lambda log: log.info("x", name=name, items=[item], pairs=pairs))
    assert all(line.isprintable() for line in lines)
    assert lines[0].startswith("20")
    assert all(line.startswith("    ") for line in lines[1:])


@pytest.mark.parametrize(("terminal", "json_lines"), [(False, True), (True, False)])
def test_auto_is_the_console_on_a_terminal_only(*, terminal: bool, json_lines: bool) -> None:
    file = io.BytesIO()
    open_log("auto", file, terminal=terminal).info("hello")
    assert file.getvalue().startswith(b"{") is json_lines


def test_lines_below_the_level_are_not_written_and_two_logs_do_not_meet() -> None:
    one, two = io.BytesIO(), io.BytesIO()
    open_log("json", one, level="error").info("quiet")
    open_log("json", two, level="debug").debug("loud")
    assert one.getvalue() == b""
    assert b"loud" in two.getvalue()


def test_library_records_pass_the_gate() -> None:
    file = io.BytesIO()
    logger = logging.Logger("aiohttp.server")  # noqa: LOG001 - kept out of the process's tree
    logger.addHandler(LibraryLogs(open_log("json", file)))
    logger.error("bad request from %s", SECRET)
    logger.warning(f"inline {SECRET}")  # noqa: G004 - that is what is tested
    logger.info("below the level")
    try:
        int(SECRET)
    except ValueError:
        logger.exception("failed: %s", SECRET)
    lines = [orjson.loads(line) for line in file.getvalue().splitlines()]
    assert [line["template"] for line in lines] == ["bad request from %s", "[withheld]", "failed: %s"]
    assert lines[2]["error"] == "ValueError"
    assert SECRET.encode() not in file.getvalue()


def test_a_log_that_cannot_be_written_fails_nothing() -> None:
    class Full(io.BytesIO):
        def write(self, _: object) -> int:
            raise BrokenPipeError

    open_log("json", Full()).info("lost")
    closed = io.BytesIO()
    closed.close()
    with_closed = open_log("json", closed)
    with_closed.info("lost too")
