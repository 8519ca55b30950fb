"""Arguments and output of `framegauge compare`; no logic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from framegauge.cli import output
from framegauge.cli.arguments import Verb, verb_parser
from framegauge.errors import InputError, failing_as

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "say whether one folder of runs, or any of several, is worse than another"
_MORE = """\
BASE and NEW are each one of:
  DIR                 a results folder of framegauge study
  DIR                 a folder of files of iperf3 -J (*.json), one file per run
  DIR                 a folder of flent's data files (*.flent, .flent.gz, .flent.bz2), one file per run
  DIR@BEGIN..END      the runs of such a folder that began within a time window: 10:00..10:20, or with
                      dates, 2026-11-21T10:00..2026-11-21T10:20 (ISO 8601; UTC if it has no offset)

Runs are compared that were made alike: same workload, conditions, level and metric. What only one side has is
listed, and so are excluded runs, which are no samples. The sides were measured apart, so whatever else changed between
them is in the ratio; levels of one study are better compared by framegauge study, block by block
(framegauge docs compare).

Several NEWs make one table, each against BASE. All of its comparisons are one family, so the whole table misleads as
seldom as that of one NEW; their intervals are wider for it.

The margin of a metric (the smallest difference worth acting on) is that of --margin, else the one declared for BASE,
else 2 % for goodput, completion_time, transactions and fairness, and 5 % for all others.

examples:
  framegauge compare results/before results/after
  framegauge compare results/soak@10:00..10:20 results/soak@11:00..11:20
  framegauge compare iperf3/before iperf3/after --margin goodput=1% --margin retransmits=20%
  framegauge compare results/cubic results/bbr results/dctcp --metric goodput
  framegauge compare results/before results/after --json | jq '.verdicts[] | select(.verdict == "worse")'

exit codes: 0 nothing is worse (what is undecided counts as not worse, and is said), 1 something is worse,
2 cannot be compared (or bad input), 3 nothing is worse among what has a verdict, but something has none (suspect, not
judged; with --fail-on-undecided also undecided), 130 interrupted
"""
CANNOT = 2
WIDTH = 118  # of a file or pipe, for the lines that wrap
OPEN = 3
CODES = {"nothing_worse": 0, "worse": 1, "not_comparable": CANNOT, "not_all_judged": OPEN}


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser(
        "compare", SUMMARY, _MORE,
        "Is NEW better or worse than BASE? Runs that were measured apart, with intervals and margins.",
    )  # fmt: skip
    verb.add_argument("base", metavar="BASE", help="what it was like")
    verb.add_argument("new", nargs="+", metavar="NEW", help="what it is like now, or what else it may be like")
    verb.add_argument(
        "--margin", action="append", default=[], metavar="METRIC=SHARE",
        help='the smallest difference worth acting on, such as goodput=2%%; may be repeated',
    )  # fmt: skip
    verb.add_argument(
        "--metric", action="append", default=[], metavar="METRIC",
        help="compare this metric only: the fewer comparisons, the narrower their intervals; may be repeated",
    )  # fmt: skip
    verb.add_argument(
        "--fail-on-undecided", action="store_true", help="exit with 3 where a comparison is undecided and none is worse"
    )
    verb.add_argument("--json", action="store_true", help="print the document (framegauge schema compare)")
    return verb


def run(words: Sequence[str]) -> int:
    """Compare, show, and give the exit code."""
    with failing_as(CANNOT):  # 1 says that something is worse
        return _run(words)


def _run(words: Sequence[str]) -> int:
    options = parser().parse_args(words)
    margins = dict(_margin(text) for text in options.margin)
    for metric in options.metric:
        _metric("--metric", metric)
    from framegauge.compare import comparison, several
    from framegauge.compare.sources import read_side
    from framegauge.summary import document as summary

    base, *others = (read_side(name) for name in (options.base, *options.new))
    if len(others) == 1:
        document = comparison.compare(base, others[0], margins, options.metric)
    else:
        document = several.compare(base, others, margins, options.metric)
    if options.json:
        output.show_json_text(summary.text(document))
    else:
        _show(document)
    if document["outcome"] == "not_comparable":
        for line in _conclusions(document):
            output.say(line)
    judged = [verdict for part in document.get("comparisons", [document]) for verdict in part["verdicts"]]
    undecided = any(verdict["verdict"] == "undecided" for verdict in judged)
    if options.fail_on_undecided and undecided and document["outcome"] == "nothing_worse":
        return OPEN
    return CODES[document["outcome"]]


def _margin(text: str) -> tuple[str, float]:
    from framegauge.quantities import parse_share

    metric, equals, share = text.partition("=")
    if not equals:
        raise InputError(f'--margin: found "{text}", expected METRIC=SHARE, such as goodput=2%')
    _metric("--margin", metric)
    try:
        value = parse_share(share)
    except InputError as error:
        raise InputError(f"--margin {metric}: {error}") from None
    if not 0 < value < 1:
        raise InputError(f'--margin {metric}: found "{share}", expected more than 0 % and less than 100 %')
    return metric, value


def _metric(name: str, metric: str) -> None:
    from framegauge.metrics import METRICS

    if metric not in METRICS:
        raise InputError(f'{name}: found "{metric}", expected one of {", ".join(METRICS)}')


def _show(document: dict[str, Any]) -> None:
    from framegauge.cli.console import console
    from framegauge.compare import table, terminal as comparison_terminal

    shown = table if "comparisons" in document else comparison_terminal
    shown.show(document, console(WIDTH))


def _conclusions(document: dict[str, Any]) -> list[str]:
    from framegauge.compare import table, terminal as comparison_terminal

    return table.lines(document) if "comparisons" in document else [comparison_terminal.conclusion(document)]
