"""Writes the model's card from its figures. Pure: JSON in, Markdown out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TEXT = Path(__file__).with_name("card.md")
"""What the card says beside its figures; each `{name}` is a table."""


def _spread(value: Sequence[float]) -> str:
    return f"{value[0]:.3f} ({value[1]:.3f} to {value[2]:.3f})"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}".replace("%", " %")


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


_SEPARATION = ("AUC", "recall at 5 % FPR", "recall at 1 % FPR", "harmful", "harmless")


def _separation(found: Mapping[str, Any]) -> list[str]:
    spreads = [_spread(found[name]) for name in ("auc", "recall_5", "recall_1")]
    return [*spreads, str(found["positives"]), str(found["negatives"])]


def _sources(found: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for source, row in found["sources"].items():
        recall, flags = row.get("recall", {}), row.get("flagged", {})
        rows.append(
            [
                source,
                f"{row['auc']:.3f}" if "auc" in row else "",
                *(_share(recall.get(rate)) for rate in ("0.05", "0.01")),
                *(_share(flags.get(rate)) for rate in ("0.05", "0.01")),
                " / ".join(str(count) for count in row["texts"]),
            ]
        )
    return rows


_SOURCE_HEAD = ("source", "AUC within", "caught at 5 %", "at 1 %", "flagged at 5 %", "at 1 %", "harmful / harmless")


def _labels(found: Mapping[str, Any]) -> str:
    rows = [[f"`{label}`", _spread(row["auc"]), row["positives"], row["negatives"]] for label, row in found.items()]
    return _table(("label", "AUC, held-out rows", "positives", "negatives"), rows)


def _flagged(found: Mapping[str, Mapping[str, Any]]) -> str:
    limits = [name for name in next(iter(found.values())) if name != "texts"]
    head = ("texts", *(f"flagged at {limit}" for limit in limits), "number")
    return _table(
        head, [[name, *(_share(row[limit]) for limit in limits), row["texts"]] for name, row in found.items()]
    )


def _streaming(found: Mapping[str, Any]) -> str:
    rows, leaks = [], []
    for limit, row in found.items():
        rows.append([limit, _share(row["caught"]), _share(row["decided_by_30_percent"]),
                     row["median_pieces_at_decision"], row["answers"]])  # fmt: skip
        for hold, leak in row["leak"].items():
            leaks.append([limit, hold, _share(leak["nothing"]), leak["median"], leak["mean"]])
    first = _table(("threshold", "caught", "of those by 30 % of the text", "median pieces at the cut", "answers"), rows)
    head = ("threshold", "pieces held back", "cut before anything left", "median pieces leaked", "mean")
    return f"{first}\n\n{_table(head, leaks)}"


def _measures(found: Mapping[str, Any]) -> str:
    rows = []
    for name, row in found.items():
        own = _separation(row) if "auc" in row else ["", "", "", "", ""]
        rows.append([f"`{name}`", *own[:3], *(_share(value) for value in row["flagged"].values())])
    limits = list(next(iter(found.values()))["flagged"])
    return _table(("set", *_SEPARATION[:3], *(f"harmless flagged at {limit}" for limit in limits)), rows)


def _parity(found: Mapping[str, Any]) -> str:
    head = ("windows", "mean drift of a score", "99th percentile", "decisions that flip at the 1 % thresholds")
    return _table(head, [[found["windows"], f"{found['mean']:.4f}", f"{found['p99']:.4f}", f"{found['flips']:.2%}"]])


def _gate(found: Mapping[str, Any]) -> str:
    head = (
        "windows learnt from", "doubt from which the model is asked", "benign checks that it doubts", "of",
        *(f"findings at {rate} lost" for rate in found["lost"]),
    )  # fmt: skip
    lost = [_share(value) for value in found["lost"].values()]
    return _table(
        head, [[found["windows"], f"{found['threshold']:.4f}", _share(found["doubted"]), found["checks"], *lost]]
    )


def card(parts: Mapping[str, Any]) -> str:
    """Return the card.

    Args:
        parts: `export` and `figures`, as the commands write them.
    """
    export, own = parts["export"], parts["figures"]
    rates = [[f"`{row['label']}`", row["fpr"], row["threshold"]] for row in export["rates"]]
    tables = {
        "labels": _labels(own["labels"]),
        "hard": _flagged({**own["hard"], "written by hand, innocent": own["probe"]}),
        "by_hand": _flagged({"written by hand, harmful": own["probe_harmful"]}),
        "policy": _flagged(own["policy"]),
        "promotions": _flagged(own["promotions"]),
        "answers": f"{_table(_SEPARATION, [_separation(own['answers'])])}\n\n{_streaming(own['answers']['streaming'])}",
        "measures": _measures(own["measures"]),
        "natural": "\n\n".join(
            (
                _table(_SEPARATION, [_separation(own["natural"])]),
                _table(_SOURCE_HEAD, _sources(own["natural"])),
            )
        ),
        "rates": _table(("label", "false positives", "threshold"), rates),
        "parity": _parity(export["parity"]),
        "whole": _table(
            ("texts", "mean difference", "within 0.02"),
            [[own["whole"]["texts"], own["whole"]["mean"], _share(own["whole"]["within_0.02"])]],
        ),
        "bytes": _table(("file", "bytes"), [[name, size] for name, size in export["bytes"].items()]),
        "gate": _gate(export["gate"]),
        "benign_dev_texts": str(export["benign_dev_texts"]),
    }
    text = TEXT.read_text(encoding="utf-8")
    for name, table in tables.items():
        text = text.replace(f"{{{name}}}", table)
    return text
