"""Arguments and output of `framegauge rollout undo`; no logic."""

from __future__ import annotations

import argparse

from framegauge.cli import output
from framegauge.cli.arguments import Verb
from framegauge.cli.rollout_file import Verbs, exit_code, file_verb, hosts_of, show_outcome

__all__ = ["SUMMARY", "arguments", "run"]

IN_PART = 3
SUMMARY = "put back what the journal says was there before"
_MORE = """\
Puts back what the journal says that every host had before, in the same careful order, with the same proofs.

If some hosts cannot be reached, the others are taken back, and what is left is listed with the line to run there; the
same command later goes on with them. A host that cannot be reached but from which others hear keeps their interfaces
from being lowered: their routes are held at the smaller MTU, which loses nothing.

examples:
  framegauge rollout undo storage.yaml
  framegauge rollout undo storage.yaml --journal /srv/changes/1234
  framegauge rollout undo storage.yaml --without db7     the line was run on db7, or it is gone for good

exit codes: 0 undone, 1 put back, or not as it should be, 2 bad input, 3 undone in part: run it again later
"""


def arguments(verbs: Verbs[Verb]) -> None:
    """Adds the parser."""
    verb = file_verb(verbs, "undo", SUMMARY, _MORE)
    verb.add_argument(
        "--without", action="append", default=[], metavar="HOST", help="it was taken back by hand, or is gone for good"
    )


def run(options: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from framegauge.rollout import lasting, text, undoing

    with hosts_of(options, undoing=True) as hosts:
        undone = undoing.undo(hosts, options.journal, output.say, options.without)
        if undone is None:
            output.show("nothing is to be undone: the journal has no change that is not put back")
            return 0
        show_outcome(undone.outcome, hosts, undoing=True)
        lines = {name: list(undoing.by_hand(hosts, name)) for name in undone.left}
        output.show(*text.left_lines(undone.left, undone.heard, lines))
        output.show(*text.file_lines([row for row in lasting.files(hosts) if row["state"] != "gone"]))
        if undone.outcome.kind in ("undone_in_part", "held") and not undone.outcome.why:
            return IN_PART
        return exit_code(undone.outcome, "undone")
