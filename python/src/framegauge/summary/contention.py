"""How flows to one receiver shared its link, by arm: means over runs, for summary.json (`flows`).

The figures describe and name no cause: a cause is shown by an arm that removes it.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.statistics.mean import Mean, jain, mean
from framegauge.summary import drop_runs, units, words
from framegauge.summary.drop_runs import DropRuns
from framegauge.summary.flows import Contention, Flow

__all__ = ["MOST_ROWS", "SHARED", "arm_name", "beside", "entries", "lines", "row_name"]

SHARED = ("fairness", "smallest_goodput", "share_of_few")  # metrics of how flows shared
MOST_ROWS = 8  # more flows than this are grouped by input port
_ORDER = {"baseline": 0, "control": 1}

Key = tuple[Any, ...]  # identifies a row in all runs of an arm
Members = list[tuple[Key, Flow]]


def entries(found: Sequence[Contention], factor: str) -> list[dict[str, Any]]:
    """One entry per cell and receiver, in the study's order; `factor` is the treatment's key."""
    places = list(
        dict.fromkeys(
            (contention.run.cell, contention.receiver) for contention in sorted(found, key=lambda item: item.run.cell)
        )
    )
    return [
        _entry([contention for contention in found if (contention.run.cell, contention.receiver) == place], factor)
        for place in places
    ]


def _entry(contentions: Sequence[Contention], factor: str) -> dict[str, Any]:
    first = contentions[0]
    count = max(len(contention.flows) for contention in contentions)
    names = dict.fromkeys(contention.run.arm for contention in sorted(contentions, key=_place))
    return {
        "cell": first.run.cell,
        "workload": first.run.workload,
        "conditions": dict(first.run.conditions),
        "receiver": first.receiver,
        "ports": list(first.ports),
        "flows": count,
        "grouped": count > MOST_ROWS,
        "arms": [
            _arm([contention for contention in contentions if contention.run.arm == name], factor, count > MOST_ROWS)
            for name in names
        ],
    }


def _place(contention: Contention) -> tuple[int, str]:
    return _ORDER.get(contention.run.role, 2), json.dumps(contention.run.level, sort_keys=True)


def _arm(contentions: Sequence[Contention], factor: str, grouped: bool) -> dict[str, Any]:
    run = contentions[0].run
    shared = [jain([flow.goodput_bits_per_second for flow in contention.flows]) for contention in contentions]
    indices = [index for index in shared if index is not None]
    share = mean(indices, 1 / max(len(contention.flows) for contention in contentions), 1.0) if indices else None
    slowest, fastest = (
        mean([extreme(flow.goodput_bits_per_second for flow in contention.flows) for contention in contentions], 0.0)
        for extreme in (min, max)
    )
    hosts = dict.fromkeys(host for contention in contentions for host in contention.host_timeouts)
    return {
        "arm": run.arm,
        "role": run.role,
        "levels": {factor: run.level},
        "runs": len(contentions),
        "fairness": None if share is None else share.mean,
        "fairness_interval": _interval(share),
        "slowest_bits_per_second": slowest.mean,
        "slowest_interval": _interval(slowest),
        "fastest_bits_per_second": fastest.mean,
        "fastest_interval": _interval(fastest),
        "rows": _rows(contentions, grouped),
        "timeouts_by_host": {
            host: statistics.fmean(
                contention.host_timeouts[host] for contention in contentions if host in contention.host_timeouts
            )
            for host in hosts
        },
        "drops": list(_drops(contentions)),
    }


def _interval(estimate: Mean | None) -> list[float] | None:
    return None if estimate is None or estimate.interval is None else list(estimate.interval)


def _rows(contentions: Sequence[Contention], grouped: bool) -> list[dict[str, Any]]:
    """One row per flow, or one per input port with the most flows first."""
    by_run: list[Members] = [
        [((flow.input_port,) if grouped else (flow.sender, flow.number), flow) for flow in contention.flows]
        for contention in contentions
    ]
    keys = list(dict.fromkeys(key for members in by_run for key, _ in members))
    rows = [_row(key, by_run, grouped) for key in keys]
    fair_rate = statistics.fmean(
        flow.goodput_bits_per_second for contention in contentions for flow in contention.flows
    )
    for row in rows:
        row["share"] = row["goodput_bits_per_second"] / fair_rate if fair_rate > 0 else None
    return sorted(rows, key=lambda row: -row["flows"]) if grouped else rows


def _row(key: Key, by_run: Sequence[Members], grouped: bool) -> dict[str, Any]:
    runs = [[flow for flow_key, flow in members if flow_key == key] for members in by_run]
    runs = [flows for flows in runs if flows]
    all_flows = [flow for flows in runs for flow in flows]
    rates: dict[tuple[str, int], list[float]] = {}
    for flow in all_flows:
        rates.setdefault((flow.sender, flow.number), []).append(flow.goodput_bits_per_second)
    flow_means = [statistics.fmean(values) for values in rates.values()]
    values = [statistics.fmean(flow.goodput_bits_per_second for flow in flows) for flows in runs]
    goodput = mean(values, 0.0)
    last_number = max((flow.number for members in by_run for _, flow in members if flow.sender == all_flows[0].sender))
    return {
        "senders": list(dict.fromkeys(flow.sender for flow in all_flows)),
        "number": all_flows[0].number if last_number > 1 and not grouped else None,
        "flows": len(rates),
        "input_port": all_flows[0].input_port,
        "goodput_bits_per_second": goodput.mean,
        "interval_bits_per_second": _interval(goodput),
        "by_run_bits_per_second": values,
        "lowest_bits_per_second": min(flow_means),
        "highest_bits_per_second": max(flow_means),
        "retransmits": _mean(flow.retransmits for flow in all_flows),
        "timeouts": _mean(flow.timeouts for flow in all_flows),
    }


def _mean(values: Iterator[int | None]) -> float | None:
    """The mean count per flow and run; None if any of them is unknown."""
    counts = list(values)
    known = [value for value in counts if value is not None]
    return statistics.fmean(known) if len(known) == len(counts) else None


def _drops(contentions: Sequence[Contention]) -> Iterator[dict[str, Any]]:
    """The drops over all runs of the arm: at the ports to the receiver by input port, at every other port in total."""
    ports = contentions[0].ports
    by_input: dict[tuple[str, str], list[DropRuns]] = {}
    for port_drops in (drops for contention in contentions for drops in contention.drops):
        by_input.setdefault((port_drops.port, port_drops.input_port), []).append(port_drops)
    for port in sorted({port for port, _ in by_input}, key=lambda port: (port not in ports, port)):
        inputs = {name: port_drops for (drop_port, name), port_drops in by_input.items() if drop_port == port}
        if port in ports and len(inputs) <= MOST_ROWS:
            for name in sorted(inputs):
                yield _dropped(port, [name], inputs[name])
        else:
            yield _dropped(
                port, sorted(inputs), [port_drops for input_drops in inputs.values() for port_drops in input_drops]
            )


def _dropped(port: str, inputs: list[str], drops_by_run: Sequence[DropRuns]) -> dict[str, Any]:
    """One entry. `share_by_length`: the share of dropped frames that were part of runs of each length."""
    run_lengths = [length for drops in drops_by_run for length in drops.lengths]
    frames = [drops.frames for drops in drops_by_run if drops.frames is not None]
    return {
        "port": port,
        "input_ports": inputs,
        "dropped_frames": sum(drops.dropped_frames for drops in drops_by_run),
        "frames": sum(frames) if len(frames) == len(drops_by_run) else None,
        "longest": max(run_lengths),
        "share_by_length": drop_runs.shares(run_lengths),
    }


def row_name(row: Mapping[str, Any], grouped: bool) -> str:
    """The name of a row by its flows: "h1", "h1 flow 2", "12 flows by s1>s2"."""
    if not grouped:
        return str(row["senders"][0]) + ("" if row["number"] is None else f" flow {row['number']}")
    who = str(row["senders"][0]) if row["flows"] == 1 else f"{row['flows']} flows"
    return who + ("" if row["input_port"] is None else f" by {row['input_port']}")


def arm_name(arm: Mapping[str, Any]) -> str:
    """The arm's level in words."""
    return words.levels(arm["levels"]) + (" (A/A)" if arm["role"] == "control" else "")


