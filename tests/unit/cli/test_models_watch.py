"""`checkstream models watch` over metrics that were saved, and before hosts that are no proxy."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.cli import main, models_watch
from checkstream.cli.models_watch import watched
from checkstream.errors import MetricsUnreadable
from checkstream.telemetry.drift import BINS, LEAST, ks, psi
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.reading import read_day

Ran = Callable[..., tuple[int, str, str]]
KEY = ("injection.injection", "ingress")
CALM = {0.001: 500, 0.02: 300, 0.2: 100}
"""Score -> how many of it."""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Ran:
    def ran(*arguments: str | Path) -> tuple[int, str, str]:
        try:
            code = main(["models", "watch", *map(str, arguments)])
        except SystemExit as stopped:
            code = int(str(stopped.code))
        said = capsys.readouterr()
        return code, said.out, said.err

    return ran


def metrics(scores: dict[float, int], *, classifier: str = KEY[0], reference: dict[float, int] | None = CALM) -> bytes:
    """What a proxy shows that has scored so, and was calibrated so."""
    told, calm = Metrics(), Metrics()
    if reference is not None:
        counted(calm, classifier, reference)
        told.scores.expect({(classifier, "ingress"): calm.scores.today[classifier, "ingress"]})
    counted(told, classifier, scores)
    return told.render()


def counted(metrics: Metrics, classifier: str, scores: dict[float, int]) -> None:
    for score, times in scores.items():
        for _ in range(times):
            metrics.scores.count({classifier: score}, "ingress")


@pytest.fixture
def save(tmp_path: Path) -> Callable[[bytes], Path]:
    def saved(data: bytes) -> Path:
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.prom"
        file.write_bytes(data)
        return file

    return saved


def test_what_is_as_it_was_is_steady(run: Ran, save: Callable[[bytes], Path]) -> None:
    code, out, err = run("--metrics", save(metrics({score: times * 2 for score, times in CALM.items()})))
    assert (code, err) == (0, "")
    head, row = out.splitlines()
    assert head.split() == ["classifier", "stage", "scores", "PSI", "KS", "verdict"]
    assert row.split() == ["injection.injection", "ingress", "1800", "0.000", "0.000", "steady"]


def test_what_has_changed_exits_with_1_and_gives_its_figures(run: Ran, save: Callable[[bytes], Path]) -> None:
    file = save(metrics({0.001: 500, 0.9: 300}))
    code, out, _ = run("--metrics", file, "--json")
    (row,) = json.loads(out)
    day = read_day(file.read_bytes(), "file")
    assert code == 1
    assert row == {
        "classifier": KEY[0],
        "stage": "ingress",
        "scores": 800,
        "psi": round(psi(day.reference[KEY], day.today[KEY]), 4),
        "ks": round(ks(day.reference[KEY], day.today[KEY]), 4),
        "verdict": "changed",
        "reason": "",
    }


def test_between_the_bounds_scores_have_moved_and_bounds_can_be_given(run: Ran, save: Callable[[bytes], Path]) -> None:
    file = save(metrics({0.001: 700, 0.02: 220, 0.2: 90}))
    moved = metrics({0.001: 620, 0.02: 160, 0.2: 100})
    code, out, _ = run("--metrics", file)
    assert (code, out.split()[-1]) == (0, "steady")
    code, out, _ = run("--metrics", save(moved))
    assert (code, out.split()[-1]) == (0, "moved")
    assert run("--metrics", save(moved), "--psi", "0.12")[0] == 1
    assert run("--metrics", save(moved), "--ks", "0.2")[0] == 0
    assert run("--metrics", save(moved), "--ks", "0.1")[0] == 1


def test_too_few_scores_and_models_without_a_reference_are_told_as_such(
    run: Ran, save: Callable[[bytes], Path]
) -> None:
    code, out, _ = run("--metrics", save(metrics({0.9: 499})))
    assert code == 0
    assert out.splitlines()[1].endswith("499    -   -  unknown (too few scores: 499 of 500)")
    code, out, _ = run("--metrics", save(metrics({0.9: 900}, classifier="own.bad", reference=None)))
    assert code == 0
    assert out.splitlines()[1].endswith("unknown (no reference; see --against)")
    code, out, _ = run("--metrics", save(Metrics().render()))
    assert (code, out) == (0, "no classifier has scored a text in the last 24 hours\n")


def test_a_day_of_ones_own_takes_the_place_of_the_reference(run: Ran, save: Callable[[bytes], Path]) -> None:
    own = {0.4: 600, 0.5: 600}
    monday = save(metrics(own, classifier="own.bad", reference=None))
    code, out, _ = run("--metrics", monday, "--against", monday)
    assert (code, out.split()[-1]) == (0, "steady")
    code, out, _ = run("--metrics", save(metrics({0.9: 600}, classifier="own.bad")), "--against", monday)
    assert (code, out.split()[-1]) == (1, "changed")
    short = save(metrics({0.4: 20}, classifier="own.bad", reference=None))
    code, out, _ = run("--metrics", monday, "--against", short)
    assert code == 0
    assert "unknown (too few scores in the reference: 20 of 500)" in out


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no metrics of checkstream"),
        (b"<html>", "no metrics of checkstream"),
        (b"\xff\xfe", "that is no text"),
        (b"# HELP go_threads x\ngo_threads 3\n", "no metrics of checkstream"),
        (b"# HELP checkstream_streams x\ncheckstream_streams 3\n", "this version counts no scores by day"),
        (b'# HELP checkstream_score_day x\ncheckstream_score_day{classifier="a} 1\n', "can't be read"),
        (b"# HELP checkstream_score_day x\ncheckstream_score_day{} x\n", "can't be read"),
        (b"# HELP checkstream_score_day x\ncheckstream_score_day{\n", "can't be read"),
    ],
)
def test_what_are_no_such_metrics_is_refused(run: Ran, save: Callable[[bytes], Path], data: bytes, said: str) -> None:
    for arguments in (("--metrics", save(data)), ("--metrics", save(Metrics().render()), "--against", save(data))):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert said in err


def test_bins_of_another_version_and_foreign_labels_are_left_out(run: Ran, save: Callable[[bytes], Path]) -> None:
    data = metrics({0.9: 900})
    bare = data.replace(b'le="0.5"', b'le="0.55"')
    assert run("--metrics", save(bare))[1] == "no classifier has scored a text in the last 24 hours\n"
    steering = metrics({0.9: 900}).replace(b"injection.injection", b"\x1b[31mred")
    assert "\x1b" not in run("--metrics", save(steering))[1]


@given(st.text(max_size=80), st.text(max_size=20))
def test_whatever_stands_in_metrics_is_read_or_refused(line: str, value: str) -> None:
    given_ = f"# HELP checkstream_score_day x\ncheckstream_score_day{{{line}}} {value}\n".encode("utf-8", "replace")
    try:
        day = read_day(given_, "file")
    except MetricsUnreadable:
        return
    assert watched(day.today, day.reference) == []  # one line is no histogram


@pytest.mark.parametrize("bound", ["0", "-1", "nan", "inf", "x", ""])
def test_bounds_are_numbers_above_0(run: Ran, bound: str) -> None:
    code, _, err = run("--psi", bound)
    assert code == 2
    assert "is no bound" in err


def test_a_file_that_is_not_there_and_one_that_is_too_large_are_refused(
    run: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = run("--metrics", tmp_path / "none")
    assert code == 2
    assert "can't be read: no such file" in err
    monkeypatch.setattr(models_watch, "_MOST_BYTES", 1 << 20)
    (tmp_path / "large").write_bytes(b"#" * ((1 << 20) + 1))
    code, _, err = run("--metrics", tmp_path / "large")
    assert code == 2
    assert "more than 1 MiB" in err


@contextmanager
def server(status: int, body: bytes, **headers: str) -> Iterator[tuple[str, list[str | None]]]:
    """A server that answers everything so; what it was sent as a token."""
    tokens: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens.append(self.headers["authorization"])
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{serving.server_port}", tokens
        finally:
            serving.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"hello", "no metrics of checkstream"),
        (401, b"", "asks for a token"),
        (404, b"", "answers 404; name the admin listener"),
        (500, b"", "answers 500"),
        (302, b"", "answers 302"),
    ],
)
def test_hosts_that_are_no_admin_listener_are_told_apart(run: Ran, status: int, body: bytes, said: str) -> None:
    with server(status, body, location="http://127.0.0.1:9/x") as (url, _):
        code, out, err = run("--admin", url)
    assert (code, out) == (2, "")
    assert said in err


def test_an_answer_without_end_is_not_read_to_it(run: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models_watch, "_MOST_BYTES", 1 << 16)
    with server(200, b"#" * (1 << 20)) as (url, _):
        code, _, err = run("--admin", url)
    assert code == 2
    assert "these are no metrics of a proxy" in err


def test_a_host_that_says_nothing_is_not_waited_for(run: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models_watch, "_TIMEOUT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        code, _, err = run("--admin", f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert code == 2
    assert "has not answered within" in err


def test_the_token_is_sent_and_one_that_is_not_there_is_asked_for(run: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCH_TOKEN", "secret")
    with server(200, metrics({0.9: 600})) as (url, tokens):
        assert run("--admin", f"{url}/metrics", "--token-env", "WATCH_TOKEN")[0] == 1
        assert tokens == ["Bearer secret"]
        code, _, err = run("--admin", url, "--token-env", "NO_SUCH_TOKEN")
        assert code == 2
        assert "`NO_SUCH_TOKEN` holds no token" in err


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:9090", "ftp://a", "http://", "http://a:99999", "http://[::1", "http://a:x"]
)
def test_what_is_no_address_is_refused_by_name(run: Ran, url: str) -> None:
    code, _, err = run("--admin", url)
    assert code == 2
    assert "is no address of an admin listener" in err


def test_where_nobody_listens_the_command_says_so(run: Ran) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    code, _, err = run("--admin", f"http://127.0.0.1:{port}")
    assert code == 2
    assert f"no proxy answers at http://127.0.0.1:{port}/metrics" in err


def test_the_least_numbers_are_those_of_the_documentation() -> None:
    assert dict(LEAST) == {"ingress": 500, "midstream": 2000}
    assert BINS == 22
