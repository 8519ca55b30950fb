"""The page's section on a web site: CPU and connections by component, response times by operation and part."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.quantities import print_bytes, print_seconds
from framegauge.report.page.markup import figure, section, table
from framegauge.report.pictures.material import Material
from framegauge.report.pictures.web import DIGITS, Site, components, middle, sites, sizes
from framegauge.summary.units import figure as number

__all__ = ["section_of"]

COMPONENTS_HEAD = (
    "comparison", "component", "arm", "CPU, mean", "largest", "smallest", "connections", "bytes, median", "90 %",
)  # fmt: skip
TIMES_HEAD = ("comparison", "operation or part", "arm", "count", "mean", "90 %")
STEPS_HEAD = ("comparison", "users", "arm", "runs", "operations per second", "nearest to its limit", "limits held in")

Found = Sequence[tuple[str, Mapping[str, Sequence[Site]]]]  # by comparison and arm


def section_of(material: Material) -> str:
    """The section; empty for a study without the workload web."""
    comparisons = [
        (material.title_of(cell), {material.looks[arm].label: webs for arm, webs in by_arm.items()})
        for cell, by_arm in sites(material.saved, material.looks).items()
    ]
    if not comparisons:
        return ""
    key = (
        '<p class="soft">Medians over the runs of an arm; the largest and smallest share of a CPU are those of any '
        "second in any run. The bytes of a connection are those of both directions in a run. Parts are single "
        "requests; an operation is a page with all of its parts.</p>\n"
    )
    drawn = "".join(map(figure, material.of("web")))
    charts = (
        '<p class="soft">A line shows the share of a component’s connections that carried so many bytes or fewer. It '
        "begins with those that carried none; the grey lines are 0, 50 and 100 %. Medians are in the order of arms. "
        "Logarithmic axis.</p>\n"
        f'<div class="grid">\n{drawn}</div>\n'
        if drawn
        else ""
    )
    steps = table("Steps until the site was saturated", STEPS_HEAD, _steps(comparisons))
    parts = table("Components: CPU and connections", COMPONENTS_HEAD, _components(comparisons))
    times = table("Response times by operation and by part", TIMES_HEAD, _times(comparisons))
    return section("web", "The web site", key + steps + parts + charts + times)


def _all(by_arm: Mapping[str, Sequence[Site]]) -> list[Site]:
    return [web for webs in by_arm.values() for web in webs]


def _steps(comparisons: Found) -> Iterator[list[str]]:
    """A row for each number of users that runs of an arm have tried."""
    for comparison, by_arm in comparisons:
        for users in sorted({step["users"] for web in _all(by_arm) for step in web.get("steps", ())}):
            for arm, webs in by_arm.items():
                steps = [step for web in webs for step in web.get("steps", ()) if step["users"] == users]
                if steps:
                    rate = statistics.median(step["operations_per_second"] for step in steps)
                    held = sum(not step.get("beyond") for step in steps)
                    counts = str(len(steps)), number(rate)
                    yield [comparison, str(users), arm, *counts, _nearest(steps), f"{held} of {len(steps)}"]


def _nearest(steps: Sequence[Mapping[str, Any]]) -> str:
    """The operation that is nearest to its limit, or furthest beyond: its time, the median of runs, and the limit."""
    times: dict[tuple[str, float], list[float]] = {}
    for step in steps:
        for name, entry in step.get("judged", {}).items():
            times.setdefault((name, entry["limit_seconds"]), []).append(entry["found_seconds"])
    if not times:
        return "-"
    (name, limit), seconds = max(times.items(), key=lambda entry: statistics.median(entry[1]) / entry[0][1])
    return f"{name}: {print_seconds(statistics.median(seconds), DIGITS)} of {print_seconds(limit, DIGITS)}"


def _components(comparisons: Found) -> Iterator[list[str]]:
    for comparison, by_arm in comparisons:
        for component in components(_all(by_arm)):
            for arm, webs in by_arm.items():
                flows = [web["flows"][component] for web in webs if component in web.get("flows", {})]
                if flows:
                    count = f"{statistics.median(flow['connections'] for flow in flows):g}"
                    yield [comparison, component, arm, *_shares(webs, component), count, *_sizes(webs, component)]


def _shares(webs: Sequence[Site], component: str) -> list[str]:
    """The shares of a CPU: mean, largest, smallest."""
    shares = [web["cpu"][component] for web in webs if component in web.get("cpu", {})]
    if not shares:
        return ["-", "-", "-"]
    mean = statistics.median(share["mean"] for share in shares)
    most, least = max(share["most"] for share in shares), min(share["least"] for share in shares)
    return [f"{100 * share:.1f} %" for share in (mean, most, least)]


def _sizes(webs: Sequence[Site], component: str) -> list[str]:
    ordered = sizes(webs, component)
    return [print_bytes(middle(ordered, share), DIGITS) if ordered else "-" for share in (0.5, 0.9)]


def _times(comparisons: Found) -> Iterator[list[str]]:
    for comparison, by_arm in comparisons:
        for key, prefix in (("by_operation", ""), ("parts", "part: ")):
            for name in dict.fromkeys(name for web in _all(by_arm) for name in web.get(key, {})):
                for arm, webs in by_arm.items():
                    if times := [web[key][name] for web in webs if name in web.get(key, {})]:
                        count = str(sum(timing["count"] for timing in times))
                        yield [comparison, prefix + name, arm, count, *_medians(times)]


def _medians(times: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        print_seconds(statistics.median(timing[key] for timing in times), DIGITS)
        for key in ("mean_seconds", "p90_seconds")
    ]
