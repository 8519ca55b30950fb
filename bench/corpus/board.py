"""The page docs/measured/corpus.md: tools beside each other, scored by the same program."""

from __future__ import annotations

import platform
import shlex
import subprocess
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.corpus import manifest
from bench.corpus.families import FAMILIES
from bench.corpus.score import Result, Truth, score
from bench.corpus.tools import TOOLS, ToolMissing, ask, is_there
from bench.diagnosis.scoring import Score

WIDTH = 120
HEAD = """\
# Tools on captures with known causes

Written by `python -m bench.corpus board FOLDER{words}`, on Linux {kernel}. The corpus was made by
`python -m bench.corpus make` ([how](../how-to/corpus.md)): {captures} captures, three taps each of {runs} runs of
{scenes} scenes{of_all}, with {items} causes that have to be named. SHA-256 of its `manifest.json`: `{digest}`.

The detectors of framegauge were developed on other variants of most of these scenes, and what they told wrong of these
was looked at; the other tools were not, and most of them do not claim to name causes. So the figures of framegauge are
those of a tool that knows the scenes.
"""
EXPLAINED = """\
A cause is *right* if it is named for the connection that has it, at a time that overlaps (a tool that says no time is
not asked for it), *missed* if not. What is neither an item nor among what may be said is *wrong*. Macro-F1 is the mean
of F1 over all causes that are provoked, also those for which a tool has no word; *own words* is the mean over those
that it named at least once. False warnings are wrong answers on clean captures. By family, kinds of one family are the
same.
"""


def results(folder: Path, known: Sequence[Truth], say: Callable[[str], None]) -> dict[str, Result]:
    """How each tool that is there did."""
    scored = {}
    for name, tool in TOOLS.items():
        if not is_there(tool):
            say(f"{name}: {tool.NEEDS} was not found, and is left out")
            continue
        try:
            answers = list(ask(tool, folder, [truth.capture for truth in known]))
        except ToolMissing as problem:
            say(f"{name}: {problem}; it is left out")
            continue
        scored[name] = score(known, answers)
        say(f"{name}: macro-F1 {scored[name].macro[0]:.3f}")
    return scored


def written(
    scored: Mapping[str, Result], known: Sequence[Truth], folder: Path, split: str, more: Iterable[str] = ()
) -> str:
    """The page. `more`: lines of a section on why segments were sent again."""
    runs = len({truth.capture.rsplit("/", 1)[0] for truth in known})
    whole = sum(1 for _ in folder.glob("runs/*/truth.json"))
    head = HEAD.format(
        words="" if split == "test" else f" --split {split}",
        kernel=platform.release().split("-")[0],
        captures=len(known),
        runs=runs,
        scenes=len({truth.scene for truth in known}),
        of_all="" if split == "all" else f" (the split `{split}` of {max(whole, runs)} runs)",
        items=sum(len(truth.must) for truth in known),
        digest=manifest.digest(folder / manifest.MANIFEST)[:16],
    )
    lines = [*_filled(head), *_summary(scored), "", *_filled(EXPLAINED)]
    lines += ["## By kind", "", *_table("kind", scored, lambda result: result.kinds), ""]
    lines += ["## By family", "", *_table("family", scored, lambda result: result.families), ""]
    lines += ["Families: " + "; ".join(f"{name}: {', '.join(kinds)}" for name, kinds in FAMILIES.items()) + ".", ""]
    if section := list(more):
        lines += ["## Why segments were sent again", "", *section, ""]
    lines += ["## How their words were taken", "", "As favourably for each tool as we knew.", ""]
    lines += [f"- {tool.TITLE}{_version(name, scored)}: {tool.MAPPING}." for name, tool in TOOLS.items()]
    missing = [tool.TITLE for name, tool in TOOLS.items() if name not in scored]
    if missing:
        lines += ["", f"Not there, and not scored: {', '.join(missing)}. Its adapter is tested on output in its form."]
    return "\n".join(part for line in lines for part in _wrapped(line)) + "\n"


