"""docs/measured/incast.md: goodput of synchronized reads beside the formula of the collapse."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framegauge.quantities import exact_bytes, print_bytes
from framegauge.study.file import load
from framegauge.study.model import level_text

__all__ = ["Case", "Goodput", "goodputs", "page"]

RTO_SECONDS = {"rto-1ms": 0.001}  # the minimum by tuning; Linux: 0.2 s
LINUX_RTO_SECONDS = 0.2
CEILING = {1500: 941.5e6, 9000: 990.0e6}  # of a 1 Gb/s link, TCP with timestamps
INTRO = """\
Written by `python -m bench.incast` from the study files in `bench/incast`. The last host asks so many servers at once,
each answers with so many bytes (the server request unit), and the next round begins when all have answered. Links have
1 Gb/s, an RTT of 200 us, and a buffer of 64 KiB at the port to the client unless a table says otherwise. Kernels use
Reno and what they use by default besides; *no-sack* turns SACK off, and RACK with it; *rto-1ms* sets the minimum RTO to
1 ms.

A figure is the median goodput of the runs, with the least and the most, and how many timeouts there were per round.
*Formula* is block / (block / C + minimum RTO), which is the goodput if each round waits for one timeout (Phanishayee et
al., FAST 2008; C is the goodput of a full link).
"""
CAPTURED = """\
## From the hosts' captures

Reads with `meters: {diagnose: on}` (`bench/incast/captured.yaml`): in how many runs on the rack the captures of all
hosts, 192 bytes of each packet, were diagnosed as incast. Goodput in bits per second.
"""


@dataclass(frozen=True)
class Case:
    """What makes runs comparable: bytes of a server, servers, the levels of all factors by name."""

    unit_bytes: int
    servers: int
    levels: tuple[tuple[str, str], ...]
    mtu: int
    rto_seconds: float

    @property
    def formula(self) -> float:
        """Bits per second if each round waits for one timeout."""
        block = 8.0 * self.unit_bytes * self.servers
        return block / (block / CEILING[self.mtu] + self.rto_seconds)


@dataclass(frozen=True)
class Goodput:
    """Of the runs of a case: bits per second, and timeouts per round."""

    values: Sequence[float]
    timeouts: float

    def text(self) -> str:
        """As a cell of a table."""
        low, middle, high = (
            f"{each / 1e6:.0f}" for each in (min(self.values), statistics.median(self.values), max(self.values))
        )
        return f"{middle} ({low} to {high}); {self.timeouts:.1f}"


def goodputs(folder: Path) -> dict[Case, Goodput]:
    """By case; none if the folder has no runs."""
    lines = (folder / "runs.jsonl").read_text().splitlines() if (folder / "runs.jsonl").exists() else []
    values: dict[Case, list[float]] = defaultdict(list)
    waits: dict[Case, list[float]] = defaultdict(list)
    if not lines:
        return {}
    study = load(str(folder / "study.yaml"))
    for run in map(json.loads, lines):
        if not run["excluded"]:
            case = _case(run, study.treatment, len(study.factors.tuning.levels) > 1 if study.factors.tuning else False)
            work = json.loads((folder / f"runs/{run['number']}/record.json").read_text())["workload"]
            values[case].append(run["metrics"]["goodput"])
            waits[case].append((work["timeouts"] or 0) / run["conditions"]["rounds"])
    return {case: Goodput(found, statistics.fmean(waits[case])) for case, found in values.items()}


def _case(run: Mapping[str, Any], treatment: str, by_tuning: bool) -> Case:
    conditions = run["conditions"]
    level = run["level"]
    levels = {treatment: exact_bytes(level) if treatment == "buffer" else level_text(level)}
    if by_tuning and treatment != "tuning":
        levels["tuning"] = str(conditions["tuning"])
    mtu = level if treatment == "mtu" else conditions["mtu"]
    return Case(
        conditions["unit_bytes"],
        conditions["servers"],
        tuple(sorted(levels.items())),
        mtu,
        RTO_SECONDS.get(levels.get("tuning", ""), LINUX_RTO_SECONDS),
    )


def page(tables: Mapping[Path, Mapping[str, Mapping[Case, Goodput]]]) -> str:
    """The whole page: a table for each study file."""
    text = ["# Incast, run again", "", INTRO]
    for path, engines in tables.items():
        if any(engines.values()):
            text += [f"## {load(str(path)).question}", "", f"`bench/incast/{path.name}`", "", *_table(engines), ""]
    return "\n".join(text)


def _table(engines: Mapping[str, Mapping[Case, Goodput]]) -> Iterator[str]:
    shown = {engine: found for engine, found in engines.items() if found}
    cases = sorted({case for found in shown.values() for case in found}, key=_order)
    names = [name for name, _ in cases[0].levels]
    yield f"| {' | '.join([*names, 'unit', 'servers', 'formula', *(f'{each}, Mb/s; timeouts' for each in shown)])} |"
    yield "| --- " * (len(names) + 3 + len(shown)) + "|"
    for case in cases:
        cells = [*(value for _, value in case.levels), print_bytes(case.unit_bytes), str(case.servers)]
        cells += [f"{case.formula / 1e6:.0f}"]
        cells += [found[case].text() if case in found else "not run" for found in shown.values()]
        yield f"| {' | '.join(cells)} |"


def _order(case: Case) -> tuple[object, ...]:
    return (case.unit_bytes, case.servers, *((len(value), value) for _, value in case.levels))
