"""Sweeps: values of a study file's keys that are tried in turn, and the study at each combination of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framegauge.errors import InputError, StudyError
from framegauge.files import yaml as yaml_file
from framegauge.files.distributions import Beside
from framegauge.metrics import METRICS
from framegauge.study import file as study_file
from framegauge.study.model import Study
from framegauge.study.simulated import OF_CPUS

__all__ = ["Axis", "Point", "Source", "axes", "points", "simulated"]

ROOTS = ("testbed", "factors", "workloads", "sysctls", "tunings")
OTHERWISE = {"seed": "--seed for the first, --seeds for their number", "blocks": "--seeds for their number"}
LEAST_BLOCKS = 2  # of a study file; a simulation may have one
SIMULATED = ("rack", "fake", "simulator")  # kinds of testbeds whose studies can be simulated
MOST_POINTS = 10_000
EXAMPLE = "KEY=VALUE,VALUE..., such as testbed.link.buffer=64KiB,256KiB"
_LINE = re.compile(r":[0-9]+: ")


@dataclass(frozen=True)
class Axis:
    """A key of the study file, as a path with dots, and the values that it takes, as they are written."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """The text of a study file, its name, how many seeds are asked for, if not as many as it has blocks, the files that
    it names, and the first seed, if not the file's."""

    text: str
    name: str
    seeds: int | None = None
    beside: Beside = field(default=None, compare=False)  # type: ignore[assignment]
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.beside is None:
            object.__setattr__(self, "beside", Beside(Path(self.name).parent))


@dataclass(frozen=True)
class Point:
    """The study at one combination of the values; `at` has them by key."""

    study: Study
    at: Mapping[str, str] = field(default_factory=dict)


def axes(texts: Sequence[str]) -> list[Axis]:
    """The axes that `--sweep` gives; InputError for one that makes no sense."""
    all_axes: list[Axis] = []
    for text in texts:
        key, equals, rest = text.partition("=")
        values = tuple(item.strip() for item in rest.split(","))
        root = key.partition(".")[0]
        if not equals or not key or "" in values:
            raise InputError(f'--sweep: found "{text}", expected {EXAMPLE}')
        if root not in ROOTS or key in (root, "testbed.kind"):
            expected = OTHERWISE.get(key, f"a key below {', '.join(ROOTS)}, such as testbed.link.buffer")
            raise InputError(f'--sweep: found "{key}", expected {expected}')
        if key in [item.key for item in all_axes]:
            raise InputError(f'--sweep: found "{key}" twice, expected all its values at once')
        if len(set(values)) < len(values):
            twice = next(value for value in values if values.count(value) > 1)
            raise InputError(f'--sweep {key}: found "{twice}" twice, expected every value once')
        all_axes.append(Axis(key, values))
    return all_axes


def simulated(source: Source) -> tuple[Study, list[str]]:
    """The study of a file, to be simulated, and what of the file was left out; StudyError if it cannot be."""
    notes: list[str] = []
    return _parsed(source, lambda data: _alter(data, source, notes)), notes


def _parsed(source: Source, alter: Callable[[dict[str, Any]], None]) -> Study:
    study = study_file.parse(source.text, source.name, alter, source.beside)
    return study if source.seeds is None else study.model_copy(update={"blocks": source.seeds})


def points(source: Source, given: Sequence[Axis]) -> list[Point]:
    """The study at every combination of values, the last axis fastest; StudyError in one line for the first that
    cannot be."""
    count = 1
    for axis in given:
        count *= len(axis.values)
    if count > MOST_POINTS:
        raise InputError(f"--sweep: found {count} combinations, expected at most {MOST_POINTS}")
    base, _ = simulated(source)
    swept = f"factors.{base.treatment}"
    if any(axis.key == swept or axis.key.startswith(f"{swept}.") for axis in given):
        raise InputError(
            f"--sweep: found {swept}, the treatment, whose levels are compared anyway: expected another key"
        )
    if not given:
        return [Point(base)]
    keys = [axis.key for axis in given]
    return [
        _at(source, dict(zip(keys, values, strict=True))) for values in itertools.product(*(a.values for a in given))
    ]