def beside(summary: Mapping[str, Any]) -> str:
    """What the flows to one host get in each arm, in a sentence; empty unless the study compares how they share.

    Of several cells it is about the one where an arm shares least evenly, be it the baseline or not: a treatment that
    starves a flow must not be passed over for a cell in which it does not.
    """
    is_compared = any(candidate["metric"] in SHARED for candidate in summary["verdicts"])
    candidates = [
        candidate
        for candidate in summary.get("flows", ())
        if candidate["arms"][0]["role"] == "baseline" and candidate["arms"][0]["fairness"] is not None
    ]
    if not (is_compared and candidates and summary["faithful"]):
        return ""
    entry = min(candidates, key=lambda candidate: min(map(_evenness, _told_arms(candidate))))
    arms = _told_arms(entry)
    clauses = [
        f"with {words.subject(arm['levels'])}{',' * (arm is arms[0])} {_gets(arm, entry, arm is arms[0])}"
        for arm in arms
    ]
    text = "; ".join(clauses)
    where = ", ".join(_place_of(summary, entry))
    worst = min(arms, key=_evenness)
    least = f", where {words.subject(worst['levels'])} shares least evenly" if len(candidates) > 1 else ""
    return f"{text[0].upper()}{text[1:]}" + (f" ({where}{least})." if where else ".")


