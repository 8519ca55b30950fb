"""The sentences beside the answer: what must be known with it, in every form of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framegauge.summary import contention, hosts, trial

__all__ = ["lines"]


def lines(summary: Mapping[str, Any]) -> list[str]:
    """What this machine carried, how flows shared, what depends on the hosts of a simulation; none that is empty."""
    return list(filter(None, (module.beside(summary) for module in (trial, contention, hosts))))
