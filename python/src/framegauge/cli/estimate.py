"""Arguments and output of `framegauge estimate`; no logic."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from framegauge.cli import output, values
from framegauge.cli.arguments import Verb, verb_parser
from framegauge.errors import InputError

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "bound what jumbo frames would bring to hosts, without any change to them"
_MORE = """\
A HOST is local (this machine), netns:NAME (a network namespace of it), rack:NAME (a host of the rack that is up;
rack:all is all of them) or a name that ssh knows; --hosts FILE takes an inventory (see framegauge hosts --help).
HOST%IFACE reads that interface alone; without it, all that are up and have an address, without the loopback.

Nothing is changed and nothing is sent. For the time of --for each host tells what its kernel and NIC count: the NIC's
own histogram of frame sizes where the driver has one, packets and bytes of interfaces, what limited each TCP
connection, CPU time. Beside that headers are sampled in short windows, which takes at most 1 % of a CPU and needs
CAP_NET_RAW (root, or sudo -n on the host); without it sizes are computed from what the kernel counts for each
connection, and no message is known, so that nothing is said of Nagle's algorithm.

The figures are upper bounds of what a larger MTU can bring to this load: if they are small, there is nothing to gain,
and no study is needed. If not, a study tells what really comes. Estimate while the load is there that matters, and both
ends of it together: what the other end waits for, only that end knows.

examples:
  framegauge estimate db1 db2
  framegauge estimate db1 --for 5min --mtu 9000 --json
  framegauge estimate local%eth0 netns:blue --for 10s --rate 10Gb/s
  framegauge estimate --hosts inventory.ini --group storage
  framegauge estimate rack:all --for 5s
  framegauge study --preset cpu-model --out cpu && framegauge estimate --model cpu > cpu.yaml

exit codes: 0 estimated, 1 a host was lost or could not begin, 2 bad input, 130 interrupted (the estimate of what was
read is printed)

--model FOLDER asks no host: from the results of a study it fits what a core takes for a wakeup, a packet, an aggregate
and a byte, and prints that as the file that simulations name under testbed (cpu: cpu.yaml).
"""
USUAL_TARGETS = "4200,9000"
TARGETS = (576, 65_535)
MOST_TARGETS = 8
SECONDS = (1.0, 86_400.0)


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser("estimate", SUMMARY, _MORE)
    verb.add_argument("hosts", nargs="*", metavar="HOST", help="local, netns:NAME, rack:NAME, or what ssh knows")
    verb.add_argument("--hosts", dest="inventory", metavar="FILE", help="hosts of an inventory, over ssh")
    verb.add_argument("--group", default="all", metavar="NAME", help="of an Ansible inventory (all)")
    verb.add_argument("--for", dest="seconds", default="60s", metavar="TIME", help="how long to read (60s)")
    verb.add_argument(
        "--mtu", default=USUAL_TARGETS, metavar="BYTES[,BYTES]", help=f"larger MTUs to estimate ({USUAL_TARGETS})"
    )
    verb.add_former("--target-mtu", "--mtu")
    verb.add_argument(
        "--interface", action="append", default=[], metavar="IFACE", help="on every host; may be repeated"
    )
    verb.add_argument("--rate", metavar="RATE", help="link rate, such as 10Gb/s, where NICs do not tell the truth")
    verb.add_former("--speed", "--rate")
    verb.add_argument(
        "--model", metavar="FOLDER", type=output.place, help="what packets take of CPUs, from the results of a study"
    )
    verb.add_argument("--dry-run", action="store_true", help="say what would be asked of which host, and ask nothing")
    verb.add_argument("--json", action="store_true", help="print the estimate as JSON (framegauge schema estimate)")
    return verb


def run(words: Sequence[str]) -> int:
    """Read, estimate, show, and give the exit code."""
    options = parser().parse_args(words)
    if options.model is not None:
        return _model(options)
    seconds, targets = values.seconds("--for", options.seconds, *SECONDS), _targets(options.mtu)
    rate = None if options.rate is None else values.rate("--rate", options.rate)
    machines = []
    if options.inventory is not None:
        from framegauge.files import inventory

        machines = inventory.load(options.inventory, options.group, output.say)
    if options.dry_run:
        return _told(options, [*options.hosts, *(machine.name for machine in machines)], seconds)
    from framegauge.capture import open as hosts, readings
    from framegauge.estimate import document as estimates, terminal

    with hosts.opened(options.hosts, machines, output.say, "estimate") as members:
        sample = readings.take(members, seconds, targets, options.interface, output.say)
    result = estimates.estimate(sample.hosts, targets, rate, sample.lost, sample.interrupted)
    if options.json:
        output.show_json(result, indent=1)
    else:
        output.show(*terminal.lines(result))
    if sample.interrupted:
        raise KeyboardInterrupt
    return 1 if sample.lost else 0


def _model(options: argparse.Namespace) -> int:
    if options.hosts or options.inventory is not None:
        raise InputError("estimate: found hosts beside --model, expected a folder of results alone")
    if options.dry_run:
        output.show(f"{options.model}: read the runs of a study; no host is asked, and nothing is changed")
        return 0
    from framegauge.experiment import modelled

    document = modelled.model(options.model)
    if options.json:
        output.show_json(document, indent=1)
    else:
        output.exact(modelled.text(document))
    return 0


def _told(options: argparse.Namespace, names: Sequence[str], seconds: float) -> int:
    if not names:
        raise InputError(
            "estimate: found no host, expected local, netns:NAME, rack:NAME, what ssh knows, or --hosts FILE"
        )
    place = f"on {', '.join(options.interface)}" if options.interface else "on every interface with an address"
    output.show(
        *(f"{name}: start an agent, read counters for {seconds:g} s and sample headers {place}" for name in names),
        "nothing is changed on any of them, and nothing is sent between them",
    )
    return 0


def _targets(text: str) -> list[int]:
    targets = [values.mtu("--mtu", word.strip(), *TARGETS) for word in text.split(",")]
    if len(targets) > MOST_TARGETS or len(set(targets)) < len(targets):
        raise InputError(f'--mtu: found "{text}", expected up to {MOST_TARGETS} different MTUs')
    return sorted(targets)
