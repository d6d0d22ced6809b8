"""Where in a file the characters of a text stand, so that a fault within it has its caret at the right place."""

from __future__ import annotations

from checkstream.core.policy.nodes import Place, Placed, Source


def point(source: Source, text: Placed[str], offset: int) -> Place:
    """Return where the character `offset` of a text stands, however many lines the text has.

    Where the file doesn't show the text as it is (escapes), that is where the text begins.
    """
    value, seen = text.value, 0
    number, written = text.at.line, source.line(text.at.line)[text.at.column - 1 :]
    quote = written[:1] if written[:1] in {"'", '"'} else ""
    if written[:1] in {"|", ">"}:  # the text begins in the next line
        number, written = number + 1, source.line(number + 1)
        column = 1
    else:
        column, written = text.at.column + len(quote), written[len(quote) :]
    while number <= source.length:
        blank = len(written) - len(written.lstrip())
        column, written = column + blank, written[blank:]
        while seen < len(value) and value[seen].isspace() and seen < offset:
            seen += 1
        columns, end = _agreeing(value[seen:], written, quote)
        if offset < seen + len(columns):
            return Place(number, column + columns[offset - seen])
        if offset == seen + len(columns) == len(value):
            return Place(number, column + end)
        if written[end:].strip():
            break
        seen, number = seen + len(columns), number + 1
        column, written = 1, source.line(number)
    return text.at


def _agreeing(value: str, written: str, quote: str) -> tuple[list[int], int]:
    """Return where in a line the first characters of `value` stand, as far as the line shows them, and where that ends.

    Args:
        value: The text.
        written: The line, from where the text goes on.
        quote: The kind of quotes that it stands in: in them a quote is written twice, or behind a backslash.
    """
    columns: list[int] = []
    at = 0
    for char in value:
        pair = written[at : at + 2]
        escaped = (quote == "'" and pair == "''") or (quote == '"' and pair in {'\\"', "\\\\", "\\/"})
        if pair[1 if escaped else 0 :][:1] != char:
            break
        columns.append(at)
        at += 2 if escaped else 1
    return columns, at
