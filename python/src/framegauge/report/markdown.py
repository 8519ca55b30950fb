"""A study as Markdown, for a wiki, an issue or the draft of a paper: the answer, its numbers, evidence and tables."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import indent
from urllib.parse import quote

from framegauge.printable import printable
from framegauge.report import causes, evidence, method, switch
from framegauge.report.decision.model import Decision, Part, split
from framegauge.report.decision.sheet import shortened
from framegauge.report.pictures.material import Material
from framegauge.summary import beside, big_tcp, few, levels, lost_time
from framegauge.summary.interactions import ALONE, sentences
from framegauge.summary.intervals import CORRECTED

__all__ = ["decision", "escaped", "markdown", "table"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~])")
# At the beginning of a line these make a list, a line or a heading of it.
_BEGINNING = re.compile(r"^([-+=]|\d+(?=[.)]))")
_TICKS = re.compile("`+")


def markdown(material: Material, pictures: str | None = None) -> str:
    """The whole text; `pictures` is the path of the charts' folder relative to it, None to leave charts out."""
    parts = [
        f"# {escaped(material.summary['question'])}",
        f"**{escaped(material.answer.text)}**",
        *map(escaped, beside.lines(material.summary)),
        table(
            ("", "change", CORRECTED, "values"),
            ([item.label, item.change, item.interval, item.values] for item in material.numbers),
        ),
        "## How sure is that?",
        _list(evidence.how_sure(material.summary)),
        "## What it does not say",
        _list(evidence.limits(material.summary)),
        "## Effects",
        escaped(method.common(material)),
        table(method.verdict_head(material), method.verdicts(material)),
        "\n".join(f"{number}. {escaped(line)}" for number, line in enumerate(method.warnings(material), 1)),
    ]
    if lines := list(levels.lines(material.summary)):
        parts += ["## The smallest level that is enough", _list(lines)]
    if lines := list(big_tcp.lines(material.summary)):
        parts += ["## What larger aggregates give", _list(lines)]
    if lines := list(few.lines(material.summary)):
        parts += ["## Few flows beside many", _list(lines)]
    if rows := switch.around(material):
        parts += [
            "## Before and after the switch",
            table(switch.AROUND_HEAD, rows),
            table(switch.RATIO_HEAD, switch.ratios(material)),
            escaped(switch.KEY),
        ]
    faithful = material.summary["faithful"]
    if faithful and (lines := list(sentences(material.summary.get("interactions", ())))):
        parts += [f"## What the effect depends on ({ALONE})", _list(lines)]
    if faithful and (lines := causes.lines(material.summary)):
        parts += ["## Why", _list(lines)]
    if faithful and (lines := list(lost_time.lines(material.summary))):
        parts += ["## Where the time of connections went", _list(lines)]
    if pictures is not None:
        parts += [
            "## Charts",
            *(f"![{escaped(item.title)}]({quote(pictures)}/{item.name}.svg)" for item in material.pictures),
        ]
    parts += [
        "## Method",
        _list(method.design(material)),
        table(method.PROOF_HEAD, method.proof(material)),
        table(("excluded run", "block", "of", "arm", "reasons"), method.excluded(material)),
        table(("environment", ""), method.environment(material)),
        "## How to repeat it",
        _fenced("sh", printable(method.repeat(material))),
        "## Decision",
        _decided(material.decision, "###"),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def decision(found: Decision) -> str:
    """The decision as a text of its own, as long as its page."""
    short = shortened(found)
    return f"# {escaped(short.goal)}\n\n{_decided(short, '##')}\n"


def _decided(content: Decision, heading: str) -> str:
    parts = [f"**{escaped(content.answer.text)}**", _list(content.beside)]
    for section in content.parts:
        parts += [f"{heading} {escaped(section.title)}", table(section.head, section.rows), "\n".join(_steps(section))]
    return "\n\n".join(part for part in parts if part)


def _steps(part: Part) -> Iterator[str]:
    for text, command in map(split, part.lines):
        yield f"- {escaped(text)}" + (f":\n\n{indent(_fenced('sh', printable(command)), '  ')}\n" if command else "")


def escaped(value: str) -> str:
    """The text with everything escaped that Markdown would take for markup.

    What HTML would take for markup is written as entities: not every program that reads Markdown knows \\<.
    """
    text = _SPECIAL.sub(r"\\\1", html.escape(printable(value).strip(), quote=False))
    return _BEGINNING.sub(lambda match: f"\\{match[0]}" if match[0] in "-+=" else f"{match[0]}\\", text)


def _fenced(language: str, text: str) -> str:
    """A block of code, whose fence is longer than any in it."""
    fence = "`" * max([3, *(1 + len(ticks) for ticks in _TICKS.findall(text))])
    return f"{fence}{language}\n{text}\n{fence}"


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; empty without rows."""
    body = [f"| {' | '.join(map(escaped, row))} |" for row in rows]
    if not body:
        return ""
    return "\n".join([f"| {' | '.join(map(escaped, head))} |", f"|{' --- |' * len(head)}", *body])
