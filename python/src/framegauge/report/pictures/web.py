"""The sizes of a web site's connections by component: one chart for each comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.plots import distribution, draw, rows
from framegauge.printable import printable
from framegauge.quantities import print_bytes
from framegauge.report.pictures import arms
from framegauge.report.pictures.arms import Look
from framegauge.report.pictures.charts import Picture
from framegauge.results import spools
from framegauge.results.journal import Saved
from framegauge.results.spools import dig
from framegauge.statistics.pairs import by_cell
from framegauge.summary import words

__all__ = ["DIGITS", "Site", "Sites", "components", "middle", "pictures", "sites", "sizes"]

DIGITS = 3
MOST_COMPONENTS = 12  # of a chart

Site = Mapping[str, Any]  # `workload.web` of the record of a run
Sites = Mapping[str, Sequence[Site]]  # by arm, of runs that count


def sites(saved: Saved, looks: Mapping[str, Look]) -> Mapping[int, Sites]:
    """The results of web sites by cell; empty for a study without the workload web."""
    sites_by_cell: dict[int, dict[str, Sequence[Site]]] = {}
    for cell, cell_runs in by_cell(run for run in saved.runs if not run.excluded).items():
        for arm in looks:
            arm_runs = [run for run in cell_runs if run.arm == arm]
            results = [dig(spools.record(saved.folder, run), "workload", "web") for run in arm_runs]
            if webs := [result for result in results if result]:
                sites_by_cell.setdefault(cell, {})[arm] = webs
    return sites_by_cell


def components(found: Sequence[Site]) -> list[str]:
    """The components of these sites, in the order of the set-up."""
    return list(dict.fromkeys(name for web in found for name in web.get("flows", {})))


def sizes(found: Sequence[Site], component: str) -> list[float]:
    """The sizes of a component's connections in all runs, in order."""
    return sorted(size for web in found for size in web.get("flows", {}).get(component, {}).get("bytes", ()))


def middle(ordered: Sequence[float], share: float = 0.5) -> float:
    """The value that so large a share of all is below."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def pictures(saved: Saved, looks: Mapping[str, Look], cells: words.Cells) -> Iterator[Picture]:
    """The cumulative distributions of all components, with a line for each arm."""
    runs_by_cell = by_cell(saved.runs)
    for cell, by_arm in sites(saved, looks).items():
        names = components([web for webs in by_arm.values() for web in webs])[:MOST_COMPONENTS]
        panels = [panel for name in names if (panel := _panel(name, by_arm, looks)).lines]
        if panels:
            title = arms.cell_title(runs_by_cell[cell], cells)
            drawn = draw.svg(distribution.distributions(panels, "bytes of a connection, both ways"))
            notes = "; ".join(f"{item.name}: {item.note}" for item in panels)
            yield Picture(f"flow-sizes-{cell + 1}", "web", f"Sizes of connections, {title}", f"{notes}.", drawn)


def _panel(component: str, by_arm: Sites, looks: Mapping[str, Look]) -> distribution.Panel:
    lines = [
        distribution.Line(rows.Row("", looks[arm].label, role=looks[arm].role), values)
        for arm, webs in by_arm.items()
        if (values := sizes(webs, component))
    ]
    medians = " / ".join(print_bytes(middle(line.values), DIGITS) for line in lines)
    return distribution.Panel(printable(component), f"median {medians}", lines)
