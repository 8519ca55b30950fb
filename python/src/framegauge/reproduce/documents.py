"""A document whose figures are run again: every published figure as data, and what answers it.

A document is a folder with `document.yaml` and its study files. Those that come with framegauge are in `published/`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StrictFloat, StrictInt, StrictStr, model_validator

from framegauge.errors import InputError, StudyError
from framegauge.files import yaml as yaml_file
from framegauge.files.types import Model, Problem, Share, nearest
from framegauge.shipped import places

__all__ = [
    "FILE", "Arm", "Document", "Drops", "Figure", "Loaded", "Range", "Reading", "StudyFile", "Wire", "answer", "bounds",
    "counts", "load", "named", "shipped",
]  # fmt: skip

FILE = "document.yaml"
Text = Annotated[StrictStr, Field(min_length=1)]
# Names of folders and files follow from these: none leads out of the results.
Name = Annotated[StrictStr, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
Number = StrictInt | StrictFloat
# The least and the most that a published figure with its rounding means; null: no bound.
Range = Annotated[list[Number | None], Field(min_length=2, max_length=2)]
_DIRECTIONS: Mapping[str, tuple[float, float]] = {"less": (0.0, 1.0), "fair": (1.0, 1.0), "more": (1.0, math.inf)}
Engine = Literal["rack", "simulator"]
Direction = Literal["less", "fair", "more"]


class StudyFile(Model):
    """A study of the document: its file beside it (NAME.yaml), where it can run, and what it needs of the machine.

    `requires` are files of the kernel and what they must say, such as a module's parameter. `by_hand`: why only those
    who name the study, or one of its figures, run it. `seeds`: of each simulation.
    """

    file: Text | None = None
    testbeds: list[Engine] = Field(default=["rack", "simulator"], min_length=1)
    requires: dict[str, str] = Field(default_factory=dict)
    by_hand: Text | None = None
    seeds: StrictInt = Field(default=30, ge=1)


class Drops(Model):
    """Which drops a figure counts: the share of those in runs of `least` to `most` drops in a row at one input port.

    `of` the port by which the few come, or of the few beside that of all others.
    """

    of: Literal["few", "few beside many"]
    least: StrictInt
    most: StrictInt | None = None


class Reading(Model):
    """Where a figure stands in a study's summary: the comparison of `level` with the baseline, at conditions `where`.

    What `where` leaves out are the first levels of what the study varies. `than`: the figure is how many times the
    change at `where` is that at these conditions. `component`: it is that of this part of a web site (`web`: all its
    web servers), and its metric `cpu`, of which the change counts, or `flow_bytes`, the median size of its connections;
    here all conditions count that `where` leaves open, each run beside the one at its own.
    """

    study: Text
    metric: Text = "goodput"
    level: Any = None
    treatment: Text | None = None
    where: dict[str, Any] = Field(default_factory=dict)
    than: dict[str, Any] | None = None
    component: Text | None = None
    drops: Drops | None = None


class Arm(Model):
    """A candidate cause: a reading that differs from the figure's in this alone; `level`: another one of the study."""

    name: Text
    study: Text
    metric: Text | None = None
    level: Any = None
    where: dict[str, Any] = Field(default_factory=dict)


class Wire(Model):
    """A figure of frame arithmetic, which no machine can change: `framegauge wire` with these values.

    `value` names what is taken of the answer. `over`: the figure is how many times that of these values.
    """

    value: Literal["inner_mtu", "frames_per_second", "packets"]
    mtu: StrictInt
    encapsulations: list[Text] = Field(default_factory=list)
    goodput_bits_per_second: StrictInt | None = None
    datagram: StrictInt | None = None
    medium: Literal["ethernet", "fddi", "atm"] = "ethernet"
    over: Wire | None = None


class Figure(Model):
    """One published figure.

    `published` is what the document says, in its words and numbers. What that means for ours is one of `ratio` (of
    treatment and baseline), `share` (of the few beside the many: a direction, or a range) and `value` (of `wire`); with
    none of them a document asks without an answer, and ours is the first.
    `not_carried`: why this machine cannot answer it, and where it is answered instead. `simulated`: what is read where
    it is simulated, if that is another study than on the rack.
    """

    id: Name
    place: Text
    case: Text
    quantity: Text
    published: Text
    note: Text | None = None
    ratio: Range | None = None
    share: Direction | Range | None = None
    value: Range | None = None
    read: Reading | None = None
    simulated: Reading | None = None
    wire: Wire | None = None
    not_carried: Text | None = None
    arms: list[Text] = Field(default_factory=list)

    def reading(self, engine: str) -> Reading | None:
        """What is read on a testbed."""
        return self.simulated if engine == "simulator" and self.simulated is not None else self.read

    @property
    def studies(self) -> list[str]:
        """The studies that answer it."""
        return [reading.study for reading in (self.read, self.simulated) if reading is not None]

    @property
    def is_open(self) -> bool:
        """Whether the document asks it without an answer."""
        return self.read is not None and self.ratio is None and self.share is None and self.value is None

    @model_validator(mode="after")
    def _is_whole(self) -> Figure:
        means = [name for name in ("ratio", "share", "value") if getattr(self, name) is not None]
        answers = [name for name in ("read", "wire", "not_carried") if getattr(self, name) is not None]
        if len(answers) != 1:
            answer_names = " and ".join(answers) or "none of them"
            raise Problem(
                (), answer_names, "one of read, wire and not_carried: what answers the figure, or why nothing does"
            )
        if self.simulated is not None and self.read is None:
            raise Problem(("simulated",), "simulated", "no such key without read, which it is instead of")
        fits: Mapping[str, Sequence[list[str]]] = {
            "read": [["ratio"], ["share"], ["value"], []], "wire": [["value"]], "not_carried": [[]],
        }  # fmt: skip
        if means not in fits[answers[0]]:
            expected = {
                "read": "at most one of ratio, share and value",
                "wire": "value",
                "not_carried": "none of ratio, share and value",
            }
            raise Problem((answers[0],), " and ".join(means) or "nothing", expected[answers[0]])
        for name in means:
            _check_range(name, getattr(self, name))
        return self


