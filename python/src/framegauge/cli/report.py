"""Arguments and output of `framegauge report`; no logic."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from framegauge.cli import live, output
from framegauge.cli.arguments import Verb, verb_parser
from framegauge.errors import InputError

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "judge the runs of a results folder again; print it, or write a page"
_MORE = """\
FILE may be -, which is standard output; nothing else is printed there then.

examples:
  framegauge report results/rack
  framegauge report results/rack --html rack.html --pictures pictures
  framegauge report results/rack --markdown - | less
  framegauge report results/rack --json | jq .verdicts
  framegauge report results/rack --csv - | column -s, -t | less -S          the metrics of every run
  framegauge report results/rack --flows flows.csv --run 3                 # to replay it: framegauge simulate
  framegauge check --hosts inventory.ini --json > check.json
  framegauge report results/rack --decision --check check.json
  framegauge report --live results/rack                                    a page of a study that runs elsewhere
"""


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser("report", SUMMARY, _MORE)
    verb.add_argument("folder", type=Path, metavar="DIR", help="results folder of framegauge study")
    verb.add_argument("--json", action="store_true", help="print summary.json instead of a table")
    verb.add_argument("--html", type=output.place, metavar="FILE", help="write one offline page")
    verb.add_argument(
        "--markdown", type=output.place, metavar="FILE", help="write the answer and the tables as Markdown"
    )
    verb.add_argument(
        "--csv", type=output.place, metavar="FILE", help="write the metrics of every run as CSV, a row for each"
    )
    verb.add_argument("--pictures", type=output.place, metavar="DIR", help="write every chart as SVG and PNG")
    verb.add_argument(
        "--decision", action="store_true",
        help="only what a decision takes, on one page: DIR/decision.html, or as --html, --markdown or --json have it",
    )  # fmt: skip
    verb.add_argument(
        "--check", type=Path, metavar="FILE", help="what framegauge check --json printed, for the risks of the decision"
    )
    verb.add_argument(
        "--flows", type=output.place, metavar="FILE",
        help="write the flows of a run as CSV, which a simulation can replay (workload replay)",
    )  # fmt: skip
    verb.add_argument(
        "--reseal", action="store_true",
        help="seal results again that were edited on purpose; every report of them says what was changed",
    )  # fmt: skip
    live.add(verb)
    verb.add_argument("--run", type=int, default=1, metavar="N", help="the number of that run (default: 1)")
    return verb


def run(words: Sequence[str]) -> None:
    """Judge, print and write what is asked for."""
    options = parser().parse_args(live.spelt(words))
    if options.live is not None:
        _only_live(options)
        return
    if options.reseal:
        _reseal(options)
        return
    printed = {"--json": options.json, "--html": options.html, "--markdown": options.markdown}
    piped = output.one_to_standard_output({**printed, "--flows": options.flows, "--csv": options.csv})
    if options.flows is not None:
        _write_flows(options.flows, options.folder, options.run)
        return
    if options.csv is not None:
        _write_metrics(options.csv, options.folder)
        return
    from framegauge.cli import commands, verdicts
    from framegauge.cli.documents import Wanted

    outputs = Wanted(options.html, options.markdown, options.pictures, options.decision, options.json, options.check)
    shown = piped in (None, "--json")
    if options.decision:
        summary, decision, written = commands.decision(options.folder, outputs)
        if shown:
            verdicts.show_decision(decision, options.json)
    else:
        summary, written = commands.report(options.folder, outputs)
        if shown:
            verdicts.show(summary, options.json)
    for path in written:
        if path != output.STANDARD_OUTPUT:
            output.say_plainly(f"written: {path}")
    verdicts.demand_evidence(summary)


def _write_metrics(path: Path, folder: Path) -> None:
    from framegauge.results import tables
    from framegauge.results.journal import read

    output.check_file("--csv", path)
    output.write("--csv", path, tables.csv(read(folder).runs, tables.METRICS))
    if path != output.STANDARD_OUTPUT:
        output.say_plainly(f"written: {path}")


def _alone(option: str, options: argparse.Namespace) -> None:
    names = ("json", "html", "markdown", "pictures", "decision", "check", "flows", "csv", "reseal")
    if beside := next((name for name in names if name != option and getattr(options, name)), None):
        raise InputError(f"--{option}: found --{beside} beside it, expected it alone")


def _only_live(options: argparse.Namespace) -> None:
    _alone("live", options)
    live.only(options.folder, options.live)


def _reseal(options: argparse.Namespace) -> None:
    from framegauge.cli import commands

    _alone("reseal", options)
    changed = commands.reseal(options.folder, datetime.now(UTC).isoformat(timespec="seconds"))
    output.say_plainly(f"sealed: {options.folder}; changed: {', '.join(changed) or 'nothing'}")


def _write_flows(path: Path, folder: Path, number: int) -> None:
    from framegauge.files import recordings
    from framegauge.report.recorded.run import recorded

    output.check_file("--flows", path)
    output.write("--flows", path, recordings.to_csv(recorded(folder, number)).encode())
    if path != output.STANDARD_OUTPUT:
        output.say_plainly(f"written: {path}")
