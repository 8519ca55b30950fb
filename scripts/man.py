"""Writes the manual pages from the parsers of the command line: framegauge(1), and a page per verb.

    scripts/man.py [FOLDER]    default build/man

The pages have what `--help` prints, in the sections that manual pages have: the examples and exit codes at the end of
a verb's help become EXAMPLES and EXIT STATUS. Libraries that turn argparse into roff keep all of that in one piece.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import itertools
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from framegauge import __version__
from framegauge.cli import main
from framegauge.cli.arguments import Verb

ROOT = Path(__file__).resolve().parents[1]
SECTIONS = {"examples:": "EXAMPLES", "example:": "EXAMPLES", "exit codes:": "EXIT STATUS"}


def escaped(text: str) -> str:
    """Text as roff takes it for itself: no escapes, no requests, and a - that can be copied."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.MULTILINE)


def date() -> str:
    """The day of the build, or that of SOURCE_DATE_EPOCH, so that a build can be repeated to the byte."""
    return time.strftime("%Y-%m-%d", time.gmtime(float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))


def synopsis(parser: argparse.ArgumentParser) -> list[str]:
    """The usage, filled by roff, which does not break what is in brackets."""
    words = " ".join(parser.format_usage().split()).removeprefix("usage: ").removeprefix(parser.prog).strip()
    kept = re.sub(r"\[[^\[\]]*\]", lambda found: found[0].replace(" ", "\0"), words)
    return [f".B {escaped(parser.prog)}", *([escaped(kept).replace("\0", r"\ ")] if kept else [])]


def named(action: argparse.Action) -> str:
    """An option with what it takes, as the first line of its paragraph."""
    if not action.option_strings:
        return rf"\fI{escaped(str(action.metavar or action.dest))}\fR"
    takes = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    value = "" if action.nargs == 0 else rf" \fI{escaped(str(takes))}\fR"
    return ", ".join(rf"\fB{escaped(each)}\fR{value}" for each in action.option_strings)


def arguments(parser: argparse.ArgumentParser) -> list[str]:
    """Its options and operands, each with its help."""
    lines = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
            continue
        text = parser._get_formatter()._expand_help(action) if action.help else ""
        lines += [".TP", named(action), escaped(text[:1].upper() + text[1:].rstrip(".") + ".")]
    return lines


def blocks(text: str) -> Iterator[str]:
    """Its paragraphs, of which a heading in lower case begins another one."""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        yield from re.split(r"\n(?=(?:examples?|exit codes):)", block)


def more(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """What follows the options in its help, by section: DESCRIPTION, EXAMPLES, EXIT STATUS."""
    found: dict[str, list[str]] = {"DESCRIPTION": [], "EXAMPLES": [], "EXIT STATUS": []}
    for block in filter(None, blocks(parser.epilog or "")):
        heading = next((each for each in SECTIONS if block.startswith(each)), None)
        body = block.removeprefix(heading or "").strip("\n")
        body = body if body.startswith("  ") else body.lstrip()
        section = SECTIONS.get(heading or "", "DESCRIPTION")
        if found[section] or section == "DESCRIPTION":  # the parser's own description comes first
            found[section].append(".PP")
        for indented, lines in itertools.groupby(filter(None, body.split("\n")), lambda line: line.startswith("  ")):
            text = [escaped(line) for line in lines]
            found[section] += [".nf", *text, ".fi"] if indented else text
    return found


def verbs_of(parser: argparse.ArgumentParser) -> dict[str, tuple[Verb, str]]:
    """The verbs below it without their aliases: parser and line in the list of all."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {each.dest: (action.choices[each.dest], each.help or "") for each in action._choices_actions}
    return {}


def inner(name: str, parser: Verb) -> list[str]:
    """A verb of a verb, as a subsection."""
    parts = more(parser)
    lines = [f".SS {escaped(name)}", *synopsis(parser), ".PP", escaped(parser.description or "")]
    lines += [*parts["DESCRIPTION"], *arguments(parser)]
    return lines + ([".PP", "Examples:", ".PP", *parts["EXAMPLES"]] if parts["EXAMPLES"] else [])


def page(name: str, summary: str, parser: Verb, others: list[str]) -> str:
    """One page; `others` are the pages to see also."""
    parts = more(parser)
    title = f'"framegauge {__version__}" "framegauge manual"'
    lines = [
        f".TH {escaped(name.upper())} 1 {date()} {title}",
        ".SH NAME", f"{escaped(name)} \\- {escaped(summary)}",
        ".SH SYNOPSIS", *synopsis(parser),
        ".SH DESCRIPTION", escaped(parser.description or ""), *parts["DESCRIPTION"],
        ".SH OPTIONS", *arguments(parser),
    ]  # fmt: skip
    below = verbs_of(parser)
    if name == "framegauge":
        lines.append(".SH VERBS")
        for verb, (_, text) in below.items():
            lines += [".TP", f".BR framegauge\\-{escaped(verb)} (1)", escaped(text[:1].upper() + text[1:] + ".")]
    elif below:
        lines.append(".SH VERBS")
        for verb, (each, _) in below.items():
            lines += inner(verb, each)
    for section in ("EXAMPLES", "EXIT STATUS"):
        if parts[section]:
            lines += [f".SH {section}", *parts[section]]
    see = [f".BR {escaped(other)} (1){',' if other != others[-1] else ''}" for other in others]
    return "\n".join([*lines, ".SH SEE ALSO", *see]) + "\n"


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    os.environ["COLUMNS"] = "1000"  # usage in one line
    whole = main.parser(whole=True)
    inside = verbs_of(whole)
    names = [f"framegauge-{verb}" for verb in inside]
    summary = "find out whether a network should run jumbo frames"
    found = {"framegauge.1": page("framegauge", summary, whole, names)}
    for verb, (parser, text) in inside.items():
        found[f"framegauge-{verb}.1"] = page(f"framegauge-{verb}", text, parser, ["framegauge"])
    return found


def run(folder: Path) -> None:
    """Writes the pages, and no others stay in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.1"):
        old.unlink()
    for name, text in pages().items():
        (folder / name).write_text(text)
    print(folder)


if __name__ == "__main__":
    run(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/man")
