"""What the parameters of all workloads have in common."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from framegauge.files.types import Model, Problem
from framegauge.metrics import Metric

__all__ = ["Parameters", "above_zero", "grid"]


class Parameters(Model):
    """The interface of a workload's parameters. `key` is the workload's name in a study file."""

    key: ClassVar[str]
    obeys_nagle: ClassVar[bool] = False
    starts_programs: ClassVar[bool] = False  # of this machine, under names that are known before
    apps: ClassVar[tuple[str, ...]] = ()  # that `framegauge apps fetch` gets
    needs_rack: ClassVar[bool] = False  # hosts with names, and with file systems of their own
    only_simulated: ClassVar[bool] = False  # no host runs it

    @property
    def label(self) -> str:
        """The name that results have for the workload."""
        return self.key

    @property
    def declares(self) -> Mapping[str, Metric]:
        """The metrics of its own that the workload brings, for the table of metrics."""
        return {}

    @abstractmethod
    def conditions(self) -> list[dict[str, Any]]:
        """Every combination of the lists, in base units."""

    def needed_hosts(self) -> tuple[int, str]:
        """The least number of hosts, and the key that determines it."""
        patterns = getattr(self, "pattern", ["one-to-one"])
        return (2, "") if set(patterns) == {"one-to-one"} else (3, "pattern")


def grid(axes: Mapping[str, list[Any]], fixed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of the axes' values, each with what is fixed."""
    return [dict(zip(axes, values, strict=True)) | dict(fixed) for values in itertools.product(*axes.values())]


def above_zero(model: Model, *names: str) -> None:
    """Problem if one of these lists has a 0."""
    for name in names:
        if 0 in (getattr(model, name) or []):
            raise Problem((name,), 0, "more than 0")
