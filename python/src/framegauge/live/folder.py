"""The files of a results folder that tell whether its study has ended, and whether the page has to be made again."""

from __future__ import annotations

from pathlib import Path

__all__ = ["PLAN", "REPORT", "Stamps", "has_ended", "stamps"]

PLAN, REPORT = "results.json", "report.html"
BEGINS = (PLAN, "runs.jsonl", "environment.json")  # are written when a study begins or goes on, and with its runs
Stamps = tuple[tuple[int, int] | None, ...]


def stamps(folder: Path) -> Stamps:
    """What changes whenever the page does: time and size of each file."""
    return tuple(_stamp(folder / name) for name in (*BEGINS, REPORT))


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def has_ended(folder: Path) -> bool:
    """Whether the report is of all runs: a study writes it last, and one that goes on writes something after it."""
    *begun, report = stamps(folder)
    return report is not None and all(stamp is None or stamp[0] <= report[0] for stamp in begun)
