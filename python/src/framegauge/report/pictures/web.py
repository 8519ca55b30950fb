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
    found: dict[int, dict[str, Sequence[Site]]] = {}
    for cell, inside in by_cell(run for run in saved.runs if not run.excluded).items():
        for arm in looks:
            mine = [run for run in inside if run.arm == arm]
            told = [dig(spools.record(saved.folder, run), "workload", "web") for run in mine]
            if webs := [each for each in told if each]:
                found.setdefault(cell, {})[arm] = webs
    return found


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
    inside = by_cell(saved.runs)
    for cell, by_arm in sites(saved, looks).items():
        names = components([web for webs in by_arm.values() for web in webs])[:MOST_COMPONENTS]
        panels = [panel for name in names if (panel := _panel(name, by_arm, looks)).lines]
        if panels:
            title = arms.cell_title(inside[cell], cells)
            drawn = draw.svg(distribution.distributions(panels, "bytes of a connection, both ways"))
            said = "; ".join(f"{each.name}: {each.note}" for each in panels)
            yield Picture(f"flow-sizes-{cell + 1}", "web", f"Sizes of connections, {title}", f"{said}.", drawn)


def _panel(component: str, by_arm: Sites, looks: Mapping[str, Look]) -> distribution.Panel:
    lines = [
        distribution.Line(rows.Row("", looks[arm].label, role=looks[arm].role), found)
        for arm, webs in by_arm.items()
        if (found := sizes(webs, component))
    ]
    medians = " / ".join(print_bytes(middle(line.values), DIGITS) for line in lines)
    return distribution.Panel(printable(component), f"median {medians}", lines)
