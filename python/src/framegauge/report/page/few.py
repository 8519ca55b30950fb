"""The page's section on what few flows to one receiver get beside many."""

from __future__ import annotations

from framegauge.report.page.markup import figure, items, section, table, text
from framegauge.report.pictures.material import Material
from framegauge.summary import few, units
from framegauge.summary.intervals import CORRECTED

__all__ = ["section_of"]


def section_of(material: Material) -> str:
    """Words, the share at each level with its verdict, and what each group carried over time."""
    lines = list(few.lines(material.summary))
    if not lines:
        return ""
    margin = material.summary["few"][0]["margin"]
    key = (
        '<p class="soft">The few come to the receiver’s last switch by the input port with the fewest flows, the many '
        "by that with the most, unless the study names the few. The share is the mean goodput per flow of the few over "
        f"that of the many, within a run; its {text(CORRECTED)} is over the blocks. "
        f"Less, more: that interval lies wholly beyond a factor of {1 + margin:g}; fair: wholly inside. "
        "All levels together mislead with at most "
        f"{text(units.error(0.05))} probability. Over time: goodput per flow as acknowledged, the mean over runs, with "
        "the range of the runs.</p>\n"
    )
    drawn = "".join(map(figure, material.of("few")))
    inside = items(lines) + key + (f'<div class="grid">\n{drawn}</div>\n' if drawn else "")
    return section(
        "few", "Few flows beside many",
        inside + table("The share of the few, by level", few.HEAD, [list(row) for row in few.rows(material.summary)]),
    )  # fmt: skip
