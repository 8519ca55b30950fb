"""What came of the comparison, for people."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.exchanges.cases import BITS_PER_SECOND, Case
from bench.exchanges.comparing import SLACK_SECONDS, SLACK_SHARE, Difference
from bench.exchanges.exchange import CLIENT, Exchange, Segment
from bench.exchanges.reasons import DRAWN_REASONS

DRAWN = "## Drawn cases"


@dataclass(frozen=True)
class Result:
    """A case, the model's account of it, and the kernel's with what differs, run by run."""

    case: Case
    model: Exchange
    runs: Sequence[tuple[Exchange, Sequence[Difference]]]

    @property
    def agreeing(self) -> int:
        """Runs in which nothing differs."""
        return sum(not differs for _, differs in self.runs)

    @property
    def closest(self) -> tuple[Exchange, Sequence[Difference]]:
        """The run with the fewest differences: what is left there no luck explains."""
        return min(self.runs, key=lambda run: len(run[1]))

    def line(self) -> str:
        """For a terminal."""
        differs = self.closest[1]
        said = "; ".join(f"{each.kind}: {each.text}" for each in differs)
        return f"{self.case.name}: {self.agreeing} of {len(self.runs)} agree{f'; {said}' if said else ''}"


def _words(case: Case, segment: Segment) -> str:
    arrow = ">" if segment.sender == CLIENT else "   <"
    return f"{segment.seconds * 1e3:8.2f} {arrow} {segment.words(case.mss)} w{segment.window}"


def side_by_side(result: Result) -> str:
    """Every segment: the kernel's in the closest run, and the model's."""
    kernel, _ = result.closest
    columns = [[_words(result.case, segment) for segment in each.segments] for each in (kernel, result.model)]
    height = max(map(len, columns))
    rows = zip(*([*column, *[""] * (height - len(column))] for column in columns), strict=True)
    heads = [f"cwnd {each.cwnd}, {dict(each.counts)}, {dict(each.details)}" for each in (kernel, result.model)]
    return "\n".join([*heads, *(f"{one:75} {other}" for one, other in rows)])


def table(results: Sequence[Result], runs: int) -> str:
    """The page in docs/measured."""
    agree, alike = _agree(results), _alike(results)
    steady = sum(result.agreeing == len(result.runs) for result in results)
    lines = [
        "# The model's TCP against the kernel's, exchange by exchange",
        "",
        f"Written by `python -m bench.exchanges --runs {runs}`, on Linux {platform.release()}.",
        "",
        "Each case runs on the emulated rack, with the TCP of two real kernels, and on the model that",
        "`framegauge-agent simulate` uses. Both have the same links, and one script says which frames of these are",
        f"lost, marked or held. Links have {BITS_PER_SECOND // 10**6} Mb/s, an RTT of 20 ms unless the name says",
        "otherwise, and no offloads. A transfer has 30 full segments and is answered with one byte.",
        "",
        "Compared are: what each end sent, in which order, and whether again; how often which mechanism acted",
        "(timeouts, tail-loss probes, recoveries, undone reductions, lost resends; the kernels' `TcpExt` counters);",
        "cwnd and ssthresh at the end (`TCP_INFO`); every acknowledgement with its SACK blocks. All that must be",
        f"equal. A time may differ by {SLACK_SECONDS * 1e3:g} ms and {SLACK_SHARE:.0%}: kernel timers tick every 4 ms,",
        "and what runs beside makes them late. Announced windows are not compared.",
        "",
        f"**{agree} of {len(results)} cases agree**, {steady} of them in each of {runs} runs. In {alike} both ends",
        "send the same, in the same order, by the same mechanisms. Beside each that does not agree is why, as far as",
        "that is known.",
        "",
    ]
    for group in dict.fromkeys(result.case.group for result in results):
        lines += [
            f"## {group[:1].upper()}{group[1:]}",
            "",
            "| case | runs that agree | what differs in the closest run |",
            "| --- | --- | --- |",
        ]
        for result in (each for each in results if each.case.group == group):
            lines.append(f"| {result.case.name} | {result.agreeing} of {len(result.runs)} | {_cell(result)} |")
        lines.append("")
    return "\n".join(lines)


def _cell(result: Result) -> str:
    differs = result.closest[1]
    if not differs:
        return ""
    first = f"{differs[0].kind}: {differs[0].text}"
    others = [each.kind for each in differs[1:]]
    more = f" (and {', '.join(dict.fromkeys(others))})" if others else ""
    return f"{first}{more}. {result.case.reason or 'Open.'}"


def drawn(results: Sequence[Result], runs: int) -> str:
    """The page's other part: the share of drawn cases that agree, the kinds of what differs first, and where."""
    agree, alike = _agree(results), _alike(results)
    kinds = Counter(result.closest[1][0].kind for result in results if result.closest[1])
    rows = [f"| {kind} | {count} | {count / len(results):.1%} |" for kind, count in kinds.most_common()]
    places = sorted({(result.case.mtu, result.case.rtt_seconds) for result in results})
    split = []
    for mtu, rtt_seconds in places:
        here = [each for each in results if (each.case.mtu, each.case.rtt_seconds) == (mtu, rtt_seconds)]
        shares = f"{_agree(here) / len(here):.0%} | {_alike(here) / len(here):.0%}"
        split.append(f"| {mtu} | {rtt_seconds * 1e3:g} ms | {len(here)} | {shares} |")
    return "\n".join([
        DRAWN, "",
        f"Written by `python -m bench.exchanges --seeds {len(results)} --runs {runs}`, on Linux {platform.release()}.",
        "",
        "Each seed draws a transfer of 1 to 60 segments, its settings, and what is lost, held or marked. A case is",
        f"played until a run agrees, {runs} times at most.", "",
        f"**{agree} of {len(results)} cases agree** in everything ({agree / len(results):.1%}). In {alike} both ends",
        f"send the same, in the same order, by the same mechanisms ({alike / len(results):.1%}).", "",
        "| first difference | cases | share |", "| --- | --- | --- |", *rows, "",
        "| MTU | RTT | cases | agree | send the same |", "| --- | --- | --- | --- | --- |", *split, "",
        *DRAWN_REASONS, "",
    ])  # fmt: skip


def _agree(results: Sequence[Result]) -> int:
    return sum(result.agreeing > 0 for result in results)


def _alike(results: Sequence[Result]) -> int:
    """Cases in which both send the same by the same mechanisms."""
    return sum(not {"sent", "mechanism"} & {each.kind for each in result.closest[1]} for result in results)


def write(path: Path, text: str) -> None:
    """Writes one part of the page, and keeps the other."""
    table, _, cases = (path.read_text() if path.exists() else "").partition(DRAWN)
    if text.startswith(DRAWN):
        path.write_text(f"{table.rstrip()}\n\n{text}")
    else:
        path.write_text(f"{text}\n{DRAWN}{cases}" if cases else text)
