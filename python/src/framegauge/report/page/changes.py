"""The page's section on changes made while runs were under way."""

from __future__ import annotations

from framegauge.report.page import switch
from framegauge.report.page.markup import figure, section, table
from framegauge.report.pictures.changes import changes
from framegauge.report.pictures.material import Material

__all__ = ["section_of"]

HEAD = ("change", "requested at", "made, over all runs")


def section_of(material: Material) -> str:
    """The section: goodput around the moments, and when each change was made; empty without changes."""
    all_changes = changes(material.saved, material.saved.runs)
    rows = [
        [
            change.label,
            f"{change.asked_seconds:g} s",
            f"{min(change.made_seconds):.3f} to {max(change.made_seconds):.3f} s",
        ]
        for change in all_changes
    ]
    if not rows:
        return ""
    key = (
        '<p class="soft">The vertical lines mark changes, made in every run of every arm. Each curve is the median of '
        "an arm’s runs, its band the middle half of them; goodput counts acknowledged bytes. A connection keeps the "
        "MSS that it was opened with, so a raised MTU affects new connections only. Hosts with changes at the same "
        "moment are changed one after the other.</p>\n"
    )
    drawn = "".join(map(figure, material.of("changes")))
    figures = f'<div class="grid">\n{drawn}</div>\n' if drawn else ""
    moments = table("When changes were made, from the start of the measurement", HEAD, rows)
    return section(
        "changes", "What was changed while runs were under way", key + figures + moments + switch.tables(material)
    )
