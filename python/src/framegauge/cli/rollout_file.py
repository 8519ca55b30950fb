"""What the verbs of `framegauge rollout` have in common that take a roll-out's file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from framegauge.cli import output
from framegauge.cli.arguments import Verb, add_verb

if TYPE_CHECKING:
    from framegauge.rollout.engine import Outcome
    from framegauge.rollout.run import Opened

__all__ = ["Verbs", "exit_code", "file_verb", "hosts_of", "json_option", "show_outcome"]

Verbs = argparse._SubParsersAction  # of argparse, which has no other name for it


def file_verb(verbs: Verbs[Verb], name: str, summary: str, more: str) -> Verb:
    """A verb with FILE and its journal."""
    verb = add_verb(verbs, name, summary, more)
    verb.add_argument("file", type=Path, metavar="FILE", help="a roll-out's file")
    verb.add_argument("--journal", type=Path, metavar="FOLDER", help="where its journal is (FILE's name, .rollout)")
    verb.add_argument(
        "--run-inventory", action="store_true", help="run an inventory that is a program (see framegauge hosts)"
    )
    return verb


def json_option(verb: Verb, schema: str) -> None:
    """For programs."""
    verb.add_argument("--json", action="store_true", help=f"print it as JSON (framegauge schema {schema})")


@contextmanager
def hosts_of(options: argparse.Namespace, undoing: bool = False, partly: bool = False) -> Iterator[Opened]:
    """The hosts of the file, reached; nothing is changed. `partly`: as many as can be."""
    from framegauge.rollout import file as rollout_file, run as rollout

    running = output.say if options.run_inventory else None
    plan = rollout_file.load(options.file, running)
    with rollout.opened(plan, options.journal, output.say, undoing, partly) as hosts:
        yield hosts


def show_outcome(outcome: Outcome, hosts: Opened, undoing: bool = False) -> None:
    """How a change ended, in words."""
    from framegauge.rollout import text

    lines = text.outcome_lines(outcome, hosts.asked.lease_seconds, hosts.asked.target_mtu, undoing)
    output.show(*lines)


def exit_code(outcome: Outcome, done: str) -> int:
    """0 if it ended as asked, and is so."""
    return int(outcome.kind != done or bool(outcome.why))
