"""Behind the table of docs/measured/outcast.md: which frames were dropped or marked, and the course of the share."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from bench.kept import COLUMNS, Kept

from framegauge.study.model import level_text

__all__ = ["course", "drops", "marks"]

LEAST_SHARE = 0.01  # of all drops of an arm, for a row of its own
DROPS = ("fat-tree", "victims", "jitter", "contention")
MARKED = ("dctcp-kernel", "dctcp-jitter")
LINKS = {"the trunk": "far>near", "the last port": "near>h14"}
FATES = ("dropped_frames", "marked_frames")
COURSES = ("fat-tree", "background-10", "background-20", "background-50")
MOST_WINDOWS = 9  # of 0.2 s, of a run of 2 s


def drops(kept: Kept) -> Iterator[str]:
    """A table: dropped frames per run by output and input port, and how many came in a row. With Reno."""
    yield "| study | level | engine | port | by input port | drops per run | single | in runs of 3 or more | longest |"
    yield "| --- " * 9 + "|"
    for study in DROPS:
        for engine, verb in COLUMNS.items():
            for arm in _arms(kept.results(study, verb)):
                for found in arm["drops"]:
                    yield _row(study, engine, arm, found)


def _arms(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Those with Reno, each with the rows of its drops that count."""
    if not (folder / "summary.json").exists():
        return
    for entry in json.loads((folder / "summary.json").read_text())["flows"]:
        if entry["conditions"].get("congestion_control") == "reno":
            for arm in entry["arms"]:
                total = sum(each["dropped_frames"] for each in arm["drops"])
                yield {**arm, "drops": [each for each in arm["drops"] if each["dropped_frames"] >= LEAST_SHARE * total]}


def _row(study: str, engine: str, arm: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    shares = found["share_by_length"]
    inputs = found["input_ports"]
    (level,) = arm["levels"].values()
    cells = [
        study,
        level_text(level),
        engine,
        found["port"],
        inputs[0] if len(inputs) == 1 else f"{len(inputs)} ports",
        f"{found['dropped_frames'] / arm['runs']:,.0f}",
        f"{100 * shares['1']:.0f} %",
        f"{100 * (1 - shares['1'] - shares['2']):.0f} %",
        str(found["longest"]),
    ]
    return f"| {' | '.join(cells)} |"


def marks(kept: Kept) -> Iterator[str]:
    """A table: which frames the two ports of one trunk dropped and marked, by congestion control, level and engine."""
    heads = " | ".join(f"{name}: dropped | marked" for name in LINKS)
    yield f"| study | congestion control | level | engine | {heads} |"
    yield "| --- " * (4 + 2 * len(LINKS)) + "|"
    for study in MARKED:
        for engine, verb in COLUMNS.items():
            for arm, shares in sorted(_fates(kept.results(study, verb)).items()):
                cells = [f"{100 * statistics.median(each):.2g} %" for each in zip(*shares, strict=True)]
                yield f"| {' | '.join([study, *arm, engine, *cells])} |"


def _fates(folder: Path) -> Mapping[tuple[str, str], list[list[float]]]:
    """By congestion control and level, for each run: the shares of the frames of both ports with each fate."""
    found: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for run, record in _records(folder):
        ports = {each["port"]: each for each in record["measure"]["fabric"]["ports"]}
        arm = run["conditions"]["congestion_control"], level_text(run["level"])
        counts = [ports[name] for name in LINKS.values()]
        found[arm].append([each[fate] / each["received_frames"] for each in counts for fate in FATES])
    return found


def _records(folder: Path) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each run that counts, and its record."""
    lines = (folder / "runs.jsonl").read_text().splitlines() if (folder / "runs.jsonl").exists() else []
    for run in map(json.loads, lines):
        if not run["excluded"]:
            yield run, json.loads((folder / f"runs/{run['number']}/record.json").read_text())


def course(kept: Kept) -> Iterator[str]:
    """A table: the share of the few in each window of 0.2 s, median over the runs with taildrop and Reno."""
    heads = [f"{0.2 * place:.1f} s" for place in range(MOST_WINDOWS)]
    yield f"| study | engine | {' | '.join(heads)} |"
    yield "| --- " * (2 + MOST_WINDOWS) + "|"
    for study in COURSES:
        for engine, verb in COLUMNS.items():
            if shares := _shares(kept.results(study, verb)):
                cells = [f"{statistics.median(shares[place]):.2g}" for place in range(MOST_WINDOWS)]
                yield f"| {study} | {engine} | {' | '.join(cells)} |"


def _shares(folder: Path) -> Mapping[int, list[float]]:
    """The shares of all runs, by window."""
    found: dict[int, list[float]] = defaultdict(list)
    lines = (folder / "runs.jsonl").read_text().splitlines() if (folder / "runs.jsonl").exists() else []
    for run in map(json.loads, lines):
        path = folder / f"runs/{run['number']}/few.parquet"
        plain = run["level"] == "taildrop" and run["conditions"]["congestion_control"] == "reno"
        if plain and not run["excluded"] and path.exists():
            for place, share in enumerate(_of_windows(pl.read_parquet(path))[:MOST_WINDOWS]):
                found[place].append(share)
    return found


def _of_windows(table: pl.DataFrame) -> list[float]:
    means = table.group_by("begin_seconds", "group").agg(pl.col("goodput_bits_per_second").mean())
    wide = means.pivot(on="group", index="begin_seconds").sort("begin_seconds")
    return [few / many for few, many in zip(wide["few"], wide["many"], strict=True) if many]