def _filled(text: str) -> list[str]:
    return [part.replace("\n", " ") for part in text.strip().split("\n\n") for part in (part, "")]


def _wrapped(line: str) -> list[str]:
    if line.startswith("|") or len(line) <= WIDTH:
        return [line]
    return textwrap.wrap(
        line, WIDTH, subsequent_indent="  " if line.startswith("- ") else "", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _summary(scored: Mapping[str, Result]) -> Iterator[str]:
    yield "| tool | macro-F1, kinds | own words | macro-F1, families | false warnings | answers |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, result in scored.items():
        kinds, families = result.macro
        own = _own_words(result.kinds)
        yield (
            f"| {TOOLS[name].TITLE} | {kinds:.3f} | {own} | {families:.3f} | {result.warnings} in {result.clean} "
            f"clean connections | {result.answers} |"
        )


def _own_words(scores: Mapping[str, Score]) -> str:
    """Macro-F1 over the causes that a tool has named, right or wrong, and how many these are."""
    named = [each.f1 for each in scores.values() if each.right + each.missed and each.right + each.wrong]
    return f"{sum(named) / len(named):.3f} of {len(named)}" if named else "none"


def _table(head: str, scored: Mapping[str, Result], of: Callable[[Result], Mapping[str, Score]]) -> Iterator[str]:
    """Precision, recall and F1 of each tool, in this order."""
    tables = {name: of(result) for name, result in scored.items()}
    wanted = Counter(cause for table in tables.values() for cause in table)
    yield f"| {head} | items | " + " | ".join(scored) + " |"
    yield "| --- | --- | " + " | ".join("---" for _ in scored) + " |"
    for cause in sorted(wanted):
        cells = [table.get(cause) for table in tables.values()]
        items = max((cell.right + cell.missed for cell in cells if cell), default=0)
        yield f"| `{cause}` | {items} | " + " | ".join(_cell(cell, items) for cell in cells) + " |"
    yield ""
    yield "Precision, recall and F1; a dash: never named."


def _cell(cell: Score | None, items: int) -> str:
    if cell is None or not cell.right + cell.wrong:
        return "-"
    if not items:
        return f"{cell.wrong} wrong"
    return f"{cell.precision:.2f} {cell.recall:.2f} **{cell.f1:.2f}**"


def _version(name: str, scored: Mapping[str, Result]) -> str:
    """What the tool says of itself, where it does."""
    if name not in scored or name == "framegauge":
        return ""
    done = subprocess.run(
        shlex.split(f"dpkg-query -W -f '${{Version}}' {TOOLS[name].NEEDS}"), capture_output=True, text=True, check=False
    )
    return f" {done.stdout}" if done.returncode == 0 and done.stdout else ""


def of_one(result: Result, captures: int) -> Iterator[str]:
    """The figures of one file of answers, for a terminal."""
    kinds, families = result.macro
    yield f"macro-F1 {kinds:.3f} over kinds, {families:.3f} over families"
    yield f"{result.warnings} false warnings in {result.clean} clean connections"
    yield f"{result.answers} answers on {captures} captures"
    if result.unknown:
        yield f"{result.unknown} answers are on captures that are not among these, and were not scored"
    if result.strangers:
        yield f"{result.strangers} answers are on connections that the capture does not have"
    for head, table in (("kind", result.kinds), ("family", result.families)):
        yield ""
        yield f"{head:24} {'items':>6} {'right':>6} {'wrong':>6} {'precision':>9} {'recall':>7} {'F1':>6}"
        for cause, each in table.items():
            items = each.right + each.missed
            recall = f"{each.recall:7.3f}" if items else f"{'-':>7}"
            yield f"{cause:24} {items:6} {each.right:6} {each.wrong:6} {each.precision:9.3f} {recall} {each.f1:6.3f}"
