"""docs/measured/outcast.md: the published statements beside the rack's and the simulator's figures."""

from __future__ import annotations

import json
import statistics
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.outcast.figures import Figure
from bench.outcast.rows import FAIR, LESS, MORE, Row

__all__ = ["DELAY", "Answer", "details", "page", "two_states"]

DELAY = "150 us"

DECIDED = {LESS, FAIR, MORE}
INTRO = """\
Written by `python -m bench.outcast` from the study files in `published/outcast-2014`. Published: *The TCP Outcast
Problem* (Prakash, Dixit, Hu, Kompella, NSDI 2012). The few are the flows that come to the receiver's switch by the
input port with the fewest flows: on a fat tree the one flow of two hops, beside twelve of six.

A figure is the median goodput of a flow of the few beside that of a flow of the many, and the share: their ratio in
each run, as a geometric mean with the interval that decides; and Jain's index of all flows. *Less*, *more* and *fair*
are the verdicts of the study, where that interval lies beyond a factor of 1.25, or inside: the levels of a study
mislead together with at most 5 % probability ([statistics](../why/statistics.md#the-share-of-the-few)).

A simulated host handles a packet within 5 us. A kernel on the rack takes 30 to 70 us on average, and longer where
sixteen share two CPUs: *slow hosts* are simulated with up to 150 us for each packet, drawn evenly.

Rows with Linux 6.1 are from Debian's kernel, which has DCTCP, on the rack of a machine that qemu emulates
(`bench/cost/machine`). It executes 10^9 instructions per second, which carry 50 Mb/s. With an RTT of 4 ms instead of
0.2 the windows are those of 1 Gb/s; the minimum RTO stays. Simulations have that rate and RTT, too.
"""
COURSE = """\
The share of the few in each window of 0.2 s, by its beginning: median over the runs with taildrop and Reno.
"""
CAPTURED = """\
## From the hosts' captures

The same flows with `meters: {diagnose: on}` (`published/outcast-2014/captured.yaml`): in how many runs on the rack
the captures of all hosts, 192 bytes of each packet, were diagnosed as outcast. It takes a flow with less than a sixth
of the median's goodput for a second.
"""
DROPS = """\
Reno; output ports with at least one of a hundred drops of the level. *Single*: the frame of that input port before it
and the one after it were taken in.
"""
MARKS = """\
One trunk at 50 Mb/s, with Linux 6.1 on the rack; all hosts use ECN. Shares of the frames that came to a port: medians
over the runs.
"""
Table = Mapping[tuple[int, int], Sequence[float]]


@dataclass(frozen=True)
class Answer:
    """A row with the figures of the rack, of the simulator, and of the simulator with slow hosts."""

    row: Row
    rack: Figure | None
    simulated: Figure | None
    delayed: Figure | None

    @property
    def agree(self) -> str:
        """Whether the rack, or else the simulator, has the published direction."""
        found = self.rack or self.simulated
        if self.row.expected is None or found is None:
            return ""
        if found.verdict not in DECIDED:
            return "cannot tell"
        return "yes" if found.verdict == self.row.expected else "**no**"

    @property
    def same(self) -> str:
        """Whether the rack and a simulation say the same."""
        if self.rack is None or self.simulated is None:
            return ""
        if self.rack.verdict not in DECIDED:
            return "cannot tell"
        if self.rack.verdict == self.simulated.verdict:
            return "yes"
        if self.delayed is not None and self.rack.verdict == self.delayed.verdict:
            return "with slow hosts"
        return "**no**" if self.simulated.verdict in DECIDED else "cannot tell"

    def text(self) -> str:
        """A row of the table."""
        cells = [self.row.experiment, self.row.said]
        cells += [each.text() if each else "not run" for each in (self.rack, self.simulated, self.delayed)]
        return f"| {' | '.join([*cells, self.agree, self.same])} |"


def page(found: Sequence[Answer], states: Mapping[str, Table]) -> str:
    """The whole page."""
    asked = [each for each in found if each.agree]
    counted = Counter(each.agree for each in asked)
    alike = Counter(each.same for each in found if each.same)
    text = ["# TCP Outcast, run again", "", INTRO]
    text += [
        textwrap.fill(
            f"**Of {len(asked)} published directions {counted['yes']} come out here, {counted['**no**']} do not, and "
            f"{counted['cannot tell']} are undecided.** Of {alike.total()} rows that were run on both, the rack and "
            f"the simulator say the same in {alike['yes']}, in {alike['with slow hosts']} more if its hosts are as "
            f"slow as the rack's, and another thing in {alike['**no**']}.",
            120,
            break_on_hyphens=False,
        )
    ]
    text += ["", "| experiment | published | rack | simulator | simulator, slow hosts | as published | alike |"]
    text += ["| --- " * 7 + "|", *(each.text() for each in found), ""]
    for engine, table in states.items():
        if table:
            text += [f"## Runs of m drops, {engine}", "", *_states(table), ""]
    return "\n".join(text)


def details(course: Iterator[str], drops: Iterator[str], marks: Iterator[str]) -> Iterator[str]:
    """The sections on the course of the share, on drops, and on marks."""
    yield from [
        "## The first two seconds",
        "",
        COURSE,
        *course,
        "",
        "## Which frames are dropped",
        "",
        DROPS,
        *drops,
        "",
        "## Marks and drops",
        "",
        MARKS,
        *marks,
        "",
    ]


def two_states(folder: Path) -> Table:
    """Goodput by flows and length of the runs of drops; empty if that was not run."""
    table: dict[tuple[int, int], list[float]] = defaultdict(list)
    lines = (folder / "runs.jsonl").read_text().splitlines() if (folder / "runs.jsonl").exists() else []
    for run in map(json.loads, lines):
        if not run["excluded"]:
            level = run["level"]
            length = level.get("frames", 12) if isinstance(level, dict) else 0
            table[run["conditions"]["flows"], length].append(run["metrics"]["goodput"])
    return table


def _states(table: Table) -> list[str]:
    lengths = sorted({length for _, length in table})
    rows = [
        "Median goodput in Mb/s. Drops are off for 5 ms on average, then on for the time of m full frames (0: never).",
        "",
        f"| flows | {' | '.join(f'm = {length}' for length in lengths)} |",
        "| --- " * (len(lengths) + 1) + "|",
    ]
    for flows in sorted({flows for flows, _ in table}):
        cells = [f"{statistics.median(table[flows, length]) / 1e6:.0f}" for length in lengths]
        rows.append(f"| {flows} | {' | '.join(cells)} |")
    return rows
