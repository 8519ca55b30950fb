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
    found: Sequence[Entry] = summary.get("flows", ())
    return found[:MOST_SHOWN]


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
    every = [(arm, row) for arm in entry["arms"] for row in arm["rows"]]
    factor, unit = units.unit_scale("bits_per_second", max(max(row["by_run_bits_per_second"]) for _, row in every))
    names = dict.fromkeys(contention.row_name(row, entry["grouped"]) for _, row in every)
    found = [
        _spread(name, looks[arm["arm"]], row, factor)
        for name in names
        for arm, row in every
        if contention.row_name(row, entry["grouped"]) == name
    ]
    text = "; ".join(f"{each.row.heading}, {each.row.label}: {each.row.note}" for each in found)
    what = "goodput per flow" if entry["grouped"] else "goodput"
    drawn = draw.svg(spread.spread(found, f"{what} ({unit}), mean over runs"))
    title = f"{what[0].upper()}{what[1:]}, {where}"
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
    every = [(arm, drops) for arm in entry["arms"] for drops in arm["drops"] if drops["port"] in entry["ports"]]
    if not every:
        return
    found = [
        histogram.Histogram(
            rows.Row(
                printable(f"by {name}"), looks[arm["arm"]].label, dropped_note(drops), looks[arm["arm"]].role
            ),
            drops["share_by_length"],
        )
        for name in dict.fromkeys(ports_name(drops) for _, drops in every)
        for arm, drops in every
        if ports_name(drops) == name
    ]  # fmt: skip
    text = "; ".join(f"{each.row.heading}, {each.row.label}: {each.row.note}; {_bins(each.shares)}" for each in found)
    drawn = draw.svg(histogram.histograms(found, "frames dropped in a row; height: share of the dropped frames"))
    yield Picture(f"drops-{number}", "drops", f"Consecutive drops, {where}", f"{text}.", drawn)


def _bins(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{100 * share:.0f} % in runs of {name}" for name, share in shares.items() if share > 0)


def _blackouts(saved: Saved, number: int, entry: Entry, looks: Mapping[str, Look], where: str) -> Iterator[Picture]:
    """One chart per arm: the longest run of drops in the run nearest to the arm's median."""
    for place, (arm, look) in enumerate(looks.items(), 1):
        run = series.representative([run for run in saved.runs if run.arm == arm and run.cell == entry["cell"]])
        found = None if run is None else blackout.find(saved.folder, run, entry["receiver"])
        if found is not None:
            title = f"Longest run of drops, {look.label}, {where}"
            yield Picture(f"blackout-{number}-{place}", "drops", title, _said(found, look.label), _drawn(found))


def _said(found: Blackout, arm: str) -> str:
    """The chart in words: when it was, how many frames of which input port, and the fate of the others' frames."""
    seconds = found.end_seconds - found.begin_seconds
    said = (
        f"{arm}, run {found.run.number}, {found.begin_seconds:.6f} s after its start, at {found.port}: {found.length} "
        f"frames that came by {found.input_port} were dropped in a row, within {seconds * 1e6:,.0f} us."
    )
    for names in _together(list(found.lost)):
        label = names[0] if len(names) == 1 else f"{len(names)} other input ports"
        lost = sum(found.lost[name] for name in names)
        if found.taken is None:
            said += f" Meanwhile, {lost} of those by {label} were dropped; how many were taken in is not on record."
        else:
            taken = sum(found.taken[name] for name in names)
            said += f" Meanwhile, of those by {label}, {taken} were taken in and {lost} dropped."
    return said


def _together(names: list[str]) -> list[list[str]]:
    """The names one by one, or all in one group if there are many."""
    return [[name] for name in names] if len(names) <= MOST_INPUTS else [names]


def _drawn(found: Blackout) -> str:
    begin, end = (1e6 * each for each in (-found.around_seconds, found.around_seconds))
    most = max(amount for _, amount in found.held)
    known = "" if found.whole else ", known from drops only"
    top = rows.Row("", printable(f"queue at {found.port}{known}"), f"up to {most / 1e3:.3g} kB", "first")
    drawn = queue.queue(
        top,
        [(1e6 * time, amount) for time, amount in found.held],
        found.whole,
        list(_arrivals(found)),
        (begin, end + 1e6 * (found.end_seconds - found.begin_seconds)),
        "time from the first of these drops (us)",
    )
    return draw.svg(drawn)


def _arrivals(found: Blackout) -> Iterator[queue.Arrivals]:
    """The input port whose frames were dropped, then the others: together, if there are many."""
    for names in ([found.input_port], *_together(list(found.lost))):
        mine = names == [found.input_port]
        lost = found.length if mine else sum(found.lost[name] for name in names)
        taken = "" if mine or found.taken is None else f", {sum(found.taken[name] for name in names)} taken in"
        label = f"by {names[0]}" if len(names) == 1 else f"by {len(names)} other input ports"
        row = rows.Row(
            "",
            printable(label),
            f"{lost} dropped{'' if mine else ' meanwhile'}{taken}",
            BLACKED_OUT if mine else BESIDE,
        )
        yield queue.Arrivals(row, _merged(found.arrived, names), _merged(found.dropped, names))


def _merged(times: Mapping[str, Sequence[float]], names: Sequence[str]) -> list[float]:
    """The times of several input ports in order, in microseconds."""
    return sorted(1e6 * time for name in names for time in times.get(name, ()))
