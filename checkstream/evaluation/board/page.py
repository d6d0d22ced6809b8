"""A scoreboard as Markdown and as a page of its own: a row a set, a column a figure, what was before in each. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import msgspec

from checkstream.evaluation.board.results import Board, Figure
from checkstream.evaluation.plots import interval_bar
from checkstream.evaluation.report import document

_SPECIAL = frozenset("\\`*_{}[]<>#|~&")
_WORDS = """\
Made by `checkstream models eval --all DATA_FOLDER --keep` from `models/scoreboard.yaml`, which says what is measured. \
The same models and texts give the same bytes. The texts are not part of the project.

In brackets stand 95 % intervals: Wilson's for shares of texts that fire, bootstrap ones from a fixed seed for all \
else. *Before* is the version that was kept before. A figure is **worse** where it lies beyond the bad end of the \
interval before by more than one text is worth, and **better** where it lies beyond the good end. Nothing is compared \
that was measured on other texts.

*Left out*: the model has learnt nothing of the source, and nothing was chosen by it. *Known*: it has, in part, so \
that its figures are better than they would be elsewhere. What models do that were trained without a source (folds) \
stands in their cards: they are not what ships.

`of all`: at the one threshold that 1 % of all innocent texts of the label together reach. The other columns are the \
model's own thresholds, which policies ask for by their rate. `any` stands for all labels of a model together: a text \
fires where any of them does, so that more fire than the rate of one label says."""


