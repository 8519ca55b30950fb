"""What every workload offers: run between hosts, then turn what was recorded into metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from framegauge.testbeds.base import Host, Json, Progress

__all__ = ["Executed", "Spool", "Workload"]


@dataclass(frozen=True)
class Spool:
    """A bulk record that waits in a host's agent until the run is over."""

    name: str
    host: str
    number: int


@dataclass(frozen=True)
class Executed:
    """What a workload left: its answers, and the spools to fetch.

    `record` has at least `sender` and `receiver` (hosts), `congestion_control` (all sockets, both ends),
    `bytes`, `transfer_bytes` (of one flow in one round, None for a duration), `srtt_median_seconds`
    and `mean_segment_payload_bytes` (None where unknown): the checks of a run need them.
    """

    record: Json
    spools: Sequence[Spool]


class Workload(Protocol):
    """One workload with its parameters."""

    @property
    def name(self) -> str:
        """As in the study file."""
        ...

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """Roughly how long `run` takes, for progress and budget."""
        ...

    def run(self, hosts: Sequence[Host], token: str, on_progress: Progress | None) -> Executed:
        """Do it, between hosts that are up."""
        ...

    def evidence(self, tables: Mapping[str, pa.Table]) -> Json:
        """What the checks of a run need from the fetched spools; joins the record."""
        ...

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """Metric values in base units, from the record and the fetched spools."""
        ...
