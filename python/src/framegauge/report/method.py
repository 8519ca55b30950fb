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
    found = material.summary["verdicts"]
    several = any(map(material.cells.of, found))
    for each, arm in zip(found, words.arms(found), strict=True):
        interval, unit = shown(each), each["unit"]
        marks = " ".join(f"[{number}]" for number in sorted({notes.index(line) + 1 for line in words.notes(each)}))
        yield [
            *([material.cells.of(each)] if several else []),
            words.metric(each["metric"]),
            words.quantity(each["baseline"]["estimate"], unit),
            *([arm] if arm else []),
            words.quantity(each["treatment"]["estimate"], unit),
            "-" if each["ratio"] is None else words.change(each["ratio"], interval),
            "-" if each["ratio"] is None else words.change_interval(interval),
            _difference(each),
            "-" if each.get("margin") is None else words.margin(each["margin"]),
            str(each["runs"]),
            f"{words.verdict(each)} {marks}".rstrip(),
        ]


def _difference(verdict: Mapping[str, Any]) -> str:
    """The difference on the metric's own scale; older summaries have none."""
    found = verdict.get("difference")
    return "-" if found is None else units.difference(found["mean"], found["ci95"], verdict["unit"])


def warnings(material: Material) -> list[str]:
    """All warnings on verdicts, each once, in order of first occurrence."""
    return list(dict.fromkeys(line for each in material.summary["verdicts"] for line in words.notes(each)))


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
    if tried := material.summary.get("trial"):
        lines.append(trial.line(tried))
    lines += [*_network(settings.get("testbed")), *_tunings(settings.get("tunings"))]
    assumptions = [each.get("assumption") for each in material.summary["verdicts"]]
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


def _network(bed: Any) -> Iterator[str]:
    """Network settings that belong to the testbed and not to the conditions of a comparison, as the study file states
    them."""
    if not isinstance(bed, Mapping):
        return
    if isinstance(bed.get("shared_buffer"), Mapping):
        yield f"Shared buffer of each switch: {_said(bed['shared_buffer'])}"
    for key, title in (("links", "Link with its own settings"), ("background", "Background load")):
        entries = bed.get(key)
        for each in entries if isinstance(entries, list) else ():
            if isinstance(each, Mapping):
                rest = {name: value for name, value in each.items() if name not in ("from", "to")}
                yield f"{title}: {each.get('from')} to {each.get('to')}: {_said(rest)}"


def _tunings(found: Any) -> Iterator[str]:
    """What each set of host settings has, as the study file states it; results name only the sets."""
    for name, given in found.items() if isinstance(found, Mapping) else ():
        if isinstance(given, Mapping):
            sysctls = given.get("sysctls")
            windows = {
                f"{key.replace('_', ' ')} of": f"{given[key]} segments"
                for key in ("initial_window", "initial_receive_window", "slow_start_threshold")
                if key in given
            }
            yield f"Tuning {name}: {_said({**windows, **(sysctls if isinstance(sysctls, Mapping) else {})})}"


def _said(found: Mapping[str, Any]) -> str:
    """Keys and values in one line: "loss 0.1 %, queue codel (ecn on)"."""
    return ", ".join(f"{name} {_value(value)}" for name, value in found.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):  # a discipline with its parameters
        return ", ".join(
            f"{kind} ({_said(inner)})" if isinstance(inner, Mapping) else str(kind) for kind, inner in value.items()
        )
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def environment(material: Material) -> list[list[str]]:
    """Name and value of everything that was the same for all runs: versions, kernel, machine."""
    found, plan = material.environment, material.saved.plan
    agent: Mapping[str, Any] = found["agent"] if isinstance(found.get("agent"), dict) else {}
    rows: list[tuple[str, Any]] = [
        ("framegauge", plan.get("framegauge")),
        *((f"agent: {name}", value) for name, value in agent.items() if name not in ("pid", "user_id")),
        ("Python", found.get("python")),
        ("platform", found.get("platform")),
        ("scope", plan["scope"]),
    ]
    lacks = found.get("degraded") or ()
    rows += [(f"lacking: {each['name']}", f"{each['found']}; needed for {each['needed_for']}") for each in lacks]
    return [[name, str(value)] for name, value in rows if value is not None]


def proof(material: Material) -> Iterator[list[str]]:
    """The proof of each arm's treatment, from the runs that count."""
    for name, look in material.looks.items():
        mine = [each for each in material.readings if each.run.arm == name]
        tried = sum(run.arm == name for run in material.saved.runs)
        payloads = [each.segment_payload_bytes for each in mine if each.segment_payload_bytes is not None]
        said = f"{min(payloads):.0f} to {max(payloads):.0f} B" if payloads else "-"
        yield [
            look.label,
            f"{len(mine)} of {tried}",
            _several(value for each in mine for value in each.mtus),
            _several(value for each in mine for value in each.mss_bytes),
            said,
            _several(value for each in mine for value in each.congestion_control),
        ]


def _several(values: Iterator[Any]) -> str:
    return ", ".join(map(str, sorted(set(values)))) or "-"


def excluded(material: Material) -> Iterator[list[str]]:
    """Every excluded run with all its reasons."""
    for run in material.summary["excluded"]:
        where = material.cells.name(run)
        look = material.looks.get(run["arm"])
        arm = look.label if look is not None else run["arm"]
        yield [str(run["run"]), str(run["block"] + 1), where, arm, "; ".join(run["reasons"])]


def repeat(material: Material) -> str:
    """The command that runs the same study again, from the directory that holds the results folder."""
    folder = material.saved.folder
    place = Path(folder.name) if folder.is_absolute() else folder  # an absolute path belongs to one machine
    if isinstance(asked := material.saved.plan.get("simulation"), Mapping):
        return shlex.join(["framegauge", "simulate", str(place / "study.yaml"), *_options(asked)])
    seed: Sequence[str] = ["--seed", str(material.settings["seed"])] if "seed" in material.settings else []
    return shlex.join(["framegauge", "study", str(place / "study.yaml"), *seed])


def _options(asked: Mapping[str, Any]) -> Iterator[str]:
    """The options of a simulation that its study file does not have."""
    sweep = asked.get("sweep")
    for key, values in sweep.items() if isinstance(sweep, Mapping) else ():
        if isinstance(values, list):
            yield from ("--sweep", f"{key}={','.join(map(str, values))}")
