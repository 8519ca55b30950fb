"""The published study's figures next to ours, from full runs of the examples: docs/measured/reproduction.md.

    .venv/bin/python -m bench.reproduction --run --write docs/measured/reproduction.md
    .venv/bin/python -m bench.reproduction results/jumbo-rack results/nagle …

With --run it first runs the studies into results/, or what is left of them, and says how long that takes. Hadoop's is
among them only with --hadoop, because it takes ten hours; a study that was not run is left out of the page. A published
figure is a range, as wide as its rounding; it agrees with ours if our 95 % interval touches that range. Why they differ
is said only where an arm isolates it.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import math
import platform
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import published_hadoop, published_web

from framegauge.experiment.planning import total_seconds
from framegauge.quantities import print_seconds
from framegauge.report import causes
from framegauge.results.journal import Saved, read
from framegauge.study import file as study_file
from framegauge.study.blocks import order
from framegauge.summary import words
from framegauge.summary.document import summarise

# The folders in results/, and the studies that fill them.
STUDIES = {
    **{name: f"examples/{name}.yaml" for name in ("jumbo-rack", "jumbo-rack-half", "jumbo-rack-long", "nagle")},
    **{name: f"bench/{name}.yaml" for name in ("web", "web-nagle")},
}
MORE = math.inf
EQUAL = 1.2  # within this factor an interval may reach, if it is to agree that two are equal


@dataclass(frozen=True)
class Published:
    """A figure of "Jumbo Frames or Not: That is the Question!" (Purdue TR 13-006, 2013), as a range of ratios."""

    said: str
    low: float
    high: float
    conditions: Mapping[str, Any]
    levels: Sequence[Any] = (9000,)
    metric: str = "goodput"
    remark: str = ""
    treatment: str = "mtu"
    workload: str | None = None  # without a study of it, its figures are left out


def _stream(pattern: str, size: float, rtt: float = 200e-6) -> dict[str, Any]:
    return {"pattern": pattern, "size_bytes": int(size), "rtt_seconds": rtt}


def _rr(nagle: bool) -> dict[str, Any]:
    return {"nagle": nagle, "header_bytes": 100}  # of any size, in two writes as web servers make them


def _web(said: str, low: float, high: float, metric: str, **more: Any) -> Published:
    return Published(said, low, high, metric=metric, workload="web", **more)


SLOWED = "links of 100 Mb/s"
PUBLISHED = (
    Published("675 → 700 Mb/s, +4 %", 1.03, 1.045, _stream("one-to-one", 1e5), (8000, 9000)),
    Published("about +10 %", 1.08, 1.12, _stream("one-to-one", 1e6), (8000, 9000)),
    Published("934 → 985 Mb/s, +5.5 %", 1.0535, 1.0557, _stream("one-to-one", 1e8)),
    Published("under 200 → about 400 Mb/s", 1.8, MORE, _stream("one-to-one", 1e6, 1.2e-3)),
    Published("under 250 → over 800 Mb/s", 3.2, MORE, _stream("one-to-one", 1e8, 10.2e-3)),
    Published("875 → 950 Mb/s, +8.6 %", 1.08, 1.092, _stream("one-to-one", 1e9, 10.2e-3)),
    Published("+11 %", 1.105, 1.115, _stream("many-to-one", 1e5)),
    Published("+11 %", 1.105, 1.115, _stream("many-to-one", 1e6)),
    Published("+5.5 %", 1.0545, 1.0555, _stream("many-to-one", 1e8)),
    Published("small files +7 %", 1.065, 1.075, _stream("half-to-half", 1e5), remark=SLOWED),
    Published("830 → 860 Mb/s per receiver, +3.6 %", 1.03, 1.042, _stream("half-to-half", 5e6), remark=SLOWED),
    Published("receiver's cycles −13 %", 0.865, 0.875, _stream("one-to-one", 1e8), metric="receiver_cpu_cost"),
    Published("receiver's cycles −17 %", 0.825, 0.835, _stream("many-to-one", 1e8), metric="receiver_cpu_cost"),
    Published("web: times equal", 0.98, 1.02, _rr(nagle=False), metric="latency_p50"),
    Published("web: jumbo slower", 1.02, MORE, _rr(nagle=True), metric="latency_p50"),
    _web("the same for all frame sizes", 0.98, 1.02, "operations", conditions={"nagle": False}),
    _web("the same for all frame sizes", 0.98, 1.02, "response_mean", conditions={"nagle": False}),
    _web("jumbo slower", 1.02, MORE, "response_mean", conditions={"nagle": True}),
    _web("about 270 → 500 ms (250 users)", 1.75, 1.95, "response_mean", conditions={"mtu": 1500}, treatment="nagle",
         levels=(True,)),
    _web("about 270 → 500 ms (250 users)", 1.75, 1.95, "response_mean", conditions={"mtu": 9000}, treatment="nagle",
         levels=(True,)),
    *(Published(**each) for each in published_hadoop.figures()),
)  # fmt: skip


def found(summaries: Sequence[Mapping[str, Any]], asked: Published) -> Iterator[Mapping[str, Any]]:
    """The verdicts that answer a published figure."""
    for verdict in (each for each in _verdicts(summaries) if not words.is_control(each)):
        at = verdict["conditions"]
        same = all(_alike(at.get(name, _USUAL.get(name)), value) for name, value in asked.conditions.items())
        alike = verdict["metric"] == asked.metric and asked.workload in (None, verdict["workload"])
        if same and alike and verdict["treatment"].get(asked.treatment) in asked.levels:
            yield verdict


def _verdicts(summaries: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (each for summary in summaries for each in summary["verdicts"])


_USUAL = {"pattern": "one-to-one", "header_bytes": 0, "rtt_seconds": 200e-6}


def _alike(found: Any, asked: Any) -> bool:
    if isinstance(asked, float) and isinstance(found, (int, float)):
        return math.isclose(found, asked, rel_tol=1e-6)
    return bool(found == asked)


def rows(summaries: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """The table: case, published, ours, interval, verdict, whether they agree, and why not."""
    for asked in PUBLISHED:
        there = list(found(summaries, asked))
        if not there and asked.workload is None:
            yield [_case(asked), asked.said, "not measured", "", "", "", ""]
        for verdict in there:
            interval = verdict["ci95"]
            agree = "no evidence" if verdict["verdict"] in ("suspect", "not judged") else _agrees(asked, interval)
            yield [
                f"{_case(asked, verdict)}, {words.levels(verdict['treatment'])}",
                asked.said,
                "-" if verdict["ratio"] is None else _values(verdict),
                words.change_interval(interval),
                verdict["verdict"],
                agree,
                "unexplained" if agree == "no" else "",
            ]


def _agrees(asked: Published, interval: Sequence[float] | None) -> str:
    if interval is None:
        return "cannot tell"
    low, high = interval
    if low > asked.high or asked.low > high:
        return "no"
    # One so wide says nothing about equality.
    if asked.low <= 1 <= asked.high and not 1 / EQUAL <= low <= high <= EQUAL:
        return "cannot tell"
    # An interval that holds both the published effect and none at all says nothing about it.
    return "cannot tell" if low <= 1 <= high and not asked.low <= 1 <= asked.high else "yes"


def _values(verdict: Mapping[str, Any]) -> str:
    before, after = (words.quantity(verdict[side]["estimate"], verdict["unit"]) for side in ("baseline", "treatment"))
    return f"{before} → {after}, {words.change(verdict['ratio'], verdict['ci95'])}"


def _case(asked: Published, verdict: Mapping[str, Any] | None = None) -> str:
    own = verdict is not None and verdict["workload"] in ("rr", "web", "mapreduce")
    said = words.conditions(verdict["conditions"] if verdict and own else asked.conditions)
    one = (
        "one-to-one, " if asked.conditions.get("pattern") == "one-to-one" else f"{asked.workload or ''}, ".lstrip(", ")
    )
    return ", ".join(part for part in (f"{one}{said}", words.metric(asked.metric), asked.remark) if part)


def page(studies: Sequence[Saved], summaries: Sequence[Mapping[str, Any]], source: str) -> str:
    """The document."""
    table = list(rows(summaries))
    agreed = sum(row[5] == "yes" for row in table)
    lines = [
        "# A published study, run again",
        "",
        f"Written by `{source}` from full runs of the examples, on {platform.machine()}, Linux {_kernel()}, two CPUs.",
        "Published: *Jumbo Frames or Not: That is the Question!* (Purdue TR 13-006, 2013): twelve servers on one",
        "switch, 1 Gb/s, Linux 3.0, real NICs with TSO, LRO and interrupt coalescing, FTP. Ours: the same design",
        "on the emulated rack, with one new TCP connection per transfer instead of FTP, a virtual NIC, and this",
        "kernel.",
        "",
        f"**{agreed} of {len(table)} figures agree**: our 95 % interval overlaps the published figure with its",
        'rounding. An interval that also contains "no effect" cannot tell, nor can one that reaches beyond 20 % where',
        "the published figures are equal; a suspect one is no evidence. A reason for a difference is given only if an",
        "arm of a study isolates the cause; else it is *unexplained*. Candidates that have not been isolated: the",
        "virtual NIC, and a kernel fifteen years younger.",
        "",
        "| case | published | ours | 95 % interval | verdict | agree | why not |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(f"| {' | '.join(row)} |" for row in table),
        "",
        "## What our own changes are made of",
        "",
        "Each change of goodput as the product of its parts ([statistics.md](../why/statistics.md)).",
        "",
    ]
    for saved, summary in zip(studies, summaries, strict=True):
        said = [line for line in causes.lines(summary) if "MTU 9000" in line]
        blocks, excluded = summary["stopping"]["blocks"], len(summary["excluded"])
        lines.append(
            f"`{saved.folder.name}`: {len(saved.runs)} runs in {blocks} blocks, {excluded} excluded; {_faith(summary)}."
        )
        lines += ["", *(_item(line) for line in said), *([""] if said else [])]
    sites = list(published_web.lines(studies))
    hadoop, last = published_hadoop.remarks(any(each["workload"] == "mapreduce" for each in _verdicts(summaries)))
    site = "the web site at a smaller load" if sites else "the web site only as requests of its size"
    lines += [
        *sites,
        "## What was not carried at full rate",
        "",
        "Six senders and six receivers at the same time are more than one thread of the fabric carries at 1 Gb/s",
        "on two CPUs without losing fidelity. That case runs at 100 Mb/s per link, with sizes to match; whether",
        f"that was carried is stated above. {hadoop}, and {site}.",
        "CPU cost is that of a virtual NIC, in time, where the study counted cycles.",
        *last,
    ]
    return "\n".join(lines).rstrip() + "\n"


def _item(line: str) -> str:
    return textwrap.fill(line, 120, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def _kernel() -> str:
    return platform.release().split("-")[0]


def _faith(summary: Mapping[str, Any]) -> str:
    if summary["suspect"]:
        more = len(summary["suspect"]) - 1
        return f"suspect: {summary['suspect'][0]}" + (f" (and {more} more)" if more else "")
    return "faithful" if summary["faithful"] else "not faithful"


def left(folder: Path, study: str) -> float:
    """About how long what is left of a study takes at most, in seconds: it may be settled sooner."""
    asked = study_file.load(study)
    if not (folder / "results.json").exists():
        return total_seconds(asked)
    saved = read(folder)
    filled = len({run.key for run in saved.runs if not run.excluded})
    return total_seconds(asked) * max(0.0, 1 - filled / len(order(asked)))


def run_all(results: Path, studies: Mapping[str, str]) -> list[Path]:
    """Runs what is left of these studies; their folders. Ctrl-C loses nothing: the same command goes on."""
    missing = {name: left(results / name, study) for name, study in studies.items()}
    told = ", ".join(f"{name} {print_seconds(round(seconds), 3)}" for name, seconds in missing.items() if seconds)
    print(
        f"left to run: at most about {print_seconds(round(sum(missing.values())), 3)} ({told or 'nothing'})",
        file=sys.stderr,
    )
    program = str(Path(sys.executable).with_name("framegauge"))
    for name, study in studies.items():
        folder = results / name
        if not missing[name]:
            continue
        given = ["--resume"] if folder.exists() else [study]
        # 3: not faithful, or nothing judged; the document says so.
        if subprocess.run([program, "study", *given, "--out", str(folder)], check=False).returncode not in (0, 3):
            raise SystemExit(f"{study}: the study failed or was interrupted, see above; the same command goes on")
    return [results / name for name in studies]


def main() -> None:
    """Run if asked to, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR", help="results of the studies")
    parser.add_argument("--run", action="store_true", help="run what is left of the studies first, into results/")
    parser.add_argument("--hadoop", action="store_true", help="with --run: also Hadoop, which takes ten hours")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the document")
    options = parser.parse_args()
    studies = {**STUDIES, **(published_hadoop.STUDIES if options.hadoop else {})}
    folders = list(options.folders) + (run_all(Path("results"), studies) if options.run else [])
    if not folders:
        parser.error("expected folders of results, or --run")
    done = [read(folder) for folder in folders]
    text = page(done, [summarise(saved) for saved in done], "bench/reproduction.py")
    print(text)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
