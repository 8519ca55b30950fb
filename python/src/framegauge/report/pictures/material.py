"""Everything that a study's page, Markdown and pictures need, read once from its results folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from framegauge import foreign
from framegauge.errors import StudyError
from framegauge.files import yaml as yaml_file
from framegauge.report.decision import content
from framegauge.report.decision.model import Decision, Risks
from framegauge.report.pictures import (
    arms,
    changes as changes_charts,
    charts,
    few as few_charts,
    flow_times as flow_charts,
    flows as contention_charts,
    heat as heat_charts,
    levels as levels_charts,
    ports as port_charts,
    records,
    series,
    web as web_charts,
)
from framegauge.report.pictures.arms import Look
from framegauge.report.pictures.charts import Picture
from framegauge.report.pictures.records import Reading
from framegauge.results import shapes
from framegauge.results.journal import Run, Saved
from framegauge.statistics.pairs import by_cell
from framegauge.summary import sentence, words
from framegauge.summary.sentence import Answer, Number

__all__ = ["Material", "gather"]


@dataclass(frozen=True)
class Material:
    """A judged study. `environment` and `settings` are empty where the folder lacks their file."""

    saved: Saved
    summary: Mapping[str, Any]
    answer: Answer
    numbers: Sequence[Number]
    decision: Decision
    looks: Mapping[str, Look]
    pictures: Sequence[Picture]
    courses: Sequence[series.Cell]
    readings: Sequence[Reading]
    environment: Mapping[str, Any]
    study: str  # the text of study.yaml
    settings: Mapping[str, Any]  # study.yaml, parsed

    def of(self, kind: str) -> list[Picture]:
        """The charts of one section."""
        return [picture for picture in self.pictures if picture.kind == kind]

    @cached_property
    def cells(self) -> words.Cells:
        """How the cells are named."""
        return words.Cells(self.summary["verdicts"])

    def title_of(self, cell: int) -> str:
        """What tells a cell from the others."""
        return arms.cell_title(self._inside[cell], self.cells)

    @cached_property
    def _inside(self) -> Mapping[int, Sequence[Run]]:
        return by_cell(self.saved.runs)


def gather(saved: Saved, summary: Mapping[str, Any], risks: Risks | None = None) -> Material:
    """Reads the other files of the folder, and draws the charts; `risks` are those that a check found."""
    readings = records.read(saved)
    study = _text(saved, "study.yaml")
    looks = arms.looks(saved.plan, saved.runs)
    cells = words.Cells(summary["verdicts"])
    contended = contention_charts.pictures(saved, summary, looks)
    changed = changes_charts.pictures(saved, looks, cells)
    return Material(
        saved=saved,
        summary=summary,
        answer=sentence.answer(summary),
        numbers=sentence.numbers(summary),
        decision=content.decide(summary, saved.folder, risks),
        looks=looks,
        pictures=[
            *charts.pictures(saved, summary, readings),
            *levels_charts.pictures(saved, summary),
            *heat_charts.pictures(summary),
            *flow_charts.pictures(saved, looks, cells),
            *few_charts.pictures(saved, summary, looks, cells),
            *contended,
            *port_charts.pictures(saved, looks, cells),
            *changed,
            *web_charts.pictures(saved, looks, cells),
        ],
        courses=list(series.cells(saved.folder, saved.runs)),
        readings=readings,
        environment=_environment(saved),
        study=study,
        settings=_mapping(study, partial(yaml_file.data, name="study.yaml")),
    )


def _text(saved: Saved, name: str) -> str:
    try:
        return (saved.folder / name).read_text("utf-8", errors="replace")
    except OSError:
        return ""


def _environment(saved: Saved) -> Mapping[str, Any]:
    path = saved.folder / "environment.json"
    try:
        data = foreign.read(path)
    except OSError:
        return {}
    environment = shapes.load(data, str(path), "the environment of a study")
    return shapes.checked(environment, shapes.Environment, str(path))


def _mapping(text: str, parse: Any) -> Mapping[str, Any]:
    """A parsed file; empty if it cannot be parsed, because the page does not depend on it."""
    try:
        settings = parse(text)
    except (ValueError, RecursionError, StudyError):
        return {}
    return settings if isinstance(settings, Mapping) else {}
