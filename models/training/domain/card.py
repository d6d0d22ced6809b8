"""The model card of `domain`, written from its figures."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from models.training.domain.measure import POOLED, Figures
from models.training.domain.ship import VERSION, Shipped


class Measured(msgspec.Struct, frozen=True):
    """Everything that was measured in one build."""

    left_out: list[Figures]
    restricted: Figures
    shipped: Shipped
    curve: list[tuple[int, float]]
    """Of the distillation: step, mean loss."""


_TEXT = """# domain {version}

Tells what a text is about: `medical`, `legal`, `financial`, or none of them (1 - the sum of the three).

**What it is.** A two-layer encoder of width 128 over 20,000 word pieces of width 64 ({size:.1f} MB, INT8), windows of
128 pieces that share 32, the highest window counts. The encoder learnt without labels to say of a text what
all-MiniLM-L6-v2 says of it (23 million parameters, Apache-2.0); a linear head on it names the domain. Labels train
the head alone: the same encoder trained from labels end to end learns each source's manner of writing and does worse
on the next source.

**What it saw.** The encoder: unlabelled texts of ConjNLI, HaluEval QA, FaithDial audit, GPTFuzz responses (MIT),
PAWS (free for any purpose), SciFact-RTE (claims CC-BY-4.0, abstracts ODC-BY), SNLI (counterfactual; Apache-2.0,
text CC-BY-SA-4.0), BEGIN (CC-BY-4.0, Topical-Chat's part CDLA), Civil Comments (CC0), Davidson's posts (MIT), generated
questions, and word pieces' own words in short frames. The head: samples of the same unlabelled sources, taken for none
of the domains (SciFact's abstracts for medical), and the train part (80 %, by hash) of MMLU (MIT), MedQuAD (CC-BY-4.0),
BANKING77 (CC-BY-4.0), CLINC150 (CC-BY-3.0), spikee investment advice (Apache-2.0), pii-anon documents (CC0), advice
prompts of AILuminate (CC-BY-4.0), CatQA (Apache-2.0) and TrustLLM (MIT), benign prompts (CC0, Apache-2.0, MIT),
Jigsaw comments (CC0, CC-BY-SA text), hh-rlhf (MIT), and generated questions and cases
(`models/training/domain/{{topics,questions,vignettes}}.py`: hand-written topics, no data set copied). Nothing of
`restricted/` was used but for the row that says so. Licence of the model: Apache-2.0.

## Measured

On sources left out: the head is trained without the fold of the source (MMLU and MedQuAD; the three banking and
assistant sets; prompts, comments and answers), and the encoder never saw any of them. A text is of the domain that
reaches 0.5 in any of its windows, as in the proxy. F1 by class; macro-F1 over the classes that a set has, with its
95 % bootstrap interval. Prompts, comments and answers have no labels of domain and count as none, though some are of
one; the last row leaves them out.

| left-out source | texts | none | medical | legal | financial | macro-F1 |
|---|---|---|---|---|---|---|
{left_out}

The model that ships, on `restricted/{restricted_name}` (measured only; its science questions count as none though
many are medical), and on the test part (10 %) of the sources it learnt from, as the proxy reads them (whole texts,
INT8, a label from 0.5):

| set | texts | none | medical | legal | financial | macro-F1 |
|---|---|---|---|---|---|---|
{restricted}
{test}

Thresholds for false-positive rates, on {benign:,} texts of no domain of the dev part (highest window of each text): up
to 1,000 of each source that has such texts, those too that the head's samples of the sources leave out. Nothing
learnt from them but the temperature, from less than half. Beside each threshold, what reaches it on the test part: of
{test_benign:,} texts of no domain drawn alike, and of the label's own. Graph and tokenizer are those of the last
1.0.0, byte for byte; that version had no threshold at 0.1 % and set the others on 1,787 texts.

| label | rate | threshold | of no domain | of the label |
|---|---|---|---|---|
{rates}

Three texts reach each threshold of 0.1 %: on other texts twice as many may, as for `legal` here. What is left of a
label there is small, and what fires wrongly is mostly about the domain after all: "tell me what my health plan is
called", "what does my income amount to" and "Are you having trouble with the law?" count as none in their sources. To
say no more than what a text is about, take 0.5 or the 5 % threshold.

INT8 against float32 on {windows} windows: mean drift {drift_mean:.4f}, 99th percentile {drift_p99:.4f}, decisions
that differ at the 1 % thresholds {flips:.2%}. Distillation loss by step: {curve}.

**Calibration.** One temperature for the head, on the dev part, classes weighing alike.

**What was tried.** On MMLU left out, macro-F1: a one-layer encoder trained from labels end to end, started from
MiniLM's word pieces, 0.557; a linear head on all of MiniLM (14 times the size) with the sources weighed alike, 0.654,
with generated questions alone 0.689; the same on sums of lone word pieces 0.557; this model's recipe with 12,000 whole
word pieces instead of 20,000 narrow ones and no lone words, 0.622.

After that, on all left-out sources together (one text in fifty is legal, so that mistaken prompts and comments weigh
on its F1), from 0.696, 1 to 4 with one and the same encoder:

1. Every window of a text is read, as in the proxy, in the place of the first alone: 0.718 (legal 0.379 to 0.466; the
   question at the end of a case is what says that it is one).
2. Comments, posts and prose of sources that nobody labels are learnt as none, abstracts as medical: 0.733. With twice
   or half their weight 0.730 and 0.733; `none` at 0.60 and 0.75 of the weight in the place of 0.45: 0.729 and 0.713.
3. More legal and hard innocent cases and questions (`questions.py`, `vignettes.py`): 0.743.
4. Thresholds of each class picked on the dev part of the sources learnt from (0.3 to 0.6): 0.716 with texts alike,
   0.713 with sources alike, where one half for all gives 0.743. They fit the shares of classes there, not here: not
   taken. The best thresholds that these very texts would pick raised the first figure from 0.696 to 0.705 alone.
5. A wider student, three layers of 192, on the data of 3: 0.729 (medical 0.795, legal 0.444, financial 0.784; loss by
   step 50: 1.406, 250: 0.601, 800: 0.464, 1150: 0.314). Not taken. Two layers of 128, distilled anew on that data and
   shipped: {pooled:.3f}. The teacher, all of MiniLM, with the data of the start and first windows reaches 0.707
   (medical 0.871, legal 0.276, financial 0.800): what it makes of legal text is what limits the student.

## Limits

English. Legal is the weakest class: public text with a free licence is thin, so that most of it is generated, and
comments about rules or rights are mistaken for it. Business studies (marketing, management, ethics) count as
financial in MMLU, which few users would call so. Says what a text is about, not whether it gives advice
(`safety.regulated_advice` does). Texts of a few words and forms full of names carry little to go by.

## Rebuild

`python -m models.training.domain` (extra `train`; about 10 minutes on one core; `--report` writes this card again
from the figures in `build/domain`).
"""


def card(measured: Measured) -> str:
    """Return the card."""
    shipped = measured.shipped
    return _TEXT.format(
        size=shipped.bytes / 1e6,
        left_out=_table(measured.left_out),
        pooled=next(row.macro for row in measured.left_out if row.name == POOLED),
        restricted_name=measured.restricted.name,
        restricted=_table([measured.restricted]),
        test=_table(shipped.test),
        version=VERSION,
        benign=shipped.benign,
        test_benign=shipped.held[0].benign,
        rates="\n".join(
            f"| {rate['label']} | {rate['fpr']:.1%} | {rate['threshold']} "
            f"| {held.fires:.2%} | {held.recall:.1%} (n={held.texts}) |"
            for rate, held in zip(shipped.rates, shipped.held, strict=True)
        ),
        windows=shipped.windows,
        drift_mean=shipped.drift_mean,
        drift_p99=shipped.drift_p99,
        flips=shipped.flips,
        curve=", ".join(f"{step}: {loss:.3f}" for step, loss in measured.curve[:: max(1, len(measured.curve) // 6)]),
    )


def _table(rows: Sequence[Figures]) -> str:
    return "\n".join(
        f"| `{row.name}` | {row.texts} | "
        + " | ".join(
            f"{row.f1[label]:.3f}" if label in row.f1 else "" for label in ("none", "medical", "legal", "financial")
        )
        + f" | {row.macro:.3f} ({row.interval[0]:.3f} to {row.interval[1]:.3f}) |"
        for row in rows
    )
