"""The tables of what a change of MTUs did to a workload that went on."""

from __future__ import annotations

from collections.abc import Sequence

from framegauge.report import switch
from framegauge.report.page.markup import Cell, table
from framegauge.report.pictures.material import Material

__all__ = ["tables"]


def tables(material: Material) -> str:
    """The tables; empty without a workload that tells of a switch."""
    around: list[Sequence[Cell]] = [*switch.around(material)]
    if not around:
        return ""
    changed: list[list[Cell]] = [
        [*row[:-1], (row[-1], f"v {row[-1].replace(' ', '-')}")] for row in switch.ratios(material)
    ]
    return (
        f'<p class="soft">{switch.KEY}</p>\n'
        + table("Before and after the switch", switch.AROUND_HEAD, around)
        + table("What the switch changed", switch.RATIO_HEAD, changed)
    )
