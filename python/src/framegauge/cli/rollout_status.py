"""Arguments and output of `framegauge rollout status`; no logic."""

from __future__ import annotations

import argparse

from framegauge.cli import output
from framegauge.cli.arguments import Verb
from framegauge.cli.rollout_file import Verbs, file_verb, hosts_of, json_option

__all__ = ["SUMMARY", "arguments", "run"]

SUMMARY = "compare every host with the journal"
_MORE = """\
Compares what every host has now with the journal. With --prove full-size packets are sent between all of them. A host
that cannot be reached, or tells what cannot be, is named beside the others. Files of owners that the journal says were
to keep the new MTU are read, and named with what they are.

examples:
  framegauge rollout status storage.yaml
  framegauge rollout status storage.yaml --prove --json
"""


def arguments(verbs: Verbs[Verb]) -> None:
    """Adds the parser."""
    verb = file_verb(verbs, "status", SUMMARY, _MORE)
    verb.add_argument("--prove", action="store_true", help="send full-size packets between all hosts")
    json_option(verb, "rollout-status")


def run(options: argparse.Namespace) -> int:
    """Print how every host is; the exit code."""
    from framegauge.rollout import lasting, run as rollout, text

    with hosts_of(options, partly=True) as hosts:
        document = rollout.states(hosts, options.prove, output.say) | {"files": lasting.files(hosts)}
    if options.json:
        output.show_json(document, indent=1)
    else:
        output.show(*text.state_lines(document))
    return int(not document["as_it_should_be"])
