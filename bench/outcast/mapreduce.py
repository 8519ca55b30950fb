"""Behind the rows of MapReduce in docs/measured/outcast.md: goodput of fetches by distance, and the job's time."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.kept import COLUMNS, Kept

from framegauge.quantities import print_bits_per_second, print_seconds

__all__ = ["section"]

INTRO = """\
Fetches of reducers by the links between the two hosts: 2 for the neighbour at the same switch, 6 for hosts of other
pods. A figure is the payload of all such fetches of a run over the time of all, median of runs. On the rack Hadoop
itself says when a fetch began and ended; it counts connecting and the server's search for the data.
"""
TIMES = """\
Times with equal-length routing at random, as a ratio to those with ECMP: `job_time` and `shuffle_time` are Hadoop's
own, `completion_time` is that of the simulated shuffle.
"""
EXCLUDED = "Excluded runs, of which no figure is above; a study that has no others counts as not run:"
SHUFFLES = ("shuffle", "shuffle-slow", "shuffle-all")
STUDIES = {"study": ("mapreduce", "mapreduce-slow"), "simulate": SHUFFLES, "delayed": SHUFFLES}
LINKS = (2, 4, 6)
OF_TIMES = ("metric", "engine", "ECMP", "equal length", "ratio", "verdict")


def section(kept: Kept) -> Iterator[str]:
    """The section, if the rack's study has been run."""
    folders = {
        (engine, study): kept.results(study, verb) for engine, verb in COLUMNS.items() for study in STUDIES[verb]
    }
    there = {key: folder for key, folder in folders.items() if (folder / "summary.json").exists()}
    if not there:
        return
    yield from ["## MapReduce: fetches by distance", "", INTRO]
    heads = [f"{links} links, Mb/s" for links in LINKS]
    yield f"| link | reducers | routing | engine | {' | '.join(heads)} | fetches per run | runs |"
    yield "| --- " * (6 + len(LINKS)) + "|"
    for (engine, _), folder in there.items():
        yield from _distances(engine, folder)
    yield from ["", TIMES, f"| link | reducers | {' | '.join(OF_TIMES)} |", "| --- " * (2 + len(OF_TIMES)) + "|"]
    for (engine, _), folder in there.items():
        yield from _times(engine, folder)
    excluded = [line for (engine, _), folder in there.items() for line in _excluded(engine, folder)]
    yield from ["", *((EXCLUDED, "", *excluded, "") if excluded else ())]


def _runs(folder: Path) -> Iterator[Mapping[str, Any]]:
    yield from map(json.loads, (folder / "runs.jsonl").read_text().splitlines())


def _of(conditions: Mapping[str, Any]) -> tuple[str, int]:
    """The rate of links, and the number of reducers at a time."""
    return print_bits_per_second(conditions["bits_per_second"]), conditions.get("reduces", 1)


def _distances(engine: str, folder: Path) -> Iterator[str]:
    """A row for each number of reducers and routing: the goodput by links."""
    found: dict[tuple[str, int, str], list[Mapping[int, Mapping[str, Any]]]] = defaultdict(list)
    for run in _runs(folder):
        if not run["excluded"]:
            record = json.loads((folder / f"runs/{run['number']}/record.json").read_text())["workload"]
            by_links = {each["links"]: each for each in record["fetches_by_links"]}
            found[*_of(run["conditions"]), run["level"]].append(by_links)
    for (link, reduces, level), runs in sorted(found.items()):
        cells = []
        for links in LINKS:
            rates = [each[links]["goodput_bits_per_second"] for each in runs if links in each]
            cells.append(f"{statistics.median(rates) / 1e6:.1f}" if rates else "none")
        fetches = statistics.median(sum(one["fetches"] for one in each.values()) for each in runs)
        yield f"| {link} | {reduces} | {level} | {engine} | {' | '.join(cells)} | {fetches:g} | {len(runs)} |"


def _times(engine: str, folder: Path) -> Iterator[str]:
    for each in json.loads((folder / "summary.json").read_text())["verdicts"]:
        if each["metric"].endswith("_time") and each["ratio"] is not None:
            interval = "" if each["ci95"] is None else f" ({' to '.join(f'{end:.3f}' for end in each['ci95'])})"
            sides = [print_seconds(each[side]["estimate"]) for side in ("baseline", "treatment")]
            ratio = f"{each['ratio']:.3f}{interval}"
            cells = [*map(str, _of(each["conditions"])), f"`{each['metric']}`", engine, *sides, ratio]
            yield f"| {' | '.join([*cells, each['verdict']])} |"


def _excluded(engine: str, folder: Path) -> Iterator[str]:
    for run in _runs(folder):
        if run["excluded"]:
            yield f"- {engine}, run {run['number']}, {run['level']}: {'; '.join(run['excluded'])}"
