"""`checkstream models eval`: how good is a model on labelled texts, at which rate of false alarms, and how fast?"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from checkstream.cli import models_board, models_eval_claims
from checkstream.cli.models_predict import open_reader
from checkstream.cli.parser import Commands, Parser
from checkstream.cli.progress import progress
from checkstream.cli.results import counted, safe, write_json
from checkstream.errors import FileUnreadable, ModelError
from checkstream.evaluation.assess import RATES, Assessment, AtRate, Latency, ScoredSet, assess, latency_of
from checkstream.evaluation.reading import ANY, PATTERNS, ModelReader, Reader, Said, score_of
from checkstream.evaluation.report import interval, page, spans_page
from checkstream.evaluation.rows import Row, read_rows
from checkstream.evaluation.spans import SpanCounts, SpanFigures
from checkstream.evaluation.verifiers import PREFIX

_POSITIVE = ("1", "1.0", "true")


def add_parser(commands: Commands) -> Parser:
    """Register the command with the group `models`."""
    parser = commands.add_parser(
        "eval",
        help="measure a model on labelled texts",
        description="Measure a model on files of JSON lines (.jsonl, .jsonl.gz): recall at fixed false-positive rates "
        "with one threshold for all files, false positives of each file, AUC with its interval, latency. For a model "
        "that finds entities: precision, recall and F1 of the spans. For a verifier, on files of {premise, claim, "
        "label}: AUC and balanced accuracy with their intervals, per file and on average. With --all: every model on "
        "every set that scoreboard.yaml names, beside what was kept before. Exit 0: done. 1: with --all, a figure lies "
        "beyond the bad end of its interval before, or is no longer measured. 2: wrong use.",
        epilog="example: checkstream models eval injection attacks.jsonl --against benign.jsonl --html report.html",
    )
    parser.add_argument("name", metavar="NAME", help=f"a model, `{PATTERNS}`, or `{PREFIX}embedded`")
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="labelled texts")
    parser.add_argument("--text-key", metavar="KEY", default="text", help="key of the text (default: text)")
    parser.add_argument("--label-key", metavar="KEY", default="label", help="key of the label (default: label)")
    parser.add_argument("--spans-key", metavar="KEY", default="spans", help="key of marked spans (default: spans)")
    parser.add_argument(
        "--positive", metavar="VALUE", action="append", help="a label that counts as positive (default: 1, true)"
    )
    parser.add_argument(
        "--against", metavar="FILE", type=Path, action="append", default=[], help="texts that are all negative"
    )
    parser.add_argument(
        "--label",
        metavar="LABEL",
        help="which score of the model counts (default: `any`, its own or the highest of all)",
    )
    parser.add_argument(
        "--rename",
        metavar="GOLD=OURS",
        type=_renaming,
        action="append",
        default=[],
        help="what a marked span's label is called here",
    )
    parser.add_argument("--sample", metavar="N", type=_count, help="only N texts of each file, chosen by a fixed seed")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a report with plots, a page of its own")
    parser.add_argument("--json", action="store_true", help="print every figure as JSON")
    models_eval_claims.add_arguments(parser)
    models_board.add_arguments(parser)
    return parser


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:12]) <= 10_000_000:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of texts; write 1 to 10000000")
    return int(text)


def _renaming(given: str) -> tuple[str, str]:
    gold, _, ours = given.partition("=")
    if not gold or not ours:
        raise argparse.ArgumentTypeError(
            f"`{given}` renames nothing; write what is marked, `=`, what it is called here"
        )
    return gold, ours


def run(args: argparse.Namespace) -> int:
    """Measure, print, and write the report that is asked for.

    Returns:
        0: done; 1: of a scoreboard, something got worse.

    Raises:
        ConfigError: models.yaml holds faults.
        ModelError: there is no such model or label, or it can't be used.
        FileUnreadable: a file can't be read, or holds no texts.
        ScoringError: the model gave no usable scores.
    """
    if args.all is not None:
        if args.name is not None or args.against:
            args.parser.error("--all measures every model; leave NAME, FILE and --against out")
        return models_board.run(args)
    if args.name.startswith(PREFIX):
        return models_eval_claims.run(args)
    return _texts(args)


def _texts(args: argparse.Namespace) -> int:
    reader = open_reader(args.name, args.models)
    if not reader.labels:
        return _spans(args, reader)
    label = args.label or (reader.labels[0] if len(reader.labels) == 1 else ANY)
    if label not in (*reader.labels, ANY):
        raise ModelError(f"`{label}` is no label of `{args.name}`; it has {', '.join(reader.labels)}")
    positive = frozenset(args.positive or _POSITIVE)
    seconds: list[float] = []
    chars = 0
    sets = []
    for file, negative in (*((file, False) for file in args.files), *((file, True) for file in args.against)):
        scores: dict[bool, list[float]] = {True: [], False: []}
        rows = _rows(args, file)
        if not negative and not any(row.label for row in rows):
            raise FileUnreadable(
                f"no text in `{file}` has a label; write `1` or `true` under `label`, name another key with "
                "`--label-key`, or give the file with `--against` if all of its texts are harmless"
            )
        for row, said, took in _read(reader, rows, file.name):
            score = score_of(said.scores, label)
            scores[not negative and row.label in positive].append(score)
            seconds.append(took)
            chars += len(row.text)
        sets.append(ScoredSet(file.name, np.array(scores[True]), np.array(scores[False])))
    found = assess(args.name, label, sets, _promised(reader, label), latency_of(seconds, chars))
    if args.json:
        write_json(found)
    else:
        _print(found)
    _report(args, page(found))
    return 0


def _promised(reader: Reader, label: str) -> dict[float, float]:
    if not isinstance(reader, ModelReader):
        return {}
    return {rate.fpr: rate.threshold for rate in reader.model.entry.rates if rate.label == label}


def _rows(args: argparse.Namespace, file: Path) -> list[Row]:
    rows = list(read_rows(file, args.text_key, args.label_key, args.spans_key))
    if not rows:
        raise FileUnreadable(f"there is no text in `{file}`; give a file of JSON lines")
    if args.sample is not None and len(rows) > args.sample:
        return random.Random(0).sample(rows, args.sample)  # noqa: S311 - a choice that can be repeated
    return rows


def _read(reader: Reader, rows: Sequence[Row], name: str) -> list[tuple[Row, Said, float]]:
    found = []
    for row in progress(rows, name):
        began = time.perf_counter()
        said = reader.read(row.text)
        found.append((row, said, time.perf_counter() - began))
    return found


def _report(args: argparse.Namespace, html: str) -> None:
    if args.html is not None:
        args.html.write_text(html, encoding="utf-8")


def _print(found: Assessment) -> None:
    out = [f"{found.model}: {found.label}, {found.positives} positive and {found.negatives} negative texts"]
    if found.auc is not None:
        out.append(f"AUC {interval(found.auc)}, average precision {found.average_precision:.3f}")
    out += [_at(each, "at") for each in found.rates]
    out += [_at(each, "promised") for each in found.promised]
    heads = [f"{rate * 100:g} %" for rate in RATES]
    out += ["", f"sets: recall at {', '.join(heads)}; false positives at the same thresholds"]
    for each in found.sets:
        recall = ", ".join(f"{value * 100:.1f}" for value in each.recall) or "-"
        alarms = ", ".join(f"{value * 100:.2f}" for value in each.fpr) or "-"
        shown = "" if each.auc is None else f"  AUC {each.auc:.3f}"
        texts = f"{each.positives} + {each.negatives} texts"
        out.append(f"  {safe(each.name)}  {texts}{shown}  recall {recall} %  false positives {alarms} %")
    out += ["", f"expected calibration error {found.calibration_error:.3f}", _took(found.latency)]
    sys.stdout.write("\n".join(out) + "\n")


def _at(each: AtRate, word: str) -> str:
    recall = "-" if each.recall is None else interval(each.recall, percent=True)
    alarms = "-" if each.fpr is None else f"{each.fpr * 100:.2f} %"
    return f"{word} {each.rate * 100:g} %: threshold {each.threshold:.4f}, recall {recall}, false positives {alarms}"


def _took(latency: Latency) -> str:
    texts = f"{counted(latency.texts, 'text')}, {latency.mean_chars:.0f} characters on average"
    return f"latency p50 {latency.p50_ms:.2f} ms, p99 {latency.p99_ms:.2f} ms ({texts})"


# --- spans


class _SpanReport(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    kinds: Sequence[SpanFigures]
    latency: Latency


def _spans(args: argparse.Namespace, reader: Reader) -> int:
    names = dict(args.rename)
    counts, seconds, chars = SpanCounts(), [], 0
    for file in (*args.files, *args.against):
        for row, said, took in _read(reader, _rows(args, file), file.name):
            gold = [(span.start, span.end, names.get(span.label, span.label)) for span in row.spans]
            found = [(each.start, each.end, each.entity) for each in said.entities]
            counts.add([span for span in gold if span[2] in reader.kinds], found)
            seconds.append(took)
            chars += len(row.text)
    report = _SpanReport(model=args.name, kinds=counts.figures(), latency=latency_of(seconds, chars))
    if args.json:
        write_json(report)
    else:
        _print_spans(report)
    _report(args, spans_page(args.name, report.kinds, report.latency))
    return 0


def _print_spans(report: _SpanReport) -> None:
    sys.stdout.write("kind  marked  found  precision  recall  F1 (strict; by overlap)\n")
    for each in report.kinds:
        strict = f"{each.strict_precision:.3f} {each.strict_recall:.3f} {each.strict_f1:.3f}"
        overlap = f"{each.overlap_precision:.3f} {each.overlap_recall:.3f} {each.overlap_f1:.3f}"
        sys.stdout.write(f"{each.kind}  {each.gold}  {each.found}  {strict}; {overlap}\n")
    sys.stdout.write(_took(report.latency) + "\n")
