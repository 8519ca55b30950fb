"""Files as iperf3 and flent write them, with values of a test's choice."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BEGAN = 1_795_255_200  # 2026-11-21T10:00:00Z


def iperf3_text(bits_per_second: float, *, began: int = BEGAN, reverse: int = 0, streams: int = 1) -> dict[str, Any]:
    """What `iperf3 -J -t 10` says, as far as anybody reads it."""
    received = {"start": 0, "end": 10, "seconds": 10.0, "bytes": int(bits_per_second * 10 / 8), "sender": True}
    received["bits_per_second"] = bits_per_second
    asked = {
        "protocol": "TCP", "num_streams": streams, "blksize": 131072, "omit": 0, "duration": 10, "bytes": 0,
        "blocks": 0, "reverse": reverse, "tos": 0, "target_bitrate": 0,
    }  # fmt: skip
    return {
        "start": {
            "connected": [],
            "version": "iperf 3.12",
            "system_info": "Linux host 6.1.0 x86_64",
            "timestamp": {"time": "Sat, 21 Nov 2026 10:00:00 GMT", "timesecs": began},
            "tcp_mss_default": 1448,
            "test_start": asked,
        },
        "intervals": [],
        "end": {
            "streams": [],
            "sum_sent": {**received, "retransmits": 3},
            "sum_received": received,
            "cpu_utilization_percent": {"host_total": 20.0, "remote_total": 40.0},
            "sender_tcp_congestion": "cubic",
            "receiver_tcp_congestion": "cubic",
        },
    }


def iperf3_folder(folder: Path, rates: Sequence[float], **more: Any) -> Path:
    folder.mkdir(parents=True)
    for number, rate in enumerate(rates):
        text = json.dumps(iperf3_text(rate, began=BEGAN + 60 * number, **more))
        (folder / f"run-{number:02}.json").write_text(text)
    return folder


def flent_text(megabits: Sequence[float | None], pings: Sequence[float | None] = ()) -> dict[str, Any]:
    """What flent's tcp_1up saves: one value a point in time, null where there is none."""
    results: dict[str, Any] = {"TCP upload": list(megabits), "TCP upload::tcp_cwnd": [10.0 for _ in megabits]}
    if pings:
        results["Ping (ms) ICMP"] = list(pings)
    metadata = {"NAME": "tcp_1up", "LENGTH": 60, "TIME": "2026-11-21T10:00:00.000000Z", "STEP_SIZE": 0.2, "TITLE": ""}
    values = [0.2 * point for point in range(len(megabits))]
    return {"metadata": metadata, "version": 4, "x_values": values, "results": results, "raw_values": {}}


def flent_bytes(text: dict[str, Any]) -> bytes:
    return gzip.compress(json.dumps(text).encode(), mtime=0)


def flent_folder(folder: Path, rates: Sequence[float], pings: Sequence[float] = ()) -> Path:
    folder.mkdir(parents=True)
    for number, rate in enumerate(rates):
        ping = [pings[number]] * 4 if pings else []
        data = flent_bytes(flent_text([None, rate / 1e6, rate / 1e6, None], ping))
        (folder / f"tcp_1up-{number:02}.flent.gz").write_bytes(data)
    return folder
