"""The same study files on the emulated rack, with real kernels, and in virtual time: how far apart are they?

    sudo .venv/bin/python -m bench.validation [--only sizes] [--write docs/measured/validation.md]

Every file of this folder is run by `framegauge study` and by `framegauge simulate`. Results stay in
results/validation/: what is there is not run again. A figure is the ratio of the medians of the runs that count, the
simulated one over the kernel's, by cell and arm; of Jain's index the difference. Wanted: goodput within 2 %, completion
times within 5 %, Jain's index within 0.05.

A simulated host handles a packet within `jitter`, which is 5 us unless a file says otherwise. The hosts of a rack take
longer; how long, the machine decides. It shows in handshakes, which are nothing but two such times and the RTT. So each
file is simulated once more, at each RTT, with the jitter that gives the kernel's median handshake there; nothing
else is taken from what is compared. Simulations have 40 seeds, because they cost little and shares vary from seed to
seed. Needs root and a quiet machine; about 25 minutes.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from bench.common import say, warn_if_busy
from bench.validation import drops

from framegauge.quantities import parse_seconds, print_seconds
from framegauge.study.testbed import JITTER_SECONDS

HERE = Path(__file__).resolve().parent
KEPT = Path("results/validation")
INTRO = """\
Every study file of `bench/validation` was run by `framegauge study`, on the emulated rack with real kernels, and by
`framegauge simulate`, in virtual time, with 40 seeds. A figure is the median of the runs that count. Wanted: goodput
within 2 %, completion times within 5 %, Jain's index within 0.05, the slowest flow within a quarter.

