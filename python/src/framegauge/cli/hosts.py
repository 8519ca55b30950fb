"""Arguments and output of `framegauge hosts`; no logic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from framegauge.cli import output
from framegauge.cli.arguments import Verb, verb_parser

if TYPE_CHECKING:
    from framegauge.files.machines import Machine

__all__ = ["SUMMARY", "parser", "run"]

UNLIMITED = 10_000  # columns where lines are not for a terminal
INVENTORIES = (".yaml", ".yml", ".ini", ".json", ".py")  # names that are files even where none is there
MOST_CELL = 80  # characters: no host makes the rows of the others wide
SUMMARY = "what hosts are: NICs, MTUs, TCP settings; and what a firewall must allow"
_MORE = """\
A HOST is local (this machine), netns:NAME (a network namespace of it), or a name that your ssh knows, as user@host. A
FILE is an inventory: YAML of ours with the key `hosts` (framegauge examples inventory/hosts), or Ansible's as YAML or
INI, which ansible-inventory then reads. Hosts are asked over your own ssh, with its configuration, keys and jump hosts;
nothing is changed on them but a cache folder, in which the agent is kept (~/.cache/framegauge).

Use only inventories that you trust. One that is a program (executable, beginning with #!), or names a plugin of
Ansible, is run; `options` may have ssh run a program (ProxyCommand); `agent` is a program that is copied to the host
and run there.

examples:
  framegauge hosts local
  framegauge hosts db1 db2 --json
  framegauge examples inventory/hosts --copy .      an inventory to change
  framegauge hosts inventory/hosts.yaml
  framegauge hosts inventory.ini --group storage --json
  framegauge hosts inventory.ini --explain          what a firewall between them must allow

exit codes: 0 all hosts answered, 1 one did not, 2 bad input
"""


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser(
        "hosts", SUMMARY, _MORE,
        "What hosts are: NICs, drivers, speeds, MTUs, offloads, tunnels, TCP settings.",
    )  # fmt: skip
    verb.add_argument(
        "hosts",
        nargs="*",
        metavar="HOST|FILE",
        help="local, netns:NAME, what ssh knows, or an inventory, ours or Ansible's",
    )
    verb.add_argument("--hosts", dest="inventory", metavar="FILE", help="hosts of an inventory, as for other verbs")
    verb.add_argument("--group", default="all", help="hosts of this group of an Ansible inventory (default: all)")
    verb.add_argument("--explain", action="store_true", help="say what a firewall must allow, and what sudo is for")
    verb.add_argument("--json", action="store_true", help="print everything that the hosts say of themselves")
    return verb


def run(words: Sequence[str]) -> int:
    """Ask the hosts and print what they say."""
    from framegauge.cli.console import console
    from framegauge.errors import InputError, failing_as
    from framegauge.files import inventory
    from framegauge.hosts import facts as hosts
    from framegauge.printable import one_line
    from framegauge.report import narrow

    options = parser().parse_args(words)
    with failing_as(2):
        machines = [machine for word in options.hosts for machine in _machines(word, options.group)]
        if options.inventory is not None:
            machines += inventory.load(options.inventory, options.group, output.say)
        if not machines:
            raise InputError(
                "hosts: found no host, expected HOST, or --hosts FILE; for example: framegauge hosts local"
            )
        if len({machine.name for machine in machines}) < len(machines):
            raise InputError("hosts: found a host twice, expected each once")
        document = hosts.gather(machines, output.say)
    if options.json:
        output.show_json(document, indent=2)
    elif options.explain:
        output.show(*hosts.explained(document))
    else:
        rows = [[*(one_line(cell, MOST_CELL) for cell in row[:-1]), one_line(row[-1])] for row in hosts.table(document)]
        head = ["host", "interface", "driver", "speed", "MTU", "offloads on", "rest"]
        output.show(*(line.rstrip() for line in narrow.aligned(head, rows, console(UNLIMITED).width)))
    return int(any(host["error"] is not None for host in document["hosts"]))


def _machines(word: str, group: str) -> Sequence[Machine]:
    """The hosts that a word means: those of an inventory, if it is the path of a file, or one."""
    from framegauge.files import inventory
    from framegauge.files.machines import Machine

    if "/" in word or Path(word).suffix in INVENTORIES or Path(word).is_file():
        return inventory.load(word, group, output.say)
    return [Machine(name=word)]
