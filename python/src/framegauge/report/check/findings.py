"""The findings of a check on its page: a paragraph, a drawing, the evidence as a table, and commands to copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from framegauge.check.judgement.findings import CATALOGUE, title
from framegauge.printable import escaped, prose as text
from framegauge.report.check import drawing

__all__ = ["MOST_FINDINGS", "columns", "grouped", "is_fault", "place", "section"]

MOST_FINDINGS = 100


def is_fault(found: Mapping[str, Any]) -> bool:
    """Whether packets are lost because of it; what a newer framegauge found is taken for a fault."""
    return found["kind"] not in CATALOGUE or CATALOGUE[found["kind"]].is_fault


def columns(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The IP versions that its table is about: key of a row, and heading."""
    rows = found.get("evidence_table") or ()
    return [(key, name) for key, name in (("ipv4", "IPv4"), ("ipv6", "IPv6")) if any(row[key] for row in rows)]


def place(found: Mapping[str, Any]) -> str:
    """Where it is, if the paragraph below does not say so in the same words, or with other names for IPv6."""
    where, summary = str(found["where"]), found.get("summary")
    if summary is None:
        return where
    return "" if "; " in where or where.lower() in summary.lower() else where


def grouped(found: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Its commands by the machine that they are for, with the reason: a heading, and lines to run."""
    commands = found.get("commands") or ()
    groups: dict[str, list[str]] = {}
    for command in commands:
        purpose = f" ({command['purpose']})" if command["purpose"] else ""
        groups.setdefault(f"On {command['on']}{purpose}:", []).append(command["run"])
    return list(groups.items())


def section(findings: Sequence[Mapping[str, Any]]) -> str:
    """All of them, as one section of the page."""
    parts = ['<section aria-labelledby="findings"><h2 id="findings" tabindex="-1">Findings</h2>\n']
    parts += [] if findings else ["<p>None.</p>\n"]
    parts += [_finding(finding, number) for number, finding in enumerate(findings[:MOST_FINDINGS], 1)]
    if len(findings) > MOST_FINDINGS:
        parts.append(f"<p>… and {len(findings) - MOST_FINDINGS} more in the JSON document.</p>\n")
    return "".join([*parts, "</section>\n"])


def _finding(finding: Mapping[str, Any], number: int) -> str:
    look, word = ("b", "fault") if is_fault(finding) else ("q", "note")
    count = len(finding["pairs"])
    pairs = f' <span class="soft">· {count} pair{"" if count == 1 else "s"}</span>' if count else ""
    where = f'<p class="where">{text(place(finding))}</p>\n' if place(finding) else ""
    ask = f'<p><span class="label">Ask the network team:</span> {text(finding["ask"])}</p>' if finding["ask"] else ""
    return (
        f'<article class="finding {look}" id="f{number}"><h3><span class="tag {look}">{word}</span>'
        f"{number}. {text(title(finding['kind']))}{pairs}</h3>\n"
        f"{where}<p>{text(finding.get('summary') or finding['evidence'])}</p>\n"
        f"{_path(finding.get('path'), number)}{_table(finding)}{_commands(finding, number)}{ask}"
        f'<p class="soft">More: framegauge docs mtu-faults, {text(finding["kind"])}</p></article>\n'
    )


def _path(path: Mapping[str, Any] | None, number: int) -> str:
    if path is None:
        return ""
    return (
        f'<figure class="drawn">{drawing.svg(path, f"p{number}")}'
        f"<figcaption>{text(drawing.words(path))}</figcaption></figure>\n"
    )


def _table(finding: Mapping[str, Any]) -> str:
    shown = columns(finding)
    if not shown:
        return ""
    head = "".join(f'<th scope="col">{name}</th>' for _, name in shown)
    rows = "".join(
        f'<tr><th scope="row">{text(row["name"])}</th>'
        + "".join(f"<td>{text('–' if row[key] is None else row[key])}</td>" for key, _ in shown)
        + "</tr>\n"
        for row in finding["evidence_table"]
    )
    return (
        '<table class="evidence"><caption>Evidence</caption>\n'
        f"<thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n"
    )


def _commands(entry: Mapping[str, Any], number: int) -> str:
    """Each block can be selected with one click, and scrolls instead of breaking a line."""
    parts = [f'<p><span class="label">What to do:</span> {text(entry["advice"])}</p>\n'] if entry.get("advice") else []
    groups = grouped(entry)
    if not groups and not parts:
        groups = [("On Linux:", str(entry["fix"]).split("\n"))]
    for index, (heading, lines) in enumerate(groups, 1):
        label = f"Finding {number}, commands {index}: {heading}"
        code = "\n".join(map(escaped, lines))
        parts.append(
            f'<p class="label">{text(heading)}</p>\n<pre class="commands" tabindex="0" role="region" '
            f'aria-label="{text(label)}"><code>{code}</code></pre>\n'
        )
    return "".join(parts)
