"""Arguments and output of `framegauge rollout plan`; no logic."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from framegauge.cli import output
from framegauge.cli.arguments import Verb
from framegauge.cli.rollout_file import Verbs, file_verb, hosts_of, json_option

if TYPE_CHECKING:
    from framegauge.rollout.run import Opened

__all__ = ["SUMMARY", "arguments", "run", "show"]

SUMMARY = "print every step and its undo, and change nothing"
_MORE = """\
Reads the hosts and prints the waves, what stands against the change, and every step with its undo. Nothing is changed.

examples:
  framegauge rollout plan storage.yaml
  framegauge rollout plan storage.yaml --json | jq -r '.steps[] | [.host, .kind] | @tsv'
"""
REFUSED = 2


def arguments(verbs: Verbs[Verb]) -> None:
    """Adds the parser."""
    json_option(file_verb(verbs, "plan", SUMMARY, _MORE), "rollout-plan")


def run(options: argparse.Namespace) -> int:
    """Print the plan; the exit code."""
    with hosts_of(options) as hosts:
        return show(hosts, options.json)


def show(hosts: Opened, as_json: bool) -> int:
    """Print it for hosts that are reached."""
    from framegauge.rollout import run as rollout, text

    document = rollout.plan(hosts)
    if as_json:
        output.show_json(document, indent=1)
    else:
        output.show(*text.plan_lines(document))
    return REFUSED if rollout.refused(document) else 0