The hosts of a simulation handle a packet within 5 us, unless a file says otherwise. Those of the rack take longer, as
their handshakes show: these are two such times and the RTT. *With delays* is a second simulation, in which hosts take
as long as the median handshake of `sizes` says at that RTT. Nothing else is taken from what is compared.
"""
DELAYS = "sizes"
DRAWS = 10_000
OPTIONS: Mapping[str, Sequence[str]] = {"study": [], "simulate": ["--seeds", "40"]}
Values = Mapping[tuple[str, ...], Mapping[str, list[float]]]


@dataclass(frozen=True)
class Wanted:
    """How near a metric has to be: as a share, or as a difference."""

    within: float
    is_share: bool
    form: str


WANTED = {
    "goodput": Wanted(0.02, True, "{:.1f} Mb/s"),
    "completion_time": Wanted(0.05, True, "{:.3f} ms"),
    "fairness": Wanted(0.05, False, "{:.3f}"),
    "smallest_goodput": Wanted(0.25, True, "{:.1f} Mb/s"),
}
HEAD = "| where | metric | kernel (lowest to highest) | simulated | off | with delays | off |"
USUAL_RTT = "200 us"
SCALES = {"goodput": 1e-6, "smallest_goodput": 1e-6, "completion_time": 1e3, "fairness": 1.0}


@dataclass(frozen=True)
class Off:
    """How far a simulation is off, as a share or a difference, with its 95 % interval (percentile bootstrap)."""

    value: float
    low: float
    high: float
    wanted: Wanted

    @classmethod
    def between(cls, kernel: Sequence[float], simulated: Sequence[float], wanted: Wanted) -> Off:
        """That of the medians of the runs."""
        draws = np.random.default_rng(1)
        ours, theirs = (
            np.append(np.median(draws.choice(each, (DRAWS, len(each))), axis=1), np.median(each))
            for each in (simulated, kernel)
        )
        off = ours / theirs - 1 if wanted.is_share else ours - theirs
        low, high = np.percentile(off[:-1], [2.5, 97.5])
        return cls(float(off[-1]), float(low), float(high), wanted)

    @property
    def is_near(self) -> bool:
        """Whether that is near enough."""
        return abs(self.value) <= self.wanted.within

    @property
    def is_far(self) -> bool:
        """Whether these runs decide that it is not."""
        return self.low > self.wanted.within or self.high < -self.wanted.within

    def text(self) -> str:
        """In bold if it is not near; with its interval if the runs do not decide that."""
        one = "{:+.1f} %" if self.wanted.is_share else "{:+.3f}"
        value, low, high = (one.format(each * (100 if self.wanted.is_share else 1)) for each in self._values)
        if self.is_near:
            return value
        return f"**{value}**" if self.is_far else f"**{value}** ({low} to {high})"

    @property
    def _values(self) -> tuple[float, float, float]:
        return self.value, self.low, self.high


@dataclass(frozen=True)
class Row:
    """One metric in one cell and arm: runs of kernels, of the simulation, and of the one with delays."""

    study: str
    where: str
    metric: str
    kernel: Sequence[float]
    simulated: Sequence[float]
    delayed: Sequence[float]

    @property
    def offs(self) -> tuple[Off, Off]:
        """How far both simulations are off."""
        wanted = WANTED[self.metric]
        return Off.between(self.kernel, self.simulated, wanted), Off.between(self.kernel, self.delayed, wanted)

    def text(self) -> str:
        """A row of the table."""
        kernel = f"{self._median(self.kernel)} ({self._value(min(self.kernel))} to {self._value(max(self.kernel))})"
        simulated, delayed = (off.text() for off in self.offs)
        beside = f"{self._median(self.simulated)} | {simulated} | {self._median(self.delayed)} | {delayed}"
        return f"| {self.where} | {self.metric} | {kernel} | {beside} |"

    def _median(self, values: Sequence[float]) -> str:
        return self._value(statistics.median(values))

    def _value(self, value: float) -> str:
        return WANTED[self.metric].form.format(value * SCALES[self.metric])


def run(verb: str, study: Path) -> Path:
    """Runs a file by a verb, unless that has been done; the folder of its results."""
    folder = KEPT / f"{study.stem}-{verb}"
    if not (folder / "summary.json").exists():
        say(f"{study.stem}: {verb}")
        command = [sys.executable, "-m", "framegauge", verb, str(study), "--out", str(folder), *OPTIONS[verb]]
        # 3: nothing was judged, which medians do not need.
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode not in (0, 3):
            raise SystemExit(f"bench.validation: framegauge {verb} {study} has failed")
    return folder


def words(run: Mapping[str, Any]) -> Iterator[str]:
    """What tells the cell and the arm of a run from others: conditions that are no constants, and its level."""
    given = run["conditions"]
    if "size_bytes" in given:
        yield f"{given['size_bytes'] / 1e6:g} MB"
    if "rtt_seconds" in given:
        yield f"RTT {print_seconds(given['rtt_seconds'])}"
    yield str(given["congestion_control"])
    yield run["arm"] if run["level"] is None else str(run["level"])


def counted(folder: Path) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """The runs that count, with their cell and arm."""
    for line in (folder / "runs.jsonl").read_text().splitlines():
        each = json.loads(line)
        if not each["excluded"] and each["role"] != "control":
            yield tuple(words(each)), each


def values(folder: Path) -> Values:
    """The metrics of the runs that count, by cell and arm."""
    found: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell, each in counted(folder):
        for metric in WANTED:
            if each["metrics"].get(metric) is not None:
                found[cell][metric].append(each["metrics"][metric])
    return found


def runs_of_drops(*folders: Path) -> drops.ByRun:
    """The lengths of runs of drops in each of the runs that count, by cell and arm."""
    found: dict[tuple[str, ...], list[drops.Lengths]] = defaultdict(list)
    for folder in folders:
        for cell, each in counted(folder):
            found[cell].append(drops.lengths(folder / f"runs/{each['number']}/drops.parquet"))
    return found


def handshakes(folder: Path) -> dict[float, float]:
    """The median handshake of the runs that count, by RTT, in seconds."""
    found = defaultdict(list)
    for _, each in counted(folder):
        record = json.loads((folder / f"runs/{each['number']}/record.json").read_text())
        found[record["conditions"]["rtt_seconds"]].append(record["workload"]["handshake_seconds"])
    return {rtt: statistics.median(values) for rtt, values in found.items()}


def jitters() -> dict[float, float]:
    """By RTT, in seconds: the longest time in which a host of the rack handles a packet; shorter ones are as likely."""
    study = HERE / f"{DELAYS}.yaml"
    kernel, simulated = handshakes(run("study", study)), handshakes(run("simulate", study))
    # Two hosts handle a packet, each in half of the longest time on average; the simulation's had theirs.
    return {rtt: max(0.0, kernel[rtt] - simulated[rtt]) + JITTER_SECONDS for rtt in kernel}


def delayed(study: Path) -> list[Path]:
    """Folders of simulations whose hosts take as long as those of the rack, one per RTT."""
    file = yaml.safe_load(study.read_text())
    slow, rtts = jitters(), file["factors"].get("rtt", USUAL_RTT)
    found = []
    for rtt in rtts if isinstance(rtts, list) else [rtts]:
        jitter = f"{slow[parse_seconds(rtt)] * 1e6:.1f} us"
        file["testbed"] |= {"kind": "simulator", "jitter": jitter}
        file["factors"] |= {"rtt": rtt}
        place = KEPT / f"{study.stem}-{rtt.replace(' ', '')}-delayed.yaml"
        place.write_text(yaml.safe_dump(file, sort_keys=False))
        found.append(run("simulate", place))
    return found


def rows(study: Path) -> list[Row]:
    """All side by side."""
    kernel, simulated = values(run("study", study)), values(run("simulate", study))
    slow = {cell: metrics for folder in delayed(study) for cell, metrics in values(folder).items()}
    found = []
    for cell, metrics in sorted(kernel.items()):
        for metric, measured in metrics.items():
            others = [each.get(cell, {}).get(metric) for each in (simulated, slow)]
            if all(others):
                found.append(Row(study.stem, ", ".join(cell), metric, measured, *(each for each in others if each)))
    return found


def losses(study: Path) -> list[str]:
    """The table of runs of drops, if the study lost frames."""
    folders = [run("study", study)], [run("simulate", study)], delayed(study)
    found = drops.rows(*(runs_of_drops(*each) for each in folders))
    return [*drops.HEAD, *(row.text() for row in found)] if found else []


def verdict(found: list[Row]) -> str:
    """How many figures are near."""
    near, slow = zip(*((first.is_near, second.is_near) for first, second in (row.offs for row in found)), strict=True)
    return (
        f"{sum(near)} of {len(found)} figures are as near as wanted, {sum(slow)} with delays. Others are in bold, with "
        "their 95 % intervals where the runs do not decide."
    )


def page(found: list[Row]) -> str:
    """The page in docs/measured."""
    text = ["# Simulations beside real kernels", "", INTRO, textwrap.fill(verdict(found), 120), ""]
    for study in dict.fromkeys(row.study for row in found):
        text += [f"## {study}", "", HEAD, "| --- | --- | --- | --- | --- | --- | --- |"]
        text += [row.text() for row in found if row.study == study]
        if lost := losses(HERE / f"{study}.yaml"):
            text += ["", "Runs of drops: frames that one input of a port loses in a row. *D* is the largest difference"]
            text += [
                "between two distributions of their lengths (Kolmogorov and Smirnov), *p* what it would be if runs"
            ]
            text += ["were independent.", "", *lost]
        text.append("")
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="the name of one file")
    parser.add_argument("--write", type=Path, help="where the page goes")
    options = parser.parse_args()
    warn_if_busy()
    studies = [path for path in sorted(HERE.glob("*.yaml")) if options.only in (None, path.stem)]
    found = [row for study in studies for row in rows(study)]
    for row in found:
        print(f"{row.study}: {row.text()}")
    print(verdict(found))
    if options.write:
        options.write.write_text(page(found))


if __name__ == "__main__":
    main()