def _at(source: Source, at: Mapping[str, str]) -> Point:
    text = ", ".join(f"{key}={value}" for key, value in at.items())

    def alter(data: dict[str, Any]) -> None:
        _alter(data, source, [])
        for key, value in at.items():
            _set(data, key, _read(key, value))

    try:
        return Point(_parsed(source, alter), at)
    except StudyError as error:
        # Its line is that of the file, in which the value is not.
        message = error.problems[0].removeprefix(source.name)
        raise StudyError([f"--sweep {text}: {_LINE.sub('', message, count=1)}"]) from None


def _set(data: dict[str, Any], key: str, value: object) -> None:
    """Sets the value at a path; StudyError if nothing can be there."""
    place: Any = data
    path = _path(key)
    for depth, part in enumerate(path):
        is_last = depth == len(path) - 1
        index: Any = part
        if isinstance(place, list):
            if not part.isdecimal() or int(part) >= len(place):
                raise StudyError([f'{key}: found "{part}", expected a number from 0 to {len(place) - 1}'])
            index = int(part)
        elif not isinstance(place, dict):
            raise StudyError([f"{'.'.join(path[:depth])}: found {place!r}, expected a mapping that has {part}"])
        if is_last:
            place[index] = value
            return
        if not isinstance(place, list) and place.get(part) is None:
            place[part] = {}
        place = place[index]


def _path(key: str) -> list[str]:
    """The parts of a key: a sysctl's name has dots of its own."""
    head, dot, name = key.partition("sysctls.")
    return (
        [*head.rstrip(".").split("."), "sysctls", name]
        if dot and head
        else ["sysctls", name]
        if dot
        else key.split(".")
    )


def _read(key: str, value: str) -> object:
    """A value as YAML has it; sysctls are text."""
    if "sysctls" in _path(key):
        return value
    try:
        return yaml_file.data(value, key)
    except StudyError:
        raise StudyError([f'{key}: found "{value}", expected a value as in a study file']) from None


def _alter(data: dict[str, Any], source: Source, notes: list[str]) -> None:
    """Turns the values of a file for another testbed into those of a simulation."""
    bed = data.get("testbed")
    if isinstance(bed, dict) and bed.get("kind") in SIMULATED:
        if bed["kind"] != "simulator":
            _simulate(data, bed, notes)
    elif isinstance(bed, dict) and bed.get("kind") in ("ssh", "veth"):
        expected = "rack or simulator: only networks that are described can be simulated"
        raise StudyError([f"{source.name}: testbed.kind: found {bed['kind']}, expected {expected}"])
    if source.seeds is not None:
        data |= {"blocks": max(source.seeds, LEAST_BLOCKS), "stop": "blocks"}
    if source.seed is not None:
        data["seed"] = source.seed


def _simulate(data: dict[str, Any], bed: dict[str, Any], notes: list[str]) -> None:
    bed["kind"] = "simulator"
    bed.pop("fake", None)
    data.pop("control", None)
    meters = data.get("meters")
    if isinstance(meters, dict):
        notes += [f"meters.{name}" for name in ("watch", "diagnose") if meters.pop(name, None)]
    margins = data.get("margins")
    if isinstance(margins, dict):
        costs = [name for name in margins if name in METRICS and METRICS[name].unit.endswith(OF_CPUS)]
        for name in costs:
            del margins[name]
            notes.append(f"margins.{name}")
        if not margins:
            del data["margins"]
        if isinstance(data.get("estimator"), dict):
            data["estimator"] = {name: kind for name, kind in data["estimator"].items() if name not in costs}
        if isinstance(data.get("primary"), list):
            data["primary"] = [name for name in data["primary"] if name not in costs]
