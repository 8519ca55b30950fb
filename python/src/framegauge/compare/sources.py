"""One side of a comparison, read from disk: a folder of results, or of iperf3 or flent files; whole or a window."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from framegauge import foreign
from framegauge.compare import windows
from framegauge.compare.formats import flent, iperf3, others
from framegauge.compare.formats.samples import (
    MovedNothing,
    Sample,
    Side,
    Unreadable,
    as_number,
    load_json,
    one_line,
    set_key,
)  # fmt: skip
from framegauge.compare.windows import Window
from framegauge.errors import CorruptResults, InputError, StudyError
from framegauge.files import yaml as yaml_file
from framegauge.metrics import METRICS
from framegauge.printable import printable
from framegauge.results import journal as results
from framegauge.results.journal import Run, Saved
from framegauge.statistics.judge import Comparison
from framegauge.statistics.verdict import DIFFERENT, decide
from framegauge.summary import document as summary, judging
from framegauge.summary.caveats import seals_of

__all__ = ["read_side"]

MOST_FILES = 10_000
SUFFIXES: Mapping[str, tuple[tuple[str, ...], Callable[[str, bytes], list[Sample]]]] = {
    "iperf3": ((".json",), iperf3.parse),
    "flent": ((".flent.gz", ".flent.bz2", ".flent"), flent.parse),
}


def read_side(source: str) -> Side:
    """The runs of `source` (DIR or DIR@BEGIN..END); InputError if it cannot be read or has no runs."""
    folder, window = windows.split(source)
    if window is None or Path(source).is_dir():  # a folder's name may look like a window
        folder, window = source, None
    path = Path(folder)
    try:
        names = sorted(item.name for item in itertools.islice(path.iterdir(), MOST_FILES + 1))
    except NotADirectoryError:
        kind, advice = _of_another(path.parent, [path.name])
        raise InputError(
            f"{source}: found a file{kind}, expected a folder of them: one file for each run{advice}"
        ) from None
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror}), expected a folder of runs") from None
    if len(names) > MOST_FILES:
        raise InputError(f"{source}: found more than {MOST_FILES} files, expected at most {MOST_FILES}")
    is_study = "results.json" in names and ("study.yaml" in names or "runs.jsonl" in names)
    shown = printable(source)  # a folder's name may be no UTF-8
    side = _study(shown, path) if is_study else _files(shown, path, names)
    return side if window is None else _cut(side, window)


def _cut(side: Side, window: Window) -> Side:
    """The runs that began within the window."""
    if unknown := [sample.run for sample in side.samples if sample.began is None]:
        raise InputError(
            f"{side.source}: found no start time of run {unknown[0]}, expected one to select by a time window "
            f"(results folders have it since 0.1.0, iperf3 always, flent since format 3)"
        )
    moments = [sample.began for sample in side.samples if sample.began is not None]
    chosen = window.choose(moments)
    if not any(chosen):
        span = f"from {min(moments):%Y-%m-%d %H:%M:%S} to {max(moments):%Y-%m-%d %H:%M:%S} UTC" if moments else "none"
        raise InputError(f"{side.source}: found no run in that window, expected at least one: its runs began {span}")
    return replace(side, samples=list(itertools.compress(side.samples, chosen)))


def _files(source: str, path: Path, names: Sequence[str]) -> Side:
    """The runs in files of other tools; a file without a run counts as an excluded run, with the reason."""
    files_by_kind = {
        kind: [name for name in names if name.endswith(suffixes)] for kind, (suffixes, _) in SUFFIXES.items()
    }
    kinds = [kind for kind, file_names in files_by_kind.items() if file_names]
    if not kinds:
        expected = "a results folder, files of iperf3 -J (*.json) or of flent (*.flent.gz, *.flent.bz2, *.flent)"
        kind, advice = _of_another(path, names)
        if kind:
            raise InputError(f"{source}: found results{kind}, which are not compared, expected {expected}{advice}")
        raise InputError(f"{source}: found no files of runs, expected {expected}")
    if len(kinds) > 1:
        raise InputError(f"{source}: found files of iperf3 and of flent, expected files of one tool per folder")
    kind, samples = kinds[0], []
    for name in files_by_kind[kind]:
        try:
            samples += _file(path / name, kind)
        except Unreadable as error:
            samples.append(_failed(one_line(name), kind, error))
    samples.sort(key=lambda sample: (sample.began is None, sample.began or datetime.min.replace(tzinfo=UTC)))
    notes = [f"{sample.run}: {line}" for sample in samples for line in sample.notes]
    return Side(source, str(path.resolve()), kind, samples, notes=notes)


def _of_another(path: Path, names: Sequence[str]) -> tuple[str, str]:
    """The tool that one of these files is of, and what to do; empty if it is not known."""
    known = others.named(path, names)
    return ("", "") if known is None else (f" of {known[1]} ({one_line(known[0], 60)})", f"; {known[2]}")


def _failed(name: str, kind: str, error: Unreadable) -> Sample:
    conditions = error.conditions if isinstance(error, MovedNothing) else {}
    return Sample(
        name, kind, conditions, {}, excluded=[str(error)], lost=error.lost, moved_nothing=error.moved_nothing,
        cut_off=error.cut_off,
    )  # fmt: skip


def _file(path: Path, kind: str) -> list[Sample]:
    _, parse = SUFFIXES[kind]
    try:
        if not path.is_file():
            raise Unreadable("found no regular file, expected one")
        data = foreign.read(path)
    except foreign.TooLarge as error:
        raise Unreadable(str(error)) from None
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror}), expected a readable file") from None
    try:
        return parse(one_line(path.name), data)
    except Unreadable as error:
        known = others.tool(data[: others.MOST_HEAD]) if type(error) is Unreadable else None
        if known is None:
            raise
        raise Unreadable(f"found results of {known[0]}, which are not compared; {known[1]}") from None


def _study(source: str, path: Path) -> Side:
    try:
        saved = results.read(path)
        # In the order of cells, as in reports, because the order of the runs is random.
        runs = sorted(saved.runs, key=lambda run: (run.cell, run.number))
        samples = [_sample(run, saved.plan["treatment"], source) for run in runs]
        margins = {name: value for name, share in saved.plan["margins"].items() if (value := as_number(share))}
        doubts = _doubts(saved)
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror}), expected a results folder") from None
    notes = ["the last line of runs.jsonl is incomplete and was left out"] if saved.torn else []
    notes += seals_of(saved)
    facts, own = _facts(path, saved.plan), saved.plan.get("metrics", {})
    return Side(source, str(path.resolve()), "results", samples, margins, facts, doubts, notes, own)


def _sample(run: Run, treatment: str, source: str) -> Sample:
    """One run as a sample; metrics with impossible values are left out."""
    metrics = {name: value for name, figure in run.metrics.items() if (value := as_number(figure)) is not None}
    key = summary.factor_key(treatment)
    factors = {"workload": run.workload, **run.conditions, key: run.level}
    if wrong := [name for name, value in factors.items() if not _can_be_printed({name: value})]:
        what = f"{one_line(wrong[0])} {one_line(factors[wrong[0]])}"
        raise CorruptResults(f"{source}: run {run.number}: found {what}, expected text that can be printed")
    return Sample(
        str(run.number),
        run.workload,
        run.conditions,
        {name: value for name, value in metrics.items() if name in METRICS},
        level={key: run.level},
        unit=f"block {run.block}",
        slot=f"{run.cell} {run.arm} {run.block}",
        excluded=[one_line(reason) for reason in run.excluded],
        moved_nothing=run.failure is not None,
        began=_began(run),
    )


def _can_be_printed(value: object) -> bool:
    if isinstance(value, dict):
        return all(_can_be_printed(name) and _can_be_printed(inner) for name, inner in value.items())
    return not isinstance(value, str) or value == one_line(value)


def _began(run: Run) -> datetime | None:
    if not run.began:
        return None
    moment = datetime.fromisoformat(run.began)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _doubts(saved: Saved) -> dict[tuple[str, str], str]:
    """The metrics whose A/A control differed from the baseline within the study, with the warning."""
    return {
        (set_key(comparison.workload, comparison.conditions), comparison.metric): comparison.warnings[0]
        for comparison in judging.compare(saved)
        if comparison.role == "control" and comparison.judged is not None and _differs(comparison)
    }


def _differs(control: Comparison) -> bool:
    assert control.judged is not None
    verdict = decide(control.judged, control.margin, METRICS[control.metric].higher_is_better)
    return verdict in DIFFERENT


def _facts(path: Path, plan: Mapping[str, Any]) -> dict[str, str]:
    """Facts that hold for every run, from the folder; those that differ between two sides are shown."""
    facts = {"question": plan.get("question"), "framegauge": plan.get("framegauge"), "scope": plan.get("scope")}
    try:
        agent = load_json(foreign.read(path / "environment.json"), "the environment of a study").get("agent")
    except (OSError, ValueError, Unreadable):
        agent = None
    if isinstance(agent, dict):
        facts |= {"kernel": agent.get("kernel"), "CPUs": agent.get("cpus"), "agent": agent.get("agent")}
    try:
        study_file = path / "study.yaml"
        study = yaml_file.data(yaml_file.read(study_file, "a study file"), str(study_file))
    except StudyError:
        study = None
    for section in ("testbed", "sysctls"):
        # Settings of the testbed that are not conditions of a run: buffers, the shaper, socket limits.
        if isinstance(study, dict) and isinstance(study.get(section), dict):
            facts |= dict(_settings(study[section], section))
    return {name: one_line(value) for name, value in facts.items() if value is not None}


def _settings(settings: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    for key, value in settings.items():
        for name, inner in value.items() if isinstance(value, dict) else [("", value)]:
            yield f"{where}.{key}.{name}".rstrip("."), one_line(inner)
