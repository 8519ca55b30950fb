"""Programs of framegauge itself that run in hosts, with the interpreter that runs this."""

from __future__ import annotations

import os
import sys

__all__ = ["modules", "python"]


def python(module: str, *arguments: str) -> tuple[str, ...]:
    """The command of a module of `framegauge.apps`."""
    return sys.executable, "-m", f"framegauge.apps.{module}", *arguments


def modules() -> dict[str, str]:
    """The environment in which a program finds the modules that this one finds."""
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONDONTWRITEBYTECODE": "1"}
