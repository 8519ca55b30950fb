"""Study files that a bench runs on the rack and in the simulator.

Their results stay: what is there is not run again, and what was interrupted is resumed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from bench.common import build_machine, opener_in, say, warn_if_busy

from framegauge.cli.commands import resumed_study, run_study
from framegauge.reproduce.documents import FILE as DOCUMENT
from framegauge.study.file import load
from framegauge.study.model import level_text

__all__ = ["COLUMNS", "ENGINES", "Kept", "asked", "named", "put"]

# `delayed`: simulated with hosts that take as long as those of a rack.
ENGINES = ("simulate", "delayed", "study")
# By what pages call them, in the order of their columns.
COLUMNS = {"rack": "study", "simulator": "simulate", "slow hosts": "delayed"}


@dataclass(frozen=True)
class Kept:
    """The study files of a `folder`, and where their results stay.

    Simulations get so many `seeds`; the simulator cannot run those of `rack_only`. `delay` is the longest time in which
    a host handles a packet where it is `delayed`; None: nothing is. So are those that the rack runs, and
    `counterparts`: simulated ones that stand beside another file of the rack. The rack of those of `in_machine` is in
    the emulated machine (bench/cost/machine), whose kernel has what this machine's may lack.
    """

    name: str
    folder: Path
    seeds: int
    rack_only: Sequence[str] = ()
    delay: str | None = None
    counterparts: Sequence[str] = ()
    in_machine: Sequence[str] = ()

    def studies(self, only: str | None) -> list[Path]:
        """All, or that of one name."""
        files = [path for path in sorted(self.folder.glob("*.yaml")) if path.name != DOCUMENT]
        return [path for path in files if only in (None, path.stem)]

    def engines(self, study: Path) -> Iterator[str]:
        """What can run a file: a simulated testbed has no rack."""
        has_rack = load(str(study)).testbed.kind != "simulator"
        if study.stem not in self.rack_only:
            yield "simulate"
            if (has_rack or study.stem in self.counterparts) and self.delay is not None:
                yield "delayed"
        if has_rack:
            yield "study"

    def results(self, study: str, engine: str) -> Path:
        """The folder with the results of a study file."""
        return Path("results") / self.name / f"{study}-{engine}"

    def run(self, options: argparse.Namespace) -> None:
        """Runs what is asked for (`asked`), simulations first."""
        warn_if_busy()
        for engine in (each for each in ENGINES if options.engine in (None, each)):
            for study in self.studies(options.only):
                if engine in self.engines(study):
                    self._run(engine, study)

    def _run(self, engine: str, study: Path) -> None:
        folder = self.results(study.stem, engine)
        if _is_whole(folder):
            return
        say(f"{study.stem}: {engine}")
        if engine == "study" and study.stem in self.in_machine:
            _run_in_machine(study, folder)
            return
        verb = "study" if engine == "study" else "simulate"
        if engine == "delayed":
            study = self._delayed(study, folder.with_suffix(".yaml"))
        seeds = ["--seeds", str(self.seeds)] if verb == "simulate" else []
        again = ["--resume"] if (folder / "runs.jsonl").exists() else [str(study), *seeds]
        command = [sys.executable, "-m", "framegauge", verb, *again, "--out", str(folder)]
        # 3: nothing was judged, which figures do not need.
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode not in (0, 3):
            raise SystemExit(f"bench.{self.name}: framegauge {verb} {study} has failed")

    def _delayed(self, study: Path, place: Path) -> Path:
        """The file with slower hosts, in its place."""
        file = yaml.safe_load(study.read_text())
        file["testbed"] |= {"kind": "simulator", "jitter": self.delay}
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(yaml.safe_dump(file, sort_keys=False))
        return place


def _run_in_machine(study: Path, folder: Path) -> None:
    """What is left of a study, with its rack in the emulated machine."""
    begun, asked, opener = (folder / "runs.jsonl").exists(), load(str(study)), opener_in(build_machine())
    if begun:
        asked = resumed_study(folder, asked)
    done = run_study(asked, folder, begun, lambda _: None, say, opener)
    if done.outcome.interrupted:
        raise SystemExit(f"{study.stem}: interrupted after {done.outcome.runs} of {done.outcome.planned} runs")


def _is_whole(folder: Path) -> bool:
    """Whether all planned runs have been made; an interrupted study has a summary, too."""
    if not (folder / "summary.json").exists():
        return False
    planned: int = json.loads((folder / "results.json").read_text())["planned_runs"]
    runs = map(json.loads, (folder / "runs.jsonl").read_text().splitlines())
    return sum(run["attempt"] == 0 for run in runs) >= planned


def named(folder: Path, kind: str, metric: str) -> Iterator[str]:
    """A table of a study with `meters: {diagnose: on}`: in how many runs the hosts' captures showed this finding, and a
    metric in those and in the others. All runs, also those that do not count: a capture is as true in them."""
    yield f"| condition | level | runs | {kind} named | {metric} where named | {metric} where not |"
    yield "| --- " * 6 + "|"
    found: dict[tuple[str, str], list[tuple[bool, float]]] = defaultdict(list)
    lines = (folder / "runs.jsonl").read_text().splitlines() if (folder / "runs.jsonl").exists() else []
    for run in map(json.loads, lines):
        servers = run["conditions"].get("servers")
        condition = "" if servers is None else f"{servers} servers"
        is_named = kind in run["readings"]["diagnosis"]["kinds"]
        found[condition, level_text(run["level"])].append((is_named, run["metrics"][metric]))
    for (condition, level), runs in sorted(found.items()):
        sides = [_range([value for is_named, value in runs if is_named == side]) for side in (True, False)]
        yield f"| {condition} | {level} | {len(runs)} | {sum(each for each, _ in runs)} | {' | '.join(sides)} |"


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.2g} to {max(values):.2g}" if values else ""


def asked(description: str) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="the name of one file")
    parser.add_argument("--engine", choices=ENGINES, help="only this one")
    parser.add_argument("--read", action="store_true", help="run nothing, read what is there")
    parser.add_argument("--write", type=Path, help="where the page goes")
    return parser.parse_args()


def put(text: str, options: argparse.Namespace) -> None:
    """Writes a page to where it is asked for, else to standard output."""
    if options.write:
        options.write.write_text(text)
    else:
        sys.stdout.write(f"{text}\n")
