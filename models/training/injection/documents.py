"""Builds documents as assistants meet them: mails, pages, tool results, code, logs; with an insertion or without.

A poisoned document and its clean twin are built alike, so that only the insertion tells them apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random

Sentences = Sequence[str]

_NAMES = ("Anna Weber", "J. Ortiz", "Li Wei", "Tom Baker", "Fatima Khan", "Ole Hansen", "Grace Kim", "Ivan Petrov")
_SITES = ("example.com", "news.example.org", "shop.example.net", "wiki.example.edu", "docs.example.io")
_DAYS = ("2024-03-11", "12 May 2025", "Mon, 3 Feb 2025", "2023-10-30", "July 8", "2026-01-19")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, roughly."""
    lines = text.replace("! ", "!\n").replace("? ", "?\n").replace(". ", ".\n").split("\n")
    return [line.strip() for line in lines if line.strip()] or [text]


def composed(body: str, insertion: str | None, random: Random, size: int = 0) -> str:
    """Return a document around a text.

    Args:
        body: what the document is about.
        insertion: foreign text to plant at its start, end or in between; None for a clean document.
        random: makes every choice.
        size: sentences to keep at most; 0: 1 to 14, short ones more often.
    """
    kept = sentences(body)
    size = size or random.choice((1, 2, 3, 3, 4, 5, 6, 8, 10, 14))
    start = random.randrange(max(1, len(kept) - size + 1))
    kept = kept[start : start + size]
    if insertion is not None:
        at = random.choice((0, len(kept), random.randint(0, len(kept))))
        kept = [*kept[:at], insertion, *kept[at:]]
    text = random.choice(FORMS)(kept, random)
    return _asked(text, random) if random.random() < 0.2 else text


def _asked(text: str, random: Random) -> str:
    """Put a user's question about the document around it."""
    task = random.choice(
        (
            "Summarise this text",
            "Translate the following into Spanish",
            "What is the main point of this document?",
            "List the action items",
            "Please answer my question from the context below",
            "Here is the tool result",
            "Is this e-mail urgent?",
            "Extract all dates from the text",
            "Rewrite this more clearly",
        )
    )
    frame = random.choice(
        ("{0}:\n\n{1}", "{0}\n---\n{1}\n---", "{0}: {1}", "<document>\n{1}\n</document>\n{0}.", "{1}\n\n{0}")
    )
    return frame.format(task, text)


def _plain(parts: Sentences, random: Random) -> str:
    return random.choice((" ", " ", "\n", "\n\n")).join(parts)


def _mail(parts: Sentences, random: Random) -> str:
    sender, receiver = random.sample(_NAMES, 2)
    subject = " ".join(parts[-1].split()[:6])
    head = random.choice(
        (
            f"From: {sender}\nTo: {receiver}\nDate: {random.choice(_DAYS)}\nSubject: {subject}\n\n",
            f"Subject: {subject}\n\nDear {receiver.split()[0]},\n\n",
            f"Hi {receiver.split()[0]},\n",
            f"From: {sender} <{sender.split()[-1].lower()}@{random.choice(_SITES)}>\n\n",
        )
    )
    return (
        head
        + random.choice((" ", "\n\n")).join(parts)
        + random.choice(("", f"\n\nBest,\n{sender}", "\n-- \nSent from my phone"))
    )


def _page(parts: Sentences, random: Random) -> str:
    tag = random.choice(("p", "li", "div", "td", "span"))
    inner = "\n".join(part if part.startswith("<") else f"<{tag}>{part}</{tag}>" for part in parts)
    title = " ".join(parts[-1].split()[:5])
    return random.choice(
        (
            f"<html><head><title>{title}</title></head><body>\n{inner}\n</body></html>",
            f"<article>\n<h1>{title}</h1>\n{inner}\n</article>",
            inner,
            f"{title} - {random.choice(_SITES)}\nHome | About | Contact\n"
            + "\n".join(parts)
            + "\nCookie settings | Imprint",
        )
    )


def _markdown(parts: Sentences, random: Random) -> str:
    mark = random.choice(("- ", "* ", "> ", "", "1. "))
    return f"# {' '.join(parts[0].split()[:5])}\n\n" + "\n".join(mark + part for part in parts)


