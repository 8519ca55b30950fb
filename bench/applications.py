"""How long one run of each application takes, and what it measures: a study of a few runs of each, on an emulated rack.

    sudo .venv/bin/python -m bench.applications [--blocks 3] [NAME ...]

The applications are those of `examples/`, with few blocks, and shorter parameters where a run takes minutes by nature.
Prints a line of a table for each: the seconds of a run (median, lowest and highest, with the start of hosts and
servers), and the mean of a metric at MTU 1500 and 9000 in the runs that count.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from bench.common import say, spread, warn_if_busy

from framegauge.metrics import METRICS
from framegauge.results.journal import Run, read
from framegauge.summary import words

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
OVER_SECONDS = 3600


@dataclass(frozen=True)
class Application:
    """An example, the metric to show, and what replaces the parameters of its workload."""

    example: str
    metric: str
    instead: Mapping[str, Any] = field(default_factory=dict)


APPLICATIONS = {
    "iperf3": Application("ftp", "goodput", {"iperf3": {"duration": "1 s"}}),
    "ftp": Application("ftp", "completion_time", {"ftp": {"size": "1 MB"}}),
    "command, Redis": Application("command", "gets"),
    "command, nginx": Application("command-nginx", "pages"),
    "command, PostgreSQL": Application("command-postgresql", "transactions_done"),
    "web": Application("web", "operations", {"web": {"users": 10, "think": "1 s", "ramp_up": "2 s", "steady": "10 s"}}),
    "mapreduce": Application("terasort", "job_time"),
}


def study_of(application: Application, blocks: int) -> dict[str, Any]:
    """The example as a study of few runs at two MTUs, whatever they show."""
    study: dict[str, Any] = yaml.safe_load((EXAMPLES / f"{application.example}.yaml").read_text())
    if application.instead:
        study["workloads"] = [dict(application.instead)]
    study["factors"] = {"mtu": {"levels": [1500, 9000], "baseline": 1500}}
    study |= {"blocks": blocks, "stop": "blocks", "control": False, "retries": 0, "budget": "1 h"}
    return study | {"margins": {application.metric: "5 %"}}


def runs_of(study: Mapping[str, Any], folder: Path) -> Sequence[Run]:
    """The runs of a study; its output is passed on if it fails."""
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(dict(study)))
    words: list[str | Path] = [sys.executable, "-m", "framegauge", "study", path, "--out", folder / "out"]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=OVER_SECONDS, check=False
    )
    if done.returncode not in (0, 3):
        raise SystemExit(done.stdout)
    return read(folder / "out").runs


def line(name: str, metric: str, runs: Sequence[Run]) -> str:
    """A line of the table."""
    values = []
    for mtu in (1500, 9000):
        found = [run.metrics[metric] for run in runs if run.level == mtu and metric in run.metrics and not run.excluded]
        values.append(words.quantity(statistics.fmean(found), METRICS[metric].unit) if found else "no faithful run")
    counted = sum(not run.excluded for run in runs)
    seconds = spread([run.seconds for run in runs], ".3g")
    return f"| {name} | {seconds} | {metric} | {' | '.join(values)} | {counted} of {len(runs)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {'; '.join(APPLICATIONS)} (default: all)")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in APPLICATIONS]:
        parser.error(f"found {unknown[0]!r}, expected one of: {'; '.join(APPLICATIONS)}")
    warn_if_busy()
    print("| application | seconds of a run | metric | MTU 1500 | MTU 9000 | faithful runs |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in options.names or APPLICATIONS:
        say(f"{name} …")
        application = APPLICATIONS[name]
        with tempfile.TemporaryDirectory(prefix="framegauge-bench-") as folder:
            runs = runs_of(study_of(application, options.blocks), Path(folder))
        print(line(name, application.metric, runs), flush=True)


if __name__ == "__main__":
    main()
