"""Arguments and output of `framegauge rollout ticket`; no logic."""

from __future__ import annotations

import argparse
from pathlib import Path

from framegauge.cli import output
from framegauge.cli.arguments import Verb, add_verb
from framegauge.errors import InputError, failing_as

__all__ = ["SUMMARY", "arguments", "run"]

SUMMARY = "make the change ticket of a roll-out, or check one"
_MORE = """\
JOURNAL is the folder of a roll-out (NAME.rollout beside its file, or what --journal named). The ticket is a new folder
with one offline page, the same as JSON, the journal itself, playbooks of Ansible that do the same order and undo it,
the diffs of files that keep the change, and SHA-256 sums. No host is asked, and nothing depends on the time.

With --check, JOURNAL is a ticket: it is made again from the journal in it, and every byte is compared.

examples:
  framegauge rollout ticket storage.rollout --out ticket-1234
  framegauge rollout ticket --check ticket-1234
  framegauge rollout ticket storage.rollout --json | jq -r '.runs[-1].sentence'

exit codes: 0 done, 1 a ticket that its journal does not give, 2 bad input
"""


def arguments(verbs: argparse._SubParsersAction[Verb]) -> None:
    """Adds the parser."""
    verb = add_verb(verbs, "ticket", SUMMARY, _MORE)
    verb.add_argument(
        "journal", type=Path, metavar="JOURNAL", help="the folder of a roll-out, or with --check a ticket"
    )
    mode = verb.add_mutually_exclusive_group(required=True)
    mode.add_argument("--out", type=Path, metavar="FOLDER", help="write the ticket there")
    mode.add_argument("--check", action="store_true", help="compare a ticket with the journal in it")
    mode.add_argument("--json", action="store_true", help="print it (framegauge schema rollout-ticket)")


def run(options: argparse.Namespace) -> int:
    """Make, print or check it; the exit code."""
    import json

    from framegauge.rollout import ticket

    with failing_as(2):
        if not options.journal.is_dir():
            raise InputError(f"{options.journal}: found no folder, expected that of a roll-out")
        if options.check:
            differences = ticket.differences(options.journal)
            output.show(*differences or [f"{options.journal}: whole, and as its journal says"])
            return int(bool(differences))
        if options.json:
            output.show_json(json.loads(ticket.bundle(ticket.read(options.journal))["ticket.json"]), indent=1)
            return 0
        names = ticket.write(options.journal, options.out)
    output.show(f"{options.out}: {', '.join(names)}")
    return 0
