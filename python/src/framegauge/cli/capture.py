"""Arguments and output of `framegauge capture`; no logic."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from framegauge.cli import output, values
from framegauge.cli.arguments import Verb, verb_parser
from framegauge.errors import InputError

if TYPE_CHECKING:
    from framegauge.capture.run import Asked, Captured

__all__ = ["SUMMARY", "parser", "run"]

SUMMARY = "take the headers of TCP on several hosts at once, for framegauge diagnose"
_MORE = """\
A HOST is local (this machine), netns:NAME (a network namespace of it), rack:NAME (a host of the rack that is up;
rack:all is all of them) or a name that ssh knows; --hosts FILE takes an inventory (see framegauge hosts --help).
HOST%IFACE captures on that interface alone; without it, on all that are up and have an address, without the loopback.

Taken are the headers of TCP, ICMP and what tunnels carry, into a ring on each host: when it is full, the oldest packets
give way. Into the folder --out go, for each host, HOST.pcapng and HOST.json, which has the kernel's TCP counters and
TCP_INFO of every connection, before and after. The ssh connections to the hosts themselves are left out. Nothing is
sent on the network but what ssh carries. Capturing needs CAP_NET_RAW; where the user of ssh has it not, the agent asks
sudo for packet sockets (sudo -n).

--until-trouble ends the capture soon after the kernel of a host counts something that costs time, and keeps the seconds
around it; --for is then the longest wait. The signs: timeouts, loss_probes, retransmits, syn_retransmits, zero_window,
path_mtu, listen_overflows, memory, aborts, checksums, receiver_limited, buffer_limited; and, only if asked for,
spurious, reordering. `framegauge docs capture` says what each counts.

examples:
  framegauge capture db1 db2 --for 30s --out slow
  framegauge diagnose slow
  framegauge capture db1 --until-trouble --for 1h --sign timeouts --sign retransmits=100
  framegauge capture local%eth0 netns:blue --for 10s --port 5432
  framegauge capture --hosts inventory.ini --group storage --for 1min --most 64MB
  framegauge capture rack:all --for 5s

exit codes: 0 captured, 1 a host was lost or could not begin, 2 bad input, 3 no trouble came, 130 interrupted (what was
captured is kept)
"""
SNAP_BYTES = (64, 262_144)
MOST_BYTES = (1 << 20, 1000 << 20)
MOST_PORTS = 64
LONGEST_SECONDS = 100 * 86_400.0
NO_TROUBLE = 3


def parser() -> Verb:
    """The arguments."""
    verb = verb_parser("capture", SUMMARY, _MORE)
    verb.add_argument("hosts", nargs="*", metavar="HOST", help="local, netns:NAME, rack:NAME, or what ssh knows")
    verb.add_argument("--hosts", dest="inventory", metavar="FILE", help="hosts of an inventory, over ssh")
    verb.add_argument("--group", default="all", metavar="NAME", help="of an Ansible inventory (all)")
    verb.add_argument("--for", dest="seconds", metavar="TIME", help="how long, such as 30s")
    verb.add_argument("--until-trouble", action="store_true", help="end soon after a sign of trouble")
    verb.add_argument(
        "--sign", action="append", default=[], metavar="NAME[=COUNT]",
        help="what is trouble, and how much of it within a second (1); may be repeated",
    )  # fmt: skip
    verb.add_argument("--before", metavar="TIME", help="what to keep of before trouble (10s)")
    verb.add_argument("--after", metavar="TIME", help="how long to go on after trouble (2s)")
    verb.add_argument("--out", type=Path, metavar="DIR", help="where to write (a new folder, named by the time)")
    verb.add_argument(
        "--interface", action="append", default=[], metavar="IFACE", help="on every host; may be repeated"
    )
    verb.add_argument("--port", action="append", default=[], metavar="PORT", help="of TCP; may be repeated")
    verb.add_argument("--snaplen", default="192", metavar="BYTES", help="bytes to keep of each packet (192)")
    verb.add_argument("--most", default="256 MB", metavar="SIZE", help="what to keep on each host (256 MB)")
    verb.add_argument("--with-ssh", action="store_true", help="do not leave out the ssh connections to the hosts")
    verb.add_argument("--json", action="store_true", help="print what was captured as JSON")
    return verb


def run(words: Sequence[str]) -> int:
    """Capture, show, and give the exit code."""
    options = parser().parse_args(words)
    settings = _asked(options)
    from framegauge.capture import files, open as hosts, run as captures

    folder = files.choose_folder(options.out, time.time())
    machines = []
    if options.inventory is not None:
        from framegauge.files import inventory

        machines = inventory.load(options.inventory, options.group, output.say)
    with hosts.opened(options.hosts, machines, output.say) as members:
        captured = captures.capture(members, settings, folder, output.say)
    return _shown(captured, settings, options.json)


def _asked(options: argparse.Namespace) -> Asked:
    from framegauge.capture import signs
    from framegauge.capture.run import Asked

    if options.seconds is None and not options.until_trouble:
        raise InputError("capture: found neither --for nor --until-trouble, expected one: --for 30s, for example")
    for name, value in (("--sign", options.sign), ("--before", options.before), ("--after", options.after)):
        if value and not options.until_trouble:
            raise InputError(f"{name}: found no --until-trouble, expected both")
    ports = [values.number("--port", text, 1, 65_535) for text in options.port]
    if len(ports) > MOST_PORTS:
        raise InputError(f"--port: found {len(ports)} ports, expected at most {MOST_PORTS}")
    return Asked(
        seconds=None if options.seconds is None else values.seconds("--for", options.seconds, 0.1, LONGEST_SECONDS),
        signs=signs.asked(options.sign) if options.until_trouble else {},
        before_seconds=values.seconds("--before", options.before or "10s", 0, LONGEST_SECONDS),
        after_seconds=values.seconds("--after", options.after or "2s", 0, LONGEST_SECONDS),
        interfaces=options.interface,
        ports=ports,
        snap_bytes=values.size("--snaplen", options.snaplen, *SNAP_BYTES),
        most_bytes=values.size("--most", options.most, *MOST_BYTES),
        with_ssh=options.with_ssh,
    )


def _shown(captured: Captured, settings: Asked, as_json: bool) -> int:
    from framegauge.capture import terminal

    if as_json:
        output.show_json(terminal.document(captured), indent=1)
    else:
        output.show(*terminal.lines(captured))
    for why in captured.lost.values():
        output.say(why)
    if captured.interrupted:
        raise KeyboardInterrupt
    if captured.lost:
        return 1
    return NO_TROUBLE if settings.signs and captured.trouble is None else 0
