"""A rack beside other programs: are its figures those of a quiet machine, and what counts?

    .venv/bin/python -m bench.busy [--blocks 6] [--only KIND …] [--precedence "real time" …] [--what NAME …]
        [--excluded]

Kinds of load: none, 1, 2 and 4 busy loops, a compile of this workspace, and two programs that copy memory, all at nice
0; and one that goes before everybody on a CPU of the hosts, as a hypervisor does, for some ms in every 400. Precedence:
as the kernel grants it ("real time"), and with less asked for. For each: a transfer of 100 MB and many of 1 MB,
requests in a closed loop, and five to one, at MTU 1500, 4321 and 9000 with the baseline twice (A/A). Runs that are
excluded are counted, and not in the figures but with --excluded. By arithmetic the goodput of a long transfer grows
from MTU 1500 to M by ((M - 52) / (M + 38)) / (1448 / 1538).
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.common import save, say

from framegauge.cli import commands
from framegauge.results.journal import Run, Saved, read
from framegauge.statistics.judge import Comparison
from framegauge.study import file as study_file
from framegauge.summary import judging

ROOT = Path(__file__).resolve().parents[1]
STUDY = """
question: What does a rack measure beside other programs?
testbed: {{kind: rack, {topology}, link: {{rate: 1 Gb/s, buffer: 512 KiB}}}}
factors: {{mtu: {{levels: [1500, 4321, 9000], baseline: 1500}}, rtt: 0.2 ms}}
workloads: [{workload}]
control: true
blocks: {blocks}
stop: blocks
retries: 0
budget: 15 min
margins: {margins}
seed: 1
sysctls: {{net.ipv4.tcp_rmem: 4096 131072 33554432, net.ipv4.tcp_wmem: 4096 131072 33554432}}
"""
ASKED: Mapping[str, Mapping[str, str]] = {
    "100 MB": {
        "topology": "topology: pair", "workload": "stream: {size: 100 MB, flows: 1, repeat: 0 s}",
        "margins": "{goodput: 1 %, receiver_cpu_cost: 5 %}",
    },
    "1 MB": {
        "topology": "topology: pair", "workload": "stream: {size: 1 MB, flows: 1, repeat: 0.5 s}",
        "margins": "{completion_time: 2 %}",
    },
    "requests": {
        "topology": "topology: pair", "workload": "rr: {request: 200 B, response: 2 kB, duration: 1 s}",
        "margins": "{latency_p50: 5 %, latency_p99: 10 %}",
    },
    "five to one": {
        "topology": "topology: rack, hosts: 6",
        "workload": "stream: {size: 10 MB, flows: 1, pattern: many-to-one, repeat: 0 s}",
        "margins": "{goodput: 1 %, fairness: 2 %}",
    },
}  # fmt: skip
LOOP = "while True: pass"
HOLD = """import os, time
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
while True:
    time.sleep(0.4 - {0})
    until = time.monotonic() + {0}
    while time.monotonic() < until:
        pass
