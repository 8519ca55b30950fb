"""How a study was made, for readers who doubt or repeat it: design, environment, proof, exclusions.

Rows and lines of plain text, which the page and the Markdown both show.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from framegauge.report import evidence
from framegauge.report.pictures.material import Material
from framegauge.results.journal import Run
from framegauge.summary import intervals, trial, units, words
from framegauge.summary.intervals import CORRECTED, shown

__all__ = [
    "PROOF_HEAD", "common", "design", "environment", "excluded", "proof", "repeat", "verdict_head", "verdicts",
    "warnings",
]  # fmt: skip

PROOF_HEAD = ("arm", "runs proven", "MTU of the hosts", "MSS in SYNs", "mean segment payload", "congestion control")


def common(material: Material) -> str:
    """What all rows of the table of verdicts, and all charts, have in common."""
    return words.of_all(material.summary["verdicts"])


def verdict_head(material: Material) -> list[str]:
    """The head of the table of verdicts; cells and levels are named only if there are several."""
    verdicts = material.summary["verdicts"]
    return [
        *(["comparison"] if any(map(material.cells.of, verdicts)) else []), "metric", "baseline", "treatment",
        *([""] if any(words.arms(verdicts)) else []), "change", CORRECTED,
        f"difference, its own interval ({intervals.label(material.summary)})", "margin", "runs", "verdict",
    ]  # fmt: skip


def verdicts(material: Material) -> Iterator[list[str]]:
    """The rows of the table of verdicts; numbered marks refer to `warnings`."""
    notes = warnings(material)
    entries = material.summary["verdicts"]
    has_cells = any(map(material.cells.of, entries))
    for entry, arm in zip(entries, words.arms(entries), strict=True):
        interval, unit = shown(entry), entry["unit"]
        marks = " ".join(f"[{number}]" for number in sorted({notes.index(line) + 1 for line in words.notes(entry)}))
        yield [
            *([material.cells.of(entry)] if has_cells else []),
            words.metric(entry["metric"]),
            words.quantity(entry["baseline"]["estimate"], unit),
            *([arm] if arm else []),
            words.quantity(entry["treatment"]["estimate"], unit),
            "-" if entry["ratio"] is None else words.change(entry["ratio"], interval),
            "-" if entry["ratio"] is None else words.change_interval(interval),
            _difference(entry),
            "-" if entry.get("margin") is None else words.margin(entry["margin"]),
            str(entry["runs"]),
            f"{words.verdict(entry)} {marks}".rstrip(),
        ]


def _difference(verdict: Mapping[str, Any]) -> str:
    """The difference on the metric's own scale; older summaries have none."""
    difference = verdict.get("difference")
    return "-" if difference is None else units.difference(difference["mean"], difference["ci95"], verdict["unit"])


def warnings(material: Material) -> list[str]:
    """All warnings on verdicts, each once, in order of first occurrence."""
    return list(dict.fromkeys(line for verdict in material.summary["verdicts"] for line in words.notes(verdict)))


def design(material: Material) -> list[str]:
    """How the runs were ordered and compared."""
    runs, plan, settings = material.saved.runs, material.saved.plan, material.settings
    cells = len({run.cell for run in runs})
    blocks = 1 + max((run.block for run in runs), default=-1)
    lines = [
        f"{blocks} randomised complete block{'' if blocks == 1 else 's'} of {cells} x {len(material.looks)} runs: "
        "every arm once in every cell",
        "The order of runs within each block was drawn"
        + (f" with seed {settings['seed']}" if "seed" in settings else "")
        + ("; the arms of a cell take turns in it" if settings.get("order") == "balanced" else ""),
        f"{len(runs)} runs, {_lasted(material)}; {plan.get('planned_runs', 'an unknown number')} were planned"
        + ("" if evidence.is_simulated(material.summary) else ", and excluded runs are repeated"),
        "Compared by block: the geometric mean of the ratios of treatment to baseline"
        + (" and its A/A control" if any(run.role == "control" for run in runs) else ""),
    ]
    if trial_run := material.summary.get("trial"):
        lines.append(trial.line(trial_run))
    lines += [*_network(settings.get("testbed")), *_tunings(settings.get("tunings"))]
    assumptions = [verdict.get("assumption") for verdict in material.summary["verdicts"]]
    return lines + [f"The intervals assume that {line}" for line in dict.fromkeys(assumptions) if line]


def _lasted(material: Material) -> str:
    """How long all runs together took, and on which hosts they were."""
    runs = material.saved.runs
    seconds = sum(run.seconds for run in runs)
    if evidence.is_simulated(material.summary):
        return f"{seconds:.3g} s of simulated time in all; the arms of a block have the same seed"
    return f"{seconds:.0f} s in all, " + (
        "some on hosts that earlier runs had used" if _shared(runs) else "each on fresh hosts"
    )


