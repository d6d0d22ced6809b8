"""A report as Markdown for a pull request, and as JUnit XML for a CI's list of tests. Pure.

INVARIANT: text from outside can neither end a table's cell or a code block nor become a tag.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from checkstream.gate.report import Detail, Report
from checkstream.grounding.terms import Verdict

_SHOWN = 50
"""Claims that stand in the Markdown at most; the rest are counted."""
_CELL_CHARS = 300
_MARKS = {"deploy": "✅", "warn": "⚠️", "block": "⛔"}
_SPECIAL = frozenset("\\`*_{}[]<>#|~&")


def markdown(report: Report) -> str:
    """Return the report with its failing claims first."""
    deploy, warn = report.thresholds["deploy"], report.thresholds["warn"]
    rows = [
        ("risk", f"{report.score:.4f} (deploy up to {deploy:g}, warn up to {warn:g})"),
        ("claims", f"{report.total_claims}: {_counts(report)}"),
        ("target", _plain(report.target)),
        ("verifier", _plain(report.verifier)),
        ("documents", f"`{report.snapshot[:16]}`"),
        ("run", f"`{report.run_id}`"),
    ]
    if report.baseline is not None:
        worse = ", a regression" if report.baseline.regression else ""
        change = f"{report.baseline.difference:+.4f} against `{report.baseline.run_id}`{worse}"
        rows.append(("since the last deployed run", change))
    why = f" ({_plain(report.reason)})" if report.reason else ""
    title = f"## {_MARKS[report.decision]} {report.decision}{why}: {_plain(report.use_case)}"
    lines = [title, "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows]
    failing = [detail for detail in report.details if detail.label is not Verdict.SUPPORTED]
    if failing:
        lines += ["", "| claim | verdict | why | asked |", "|---|---|---|---|"]
        lines += [_row(detail) for detail in failing[:_SHOWN]]
    if len(failing) > _SHOWN:
        lines += ["", f"and {len(failing) - _SHOWN} more."]
    return "\n".join(lines) + "\n"


def _counts(report: Report) -> str:
    contradicted = f", of them {report.contradicted} contradicted" if report.contradicted else ""
    weakly = f"{report.weakly_supported} weakly"
    return f"{report.supported} supported, {weakly}, {report.unsupported} unsupported{contradicted}"


def _row(detail: Detail) -> str:
    cells = (detail.claim, detail.label.value.replace("_", " "), detail.justification, detail.source_prompt)
    return f"| {' | '.join(_plain(cell) for cell in cells)} |"


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is, in one line."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if len(line) > _CELL_CHARS:
        line = line[: _CELL_CHARS - 1] + "…"
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in line).replace("@", "&#64;")


def junit(report: Report) -> bytes:
    """Return a test case a claim, of which the unsupported ones fail, and one for the decision."""
    failing = sum(detail.label in {Verdict.UNSUPPORTED, Verdict.CONTRADICTED} for detail in report.details)
    blocked = report.decision == "block"
    suite = ET.Element(
        "testsuite",
        name=_xml(f"checkstream gate: {report.use_case}"),
        tests=str(len(report.details) + 1),
        failures=str(failing + blocked),
        errors="0",
    )
    case = ET.SubElement(suite, "testcase", classname="decision", name=_xml(report.target))
    if blocked:
        said = ET.SubElement(case, "failure", message=f"blocked: risk {report.score:.4f}")
        said.text = f"risk {report.score:.4f} is above the limit for a warning, {report.thresholds['warn']:g}"
    for detail in report.details:
        name = _xml(f"{detail.claim_id} {detail.claim}")
        case = ET.SubElement(suite, "testcase", classname=_xml(detail.category), name=name)
        if detail.label in {Verdict.UNSUPPORTED, Verdict.CONTRADICTED}:
            said = ET.SubElement(case, "failure", message=detail.label.value)
            said.text = _xml(f"{detail.justification}\nasked: {detail.source_prompt}")
        elif detail.label is Verdict.WEAKLY_SUPPORTED:
            ET.SubElement(case, "system-out").text = _xml(f"weakly supported: {detail.justification}")
    body = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    return bytes(body) + b"\n"


def _xml(text: str) -> str:
    """Return text without the characters that no XML document may hold."""
    return "".join(char if char in "\t\n" or _in_xml(ord(char)) else "\ufffd" for char in text)


def _in_xml(code: int) -> bool:
    """Source: XML 1.0, section 2.2."""
    return code >= 0x20 and not 0xD800 <= code <= 0xDFFF and code not in {0xFFFE, 0xFFFF}
