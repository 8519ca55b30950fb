"""The same study files on the emulated rack, with real kernels, and in virtual time: how far apart are they?

    sudo .venv/bin/python -m bench.validation [--only sizes] [--write docs/measured/validation.md]

Every file of this folder is run by `framegauge study` and by `framegauge simulate`. Results stay in
results/validation/: what is there is not run again. A figure is the ratio of the medians of the runs that count, the
simulated one over the kernel's, by cell and arm; of Jain's index the difference. Wanted: goodput within 2 %, completion
times within 5 %, Jain's index within 0.05. Needs root and a quiet machine; about 20 minutes.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common import say, warn_if_busy

HERE = Path(__file__).resolve().parent
KEPT = Path("results/validation")
INTRO = """\
Every study file of `bench/validation` was run by `framegauge study`, on the emulated rack with real kernels, and by
`framegauge simulate`, in virtual time. A figure is the median of the runs that count. Wanted: goodput within 2 %,
completion times within 5 %, Jain's index within 0.05, the slowest flow within a quarter.
"""
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
SCALES = {"goodput": 1e-6, "smallest_goodput": 1e-6, "completion_time": 1e3, "fairness": 1.0}


@dataclass(frozen=True)
class Row:
    """One metric in one cell and arm."""

    study: str
    where: str
    metric: str
    kernel: float
    simulated: float
    spread: tuple[float, float]

    @property
    def off(self) -> float:
        """The share by which the simulation differs, or the difference."""
        wanted = WANTED[self.metric]
        return self.simulated / self.kernel - 1 if wanted.is_share else self.simulated - self.kernel

    @property
    def is_near(self) -> bool:
        """Whether that is near enough."""
        return abs(self.off) <= WANTED[self.metric].within

    def text(self) -> str:
        """A row of the table."""
        wanted, scale = WANTED[self.metric], SCALES[self.metric]
        kernel, simulated, low, high = (
            wanted.form.format(value * scale) for value in (self.kernel, self.simulated, *self.spread)
        )
        off = f"{100 * self.off:+.1f} %" if wanted.is_share else f"{self.off:+.3f}"
        near = "yes" if self.is_near else "**no**"
        return f"| {self.where} | {self.metric} | {kernel} ({low} to {high}) | {simulated} | {off} | {near} |"


def run(verb: str, study: Path) -> Path:
    """Runs a file by a verb, unless that has been done; the folder of its results."""
    folder = KEPT / f"{study.stem}-{verb}"
    if not (folder / "summary.json").exists():
        say(f"{study.stem}: {verb}")
        command = [sys.executable, "-m", "framegauge", verb, str(study), "--out", str(folder)]
        # 3: nothing was judged, which medians do not need.
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode not in (0, 3):
            raise SystemExit(f"bench.validation: framegauge {verb} {study} has failed")
    return folder


def words(run: Mapping[str, Any]) -> Iterator[str]:
    """What tells the cell and the arm of a run from others: conditions that are no constants, and its level."""
    for name, value in run["conditions"].items():
        if name in ("rtt_seconds", "congestion_control", "size_bytes"):
            yield f"{name.removesuffix('_seconds').removesuffix('_bytes')} {value}"
    yield run["arm"] if run["level"] is None else str(run["level"])


def values(folder: Path) -> Values:
    """The metrics of the runs that count, by cell and arm."""
    found: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in (folder / "runs.jsonl").read_text().splitlines():
        each = json.loads(line)
        if each["excluded"] or each["role"] == "control":
            continue
        for metric in WANTED:
            if each["metrics"].get(metric) is not None:
                found[tuple(words(each))][metric].append(each["metrics"][metric])
    return found


def rows(study: Path) -> list[Row]:
    """Both, side by side."""
    kernel, simulated = values(run("study", study)), values(run("simulate", study))
    found = []
    for cell, metrics in kernel.items():
        for metric, measured in metrics.items():
            if other := simulated.get(cell, {}).get(metric):
                medians = statistics.median(measured), statistics.median(other)
                found.append(Row(study.stem, ", ".join(cell), metric, *medians, (min(measured), max(measured))))
    return found


def page(found: list[Row]) -> str:
    """The page in docs/measured."""
    near = sum(row.is_near for row in found)
    text = ["# Simulations beside real kernels", "", INTRO]
    text += [f"{near} of {len(found)} figures are as near as wanted.", ""]
    for study in dict.fromkeys(row.study for row in found):
        text += [f"## {study}", "", "| where | metric | kernel (lowest to highest) | simulated | off | near |"]
        text += ["| --- | --- | --- | --- | --- | --- |"]
        text += [row.text() for row in found if row.study == study]
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
    print(f"{sum(row.is_near for row in found)} of {len(found)} as near as wanted")
    if options.write:
        options.write.write_text(page(found))


if __name__ == "__main__":
    main()
