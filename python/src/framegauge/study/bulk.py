"""Bulk streams that run beside a workload of small messages, in a study file."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StrictInt

from framegauge.files.types import Flows, Model, Rates
from framegauge.study.parameters import grid

__all__ = ["Bulk", "paced_by"]


class Bulk(Model):
    """Bulk streams to the same server: `hosts` other hosts (null: all) send `flows` each, at `rate` per host."""

    flows: Flows = [1]
    rate: Rates = [None]
    hosts: Annotated[StrictInt, Field(ge=1)] | None = None

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination, with the prefix `bulk_`."""
        axes: dict[str, list[Any]] = {"bulk_flows": self.flows, "bulk_bits_per_second": self.rate}
        return grid(axes, {"bulk_hosts": self.hosts})

    def needed_hosts(self) -> tuple[int, str]:
        """Two unless `hosts` is more than one: on a pair, the client of the small messages also sends the bulk."""
        return (self.hosts or 0) + 2 if (self.hosts or 1) > 1 else 2, "bulk"


def paced_by(rates: list[int | None], key: str) -> str | None:
    """What a study with the factor `pacing` must have instead of a rate under this key; None without one."""
    return None if rates == [None] else f"no such factor with a {key}, which paces the same sockets"
