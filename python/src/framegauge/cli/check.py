"""Arguments and output of `framegauge check`; no logic."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from framegauge.cli import output, values
from framegauge.cli.arguments import Verb, verb_parser
from framegauge.errors import InputError, failing_as

if TYPE_CHECKING:
    from framegauge.check.plan import Asked, Member, Target
    from framegauge.check.tunnels import Encapsulated

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "find the path MTU of every pair, and the link to blame"
_MORE = """\
A HOST is local (this machine), netns:NAME (a network namespace of it, as `ip netns` shows; needs root, through sudo),
a name that ssh knows, or a host of the --testbed. HOST%IFACE names the interface whose address is meant, that of an
overlay, say. Each gets an agent that sends and answers UDP probes; no ICMP is needed, and no privilege on a host. Over
ssh the agent is copied to a cache folder where it is missing; --hosts FILE takes an inventory, ours or Ansible's, which
is run if it is a program (see framegauge hosts --help).

Every direction of every pair is probed over many source ports, so that one bad path of several is found. A size counts
as lost only if a router reports it, or if packets one byte smaller pass beside it so often that chance is below one in
a million, for the whole check and whatever losses depend on. What is lost only because it comes fast is asked again
slowly, which may take half a minute; else the answer is "could not tell".

--one-ended TARGET is for a target where no agent can run, such as a router, a storage box or somebody else's host. From
each HOST (local, if none is named) the largest ICMP echo that comes back whole is looked for, which passes both ways;
where more does not, the direction stays unknown unless something tells it. Of TCP the peer's MSS is read, a hint. Both
need no root where net.ipv4.ping_group_range has this user's group; else CAP_NET_RAW, or TCP alone is tried.

By default each host sends at most 1 % of its link's rate; --rate unlimited is for a lab.

examples:
  framegauge check local netns:blue
  framegauge check local db1 db2
  framegauge check --hosts inventory.ini --group storage
  framegauge check netns:a netns:b%vxlan0 --mtu 8950
  framegauge check a%wg0 b%wg0 --mtu 9000 --encap wireguard   through a tunnel: 8940 for each peer, or how much less
  framegauge examples ecmp-one-of-four --copy .             a lab of faults to try it on, of those that it lists
  framegauge check --testbed faults/ecmp-one-of-four.yaml --rate unlimited
  framegauge check --testbed rack.yaml h1 h12 -4 --json | jq '.pairs[].path_mtu_bytes'
  framegauge check local netns:blue --html check.html
  framegauge check --one-ended 192.0.2.7 --one-ended nas.example.net --tcp-port 2049
  framegauge check local netns:blue --every 60s --listen 127.0.0.1:9795

