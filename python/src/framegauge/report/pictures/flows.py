"""The charts of flows to one receiver, each with an equivalent text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.plots import draw, histogram, queue, rows, spread
from framegauge.printable import printable
from framegauge.report.pictures import series
from framegauge.report.pictures.arms import Look
from framegauge.report.pictures.charts import Picture
from framegauge.results.journal import Saved
from framegauge.summary import blackout, contention, units, words
from framegauge.summary.blackout import Blackout

__all__ = ["MOST_SHOWN", "dropped_note", "pictures", "ports_name", "shown", "title_of"]

MOST_SHOWN = 12  # receivers and cells on a page; the summary has all
MOST_INPUTS = 3  # other input ports with a row each; more are shown as one row
BLACKED_OUT, BESIDE = "first", "baseline"  # roles of input ports

Entry = Mapping[str, Any]


def shown(summary: Mapping[str, Any]) -> Sequence[Entry]:
    """The entries that the page shows."""
    entries: Sequence[Entry] = summary.get("flows", ())
    return entries[:MOST_SHOWN]


def title_of(entry: Entry, cells: words.Cells) -> str:
    """What tells its cell from the others, and its receiver."""
    return printable(", ".join(filter(None, (cells.of(entry), f"to {entry['receiver']}"))))


def pictures(saved: Saved, summary: Mapping[str, Any], looks: Mapping[str, Look]) -> Iterator[Picture]:
    """For every entry shown: goodput by flow, lengths of runs of drops, and the longest run of drops by arm."""
    cells = words.Cells(summary["verdicts"])
    for number, entry in enumerate(shown(summary), 1):
        title = title_of(entry, cells)
        yield _flows(number, entry, looks, title)
        yield from _drops(number, entry, looks, title)
        yield from _blackouts(saved, number, entry, looks, title)


def _flows(number: int, entry: Entry, looks: Mapping[str, Look], where: str) -> Picture:
    arm_rows = [(arm, row) for arm in entry["arms"] for row in arm["rows"]]
    factor, unit = units.unit_scale("bits_per_second", max(max(row["by_run_bits_per_second"]) for _, row in arm_rows))
    names = dict.fromkeys(contention.row_name(row, entry["grouped"]) for _, row in arm_rows)
    spreads = [
        _spread(name, looks[arm["arm"]], row, factor)
        for name in names
        for arm, row in arm_rows
        if contention.row_name(row, entry["grouped"]) == name
    ]
    text = "; ".join(f"{item.row.heading}, {item.row.label}: {item.row.note}" for item in spreads)
    quantity = "goodput per flow" if entry["grouped"] else "goodput"
    drawn = draw.svg(spread.spread(spreads, f"{quantity} ({unit}), mean over runs"))
    title = f"{quantity[0].upper()}{quantity[1:]}, {where}"
    return Picture(f"flows-{number}", "flows", title, f"{text}.", drawn)


def _spread(name: str, look: Look, row: Mapping[str, Any], factor: float) -> spread.Spread:
    interval = row["interval_bits_per_second"]
    note = units.rates(row["goodput_bits_per_second"], interval)
    members = [row["lowest_bits_per_second"] / factor, row["highest_bits_per_second"] / factor]
    return spread.Spread(
        rows.Row(printable(name), look.label, note, look.role),
        look.shape,
        [value / factor for value in row["by_run_bits_per_second"]],
        row["goodput_bits_per_second"] / factor,
        None if interval is None else [value / factor for value in interval],
        members if row["flows"] > 1 else None,
    )


def ports_name(drops: Mapping[str, Any]) -> str:
    """The input port of a row's frames, or the number of input ports."""
    inputs = drops["input_ports"]
    return str(inputs[0]) if len(inputs) == 1 else f"{len(inputs)} input ports"


def dropped_note(drops: Mapping[str, Any]) -> str:
    """The number of dropped frames, and their share."""
    if drops["frames"] is None:
        return f"{drops['dropped_frames']:,} dropped"
    return f"{drops['dropped_frames']:,} dropped, {words.shares([drops['dropped_frames'] / drops['frames']])[0]}"


