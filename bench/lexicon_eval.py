"""Measure the lexicon scorer on folders of labelled texts: recall and over-blocking at its thresholds.

    python bench/lexicon_eval.py DATA_FOLDER [--show N]

DATA_FOLDER holds gzipped JSON lines with `text` and `label`. Every text is scored whole, as ingress does
(the highest score of its windows). Prints one Markdown table; `--show` adds benign texts that fired.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from checkstream.config import bundled
from checkstream.scoring import load_models, open_session, read_whole


class Row(NamedTuple):
    """One set: which texts of a file are meant, and what a hit on them is."""

    file: str
    meant: Callable[[object], bool]
    what: str
    label: str
    hit: str
    """`recall` (a hit is right) or `FPR` (a hit is wrong)."""


def _any(_: object) -> bool:
    return True


def _is(*labels: object) -> Callable[[object], bool]:
    return lambda label: label in labels


SETS = (
    Row("inj_verazuo_jailbreaks", _any, "in-the-wild jailbreak prompts", "injection", "recall"),
    Row("inj_misc_jailbreak_templates", _any, "jailbreak templates", "injection", "recall"),
    Row("inj_trustllm_jailbreak", _any, "transformed jailbreaks", "injection", "recall"),
    Row("inj_spikee_indirect", _is(1), "injections in documents", "injection", "recall"),
    Row("inj_agent_payloads", _any, "payloads of tool output (no injection phrasing)", "injection", "recall"),
    Row("benign_prompts", _any, "benign prompts", "injection", "FPR"),
    Row("domain_mmlu", _any, "exam questions", "injection", "FPR"),
    Row("domain_medquad", _any, "medical questions", "injection", "FPR"),
    Row("domain_clinc150", _any, "assistant commands", "injection", "FPR"),
    Row("domain_banking77", _any, "bank customers' questions", "injection", "FPR"),
    Row("tox_jigsaw_subset", _is(1), "talk page comments, toxic", "toxicity", "recall"),
    Row(
        "tox_civil_comments_annot",
        lambda label: float(str(label)) >= 0.5,
        "news comments, most say toxic",
        "toxicity",
        "recall",
    ),
    Row("tox_davidson", _is("hate_speech"), "tweets, hate speech", "toxicity", "recall"),
    Row("tox_davidson", _is("offensive_language"), "tweets, offensive", "toxicity", "recall"),
    Row("tox_edos", _is("sexist"), "posts, sexist", "toxicity", "recall"),
    Row("tox_stormfront", _is("hate"), "forum sentences, hate", "toxicity", "recall"),
    Row("tox_hatemoji_build", _is(1, "1"), "emoji hate", "toxicity", "recall"),
    Row("tox_madlibs_bias", _is("BAD"), "templates, bad", "toxicity", "recall"),
    Row("tox_jigsaw_subset", _is(0), "talk page comments, not toxic", "toxicity", "FPR"),
    Row("tox_davidson", _is("neither"), "tweets, neither", "toxicity", "FPR"),
    Row("tox_edos", _is("not sexist"), "posts, not sexist (may be toxic otherwise)", "toxicity", "FPR"),
    Row("tox_stormfront", _is("noHate"), "forum sentences, no hate", "toxicity", "FPR"),
    Row("tox_hatemoji_build", _is(0, "0"), "emoji, no hate", "toxicity", "FPR"),
    Row("tox_madlibs_bias", _is("NOT_BAD"), "templates, not bad", "toxicity", "FPR"),
    Row("benign_prompts", _any, "benign prompts", "toxicity", "FPR"),
    Row("domain_mmlu", _any, "exam questions", "toxicity", "FPR"),
    Row("domain_medquad", _any, "medical questions", "toxicity", "FPR"),
    Row("out_gptfuzz_responses", _is(0), "model answers, not jailbroken", "toxicity", "FPR"),
    Row("out_refusals", _any, "model refusals", "toxicity", "FPR"),
    Row("out_gptfuzz_responses", _is(0), "model answers, not jailbroken", "injection", "FPR"),
    Row("restricted/out_halueval_general", _any, "model answers, general", "toxicity", "FPR"),
    Row("restricted/out_halueval_general", _any, "model answers, general", "injection", "FPR"),
    Row("restricted/out_safety_tuned_safe_responses", _any, "safe answers on sensitive topics", "toxicity", "FPR"),
    Row("restricted/benign_prompts_alpaca", _any, "benign prompts, others", "injection", "FPR"),
    Row("restricted/benign_prompts_alpaca", _any, "benign prompts, others", "toxicity", "FPR"),
)


def read(path: Path) -> Iterator[tuple[str, object]]:
    """Yield (text, label) of a gzipped file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield row["text"], row["label"]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N benign texts of each set that fired")
    parser.add_argument("--only", default="", help="only sets whose file name contains this")
    options = parser.parse_args()
    (model,) = load_models(bundled("models"), ("lexicon",))
    session = open_session(model)
    limits = {threshold.label: threshold.score for threshold in model.entry.thresholds}
    print("| set | texts | label | threshold | recall | FPR |\n|---|---|---|---|---|---|")
    for row in SETS:
        path = options.folder / f"{row.file}.jsonl.gz"
        if options.only not in row.file:
            continue
        if not path.exists():
            print(f"{path.name} is not there: skipped", file=sys.stderr)
            continue
        texts = [text for text, label in read(path) if row.meant(label)]
        column = model.labels.index(row.label)
        scores = [float(read_whole(session, text).scores[column]) for text in texts]
        fired = [text for text, score in zip(texts, scores, strict=True) if score >= limits[row.label]]
        share = f"{100 * len(fired) / len(texts):.2f} %"
        cells = (share, "") if row.hit == "recall" else ("", share)
        place = f"`{row.file}`: {row.what}"
        print(f"| {place} | {len(texts)} | {row.label} | {limits[row.label]} | {cells[0]} | {cells[1]} |", flush=True)
        if row.hit == "FPR":
            for text in fired[: options.show]:
                print(f"    fired: {text[:300]!r}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
