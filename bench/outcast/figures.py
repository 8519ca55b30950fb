"""What the few got in the runs of a folder: goodputs of a flow, the share with its interval, and its verdict."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.outcast.rows import Row

from framegauge.metrics import SHARE_OF_FEW
from framegauge.results.journal import read
from framegauge.summary.document import summarise

__all__ = ["Figure", "Figures"]


@dataclass(frozen=True)
class Figure:
    """What the runs of a level came to: bits per second of a flow of the few and of the many, and Jain's index of all
    flows (medians; None: not measured), and the entry of the summary, with the share and its verdict."""

    few: float
    many: float
    jain: float | None
    entry: Mapping[str, Any]

    @property
    def verdict(self) -> str:
        """less, more, fair, or why there is none."""
        return str(self.entry["verdict"])

    def text(self) -> str:
        """As a cell of the table."""
        beside = f"{self.few / 1e6:.1f} beside {self.many / 1e6:.1f} Mb/s"
        interval = self.entry["judged"]["interval"]
        span = "no interval" if interval is None else " to ".join(f"{each:.2g}" for each in interval)
        share = f"{self.verdict}: {self.entry['share']:.2g} ({span})"
        jain = "" if self.jain is None else f"Jain {self.jain:.2f}; "
        return f"{share}; {beside}; {jain}{self.entry['runs']} run{'s' * (self.entry['runs'] != 1)}"


class Figures:
    """The figures of a folder with results; none if it has no runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries: list[Mapping[str, Any]] = []
        if (folder / "runs.jsonl").exists():
            self._entries = summarise(read(folder)).get("few", [])

    def of(self, row: Row) -> Figure | None:
        """That of a row; None if no run answers it."""
        for entry in self._entries:
            level = next(iter(entry["levels"].values()))
            if _is_asked(entry, level, row):
                runs = [each for each in self._runs(entry, level) if SHARE_OF_FEW in each["metrics"]]
                groups = [_goodputs(self._folder, run) for run in runs]
                few, many = (statistics.median(each[name] for each in groups) for name in ("few", "many"))
                shared = [run["metrics"]["fairness"] for run in runs if "fairness" in run["metrics"]]
                return Figure(few, many, statistics.median(shared) if shared else None, entry)
        return None

    def _runs(self, entry: Mapping[str, Any], level: object) -> Iterator[Mapping[str, Any]]:
        for run in map(json.loads, (self._folder / "runs.jsonl").read_text().splitlines()):
            if (run["cell"], run["level"]) == (entry["cell"], level) and not run["excluded"]:
                yield run


def _is_asked(entry: Mapping[str, Any], level: object, row: Row) -> bool:
    if isinstance(row.level, Mapping):
        same = isinstance(level, Mapping) and row.level.items() <= level.items()
    else:
        same = level == row.level
    return same and all(entry["conditions"].get(key) == value for key, value in row.where.items())


def _goodputs(folder: Path, run: Mapping[str, Any]) -> dict[str, float]:
    record = json.loads((folder / f"runs/{run['number']}/record.json").read_text())
    return {each["name"]: each["goodput_bits_per_second"] for each in record["workload"]["sharing"]["groups"]}
