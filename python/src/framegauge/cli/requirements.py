"""Arguments and output of `framegauge requirements`; no logic."""

from __future__ import annotations

from collections.abc import Sequence

from framegauge.cli import output, values
from framegauge.cli.arguments import Verb, verb_parser
from framegauge.errors import FramegaugeError

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "say what this machine lacks for a testbed"
PRECEDENCE = {
    "real time": "go before other programs of this machine (real time, SCHED_RR)",
    "nice": "get a larger share of the CPUs than other programs (nice): a busy machine may hold them up",
    "ordinary": "wait for other programs of this machine: it must be idle",
}
_MORE = """\
examples:
  framegauge requirements
  framegauge requirements --testbed veth --rate unshaped
  framegauge requirements --rate '10 Gb/s' --json

exit codes: 0 nothing is missing, 2 bad input, 1 something is missing
"""


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser("requirements", SUMMARY, _MORE)
    verb.add_argument("--testbed", choices=("rack", "veth"), default="rack", help="which one (default: rack)")
    verb.add_argument("--rate", default="1 Gb/s", metavar="RATE", help='link rate, such as "1 Gb/s", or unshaped')
    verb.add_argument("--json", action="store_true", help="print JSON")
    return verb


def run(words: Sequence[str]) -> None:
    """Print what is missing or weakens results; FramegaugeError if something is missing."""
    options = parser().parse_args(words)
    from framegauge.cli import commands

    rate = values.rate("--rate", options.rate, "unshaped")
    document = commands.requirements(options.testbed, rate, output.say_plainly)
    if options.json:
        output.show_json(document, indent=2)
    else:
        for kind in ("missing", "degraded"):
            for item in document[kind]:
                needed = f"needed for {item['needed_for']}; found {item['found']}; {item['remedy']}"
                output.show(f"{kind} {item['name']}: {needed}")
        if (precedence := document.get("precedence")) in PRECEDENCE:
            output.show(f"hosts of a rack {PRECEDENCE[precedence]}")
        if not document["missing"]:
            output.show(f"testbed {options.testbed} can be built here")
    if document["missing"]:
        count = len(document["missing"])
        raise FramegaugeError("a requirement is missing" if count == 1 else f"{count} requirements are missing")
