"""Arguments and output of `framegauge rollout preflight`; no logic."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from framegauge.cli import output, values
from framegauge.cli.arguments import Verb, add_verb, nearest
from framegauge.errors import InputError, failing_as

__all__ = ["SUMMARY", "arguments", "run"]

SUMMARY = "find what stands against a change of an MTU, and what would undo it"
_MORE = """\
Nothing is changed, and no packet is sent but those of ssh: a preflight reads. A HOST is local (this machine),
netns:NAME (a network namespace of it) or a name that ssh knows; HOST%IFACE names the interface, --interface that of
all. --hosts FILE takes an inventory, ours or Ansible's, which is run if it is a program (framegauge hosts --help).

It finds limits of drivers and XDP programs, VLANs, bonds, bridges, tunnels and Open vSwitch that do not fit, the
interface by which a host is managed, remembered path MTUs, and who owns the MTU: netplan, systemd-networkd,
NetworkManager, ifupdown, cloud-init, DHCP, a router or a container network. For each owner it prints the lines to
change as a diff, the command that takes them, and the way back.

Files that only root may read are named, not read: log in as root to know who owns an MTU for certain.

examples:
  framegauge rollout preflight db1 db2 --mtu 9000
  framegauge rollout preflight db1%ens4 db2%ens5 --mtu 9000 --json
  framegauge rollout preflight --hosts inventory.ini --group storage --interface eth1
  framegauge rollout preflight db1 --scope all --force management

exit codes: 0 nothing refuses it (there may be warnings), 1 something does, 2 bad input or a host without an answer
"""
SIZES = (68, 65_535)
LEASE_SECONDS = (1, 86_400)
MARKS = {"refused": "REFUSED", "warning": "warning", "note": "note"}


def arguments(verbs: argparse._SubParsersAction[Verb]) -> None:
    """Add its parser."""
    verb = add_verb(verbs, "preflight", SUMMARY, _MORE)
    verb.add_argument("hosts", nargs="*", metavar="HOST", help="local, netns:NAME, or what ssh knows")
    verb.add_argument("--hosts", dest="inventory", metavar="FILE", help="hosts of an inventory, over ssh")
    verb.add_argument("--group", default="all", metavar="NAME", help="of an Ansible inventory (all)")
    verb.add_argument("--mtu", default="9000", metavar="BYTES", help="what the interfaces are to have (9000)")
    verb.add_argument("--interface", metavar="IFACE", help="of hosts that name none (the one with an address)")
    verb.add_argument(
        "--scope", choices=("subnets", "all"), default="subnets",
        help="all: routes through a gateway are to get the MTU, too (subnets)",
    )  # fmt: skip
    verb.add_argument("--lease", default="60 s", metavar="TIME", help="after which a fault undoes the change (60 s)")
    verb.add_argument(
        "--force", action="append", default=[], metavar="KIND", help="do not refuse for this kind; may be repeated"
    )
    verb.add_argument("--json", action="store_true", help="print the document (framegauge schema rollout-preflight)")


def run(options: argparse.Namespace) -> int:
    """Read, judge, show."""
    with failing_as(2):
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    from framegauge.rollout.preflight import run as preflight

    target = values.mtu("--mtu", options.mtu, *SIZES)
    lease = values.seconds("--lease", options.lease, *LEASE_SECONDS)
    for kind in options.force:
        if kind not in preflight.KINDS:
            expected = nearest(kind, preflight.KINDS) or f", expected one of {', '.join(sorted(preflight.KINDS))}"
            raise InputError(f'--force: found "{kind}"{expected}')
    machines = []
    if options.inventory is not None:
        from framegauge.files import inventory

        machines = inventory.load(options.inventory, options.group, output.say)
    names = preflight.named(options.hosts, machines)
    interfaces = {name: interface or options.interface for name, interface in names.items()}
    facts, errors = preflight.read(list(interfaces), machines, output.say)
    request = preflight.chosen(interfaces, facts, target, options.scope, lease, frozenset(options.force))
    document = preflight.document(request, facts, errors)
    if options.json:
        output.show_json(document, indent=1)
    else:
        output.show(*_lines(document))
    return preflight.exit_code(document["verdict"])


def _lines(document: dict[str, Any]) -> Iterator[str]:
    """The verdict, then each finding with its remedy, then the changes."""
    import shlex

    from framegauge.printable import one_line, printable
    from framegauge.rollout.model import stated

    hosts = ", ".join(_host(entry) for entry in document["hosts"])
    verdict = {
        "clear": "nothing stands against it", "warnings": "possible, with warnings", "refused": "refused",
        "could_not_tell": "could not tell",
    }[document["verdict"]]  # fmt: skip
    yield one_line(f"MTU {document['target_mtu']} on {hosts}: {verdict}")
    for entry in document["hosts"]:
        if entry["error"] is not None:
            yield "  " + one_line(f"{entry['name']}: {entry['error']}")
    for entry in document["findings"]:
        text = f"{MARKS[entry['severity']]} {entry['where']}: {entry['what']}"
        yield "  " + one_line(f"{text}: {stated(entry['found'], entry['expected'])}")
        yield "    " + one_line(entry["remedy"])
    for entry in document["changes"]:
        yield ""
        yield one_line(f"On {entry['host']}, for {entry['owner']}:")
        yield from (printable(line) for line in entry["diff"].splitlines())
        for command in entry["reload"]:
            yield one_line(f"then: {shlex.join(command)}")


def _host(host: dict[str, Any]) -> str:
    now = "?" if host["mtu"] is None else host["mtu"]
    return f"{host['name']}/{host['interface']} (now {now})"
