"""framegauge: should this network run jumbo frames? The control plane; the agent measures."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["__version__", "simulate"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`simulate`, which is imported when it is asked for: what it needs takes a second, and is above all rooms that
    import this one for its version."""
    if name == "simulate":
        return importlib.import_module("framegauge.experiment.simulated.library").simulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
