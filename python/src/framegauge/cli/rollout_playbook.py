"""Arguments and output of `framegauge rollout playbook`; no logic."""

from __future__ import annotations

import argparse
from pathlib import Path

from framegauge.cli import output
from framegauge.cli.arguments import Verb, add_verb
from framegauge.errors import InputError

__all__ = ["SUMMARY", "arguments", "run"]

SUMMARY = "write playbooks of Ansible that do the order of a plan, and undo it"
_MORE = """\
PLAN is what `framegauge rollout plan FILE --json` prints. rollout.yml holds every route at the smaller MTU, changes the
interfaces, proves full-size packets with ping, and releases the routes wave by wave; undo.yml takes it back. They need
ip and ping on the hosts, and ansible-core alone.

They lack the dead man's switch of `framegauge rollout apply`: if they are stopped half-way, routes stay held at the
smaller MTU, which loses nothing, until undo.yml is run.

examples:
  framegauge rollout plan storage.yaml --json > plan.json
  framegauge rollout playbook plan.json --out ansible
"""


def arguments(verbs: argparse._SubParsersAction[Verb]) -> None:
    """Adds the parser."""
    verb = add_verb(verbs, "playbook", SUMMARY, _MORE)
    verb.add_argument("plan", type=Path, metavar="PLAN", help="a plan as JSON")
    verb.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="a folder for rollout.yml and undo.yml")


def run(options: argparse.Namespace) -> int:
    """Write them."""
    from framegauge import __version__
    from framegauge.rollout import ansible

    playbooks = ansible.playbooks(ansible.read(options.plan), __version__)
    for name, text in playbooks.items():
        try:
            options.out.mkdir(parents=True, exist_ok=True)
            with (options.out / name).open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            problem = f"{options.out / name}: cannot be written ({error.strerror})"
            raise InputError(f"{problem}, expected a folder without such a file") from None
    output.show(f"{options.out}: {', '.join(playbooks)}")
    return 0
