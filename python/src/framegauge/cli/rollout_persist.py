"""Arguments and output of `framegauge rollout persist`; no logic."""

from __future__ import annotations

import argparse

from framegauge.cli import output
from framegauge.cli.arguments import Verb
from framegauge.cli.rollout_file import Verbs, file_verb, hosts_of

__all__ = ["SUMMARY", "arguments", "carried_out", "run"]

SUMMARY = "have the owners of the MTUs keep what a roll-out did, or no longer"
_MORE = """\
After `apply` has finished: changes the files that `preflight` and `plan` name on every host, has their owners take
them, and then reads and proves everything again. A file that has changed since it was read is left alone, and one that
its owner refuses is put back. Needs root on the hosts, or a rule of sudo for sh and the owners' commands.

With --undo the lines go back that the journal has, whatever else is in the files by now. Do it before `undo`, or the
new MTU comes back with the next start. A host that cannot be reached is told; the same command goes on with it later.

examples:
  framegauge rollout persist storage.yaml
  framegauge rollout persist storage.yaml --undo

exit codes: 0 kept and proved, 1 something was not kept or is not as it should be, 2 bad input
"""


def arguments(verbs: Verbs[Verb]) -> None:
    """Adds the parser."""
    verb = file_verb(verbs, "persist", SUMMARY, _MORE)
    verb.add_argument("--undo", action="store_true", help="take back the lines that the journal has")


def run(options: argparse.Namespace) -> int:
    """Change the files, look again; the exit code."""
    return carried_out(options, options.undo)


def carried_out(options: argparse.Namespace, undo: bool) -> int:
    """Has the owners of a file's hosts keep its MTUs, or no longer; the exit code."""
    from framegauge.rollout import lasting, run as rollout, text

    with hosts_of(options, undoing=undo) as hosts:
        work = lasting.take_back if undo else lasting.keep
        failed = work(hosts, options.journal, output.say)
    # After a reload: what the owners made of it.
    with hosts_of(options, undoing=undo) as hosts:
        document = rollout.states(hosts, True, output.say) | {"files": lasting.files(hosts) if undo else []}
        left = [] if undo else lasting.loose(hosts)
    output.show(*failed, *text.state_lines(document), *left)
    return int(bool(failed) or not document["as_it_should_be"])