class Document(Model):
    """A document: what it is, how it measured, its studies, arms that several figures share, and its figures.

    `spread`: by how much a published ratio may be off beyond its rounding, where the document does not state how much
    its runs differed. Every range of ratios is as much wider at both ends.
    """

    document: Name
    title: Text
    source: Text
    set_up: Text
    spread: Share = 0.0
    not_same: list[Text] = Field(default_factory=list)
    conclusion: list[Text] = Field(default_factory=list)
    studies: dict[Name, StudyFile] = Field(default_factory=dict)
    arms: dict[str, list[Arm]] = Field(default_factory=dict)
    figures: list[Figure] = Field(min_length=1)


def _check_range(name: str, limits: object) -> None:
    if not isinstance(limits, list):
        return
    low, high = bounds(limits)
    if not low <= high or math.isnan(low + high):
        raise Problem((name,), limits, "the least and the most that the figure means, in this order")


def bounds(given: Sequence[float | None]) -> tuple[float, float]:
    """The least and the most of a range; 0 and infinity where it has no bound."""
    low, high = given
    return 0.0 if low is None else float(low), math.inf if high is None else float(high)


@dataclass(frozen=True)
class Loaded:
    """A document and the folder of its studies."""

    document: Document
    folder: Path

    @property
    def name(self) -> str:
        """As people call it."""
        return self.document.document

    @property
    def file_itself(self) -> Path:
        """The document's file."""
        return self.folder / FILE

    def published(self, figure: Figure) -> tuple[float, float]:
        """The least and the most that a figure means, with the spread of the document's ratios."""
        if isinstance(figure.share, str):
            return _DIRECTIONS[figure.share]
        low, high = bounds(figure.ratio or figure.share or figure.value or [None, None])
        spread = 0.0 if figure.ratio is None else self.document.spread
        return low / (1 + spread), high * (1 + spread)

    def file(self, study: str) -> Path:
        """The file of a study."""
        return self.folder / (self.document.studies[study].file or f"{study}.yaml")

    def studies_of(self, figures: Sequence[Figure]) -> list[str]:
        """The studies that answer figures, and those of their arms, in the document's order."""
        needed = {study for figure in figures for study in figure.studies}
        needed |= {arm.study for figure in figures for name in figure.arms for arm in self.document.arms[name]}
        return [name for name in self.document.studies if name in needed]


def load(path: Path) -> Loaded:
    """The document of a file or of a folder that has one; StudyError says what is wrong with it, line by line."""
    file = path / FILE if path.is_dir() else path
    text = yaml_file.read(file, "a document of published figures")
    model = yaml_file.parse(text, str(file), Document, "document", _rules)
    loaded = Loaded(model, file.parent)
    missing = [f"{file}: studies.{name}: found no {loaded.file(name)}, expected a study file" for name in model.studies
               if not loaded.file(name).is_file()]  # fmt: skip
    if missing:
        raise StudyError(missing)
    return loaded


def _rules(document: Document) -> Iterator[Problem]:
    ids: set[str] = set()
    for number, figure in enumerate(document.figures):
        where = ("figures", number)
        if figure.id in ids:
            yield Problem((*where, "id"), figure.id, "an id that no other figure has")
        ids.add(figure.id)
        for key, reading in (("read", figure.read), ("simulated", figure.simulated)):
            if reading is not None and reading.study not in document.studies:
                yield Problem((*where, key, "study"), reading.study, nearest(reading.study, document.studies))
        for name in figure.arms:
            if name not in document.arms:
                yield Problem((*where, "arms"), name, nearest(name, document.arms))
    for name, arms in document.arms.items():
        for number, arm in enumerate(arms):
            if arm.study not in document.studies:
                yield Problem(("arms", name, number, "study"), arm.study, nearest(arm.study, document.studies))


def answer(loaded: Loaded, figure: Figure) -> str:
    """What answers a figure, in words."""
    if figure.read is None:
        return "arithmetic" if figure.wire is not None else "not carried here"
    studies = [(name, loaded.document.studies[name]) for name in figure.studies]
    return ", ".join(
        f"{name} ({', '.join(study.testbeds)}{', by hand' if study.by_hand else ''})" for name, study in studies
    )


def counts(loaded: Loaded) -> str:
    """How many figures a document has, and how many of them nothing here answers."""
    figures = loaded.document.figures
    lost = sum(figure.not_carried is not None for figure in figures)
    return f"{len(figures)}" + (f", {lost} not carried here" if lost else "")


def shipped() -> list[Loaded]:
    """The documents that come with framegauge, those with the most figures first."""
    documents = [load(folder) for folder in sorted(places.published().iterdir()) if (folder / FILE).is_file()]
    return sorted(documents, key=lambda loaded: -len(loaded.document.figures))


def named(name: str) -> Loaded:
    """The document of a name, or of a path to one; InputError lists the names."""
    path = Path(name)
    if path.suffix == ".yaml" or path.is_dir():
        return load(path)
    by_name = {loaded.name: loaded for loaded in shipped()}
    if name not in by_name:
        raise InputError(f"--document: found '{name}', expected {nearest(name, by_name)}, or the path of a document")
    return by_name[name]