class Section(msgspec.Struct, frozen=True):
    """Figures that stand in one table."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Figure | None, ...], ...]
    """A row a set; None: the set has no such figure."""


def markdown(board: Board) -> str:
    """Return a board as Markdown."""
    lines = ["# Scoreboard", "", *(line for words in _WORDS.split("\n\n") for line in (words, ""))]
    lines += ["| model | now | before |", "|---|---|---|"]
    lines += [f"| {name} | {now} | {before} |" for name, now, before in _models(board)]
    lines += ["", "## What changed", ""]
    lines += [f"- {word}{_plain(words)}" for word, words in _changes(board, "**{}**: ")]
    for title, words, sections in _parts(board):
        lines += ["", f"## {title}", *(["", words] if words else [])]
        for section in sections:
            heads = ("set", "texts", *section.columns)
            rule = "|---|--:|" + "---|" * len(section.columns)
            lines += ["", f"### {section.title}", "", f"| {' | '.join(heads)} |", rule]
            lines += [f"| {' | '.join(_plain_row(row))} |" for row in section.rows]
    return "\n".join(lines) + "\n"


def page(board: Board) -> str:
    """Return a board as a page that loads nothing."""
    parts = [f"<p>{_marked(words)}</p>" for words in _WORDS.split("\n\n")]
    models = "".join(f"<tr><td>{name}</td><td>{now}</td><td>{before}</td></tr>" for name, now, before in _models(board))
    parts.append(f'<div class="wide"><table><tr><th>model</th><th>now</th><th>before</th></tr>{models}</table></div>')
    parts += [
        "<h2>What changed</h2>",
        *(f"<p>{word}{escape(words)}</p>" for word, words in _changes(board, "<b>{}</b>: ")),
    ]
    for title, words, sections in _parts(board):
        parts += [f"<h2>{escape(title)}</h2>", f"<p>{_marked(words)}</p>" if words else ""]
        for section in sections:
            heads = "".join(f"<th>{escape(name)}</th>" for name in ("set", "texts", *section.columns))
            rows = "".join(_html_row(row, section.columns) for row in section.rows)
            table = f'<div class="wide"><table class="sets"><tr>{heads}</tr>{rows}</table></div>'
            parts.append(f"<h3>{escape(section.title)}</h3>{table}")
    return document("Scoreboard", parts)


def told(figure: Figure) -> str:
    """Return in one line what has become of a figure."""
    name = ".".join(filter(None, (figure.model, figure.label)))
    if figure.before is None:
        return f"{name}, {figure.set}, {figure.figure}: {_value(figure)}"
    now, before = shown(figure.value, figure.figure), shown(figure.before.value, figure.figure)
    between = f"{shown(figure.before.low, figure.figure)} to {shown(figure.before.high, figure.figure)}"
    return f"{name}, {figure.set}, {figure.figure}: {now}, before {before} ({between})"


def shown(value: float, figure: str) -> str:
    """Return a figure as people read it."""
    return f"{value:.3f}" if figure.startswith(("AUC", "F1", "balanced")) else f"{value * 100:.1f} %"


def _parts(board: Board) -> Iterator[tuple[str, str, list[Section]]]:
    """Yield the title, a remark and the tables of each model and label."""
    thresholds = {(each.model, each.label): each for each in board.thresholds}
    titles = dict.fromkeys(
        (each.model, each.label if (each.model, each.label) in thresholds else "") for each in board.figures
    )
    for model, label in titles:
        own = [each for each in board.figures if each.model == model and label in ("", each.label)]
        at = thresholds.get((model, label))
        words = f"1 % of all {at.n} innocent texts together reach {at.threshold:.4f}." if at else ""
        if at is None:
            sections = [_section("Claims and their evidence" if not own[0].label else "Entities", own)]
        else:
            sections = [
                _section("Harmful texts: the more fire, the better", [each for each in own if each.harmful]),
                _section("Innocent texts: the fewer fire, the better", [each for each in own if not each.harmful]),
            ]
        yield ".".join(filter(None, (model, label))), words, sections


def _section(title: str, figures: Sequence[Figure]) -> Section:
    columns = tuple(dict.fromkeys(each.figure for each in figures))
    sets: dict[tuple[str, str], dict[str, Figure]] = {}
    for each in figures:
        sets.setdefault((each.set, each.label), {})[each.figure] = each
    return Section(title, columns, tuple(tuple(own.get(name) for name in columns) for own in sets.values()))


def _models(board: Board) -> Iterator[tuple[str, str, str]]:
    for each in board.models:
        before = "" if each.before is None else _version(each.before.version, each.before.digest)
        yield each.name, _version(each.now.version, each.now.digest), before


def _version(version: str, digest: str) -> str:
    return f"{version} ({digest})" if digest else f"{version} (no files)"


def _changes(board: Board, bold: str) -> list[tuple[str, str]]:
    """Return what has changed: a word as it is marked, and the rest."""
    changed: dict[str, list[Figure]] = {"worse": [], "better": [], "other texts": [], "new": []}
    for each in board.figures:
        changed.get(each.became, []).append(each)
    lines = [(bold.format(word), told(each)) for word in ("worse", "better") for each in changed[word]]
    lines = lines or [("", "Nothing lies beyond its interval before.")]
    if changed["other texts"]:
        lines.append(("", f"{len(changed['other texts'])} figures are of other texts than before, and not compared."))
    if changed["new"]:
        lines.append(("", f"{len(changed['new'])} of {len(board.figures)} figures have none before them."))
    return lines


def _plain_row(row: Sequence[Figure | None]) -> Iterator[str]:
    first = next(each for each in row if each is not None)
    yield f"{_plain(_named(first))}<br>{_plain(first.kind)}; {first.learnt}"
    yield f"{first.n:,}"
    for each in row:
        yield "" if each is None else _plain(_value(each)) + _change(each)


def _change(each: Figure) -> str:
    if each.before is None or each.became == "other texts":
        return ""
    mark = f", **{each.became}**" if each.became != "same" else ""
    return f"<br>before {shown(each.before.value, each.figure)}{mark}"


def _html_row(row: Sequence[Figure | None], columns: Sequence[str]) -> str:
    first = next(each for each in row if each is not None)
    small = f"<small>{escape(first.kind)}; {first.learnt}</small>"
    cells = [f"<td>{escape(_named(first))}<br>{small}</td>", f'<td data-is="texts">{first.n:,}</td>']
    for each, name in zip(row, columns, strict=True):
        inside = "" if each is None else _html_value(each)
        cells.append(f'<td data-is="{escape(name)}"{" class=none" if each is None else ""}>{inside}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _html_value(each: Figure) -> str:
    before = None if each.before is None or each.became == "other texts" else each.before
    bar = interval_bar(each, before)
    changed = ""
    if before is not None:
        mark = f' <b class="{each.became}">{each.became}</b>' if each.became != "same" else ""
        changed = f"<br><small>before {shown(before.value, each.figure)}</small>{mark}"
    return f"{escape(_value(each))}<br>{bar}{changed}"


def _named(each: Figure) -> str:
    """Return the set, with the entity where a set has several."""
    return f"{each.set}: {each.label}" if each.label.isupper() else each.set


def _value(each: Figure) -> str:
    value, low, high = (shown(number, each.figure).removesuffix(" %") for number in (each.value, each.low, each.high))
    unit = " %" if shown(each.value, each.figure).endswith("%") else ""
    return f"{value}{unit} [{low}, {high}]"


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in text if c.isprintable())


def _marked(text: str) -> str:
    """Return as HTML what is written here as Markdown: bold, italic and code, and escaped characters."""
    for mark, tag in (("**", "b"), ("*", "i"), ("`", "code")):
        pieces = text.split(mark)
        text = "".join(f"<{tag}>{piece}</{tag}>" if number % 2 else piece for number, piece in enumerate(pieces))
    return text
