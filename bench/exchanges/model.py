"""A case on the model: `framegauge-agent simulate`."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from bench.exchanges.cases import AGGREGATE_BYTES, SHAPER_FACTOR, Case, Step
from bench.exchanges.exchange import CLIENT, FIN, SERVER, Exchange, Segment
from bench.exchanges.room import header_room_bytes

from framegauge.experiment.simulated.scenario import RACK_TCP

# The model's names, and the kernel's counters that say the same.
MECHANISMS = {
    "timeouts": "timeouts", "loss_probes": "probes", "recoveries": "recoveries", "undone": "undone",
    "lost_retransmits": "lost resends",
}  # fmt: skip

CONNECTING_SECONDS = 1e-4  # that a program takes from there to its first write, or a little more, on the rack


def scenario(case: Case) -> dict[str, Any]:
    """In the words of `framegauge-agent simulate`."""
    return {
        "hosts": [{"name": name, "mtu": case.mtu} for name in ("h1", "h2")],
        "link": case.link(),
        "links": case.links(),
        "shaper": {"factor": SHAPER_FACTOR, "burst_bytes": case.shaper_burst_bytes},
        "tcp": {
            **RACK_TCP,
            "congestion_control": case.congestion, "sack": case.sack, "ecn": case.ecn,
            "nagle": "off" if case.nodelay else "on", "gso_bytes": AGGREGATE_BYTES,
            "header_room_bytes": header_room_bytes(),
        },
        "flows": [{"client": "h1", "server": "h2", "steps": [_after_connecting(case.steps[0]), *case.steps[1:]]}],
        "end_seconds": 100.0,
        "log": True,
    }  # fmt: skip


def _after_connecting(step: Step) -> dict[str, Any]:
    """The first step, a moment after the handshake's last segment: until then the shaper has no tokens for another."""
    return {**step, "think_seconds": max(step.get("think_seconds", 0.0), CONNECTING_SECONDS)}


def played(case: Case, agent: str, changed: Mapping[str, Any] | None = None) -> Exchange:
    """What the model's ends sent; `changed`: what else the scenario says."""
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(
            [agent, "simulate", folder], input=json.dumps({**scenario(case), **(changed or {})}), text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        if ran.returncode:
            raise RuntimeError(ran.stderr.strip())
        rows = pl.read_ipc(Path(folder) / "segments.arrow").rows(named=True)
    flow = json.loads(ran.stdout.splitlines()[-1])["result"]["flows"][0]
    segments = [_segment(row) for row in rows]
    last = next(row for row in rows if row["from_client"] and row["flags"] & FIN)
    counts = {kind: flow[name] for name, kind in MECHANISMS.items()}
    return Exchange(segments, counts, last["cwnd_segments"], last["ssthresh_segments"])


def _segment(row: dict[str, Any]) -> Segment:
    blocks = tuple(tuple(map(int, block.split("-"))) for block in row["blocks"].split())
    return Segment(
        row["time_seconds"], CLIENT if row["from_client"] else SERVER, row["sequence"], row["bytes"], row["flags"],
        row["acknowledged"], blocks, row["window_bytes"],
    )  # fmt: skip
