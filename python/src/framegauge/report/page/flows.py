"""The page's sections on flows to one receiver: the goodput of each, and consecutive drops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.printable import printable
from framegauge.report.page.markup import Cell, figure, section, table, text
from framegauge.report.pictures.flows import dropped_note, ports_name, shown, title_of
from framegauge.report.pictures.material import Material
from framegauge.summary import contention, units, words
from framegauge.summary.drop_runs import BINS

__all__ = ["drops", "flows"]

MOST_OPEN = 4  # with more cells and receivers than this, each has to be opened

Entry = Mapping[str, Any]


def flows(material: Material) -> str:
    """The section on goodput, retransmits and timeouts by flow, or by input port."""
    entries = shown(material.summary)
    more = len(material.summary.get("flows", ())) - len(entries)
    key = (
        '<p class="soft">Shown where three or more flows go to one host. Each mark is one run, the stroke their mean, '
        "the thick line its 95&nbsp;% interval. More than eight flows are grouped by their input port at the receiver’s"
        " switch: a mark is then the mean of its flows, and the thin line goes from the lowest to the highest.</p>\n"
    )
    rest = f"<p>{more} more are in summary.json.</p>\n" if more else ""
    parts = [
        (entry, _figures(material, "flows", number) + _goodput(material, entry) + _index(material, entry))
        for number, entry in enumerate(entries, 1)
    ]
    return section("flows", "Flows", key + _folded(material, parts) + rest) if parts else ""


def drops(material: Material) -> str:
    """The section on the lengths of runs of drops, with charts of the longest."""
    parts = [
        (entry, _figures(material, "drops", number) + _lengths(material, entry))
        for number, entry in enumerate(shown(material.summary), 1)
        if any(arm["drops"] for arm in entry["arms"])
    ]
    if not parts:
        return ""
    key = (
        '<p class="soft">A run of drops: frames of one input port that a port dropped, with no frame of that input '
        "port taken in between. The charts show, for each arm, the longest run of drops in the run nearest to its "
        "median: ticks are frames that arrived, where that is on record, crosses those that were dropped.</p>\n"
    )
    return section("drops", "Consecutive drops", key + _folded(material, parts) + f"<p>{text(_cause(material))}</p>\n")


def _cause(material: Material) -> str:
    """The note that this section describes and names no cause; differences between arms are left to the verdicts."""
    differs = any(
        entry["verdict"] in ("better", "worse") and entry["metric"] in contention.SHARED and not words.is_control(entry)
        for entry in material.summary["verdicts"]
    )
    if differs:
        return "This section only describes; the verdicts state how the arms differ."
    return "This section only describes. To show a cause, compare with an arm that removes it."


def _folded(material: Material, parts: Sequence[tuple[Entry, str]]) -> str:
    many = len(parts) > MOST_OPEN
    return "".join(
        f"<details><summary><h3>{text(title_of(entry, material.cells))}</h3></summary>\n{inside}</details>\n"
        if many
        else f"<h3>{text(title_of(entry, material.cells))}</h3>\n{inside}"
        for entry, inside in parts
    )


def _figures(material: Material, kind: str, number: int) -> str:
    """The charts of one entry."""
    pictures = [picture for picture in material.of(kind) if picture.name.split("-")[1] == str(number)]
    drawn = "".join(map(figure, pictures))
    notes = "".join(f"<p>{text(picture.text)}</p>\n" for picture in pictures if picture.name.startswith("blackout"))
    return f'<div class="grid">\n{drawn}</div>\n{notes}' if drawn else ""


def _goodput(material: Material, entry: Entry) -> str:
    grouped = entry["grouped"]
    arm_rows = [(arm, row) for arm in entry["arms"] for row in arm["rows"]]
    names = dict.fromkeys(contention.row_name(row, grouped) for _, row in arm_rows)
    body = [
        list(_row(name, material.looks[arm["arm"]].label, arm, row, grouped))
        for name in names
        for arm, row in arm_rows
        if contention.row_name(row, grouped) == name
    ]
    members = ("lowest flow", "highest flow") if grouped else ()
    head = (
        "flows", "arm", "goodput per flow" if grouped else "goodput", *members, "of the fair share",
        "retransmits per flow and run", "timeouts per flow and run",
    )  # fmt: skip
    return table(f"Goodput by flow, {title_of(entry, material.cells)}", head, body)


def _row(name: str, label: str, arm: Entry, row: Entry, grouped: bool) -> Iterator[Cell]:
    yield printable(name)
    yield label
    yield units.rates(row["goodput_bits_per_second"], row["interval_bits_per_second"])
    if grouped:
        yield units.rates(row["lowest_bits_per_second"], None)
        yield units.rates(row["highest_bits_per_second"], None)
    yield "-" if row["share"] is None else f"{100 * row['share']:.3g} %"
    yield "-" if row["retransmits"] is None else _count(row["retransmits"])
    yield _timeouts(arm, row)


def _timeouts(arm: Entry, row: Entry) -> str:
    """The timeouts of the flow, or those of its host if that has other flows, too."""
    by_host = arm["timeouts_by_host"]
    if row["timeouts"] is not None:
        return _count(row["timeouts"])
    known = [host for host in row["senders"] if host in by_host]
    if len(known) != 1 or len(row["senders"]) != 1:
        return "-"
    return f"{_count(by_host[known[0]])} for all flows of {known[0]}"


def _count(value: float) -> str:
    """A mean of counts, as text."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _index(material: Material, entry: Entry) -> str:
    body = [
        [
            material.looks[arm["arm"]].label,
            str(arm["runs"]),
            "-" if arm["fairness"] is None else f"{arm['fairness']:.3f}",
            _interval(arm["fairness_interval"]),
            units.rates(arm["slowest_bits_per_second"], arm["slowest_interval"]),
            units.rates(arm["fastest_bits_per_second"], arm["fastest_interval"]),
        ]
        for arm in entry["arms"]
    ]
    head = ("arm", "runs", "Jain’s index", "95 % interval", "slowest flow of a run", "fastest flow of a run")
    return table(f"Jain’s index by arm, {title_of(entry, material.cells)}", head, body)


def _interval(interval: Sequence[float] | None) -> str:
    return "-" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def _lengths(material: Material, entry: Entry) -> str:
    body = [
        [
            printable(f"{drops['port']} by {ports_name(drops)}"),
            material.looks[arm["arm"]].label,
            dropped_note(drops),
            str(drops["longest"]),
            *(f"{100 * drops['share_by_length'][name]:.0f} %" for name, _, _ in BINS),
        ]
        for arm in entry["arms"]
        for drops in arm["drops"]
    ]
    head = ("port, input port", "arm", "frames", "longest", *(f"in runs of {name}" for name, _, _ in BINS))
    return table(f"Dropped frames by the length of their run, {title_of(entry, material.cells)}", head, body)