def _shared(runs: Sequence[Run]) -> bool:
    """Whether servers or data outlasted a run, and its hosts with them."""
    return any(run.readings.get("lasting_runs") for run in runs)


def _network(testbed: Any) -> Iterator[str]:
    """Network settings that belong to the testbed and not to the conditions of a comparison, as the study file states
    them."""
    if not isinstance(testbed, Mapping):
        return
    if isinstance(testbed.get("shared_buffer"), Mapping):
        yield f"Shared buffer of each switch: {_said(testbed['shared_buffer'])}"
    for key, title in (("links", "Link with its own settings"), ("background", "Background load")):
        entries = testbed.get(key)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping):
                rest = {name: value for name, value in entry.items() if name not in ("from", "to")}
                yield f"{title}: {entry.get('from')} to {entry.get('to')}: {_said(rest)}"


def _tunings(tunings: Any) -> Iterator[str]:
    """What each set of host settings has, as the study file states it; results name only the sets."""
    for name, tuning in tunings.items() if isinstance(tunings, Mapping) else ():
        if isinstance(tuning, Mapping):
            sysctls = tuning.get("sysctls")
            windows = {
                f"{key.replace('_', ' ')} of": f"{tuning[key]} segments"
                for key in ("initial_window", "initial_receive_window", "slow_start_threshold")
                if key in tuning
            }
            yield f"Tuning {name}: {_said({**windows, **(sysctls if isinstance(sysctls, Mapping) else {})})}"


def _said(settings: Mapping[str, Any]) -> str:
    """Keys and values in one line: "loss 0.1 %, queue codel (ecn on)"."""
    return ", ".join(f"{name} {_value(value)}" for name, value in settings.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):  # a discipline with its parameters
        return ", ".join(
            f"{kind} ({_said(inner)})" if isinstance(inner, Mapping) else str(kind) for kind, inner in value.items()
        )
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def environment(material: Material) -> list[list[str]]:
    """Name and value of everything that was the same for all runs: versions, kernel, machine."""
    machine, plan = material.environment, material.saved.plan
    agent: Mapping[str, Any] = machine["agent"] if isinstance(machine.get("agent"), dict) else {}
    rows: list[tuple[str, Any]] = [
        ("framegauge", plan.get("framegauge")),
        *((f"agent: {name}", value) for name, value in agent.items() if name not in ("pid", "user_id")),
        ("Python", machine.get("python")),
        ("platform", machine.get("platform")),
        ("scope", plan["scope"]),
    ]
    lacks = machine.get("degraded") or ()
    rows += [(f"lacking: {lack['name']}", f"{lack['found']}; needed for {lack['needed_for']}") for lack in lacks]
    return [[name, str(value)] for name, value in rows if value is not None]


def proof(material: Material) -> Iterator[list[str]]:
    """The proof of each arm's treatment, from the runs that count."""
    for name, look in material.looks.items():
        readings = [reading for reading in material.readings if reading.run.arm == name]
        attempts = sum(run.arm == name for run in material.saved.runs)
        payloads = [reading.segment_payload_bytes for reading in readings if reading.segment_payload_bytes is not None]
        payload_range = f"{min(payloads):.0f} to {max(payloads):.0f} B" if payloads else "-"
        yield [
            look.label,
            f"{len(readings)} of {attempts}",
            _several(value for reading in readings for value in reading.mtus),
            _several(value for reading in readings for value in reading.mss_bytes),
            payload_range,
            _several(value for reading in readings for value in reading.congestion_control),
        ]


def _several(values: Iterator[Any]) -> str:
    return ", ".join(map(str, sorted(set(values)))) or "-"


def excluded(material: Material) -> Iterator[list[str]]:
    """Every excluded run with all its reasons."""
    for run in material.summary["excluded"]:
        cell = material.cells.name(run)
        look = material.looks.get(run["arm"])
        arm = look.label if look is not None else run["arm"]
        yield [str(run["run"]), str(run["block"] + 1), cell, arm, "; ".join(run["reasons"])]


def repeat(material: Material) -> str:
    """The command that runs the same study again, from the directory that holds the results folder."""
    folder = material.saved.folder
    place = Path(folder.name) if folder.is_absolute() else folder  # an absolute path belongs to one machine
    if isinstance(simulation := material.saved.plan.get("simulation"), Mapping):
        return shlex.join(["framegauge", "simulate", str(place / "study.yaml"), *_options(simulation)])
    seed: Sequence[str] = ["--seed", str(material.settings["seed"])] if "seed" in material.settings else []
    return shlex.join(["framegauge", "study", str(place / "study.yaml"), *seed])


def _options(simulation: Mapping[str, Any]) -> Iterator[str]:
    """The options of a simulation that its study file does not have."""
    sweep = simulation.get("sweep")
    for key, values in sweep.items() if isinstance(sweep, Mapping) else ():
        if isinstance(values, list):
            yield from ("--sweep", f"{key}={','.join(map(str, values))}")
