"""The page's sections on flows and ports: maps of two factors, completion times, distances, the busiest port."""

from __future__ import annotations

from framegauge.report.page.markup import figure, items, section
from framegauge.report.pictures.material import Material
from framegauge.report.pictures.ports import MOST_CELLS

__all__ = ["flow_times", "maps", "ports"]


def maps(material: Material) -> str:
    """The section on combinations of two factors; nothing where runs are no evidence."""
    if not material.summary["faithful"]:
        return ""
    key = (
        '<p class="soft">Each cell is one comparison, at one level of two of the factors that were varied. Its number '
        "is the change, the word below it the verdict; “same” is no practical difference. Blue is better, orange "
        "worse; the deepest shade is the largest change of the map in either direction. Beside it is a map of the "
        "values that the changes are from, the largest of them in the deepest shade.</p>\n"
    )
    return _section(material, "maps", "maps", "Two factors at a time", key)


def flow_times(material: Material) -> str:
    """The section on completion times and distances."""
    key = (
        '<p class="soft">Completion times are those of everything that flows completed, such as transfers, or requests '
        "with their answers, from the beginning to the last byte, in all runs of an arm together (20 at most). A line "
        "shows the share that took so long or less; grey lines are 0, 50 and 100 %. Medians are in the order of the "
        "arms; n is the number of each. Hops are the links between the two hosts of a flow: each mark is the mean over "
        "the flows of one run, the stroke the mean of all runs.</p>\n"
    )
    return _section(material, "flow-times", "completions", "Completion times and distances", key)


def ports(material: Material) -> str:
    """The section on the port that dropped most, or marked most if none did."""
    key = (
        '<p class="soft">The port that dropped most frames, or marked most if none were dropped, in the run of each '
        "arm that is nearest to its median. The area is the longest queue within each step of time. The bars below it "
        "are the frames of that step: those marked, in a row of their own if there are any, and in the last row those "
        "dropped. The worst burst is the one of most drops without a pause of 500 us. Runs of drops are frames of one "
        "input port that were dropped with none of it taken in between, here of all runs. Shown for the first "
        f"{MOST_CELLS} comparisons in which frames were dropped or marked.</p>\n"
    )
    return _section(material, "ports", "ports", "The busiest port", key)


def _section(material: Material, kind: str, name: str, title: str, key: str) -> str:
    charts = material.of(kind)
    notes = "".join(items(chart.text.removesuffix(".").split("; ")) for chart in charts if chart.name == "completions")
    drawn = f'<div class="grid">\n{"".join(map(figure, charts))}</div>\n'
    return section(name, title, key + drawn + notes) if charts else ""
