"""Which flows a run had, whatever its workload and its testbed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from framegauge.errors import InputError
from framegauge.files.recordings import Recorded
from framegauge.report.recorded import programs, requests, simulated, transfers
from framegauge.report.recorded.rows import Found
from framegauge.results import journal, spools

__all__ = ["recorded"]

# By workload. All others run programs of which a run keeps no times but those of captures.
KINDS: Mapping[str, Callable[[Found], list[Recorded]]] = {
    "stream": transfers.streams,
    "rr": requests.requests,
    "mixed": requests.mixed,
    "users": requests.users,
    "incast": requests.incast,
    "shuffle": simulated.shuffle,
    "arrivals": simulated.arrivals,
    "replay": simulated.replay,
    "iperf3": programs.iperf3,
    "ftp": programs.ftp,
}
PROGRAMS = ("iperf3", "ftp")  # whose captures say more than they print


def recorded(folder: Path, number: int) -> list[Recorded]:
    """The flows of a run in the order of their starts, with what each of them waited for.

    InputError for a run that is not there, or that kept no flows; CorruptResults for one that makes no sense.
    """
    runs = {run.number: run for run in journal.read(folder).runs}
    if number not in runs:
        raise InputError(f"{folder}: found no run {number}, expected one of {_shown(sorted(runs))}")
    entry = Found(folder, runs[number], spools.record(folder, runs[number]))
    if entry.record.get("workload") is None and entry.run.excluded:
        raise InputError(f"{entry.name}: found no flows ({entry.run.excluded[0]}), expected a run that was carried out")
    kind = KINDS.get(entry.run.workload, programs.captured)
    if entry.run.workload in PROGRAMS and entry.has(programs.CONNECTIONS):
        kind = programs.captured
    flows = kind(entry)
    if not flows:
        raise InputError(f"{entry.name}: found no flows, expected those of a run that was carried out")
    return flows


def _shown(numbers: list[int]) -> str:
    if not numbers:
        return "its runs, of which none has ended"
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else str(numbers[0])