def _tool_result(parts: Sentences, random: Random) -> str:
    keys = random.choice(
        (
            ("title", "snippet"),
            ("name", "description"),
            ("id", "content"),
            ("author", "review"),
            ("sender", "body"),
            ("file", "text"),
        )
    )
    if random.random() < 0.5:
        items = [{keys[0]: " ".join(part.split()[:3]), keys[1]: part} for part in parts]
        value: object = {random.choice(("results", "items", "messages", "data")): items}
    else:
        value = {
            keys[0]: random.randrange(1000),
            "date": random.choice(_DAYS),
            keys[1]: " ".join(parts),
            "status": "ok",
        }
    return json.dumps(value, ensure_ascii=False, indent=random.choice((None, None, 2)))


def _table(parts: Sentences, random: Random) -> str:
    separator = random.choice((",", ";", "\t", " | "))
    rows = [separator.join((str(random.randrange(999)), f'"{part}"', random.choice(_DAYS))) for part in parts]
    return "\n".join((separator.join(("id", "comment", "date")), *rows))


def _code(parts: Sentences, random: Random) -> str:
    name = "_".join("".join(c for c in word if c.isalnum()) for word in parts[0].lower().split()[:2]) or "run"
    comments = [random.choice(("# ", "    # ", "# TODO: ", "# NOTE: ")) + part for part in parts]
    if random.random() < 0.5:
        return f'def {name}(items):\n    """{parts[0]}"""\n' + "\n".join(comments[1:]) + "\n    return sorted(items)\n"
    lines = [f"// {part}" for part in parts]
    return f"/** {lines[0][3:]} */\nfunction {name}(x) {{\n" + "\n".join(lines[1:]) + "\n  return x;\n}"


def _fields(parts: Sentences, random: Random) -> str:
    head = [
        f"{random.choice(('Title', 'Topic', 'Event', 'Ticket', 'Product', 'File'))}: {' '.join(parts[0].split()[:5])}",
        f"{random.choice(('By', 'Owner', 'Author', 'Organizer', 'Reported by'))}: {random.choice(_NAMES)}",
        f"{random.choice(('Date', 'When', 'Created', 'Due'))}: {random.choice(_DAYS)}",
    ]
    body = random.choice(("Text", "Notes", "Description", "Details", "Content", "Body")) + ": " + " ".join(parts)
    return random.choice(("\n", " | ", "; ")).join((*head, body))


def _log(parts: Sentences, random: Random) -> str:
    return "\n".join(
        f"2025-0{random.randint(1, 9)}-1{random.randint(0, 9)}T0{random.randint(0, 9)}:12:44Z {level} {part}"
        for part, level in zip(parts, random.choices(("INFO", "WARN", "DEBUG", "ERROR"), k=len(parts)), strict=True)
    )


def _chat(parts: Sentences, random: Random) -> str:
    names = [name.split()[0].lower() for name in random.sample(_NAMES, 3)]
    form = random.choice(("{0}: {1}", "[{0}] {1}", "@{0} {1}", "{0} (10:4{2}): {1}"))
    return "\n".join(form.format(random.choice(names), part, number % 10) for number, part in enumerate(parts))


def _reviews(parts: Sentences, random: Random) -> str:
    return "\n\n".join(
        f"{'*' * random.randint(1, 5)} {random.choice(_NAMES)}, {random.choice(_DAYS)}\n{part}" for part in parts
    )


def _resume(parts: Sentences, random: Random) -> str:
    heads = ("PROFILE", "EXPERIENCE", "EDUCATION", "SKILLS", "LANGUAGES", "REFERENCES", "ABOUT ME")
    return (
        random.choice(_NAMES)
        + "\n"
        + "\n".join((f"\n{random.choice(heads)}\n" if random.random() < 0.4 else "- ") + part for part in parts)
    )


def _search(parts: Sentences, random: Random) -> str:
    return "\n\n".join(
        f"[{number}] {' '.join(part.split()[:4])}\nhttps://{random.choice(_SITES)}/{random.randrange(9999)}\n{part}"
        for number, part in enumerate(parts, 1)
    )


FORMS: tuple[Callable[[Sentences, Random], str], ...] = (
    _plain,
    _plain,
    _plain,
    _mail,
    _mail,
    _page,
    _markdown,
    _tool_result,
    _tool_result,
    _table,
    _code,
    _fields,
    _log,
    _chat,
    _reviews,
    _resume,
    _search,
)
"""Kinds of documents, the common ones more often."""