"""
COPY = "a, b = bytearray(1 << 28), bytearray(1 << 28)\nwhile True: a[:] = b"
LOADS: Mapping[str, Sequence[str]] = {
    "none": [], "1 busy loop": [LOOP], "2 busy loops": [LOOP] * 2, "4 busy loops": [LOOP] * 4,
    "compile": ["compile"], "memory": [COPY] * 2, "held 2 ms": [HOLD.format(0.002)], "held 4 ms": [HOLD.format(0.004)],
    "held 6 ms": [HOLD.format(0.006)],
}  # fmt: skip
PRECEDENCE = ("real time", "nice", "ordinary")


@contextmanager
def beside(kind: str) -> Iterator[None]:
    """The load of that kind, until the block is left."""
    started: list[subprocess.Popen[bytes]] = []
    folder = Path(tempfile.mkdtemp(prefix="bench-busy-"))
    build = f"cargo build --quiet --offline --target-dir {folder} -p framegauge-agent"
    compiling = f"while :; do rm -rf {folder}/*; {build}; done"
    try:
        for program in LOADS[kind]:
            words = ["sh", "-c", compiling] if program == "compile" else [sys.executable, "-c", program]
            quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            started.append(subprocess.Popen(words, cwd=ROOT, start_new_session=True, **quiet))
        time.sleep(2 if started else 0)
        yield
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def measured(name: str, precedence: str, blocks: int, place: Path) -> Saved:
    """One study."""
    os.environ["FRAMEGAUGE_PRECEDENCE"] = precedence
    study = study_file.parse(STUDY.format(**ASKED[name], blocks=blocks), "busy.yaml")
    folder = place / f"{name}-{precedence}-{time.monotonic_ns()}".replace(" ", "-")
    commands.run_study(study, folder, False, lambda _: None, lambda _: None)
    return read(folder)


def arithmetic(mtu: int) -> float:
    """By how much the goodput of a long transfer is larger than at MTU 1500 (IPv4, timestamps)."""
    return ((mtu - 52) / (mtu + 38)) / (1448 / 1538)


def line(kind: str, precedence: str, name: str, saved: Saved, with_excluded: bool) -> dict[str, Any]:
    """The figures of one study."""
    runs = [run for run in saved.runs if with_excluded or not run.excluded]
    figures: dict[str, Any] = {"load": kind, "precedence": precedence, "what": name, "runs": len(saved.runs)}
    figures["count"] = sum(not run.excluded for run in saved.runs)
    figures["held_seconds"] = statistics.mean(run.readings.get("held_seconds", 0.0) for run in runs) if runs else None
    figures["metrics"] = {metric: by_level(runs, metric) for metric in saved.plan["margins"]}
    figures["held"] = [
        [run.level, run.readings.get("held_seconds", 0.0) / run.seconds, run.metrics] for run in saved.runs
    ]
    figures["verdicts"] = [as_json(comparison) for comparison in judging.compare(saved)]
    return figures


def as_json(comparison: Comparison) -> dict[str, Any]:
    """One comparison, by itself."""
    ratio = comparison.ratio
    return {
        "metric": comparison.metric,
        "role": comparison.role,
        "level": comparison.treatment_level,
        "verdict": str(comparison.verdict),
        "ratio": ratio and ratio.ratio,
        "low": ratio and ratio.low,
        "high": ratio and ratio.high,
    }


def by_level(runs: Sequence[Run], metric: str) -> dict[str, list[float]]:
    """Least, median and largest of a metric by level."""
    values: dict[str, list[float]] = {}
    for run in runs:
        if metric in run.metrics:
            values.setdefault(str(run.level), []).append(run.metrics[metric])
    return {level: [min(each), statistics.median(each), max(each)] for level, each in sorted(values.items())}


def main() -> None:
    """All that is asked for, line by line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--only", nargs="*", default=list(LOADS), choices=list(LOADS))
    parser.add_argument("--what", nargs="*", default=list(ASKED), choices=list(ASKED))
    parser.add_argument("--precedence", nargs="*", default=["real time"], choices=PRECEDENCE)
    parser.add_argument("--excluded", action="store_true", help="figures of excluded runs, too")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the load is ended on that way out, too
    found = []
    with tempfile.TemporaryDirectory() as place:
        for kind in options.only:
            for precedence in options.precedence:
                with beside(kind):
                    for name in options.what:
                        saved = measured(name, precedence, options.blocks, Path(place))
                        found.append(line(kind, precedence, name, saved, options.excluded))
                        show(found[-1])
    say(f"saved: {save('busy', found, blocks=options.blocks)}")


def show(figures: Mapping[str, Any]) -> None:
    """One study in a few lines."""
    counted = f"{figures['count']} of {figures['runs']} runs count"
    print(f"{figures['load']}, {figures['precedence']}, {figures['what']}: {counted}; held {figures['held_seconds']} s")
    for metric, levels in figures["metrics"].items():
        texts = [f"{level}: {middle:.6g} [{least:.6g}, {most:.6g}]" for level, (least, middle, most) in levels.items()]
        print(f"  {metric}  {'  '.join(texts)}")
    for verdict in figures["verdicts"]:
        if verdict["ratio"] is None or verdict["low"] is None:
            print(f"  {verdict['metric']} {verdict['role']} {verdict['level']}: {verdict['verdict']}")
            continue
        known = ""
        if figures["what"] == "100 MB" and verdict["metric"] == "goodput" and verdict["role"] == "treatment":
            truth = arithmetic(int(verdict["level"]))
            known = f"; arithmetic {truth:.4f}, off by {verdict['ratio'] / truth - 1:+.2%}"
            known += "" if verdict["low"] <= truth <= verdict["high"] else ", OUTSIDE of the interval"
        interval = f"{verdict['ratio']:.4f} ({verdict['low']:.4f} to {verdict['high']:.4f})"
        print(f"  {verdict['metric']} {verdict['role']} {verdict['level']}: {interval} {verdict['verdict']}{known}")


if __name__ == "__main__":
    main()
