"""Arguments and output of `framegauge rollout apply`; no logic."""

from __future__ import annotations

import argparse

from framegauge.cli import output, rollout_persist, rollout_plan
from framegauge.cli.arguments import Verb
from framegauge.cli.rollout_file import Verbs, exit_code, file_verb, hosts_of, show_outcome

__all__ = ["SUMMARY", "arguments", "run"]

SUMMARY = "change the MTUs, or put everything back"
_MORE = """\
Needs root on the hosts, or a rule for sudo (framegauge docs rollout). The journal is a folder beside FILE, by default
NAME.rollout: keep it, `undo` needs it. Ctrl-C puts everything back.

examples:
  framegauge rollout apply storage.yaml
  framegauge rollout apply storage.yaml --dry-run
  framegauge rollout apply storage.yaml --persist
  framegauge rollout apply storage.yaml --gate 'framegauge watch watch.yaml --wave --wait'
  framegauge rollout apply storage.yaml --journal /srv/changes/1234 --gate ./ask-monitoring
"""


def arguments(verbs: Verbs[Verb]) -> None:
    """Adds the parser."""
    verb = file_verb(verbs, "apply", SUMMARY, _MORE)
    verb.add_argument("--dry-run", action="store_true", help="as plan does: change nothing")
    verb.add_argument("--gate", metavar="COMMAND", help="asked before each wave but the first; exit code 0: go on")
    verb.add_argument("--persist", action="store_true", help="then have the owners of the MTUs keep it")


def run(options: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from framegauge.rollout import run as rollout

    with hosts_of(options) as hosts:
        if options.dry_run:
            return rollout_plan.show(hosts, as_json=False)
        outcome = rollout.apply(hosts, options.journal, output.say, options.gate)
        show_outcome(outcome, hosts)
        code = exit_code(outcome, "finished")
    return rollout_persist.carried_out(options, undo=False) if options.persist and code == 0 else code
