"""What the parameters of all workloads have in common."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from framegauge.files.types import Model, Problem
from framegauge.metrics import Metric
from framegauge.study.factors import Factors

__all__ = ["MOST_CONNECTIONS", "Parameters", "above_zero", "connections", "disobeyed", "grid"]

MOST_CONNECTIONS = 1_000_000  # of a workload: some 8 GB in a simulation, and more in a kernel


class Parameters(Model):
    """The interface of a workload's parameters. `key` is the workload's name in a study file."""

    key: ClassVar[str]
    obeys_nagle: ClassVar[bool] = False
    starts_programs: ClassVar[bool] = False  # of this machine, under names that are known before
    apps: ClassVar[tuple[str, ...]] = ()  # that `framegauge apps fetch` gets
    needs_rack: ClassVar[bool] = False  # hosts with names, and with file systems of their own
    reconnects: ClassVar[bool] = False  # its programs open connections again that a change has ended
    only_simulated: ClassVar[bool] = False  # no host runs it

    @property
    def label(self) -> str:
        """The name that results have for the workload."""
        return self.key

    @property
    def declares(self) -> Mapping[str, Metric]:
        """The metrics of its own that the workload brings, for the table of metrics."""
        return {}

    @property
    def compares_few(self) -> bool:
        """Whether it is asked what few flows get beside many."""
        return False

    @property
    def unset_nagle(self) -> str | None:
        """What a study with the factor `nagle` must have instead; None if the workload obeys it."""
        return None if self.obeys_nagle else f"no such factor with workload {self.key}: it has no Nagle setting"

    @property
    def unpaced(self) -> str | None:
        """What a study with the factor `pacing` must have instead; None if the workload obeys it."""
        return f"no such factor with workload {self.key}: it does not say how its sockets are paced"

    @property
    def single(self) -> str | None:
        """What a study with the factor `mptcp` must have instead; None if the workload obeys it."""
        return f"no such factor with workload {self.key}: its connections are TCP"

    @property
    def unprobed(self) -> str | None:
        """What a study with the factor `plpmtud` must have instead; None if the workload obeys it."""
        return f"no such factor with workload {self.key}: only quic looks for path MTUs by probes of its own"

    @property
    def unmarked(self) -> str | None:
        """What a study with the factor `ecn` must have instead; None if the workload obeys it."""
        return None

    def strange(self, _: Sequence[str | None]) -> str | None:
        """What a study with these algorithms of congestion control must have instead; None if it obeys them."""
        return None

    @abstractmethod
    def conditions(self) -> list[dict[str, Any]]:
        """Every combination of the lists, in base units."""

    def needed_hosts(self) -> tuple[int, str]:
        """The least number of hosts, and the key that determines it."""
        patterns = getattr(self, "pattern", ["one-to-one"])
        return (2, "") if set(patterns) == {"one-to-one"} else (3, "pattern")

    def crowded(self, hosts: int) -> Iterator[Problem]:
        """Problems with a pattern of so many connections that no machine holds them."""
        flows = max(getattr(self, "flows", [1]))
        for pattern in getattr(self, "pattern", ()):
            if (count := flows * connections(pattern, hosts)) > MOST_CONNECTIONS:
                crowd = f"{pattern} of {hosts} hosts, {count:,} connections"
                yield Problem(("pattern",), crowd, f"at most {MOST_CONNECTIONS:,}: fewer hosts, or another pattern")


def connections(pattern: str, hosts: int) -> int:
    """The number of pairs that a pattern has among so many hosts."""
    half = hosts // 2
    numbers = {"one-to-one": 1, "many-to-one": hosts - 1, "half-to-half": half * (hosts - half)}
    return numbers.get(pattern, hosts * (hosts - 1))


def disobeyed(parameters: Parameters, factors: Factors) -> Iterator[Problem]:
    """Problems with factors that the sockets of a workload cannot obey."""
    if factors.nagle is not None and parameters.unset_nagle is not None:
        text = ", ".join("on" if on else "off" for on in factors.nagle.levels)
        yield Problem(("factors", "nagle"), text, parameters.unset_nagle)
    if factors.pacing is not None and parameters.unpaced is not None:
        yield Problem(("factors", "pacing"), ", ".join(factors.pacing.levels), parameters.unpaced)
    if factors.mptcp is not None and parameters.single is not None:
        yield Problem(("factors", "mptcp"), ", ".join(factors.mptcp.levels), parameters.single)
    for name, expected in (("plpmtud", parameters.unprobed), ("ecn", parameters.unmarked)):
        if getattr(factors, name) is not None and expected is not None:
            text = ", ".join("on" if on else "off" for on in factors.levels(name))
            yield Problem(("factors", name), text, expected)
    algorithms = factors.levels("congestion_control")
    if (expected := parameters.strange(algorithms)) is not None:
        yield Problem(("factors", "congestion_control"), ", ".join(map(str, algorithms)), expected)


def grid(axes: Mapping[str, list[Any]], fixed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of the axes' values, each with what is fixed."""
    return [dict(zip(axes, values, strict=True)) | dict(fixed) for values in itertools.product(*axes.values())]


def above_zero(model: Model, *names: str) -> None:
    """Problem if one of these lists has a 0."""
    for name in names:
        if 0 in (getattr(model, name) or []):
            raise Problem((name,), 0, "more than 0")