exit codes: 0 all paths carry the target, 1 a fault, 2 could not tell (or bad input), 130 interrupted
"""
SIZES = (576, 65_535)
EVERY_SECONDS = (1, 86_400)
MOST_FLOWS = 1024
COULD_NOT_TELL = 2
TCP_PORT = "443"


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser(
        "check", SUMMARY, _MORE,
        "Can every path carry the frames? The path MTU of every pair, each way, and the link to blame.",
    )  # fmt: skip
    verb.add_argument(
        "hosts", nargs="*", metavar="HOST", help="local, netns:NAME, what ssh knows, or a host of --testbed"
    )
    verb.add_argument("--hosts", dest="inventory", metavar="FILE", help="hosts of an inventory, over ssh")
    verb.add_argument("--group", default="all", metavar="NAME", help="of an Ansible inventory (all)")
    verb.add_argument("--testbed", metavar="FILE", help="build the network of a lab or study file for this check")
    verb.add_argument("--mtu", default="9000", metavar="BYTES", help="what every path should carry (9000)")
    verb.add_former("--target-mtu", "--mtu")
    verb.add_argument(
        "--encap", default="", metavar="LIST",
        help="prove for each peer what these leave of the underlay's --mtu, such as wireguard or vxlan,ipv6",
    )  # fmt: skip
    family = verb.add_mutually_exclusive_group()
    family.add_argument("-4", dest="families", action="store_const", const=(4,), help="IPv4 only")
    family.add_argument("-6", dest="families", action="store_const", const=(6,), help="IPv6 only")
    verb.add_argument("--flows", metavar="N", help="source ports per pair and direction (32)")
    verb.add_argument(
        "--one-ended", action="append", default=[], metavar="TARGET",
        help="an address or name (or host of --testbed) where no agent runs; may be repeated",
    )  # fmt: skip
    verb.add_argument("--tcp-port", metavar="PORT", help="of such targets, to look at TCP, or none (443)")
    verb.add_argument("--rate", metavar="RATE", help='what each host may send, such as "100 Mb/s", or unlimited')
    verb.add_argument("--no-blame", dest="blame", action="store_false", help="do not look for the link to blame")
    verb.add_argument(
        "--details", action="store_true", help="print every finding in full, with its evidence, not what fits a screen"
    )
    verb.add_argument("--json", action="store_true", help="print the result document (framegauge docs check)")
    verb.add_argument("--html", type=output.place, metavar="FILE", help="write one offline page")
    verb.add_argument(
        "--every", metavar="TIME", help="repeat so often until Ctrl-C, such as 60s, and serve Prometheus metrics"
    )
    verb.add_former("--watch", "--every", values.in_seconds)
    verb.add_argument(
        "--listen", default="127.0.0.1:9795", metavar="HOST:PORT", help="where, with --every (127.0.0.1:9795)"
    )
    verb.add_former("--metrics", "--listen")
    return verb


def run(words: Sequence[str]) -> int:
    """Check, show, and give the exit code."""
    with failing_as(COULD_NOT_TELL):  # 1 says that there is a fault
        return _run(words)


def _run(words: Sequence[str]) -> int:
    options = parser().parse_args(words)
    settings = _asked(options)
    every = None if options.every is None else values.seconds("--every", options.every, *EVERY_SECONDS)
    output.one_to_standard_output({"--json": options.json, "--html": options.html})
    output.check_file("--html", options.html)
    from framegauge.check import open as check_hosts

    machines = []
    if options.inventory is not None:
        from framegauge.files import inventory

        if options.testbed is not None:
            raise InputError("--hosts: found --testbed, too, expected one of them")
        machines = inventory.load(options.inventory, options.group, output.say)
    opened = check_hosts.opened(options.hosts, options.testbed, output.say, options.one_ended, machines)
    with opened as (members, targets):
        if every is None:
            return _once(members, targets, settings, options)
        return _repeat(members, targets, settings, options, every)


def _asked(options: argparse.Namespace) -> Asked:
    from framegauge.check.plan import Asked

    rate: float | None = None
    if options.rate is not None:
        limit = values.rate("--rate", options.rate, "unlimited")
        rate = float("inf") if limit is None else float(limit)
    target = values.mtu("--mtu", options.mtu, *SIZES)
    inside = _encapsulated(options.encap, target)
    target = target if inside is None else inside.inner_mtu
    if not options.one_ended:
        flows = values.number("--flows", options.flows or "32", 1, MOST_FLOWS)
        if options.tcp_port is not None:
            raise InputError(f'--tcp-port: found "{options.tcp_port}" without --one-ended, expected both')
        return Asked(target, options.families, flows, rate, blame=options.blame, encapsulated=inside)
    if options.flows is not None:
        raise InputError(f'--flows: found "{options.flows}" with --one-ended, expected none: echoes have no ports')
    port = options.tcp_port or TCP_PORT
    tcp_port = None if port == "none" else values.number("--tcp-port", port, 1, 65_535, ", or none")
    return Asked(target, options.families, 1, rate, blame=options.blame, tcp_port=tcp_port, encapsulated=inside)


def _encapsulated(words: str, underlay_mtu: int) -> Encapsulated | None:
    """What a stack of encapsulations leaves; None where none is named."""
    if not words.strip():
        return None
    from framegauge.check.tunnels import Encapsulated
    from framegauge.cli import encapsulations

    layers = words.lower().split(",")
    inner = encapsulations.ask(underlay_mtu, layers, None)["inner_mtu"]
    if inner < SIZES[0]:
        raise InputError(f"--encap: found {inner} bytes inside of {words}, expected {SIZES[0]} or more")
    return Encapsulated(tuple(layer.strip() for layer in layers), underlay_mtu, inner)


def _checked(members: Sequence[Member], targets: Sequence[Target], settings: Asked, quiet: bool) -> dict[str, Any]:
    from framegauge.check import echo as check_echo, neighbours as check_neighbours, plan as check_plan, run as check

    prepared = check_echo.prepare(members, targets, settings) if targets else check_plan.prepare(members, settings)
    if not quiet:
        output.say(_expectation(prepared, settings))
        for sentence in check_neighbours.crowded(prepared):
            output.say(sentence)
    began, last = time.monotonic(), [0.0]

    def progress(share: float, text: str) -> None:
        now = time.monotonic()
        if not quiet and now - began > 2 and now - last[0] >= 2:
            last[0] = now
            output.say(f"{text}: {share:.0%}")

    return check.run(prepared, settings, progress).document


def _expectation(prepared: Any, settings: Asked) -> str:
    from framegauge.check.judgement.remedies import count_of as counted
    from framegauge.quantities import print_bytes

    hosts, pairs = counted(len(prepared.members), "host"), len(prepared.paths)
    size = print_bytes(prepared.cost.bytes_total, 2)
    time_ = (
        "as fast as it goes"
        if prepared.seconds is None
        else f"about {max(prepared.seconds, 0.1):.1f} s, and more where something is wrong"
    )
    if prepared.targets:
        targets = counted(len(prepared.targets), "target")
        return f"{hosts}, {targets}, {counted(pairs, 'path')}: {size} in all, {time_}"
    each_way = f"{counted(pairs, 'pair')} (each way is one), {counted(settings.flows, 'flow')} each"
    return f"{hosts}, {each_way}: {size} in all, {time_}"


def _once(members: Sequence[Member], targets: Sequence[Target], settings: Asked, options: argparse.Namespace) -> int:
    from framegauge.check.judgement import verdict

    document = _checked(members, targets, settings, quiet=False)
    # The answer first: a page that cannot be written must not cost it.
    if options.json:
        output.show_json(document, indent=1)
    elif options.html != output.STANDARD_OUTPUT:
        _show(document, options.details)
    _write_page(document, options.html)
    return verdict.exit_code(document["verdict"])


def _repeat(
    members: Sequence[Member], targets: Sequence[Target], settings: Asked, options: argparse.Namespace, seconds: float
) -> NoReturn:
    from framegauge.check.judgement import verdict
    from framegauge.check.repeat import repeat
    from framegauge.report.check import matrix, prometheus

    def checked(document: dict[str, Any]) -> None:
        if options.json:
            output.show_json(document)
        elif options.html != output.STANDARD_OUTPUT:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            code = verdict.exit_code(document["verdict"])
            output.show(f"{stamp} exit code {code}: {matrix.headline(document)}")
        _write_page(document, options.html)

    host, _, port = options.listen.rpartition(":")
    repeat(
        lambda: _checked(members, targets, settings, quiet=True),
        seconds,
        (host.strip("[]"), values.number("--listen", port, 0, 65_535)),
        prometheus.text,
        serving=lambda address: output.say(f"metrics at http://{address}/metrics; Ctrl-C ends it"),
        checked=checked,
    )


def _write_page(document: dict[str, Any], path: Path | None) -> None:
    if path is None:
        return
    from framegauge.report.check import html

    output.write("--html", path, html.page(document, time.strftime("%Y-%m-%d %H:%M %z")).encode())


def _show(document: dict[str, Any], details: bool) -> None:
    from framegauge.cli.console import console
    from framegauge.report.check import terminal as check_terminal

    check_terminal.show(document, console(120), details)
