"""The activity of a rack's ports between two looks at their counters, as data and as a table.

A look is the answer of `rack.ports` (pipe/README.md). The fabric counts how busy a port is: the share of the time in
which a frame was leaving, including preamble and gap, so that 1 is the current line rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from framegauge.quantities import print_bytes

__all__ = ["between", "table"]

Json = dict[str, Any]

_COUNTS = ("received_frames", "sent_frames", "dropped_frames", "marked_frames", "lost_frames")


def between(before: Mapping[str, Any], after: Mapping[str, Any]) -> Json:
    """`time_seconds`, `elapsed_seconds` and `ports`, the most loaded first: the counts of `after`, and five more keys.

    `bits_per_second` counts frames that left, without preamble and gap; `busy_share`; `dropped_frames_per_second`;
    `marked_frames_per_second`; `idle`: no frame came, left, was dropped or waited.
    """
    elapsed = after["time_seconds"] - before["time_seconds"]
    earlier = {port["port"]: port for port in before["ports"]}
    ports = [_rates(earlier[port["port"]], port, elapsed) for port in after["ports"]]
    ports.sort(key=lambda port: (-port["busy_share"], -port["bits_per_second"], -port["queued_bytes"], port["port"]))
    return {"time_seconds": after["time_seconds"], "elapsed_seconds": elapsed, "ports": ports}


def _rates(before: Mapping[str, Any], after: Mapping[str, Any], elapsed: float) -> Json:
    def grown(key: str) -> float:
        return float(after[key] - before[key])

    def a_second(key: str) -> float:
        return grown(key) / elapsed if elapsed > 0 else 0.0

    queued = after["queued_bytes"] or after["peak_queue_bytes"]
    return {
        **after,
        "bits_per_second": 8 * a_second("sent_bytes"),
        "busy_share": a_second("busy_seconds"),
        "dropped_frames_per_second": a_second("dropped_frames"),
        "marked_frames_per_second": a_second("marked_frames"),
        "idle": not queued and not any(grown(key) for key in _COUNTS),
    }


def _few(a_second: float) -> str:
    return f"{a_second:.0f}" if a_second >= 10 else f"{a_second:.2g}"


Column = tuple[str, Callable[[Mapping[str, Any]], str]]

_COLUMNS: Mapping[str, Column] = {
    "port": ("port", lambda port: port["port"]),
    "rate": ("Mb/s", lambda port: f"{port['bits_per_second'] / 1e6:.1f}"),
    "busy": ("busy", lambda port: f"{port['busy_share']:.0%}"),
    "queue": ("queue", lambda port: print_bytes(port["queued_bytes"], 3)),
    "peak": ("peak", lambda port: print_bytes(port["peak_queue_bytes"], 3)),
    "drops": ("drops/s", lambda port: _few(port["dropped_frames_per_second"])),
    "dropped": ("drops", lambda port: str(port["dropped_frames"])),
    "marks": ("marks/s", lambda port: _few(port["marked_frames_per_second"])),
    "marked": ("marks", lambda port: str(port["marked_frames"])),
    "lost": ("lost", lambda port: str(port["lost_frames"])),
}
# Columns that are left out if all are 0, and first of all if the terminal is too narrow.
_SELDOM = {"marks": "marked_frames", "marked": "marked_frames", "lost": "lost_frames"}
_LEAVING = ("lost", "marks", "drops", "queue", "marked", "busy", "peak", "dropped")


def table(found: Mapping[str, Any], columns: int | None = None, lines: int | None = None) -> list[str]:
    """The result of `between` as lines that fit into `columns` and `lines`; None: unlimited.

    Idle ports are one line in total, and so are the least loaded ones if not all fit.
    """
    busy = [port for port in found["ports"] if not port["idle"]]
    head = [f"up {found['time_seconds']:.1f} s, rates over {found['elapsed_seconds']:.2f} s"]
    room = len(busy) if lines is None else max(0, lines - 3)  # besides the two lines above, and the last
    visible, hidden, idle = busy[:room], len(busy) - room, len(found["ports"]) - len(busy)
    if visible:
        head += _grid(visible, columns)
    summary = [_ports(number, kind) for number, kind in ((hidden, "more"), (idle, "idle")) if number > 0]
    rows = [*head, *([", ".join(summary)] if summary else [])]
    return [line if columns is None else line[:columns] for line in rows][:lines]


def _ports(number: int, kind: str) -> str:
    noun = "port" if number == 1 else "ports"
    return f"{number} more {noun}" if kind == "more" else f"{number} {noun} idle"


def _grid(ports: Sequence[Mapping[str, Any]], columns: int | None) -> list[str]:
    """The title, and one line per port, with as many columns as fit."""
    names = [name for name in _COLUMNS if name not in _SELDOM or any(port[_SELDOM[name]] for port in ports)]
    cells = {name: [_COLUMNS[name][0], *(_COLUMNS[name][1](port) for port in ports)] for name in names}
    widths = {name: max(map(len, texts)) for name, texts in cells.items()}

    def width() -> int:
        return sum(widths[name] for name in names) + 2 * (len(names) - 1)

    for name in _LEAVING:
        if columns is not None and width() > columns and name in names:
            names.remove(name)
    excess = 0 if columns is None else width() - columns
    if excess > 0:  # then shorten the names of the ports
        widths["port"] = max(len("port"), widths["port"] - excess)
    return [
        "  ".join(
            _shortened(cells[name][row], widths[name]).ljust(widths[name])
            if name == "port"
            else cells[name][row].rjust(widths[name])
            for name in names
        )
        for row in range(len(ports) + 1)
    ]


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
