"""A short study on a real rack, and what became of it."""

from __future__ import annotations

import json
from pathlib import Path

STUDY = """\
question: Does it work where it was installed?
testbed: {kind: rack, topology: pair, link: {rate: 100 Mb/s}}
factors:
  mtu: {levels: [1500, 9000], baseline: 1500}
workloads:
  - stream: {size: 1 MB, repeat: 0 s}
blocks: 2
retries: 0
stop: blocks
margins: {goodput: 1 %, completion_time: 2 %}
"""
RUNS = 6


def problems(results: Path) -> list[str]:
    """Why the study did not work: too few runs, errors or proofs. A busy machine, which makes runs unfaithful, is none."""
    path = results / "runs.jsonl"
    runs = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    found = [] if len(runs) >= RUNS else [f"{len(runs)} of {RUNS} runs"]
    return found + [why for run in runs for why in run["excluded"] if why.startswith(("error", "proof"))]