def _drops(number: int, entry: Entry, looks: Mapping[str, Look], where: str) -> Iterator[Picture]:
    arm_drops = [(arm, drops) for arm in entry["arms"] for drops in arm["drops"] if drops["port"] in entry["ports"]]
    if not arm_drops:
        return
    charts = [
        histogram.Histogram(
            rows.Row(
                printable(f"by {name}"), looks[arm["arm"]].label, dropped_note(drops), looks[arm["arm"]].role
            ),
            drops["share_by_length"],
        )
        for name in dict.fromkeys(ports_name(drops) for _, drops in arm_drops)
        for arm, drops in arm_drops
        if ports_name(drops) == name
    ]  # fmt: skip
    text = "; ".join(f"{item.row.heading}, {item.row.label}: {item.row.note}; {_bins(item.shares)}" for item in charts)
    drawn = draw.svg(histogram.histograms(charts, "frames dropped in a row; height: share of the dropped frames"))
    yield Picture(f"drops-{number}", "drops", f"Consecutive drops, {where}", f"{text}.", drawn)


def _bins(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{100 * share:.0f} % in runs of {name}" for name, share in shares.items() if share > 0)


def _blackouts(saved: Saved, number: int, entry: Entry, looks: Mapping[str, Look], where: str) -> Iterator[Picture]:
    """One chart per arm: the longest run of drops in the run nearest to the arm's median."""
    for place, (arm, look) in enumerate(looks.items(), 1):
        run = series.representative([run for run in saved.runs if run.arm == arm and run.cell == entry["cell"]])
        burst = None if run is None else blackout.find(saved.folder, run, entry["receiver"])
        if burst is not None:
            title = f"Longest run of drops, {look.label}, {where}"
            yield Picture(f"blackout-{number}-{place}", "drops", title, _said(burst, look.label), _drawn(burst))


def _said(burst: Blackout, arm: str) -> str:
    """The chart in words: when it was, how many frames of which input port, and the fate of the others' frames."""
    seconds = burst.end_seconds - burst.begin_seconds
    text = (
        f"{arm}, run {burst.run.number}, {burst.begin_seconds:.6f} s after its start, at {burst.port}: {burst.length} "
        f"frames that came by {burst.input_port} were dropped in a row, within {seconds * 1e6:,.0f} us."
    )
    for names in _together(list(burst.lost)):
        label = names[0] if len(names) == 1 else f"{len(names)} other input ports"
        lost = sum(burst.lost[name] for name in names)
        if burst.taken is None:
            text += f" Meanwhile, {lost} of those by {label} were dropped; how many were taken in is not on record."
        else:
            taken = sum(burst.taken[name] for name in names)
            text += f" Meanwhile, of those by {label}, {taken} were taken in and {lost} dropped."
    return text


def _together(names: list[str]) -> list[list[str]]:
    """The names one by one, or all in one group if there are many."""
    return [[name] for name in names] if len(names) <= MOST_INPUTS else [names]


def _drawn(burst: Blackout) -> str:
    begin, end = (1e6 * seconds for seconds in (-burst.around_seconds, burst.around_seconds))
    most = max(amount for _, amount in burst.held)
    known = "" if burst.whole else ", known from drops only"
    top = rows.Row("", printable(f"queue at {burst.port}{known}"), f"up to {most / 1e3:.3g} kB", "first")
    drawn = queue.queue(
        top,
        [(1e6 * time, amount) for time, amount in burst.held],
        burst.whole,
        list(_arrivals(burst)),
        (begin, end + 1e6 * (burst.end_seconds - burst.begin_seconds)),
        "time from the first of these drops (us)",
    )
    return draw.svg(drawn)


def _arrivals(burst: Blackout) -> Iterator[queue.Arrivals]:
    """The input port whose frames were dropped, then the others: together, if there are many."""
    for names in ([burst.input_port], *_together(list(burst.lost))):
        is_own = names == [burst.input_port]
        lost = burst.length if is_own else sum(burst.lost[name] for name in names)
        taken = "" if is_own or burst.taken is None else f", {sum(burst.taken[name] for name in names)} taken in"
        label = f"by {names[0]}" if len(names) == 1 else f"by {len(names)} other input ports"
        row = rows.Row(
            "",
            printable(label),
            f"{lost} dropped{'' if is_own else ' meanwhile'}{taken}",
            BLACKED_OUT if is_own else BESIDE,
        )
        yield queue.Arrivals(row, _merged(burst.arrived, names), _merged(burst.dropped, names))


def _merged(times: Mapping[str, Sequence[float]], names: Sequence[str]) -> list[float]:
    """The times of several input ports in order, in microseconds."""
    return sorted(1e6 * time for name in names for time in times.get(name, ()))
