"""The page's section on a web site: CPU and connections by component, response times by operation and part."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.quantities import print_bytes, print_seconds
from framegauge.report.page.markup import section, table
from framegauge.report.pictures.material import Material
from framegauge.results import spools
from framegauge.results.spools import dig

__all__ = ["section_of"]

COMPONENTS_HEAD = (
    "comparison", "arm", "component", "CPU, mean", "largest", "smallest", "connections", "bytes, median", "90 %",
)  # fmt: skip
TIMES_HEAD = ("comparison", "arm", "operation or part", "count", "mean", "90 %")
DIGITS = 3

Web = Mapping[str, Any]


def section_of(material: Material) -> str:
    """The section; empty for a study without the workload web."""
    found = list(_runs(material))
    if not found:
        return ""
    key = (
        '<p class="soft">Medians over the runs of an arm; the largest and smallest share of a CPU are those of any '
        "second in any run. The bytes of a connection are those of both directions in a run. Parts are single "
        "requests; an operation is a page with all of its parts.</p>\n"
    )
    components = table("Components: CPU and connections", COMPONENTS_HEAD, _components(found))
    times = table("Response times by operation and by part", TIMES_HEAD, _times(found))
    return section("web", "The web site", key + components + times)


def _runs(material: Material) -> Iterator[tuple[tuple[str, str], list[Web]]]:
    """The results of the site by comparison and arm, of runs that count."""
    for cell in sorted({run.cell for run in material.saved.runs}):
        for arm, look in material.looks.items():
            mine = [run for run in material.saved.runs if (run.cell, run.arm) == (cell, arm) and not run.excluded]
            told = [dig(spools.record(material.saved.folder, run.number), "workload", "web") for run in mine]
            if webs := [each for each in told if each]:
                yield (material.title_of(cell), look.label), webs


def _components(found: Sequence[tuple[tuple[str, str], list[Web]]]) -> Iterator[list[str]]:
    for names, webs in found:
        for component in dict.fromkeys(name for web in webs for name in web.get("flows", {})):
            shares = [web["cpu"][component] for web in webs if component in web.get("cpu", {})]
            flows = [web["flows"][component] for web in webs if component in web["flows"]]
            sizes = sorted(size for each in flows for size in each.get("bytes", ()))
            cpu = ["-", "-", "-"]
            if shares:
                mean = statistics.median(each["mean"] for each in shares)
                most, least = max(each["most"] for each in shares), min(each["least"] for each in shares)
                cpu = [f"{100 * each:.1f} %" for each in (mean, most, least)]
            chosen = [print_bytes(_quantile(sizes, share), DIGITS) if sizes else "-" for share in (0.5, 0.9)]
            yield [*names, component, *cpu, f"{statistics.median(each['connections'] for each in flows):g}", *chosen]


def _times(found: Sequence[tuple[tuple[str, str], list[Web]]]) -> Iterator[list[str]]:
    for names, webs in found:
        for key, word in (("by_operation", ""), ("parts", "part: ")):
            for name in dict.fromkeys(name for web in webs for name in web.get(key, {})):
                times = [web[key][name] for web in webs if name in web.get(key, {})]
                mean, late = (
                    print_seconds(statistics.median(each[which] for each in times), DIGITS)
                    for which in ("mean_seconds", "p90_seconds")
                )
                yield [*names, word + name, str(sum(each["count"] for each in times)), mean, late]


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