def _told_arms(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [arm for arm in entry["arms"] if arm["role"] != "control"]


def _evenness(arm: Mapping[str, Any]) -> float:
    """What the slowest flow gets of what the fastest gets: the two figures that are told, so that they bear it out."""
    slowest, fastest = (arm[f"{end}_bits_per_second"] for end in ("slowest", "fastest"))
    return float(slowest / fastest) if fastest else 1.0


def _gets(arm: Mapping[str, Any], entry: Mapping[str, Any], is_full: bool) -> str:
    """What the few flows get beside the many, or the slowest beside the fastest; `is_full`: with the intervals, too."""
    rows = arm["rows"]
    if len(rows) == 2 and rows[1]["flows"] < rows[0]["flows"]:
        many, few = rows
        values = [(row["goodput_bits_per_second"], row["interval_bits_per_second"]) for row in (few, many)]
        who = row_name(few, True) if few["flows"] == 1 else f"each of {row_name(few, True)}"
        names = (who, f"for each of {row_name(many, True)}")
    else:
        values = [(arm[f"{end}_bits_per_second"], arm[f"{end}_interval"]) for end in ("slowest", "fastest")]
        names = (f"the slowest of {entry['flows']} flows", "for the fastest")
    few_text, many_text = (units.rates(value, interval if is_full else None) for value, interval in values)
    return f"{names[0]} gets {few_text} beside {many_text} {names[1]}" if is_full else f"{few_text} beside {many_text}"


def _place_of(summary: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[str]:
    """What tells an entry from the others: its cell, its receiver."""
    flow_entries = summary["flows"]
    if cell := words.Cells(summary["verdicts"] or flow_entries).of(entry):
        yield cell
    if len({flow_entry["receiver"] for flow_entry in flow_entries}) > 1:
        yield f"to {entry['receiver']}"


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """One line per arm but the A/A control: the goodput per flow by input port, or the slowest and the fastest flow."""
    for entry in summary.get("flows", ()):
        where = "".join(f"{part}, " for part in _place_of(summary, entry))
        for arm in entry["arms"]:
            if arm["role"] != "control":
                text = ", ".join(_told(entry, arm))
                index = "" if arm["fairness"] is None else f"; Jain {arm['fairness']:.2f}"
                yield f"{where}{arm_name(arm)}: {text}{index}"


def _told(entry: Mapping[str, Any], arm: Mapping[str, Any]) -> Iterator[str]:
    rows = arm["rows"]
    if len(rows) > 2:
        ends = [units.rates(arm[f"{end}_bits_per_second"], arm[f"{end}_interval"]) for end in ("slowest", "fastest")]
        yield f"of {entry['flows']} flows per run the slowest {ends[0]}, the fastest {ends[1]}"
        return
    for row in rows:
        what = " per flow" if row["flows"] > 1 else ""
        rate = units.rates(row["goodput_bits_per_second"], row["interval_bits_per_second"], what)
        yield f"{row_name(row, entry['grouped'])} {rate}"
