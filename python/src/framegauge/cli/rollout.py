"""The table of verbs of `framegauge rollout`; what each does is in its own module."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from framegauge.cli.arguments import Verb, verb_parser

__all__ = ["SUMMARY", "VERBS", "parser", "run"]

# A module has its SUMMARY, `arguments(verbs)` that adds its parser, and `run(options)`.
VERBS = {
    "preflight": "framegauge.cli.rollout_preflight",
    "plan": "framegauge.cli.rollout_plan",
    "apply": "framegauge.cli.rollout_apply",
    "status": "framegauge.cli.rollout_status",
    "undo": "framegauge.cli.rollout_undo",
    "persist": "framegauge.cli.rollout_persist",
    "ticket": "framegauge.cli.rollout_ticket",
    "switches": "framegauge.cli.rollout_switches",
    "playbook": "framegauge.cli.rollout_playbook",
}
SUMMARY = "change the MTU of running hosts, proved by packets and undone by itself"
_MORE = """\
FILE names the hosts, their interface, the new MTU and the waves (framegauge docs rollout; framegauge examples
rollout/storage). No host is rebooted. Every route is held at the old MTU, all interfaces are raised, full-size packets
between all hosts are proved both ways, and then the routes are released, wave by wave. Lowering is the same in the
opposite order.

Every change is a lease: it lasts only while full-size packets pass. Whatever dies or is cut off, everything is back
within the lease.

examples:
  framegauge rollout preflight db1 db2 --mtu 9000      what stands against it, and who would undo it
  framegauge rollout plan storage.yaml                 every step and its undo; nothing is changed
  framegauge rollout apply storage.yaml                do it, or put everything back
  framegauge rollout apply storage.yaml --gate 'framegauge watch storage-watch.yaml'
  framegauge rollout status storage.yaml --prove       how is every host now?
  framegauge rollout undo storage.yaml                 days later, from another machine with the journal
  framegauge rollout persist storage.yaml              have the owners of the MTUs keep it
  framegauge rollout ticket storage.rollout --out ticket-1234    everything about it, for who approves or audits it

exit codes: 0 done, 1 put back, or not as it should be, 2 bad input or refused, 3 undone in part, 130 interrupted and
put back
"""


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser("rollout", SUMMARY, _MORE)
    verbs = verb.add_subparsers(dest="subverb", required=True, metavar="VERB", parser_class=Verb)
    for name in VERBS:
        _module(name).arguments(verbs)
    return verb


def run(words: Sequence[str]) -> int | None:
    """One subverb; its exit code."""
    options = parser().parse_args(words)
    code: int | None = _module(options.subverb).run(options)
    return code


def _module(name: str) -> Any:
    return importlib.import_module(VERBS[name])
