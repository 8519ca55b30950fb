"""Results folders made by hand, in which many flows go to one host: as records and spools of the rack have them.

Two switches: h1 to h12 on s1, h13 and the receiver h14 on s2. Everything that comes to h14 leaves s2 by one port.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from framegauge.results.journal import Journal, Run, Saved, read

PORT, FAR, CLOSE = "s2>h14", "s1>s2", "h13>s2"
SENDERS = [f"h{number}" for number in range(1, 14)]
SECONDS = 2.0
LINKS = [("s1", "s2"), *((f"h{number}", "s1") for number in range(1, 13)), ("h13", "s2"), ("h14", "s2")]
# 10 Mb/s: a frame of 1250 bytes takes one millisecond.
BITS_PER_SECOND, FRAME_BYTES = 10_000_000, 1250

Json = dict[str, Any]


def arrow(columns: Mapping[str, Sequence[Any]]) -> bytes:
    table = pa.table(dict(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def transfers(rates: Iterable[float], resent: Sequence[int] | None = None) -> bytes:
    """One row per flow of one round, at so many bits per second; without `resent` as older versions wrote it."""
    found = list(rates)
    columns: dict[str, Sequence[Any]] = {
        "round": [0] * len(found), "flow": list(range(len(found))), "start_seconds": [0.5] * len(found),
        "counted_seconds": [0.5 + SECONDS] * len(found), "counted_bytes": [int(rate * SECONDS / 8) for rate in found],
    }  # fmt: skip
    return arrow(columns if resent is None else {**columns, "retransmits": list(resent)})


def drops(rows: Sequence[tuple[float, str, str, int]], **more: Sequence[Any]) -> bytes:
    """Time, port, input port and run length of each."""
    columns = dict(
        zip(("time_seconds", "port", "input_port", "run_length"), map(list, zip(*rows, strict=True)), strict=True)
    )
    filled = {"flow": [1] * len(rows), "frame_bytes": [FRAME_BYTES] * len(rows), "queue_bytes": [10_000] * len(rows)}
    return arrow({**columns, **filled, **more})


def network() -> Json:
    ways = [way for one, other in LINKS for way in ((one, other), (other, one))]
    return {"ports": [{"port": f"{a}>{b}", "from": a, "to": b, "bits_per_second": BITS_PER_SECOND} for a, b in ways]}


def record(runs: Sequence[Json], dropped: Sequence[tuple[float, str, str, int]], told: bool = True) -> Json:
    """`told`: as a version wrote it that knows the network."""
    counts = Counter(port for _, port, _, _ in dropped)
    inputs = {PORT: [FAR, CLOSE], FAR: [f"h{number}>s1" for number in range(1, 13)]}
    return {
        "conditions": {"bits_per_second": BITS_PER_SECOND},
        "rack": {"network": network()} if told else {},
        "workload": {"bytes": 10**7, "runs": list(runs)},
        "measure": {"fabric": {
            "ports": [{"port": port, "dropped_frames": counts[port]} for port in (PORT, FAR)],
            "waits": [{"port": port, "input_port": name, "frames": 90} for port in inputs for name in inputs[port]],
        }},
        "counters_before": {name: {"nstat": {"TcpExtTCPTimeouts": 1}} for name in SENDERS},
        "counters_after": {name: {"nstat": {"TcpExtTCPTimeouts": 3}} for name in SENDERS},
    }  # fmt: skip


def asked(client: str, server: str = "h14", reverse: bool = False) -> Json:
    return {"client": client, "server": server, "reverse": reverse, "transfers": f"transfers-{client}-{server}"}


# Of h13's frames four in a row, then one; of the others' two at the port to h14, and one before.
DROPPED = [
    (1.000, PORT, CLOSE, 1), (1.001, PORT, FAR, 1), (1.002, PORT, CLOSE, 2), (1.003, PORT, CLOSE, 3), (1.004, PORT, CLOSE, 4),
    (1.200, PORT, CLOSE, 1), (1.300, PORT, FAR, 1), (1.400, FAR, "h1>s1", 1),
]  # fmt: skip


def run(number: int, arm: str, role: str, level: Any, goodput: float) -> Run:
    return Run(
        number,
        (number - 1) // 3,
        0,
        arm,
        role,
        level,
        0,
        "stream",
        {"pattern": "many-to-one"},
        {"goodput": goodput},
        [],
    )


def twelve_and_one(
    folder: Path,
    close: Mapping[str, Sequence[float]],
    told: bool = True,
    events: Mapping[str, Sequence[Any]] | None = None,
) -> Saved:
    """Arms by MTU. Far flows get 0.7 Mb/s, but h1 0.5 and h2 0.9; `close` has what h13 gets, a run each, by arm."""
    plan = {"question": "?", "scope": "emulated", "treatment": "mtu", "margins": {"goodput": 0.01}}
    levels = {"baseline": 1500, "control": 1500, "9000": 9000}
    far = {f"h{number}": 700_000.0 for number in range(1, 13)} | {"h1": 500_000.0, "h2": 900_000.0}
    with Journal.create(folder, "question: '?'\nseed: 1\n", plan) as journal:
        number = 0
        for block in range(max(map(len, close.values()))):
            for arm, values in close.items():
                if block >= len(values):
                    continue
                number += 1
                rates = {**far, "h13": values[block]}
                spools = {f"transfers-{name}-h14": transfers([rate], [5]) for name, rate in rates.items()}
                spools["drops"] = drops(DROPPED)
                if events is not None:
                    spools["events"] = arrow(events)
                role = arm if arm in ("baseline", "control") else "treatment"
                made = run(number, arm, role, levels[arm], sum(rates.values()))
                journal.add(made, record([asked(name) for name in SENDERS], DROPPED, told), spools)
    return read(folder)
