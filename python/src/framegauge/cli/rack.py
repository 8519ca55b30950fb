"""Arguments and output of `framegauge rack`; no logic. Heavy imports wait until a rack is built."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from framegauge.cli import output, values
from framegauge.cli.arguments import Verb, add_verb, verb_parser
from framegauge.errors import InputError
from framegauge.networks import ports
from framegauge.rack import hand

__all__ = ["SUMMARY", "asked", "parser", "run"]

SUMMARY = "build a rack and keep it, for use by hand"
_MORE = """\
examples:
  framegauge examples pair clean --copy .          a study and a lab to try it on, of those that it lists
  framegauge rack up pair.yaml                     build the rack of a study, and keep it
  framegauge rack up faults/clean.yaml             or the network of a lab, with its faults
  framegauge rack exec h1 -- ping -c 3 h2          run a command in a host
  framegauge rack exec h2 -- bash                  or work there
  framegauge rack show --json                      what is up
  framegauge rack watch                            what its ports do, every second
  framegauge rack set 'switch>h1' --rate 100Mb/s   change a port, or a host's MTU, while it runs
  framegauge rack capture 'switch>h1'              every frame at a port with its fate, for Wireshark
  framegauge rack down                             take it down, with all that runs in it

One rack a user. A study may run while it is up; both share the CPUs.
exit codes: 0 done, 2 bad input, 130 interrupted, 1 anything else; `exec` has that of its command
"""
_UP = """\
The rack is that of the study's testbed with every factor at its baseline, or its first level where none is named.
FILE may also be a lab (framegauge docs fault-lab): its hosts, routers and switches are built as it says, faults
included.
Building it takes root: as another user, only its agent is started through sudo. It stays until `framegauge rack down`,
until the machine stops, or until its keeper is ended; nothing of it is left then.

examples:
  framegauge examples pair hop-1500-icmp-blocked --copy .
  framegauge rack up pair.yaml
  framegauge rack up faults/hop-1500-icmp-blocked.yaml
  framegauge rack up --preset demo
  framegauge rack up --preset demo --json | jq -r '.hosts[].address'
"""
_EXEC = """\
The command has the host's network and CPUs; the terminal, folder, environment and open files are yours. It runs as you:
where sudo is needed to get in, the command is no longer root's, and has your whole environment again, although sudo
strips it (the variables that sudo adds are left out). For root's rights in the host, use sudo as the command.

Hosts and routers know each other by name; one NIC of several is h1.1. The names are in the /etc/hosts that the command
sees, before the lines of your own.

It gets Ctrl-C and every other signal itself. The exit code is the command's (128 + n if signal n ended it, as the shell
says); 127 if it is not found, 126 if it cannot be started. It ends with the rack.

examples:
  framegauge rack exec h1 -- iperf3 -s
  framegauge rack exec h2 -- iperf3 -c h1 -t 5
  framegauge rack exec h2 -- ping -M do -s 8972 h1
  framegauge rack exec h1 -- sudo tcpdump -ni fg1
  framegauge rack exec h1 -- ss -tin
  framegauge rack exec r1 -- ip route              routers, and switches of a lab, too
"""
_DOWN = """\
Whatever runs in the hosts is ended. It is no error if there is no rack.

example:
  framegauge rack down
"""
_SHOW = """\
With --json: the state as one object, or null if no rack is up. The exit code is 0 either way.

examples:
  framegauge rack show
  framegauge rack list --json | jq '.hosts | length'
"""
_WATCH = """\
One line per port, the busiest first: the rate since the last look, the load (100 % is the line rate), the bytes queued
now, the longest queue since anybody's last look, and drops and ECN marks, per second and in total. The last line counts
the idle ports. Ctrl-C ends it.

With --json: one object per look, each on a line, with every counter of `rack.ports` (framegauge docs rack).

examples:
  framegauge rack watch
  framegauge rack watch --every 0.2s
  framegauge rack watch --once
  framegauge rack watch --json | jq -c '.ports[0] | [.port, .bits_per_second, .queued_bytes]'
"""
_SET = """\
PORT is FROM>TO, as `framegauge rack watch` names it; a shell needs it quoted, or switch:h1 instead. * stands for any
characters, and the name of a host or router for all of its NICs, which are h1.1 and h1.2. What is not named stays as it
is. A port is one way: a link has two. Of a host or router, the MTU of its interfaces can be set. A rack that is built
again has what its study says again.

examples:
  framegauge rack set 'switch>h1' --rate 100Mb/s --queue red
  framegauge rack set switch:h1 --delay 1ms --buffer 64KiB
  framegauge rack set '*>*' --mtu 9216
  framegauge rack set 'switch>h1' --down
  framegauge rack set 'switch>h1' --up
  framegauge rack set h1 --mtu 9000
  framegauge rack set r1 --mtu 9000                and what the router sends
"""
_CAPTURE = """\
PORT is FROM>TO, as `framegauge rack watch` names it; a shell needs it quoted, or switch:h1 instead. The file is pcapng
and has three interfaces: what came to the port, what left by it, and what was dropped there. Each frame has a comment
that says by which port it came, how much was queued, and how long it waited or why it was dropped; 192 bytes of it are
kept. Times are those of the fabric, exact to the nanosecond. Ctrl-C ends it, and keeps what there is. At most 256 MiB.

examples:
  framegauge rack capture 'switch>h1'
  framegauge rack capture switch:h1 --for 2s --write port.pcapng
  framegauge rack capture switch:h1 --write - | wireshark -k -i -
  wireshark port.pcapng
  tshark -r port.pcapng -T fields -e frame.time_relative -e frame.interface_name -e frame.comment
"""
SECONDS = (0.05, 3600.0)
MOST_NAMED = 8


def run(words: Sequence[str]) -> list[str] | None:
    """One subverb; what to become afterwards, if anything."""
    # What follows -- is the command's own, whatever it looks like.
    cut = words.index("--") if "--" in words else len(words)
    options = parser().parse_args(words[:cut])
    command = list(words[cut + 1 :])
    if options.subverb == "exec":
        return hand.exec_command(options.host, _command([*options.command, *command]), output.say)
    if command:
        raise InputError(f"rack {options.subverb}: found {' '.join(command)} after --, expected nothing")
    verbs = {"up": _up, "down": _down, "show": _show, "list": _show, "watch": _watch, "set": _set}
    verbs["capture"] = _capture
    verbs[options.subverb](options)
    return None


def parser() -> Verb:
    """The arguments before `--`."""
    rack_verb = verb_parser(
        "rack", SUMMARY, _MORE,
        "A rack for hand use: real hosts on an emulated network, kept until you take them down.",
    )  # fmt: skip
    verbs = rack_verb.add_subparsers(dest="subverb", required=True, metavar="VERB", parser_class=Verb)
    verb = functools.partial(add_verb, verbs)
    up_verb = verb("up", "build the rack of a study, or a lab, and keep it", _UP)
    mode = up_verb.add_mutually_exclusive_group()
    mode.add_argument("file", nargs="?", metavar="FILE", help="study or lab file (YAML; see framegauge docs fault-lab)")
    mode.add_argument("--preset", metavar="NAME", help="a study that comes with framegauge, such as demo")
    up_verb.add_argument("--json", action="store_true", help="print the rack as JSON")
    exec_verb = verb("exec", "run a command in a host or router of the rack, or a node of the lab", _EXEC)
    exec_verb.usage = "framegauge rack exec [-h] HOST -- COMMAND [ARGUMENT ...]"
    exec_verb.add_argument("host", metavar="HOST", help="such as h1, or r1")
    exec_verb.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="and its arguments, after --")
    verb("down", "take the rack down", _DOWN)
    show_verb = verb("show", "show the rack that is up (or: list)", _SHOW, aliases=["list"])
    show_verb.add_argument("--json", action="store_true", help="print JSON")
    watch_verb = verb("watch", "watch the ports of the rack", _WATCH)
    watch_verb.add_argument("--every", default="1 s", metavar="TIME", help="how often to look (default: 1 s)")
    watch_verb.add_former("--interval", "--every", values.in_seconds)
    watch_verb.add_argument("--once", action="store_true", help="one interval, and no more")
    watch_verb.add_argument("--json", action="store_true", help="print one object a look")
    capture_verb = verb("capture", "capture a port of the rack into a pcapng file", _CAPTURE)
    capture_verb.add_argument("port", metavar="PORT", help="such as 'switch>h1' or switch:h1")
    capture_verb.add_argument("--for", dest="seconds", default="10 s", metavar="TIME", help="how long (default: 10 s)")
    capture_verb.add_former("--seconds", "--for", values.in_seconds)
    capture_verb.add_argument(
        "--write", "-w", type=output.place, metavar="FILE", help="a new file (default: switch-h1.pcapng)"
    )
    _add_set(verb("set", "change a port, or the MTU of a host or router, while the rack is up", _SET))
    return rack_verb


def _add_set(change: argparse.ArgumentParser) -> None:
    change.add_argument(
        "where",
        metavar="PORT",
        help="such as 'switch>h1', switch:h1 or '*>h1'; or a host or router, such as h1; or a host's NIC, such as h1.2",
    )
    change.add_argument("--rate", metavar="RATE", help="line rate, such as 100Mb/s")
    change.add_argument("--delay", metavar="TIME", help="propagation delay of the link behind it, such as 1ms")
    change.add_argument("--mtu", metavar="BYTES", help="of the port, or the host's interface, such as 9000")
    change.add_argument("--buffer", metavar="BYTES", help="such as 64KiB")
    change.add_argument("--queue", metavar="KIND", help="queue discipline, such as taildrop, red, codel or step")
    link = change.add_mutually_exclusive_group()
    link.add_argument("--down", dest="up", action="store_false", default=None, help="let nothing pass")
    link.add_argument("--up", dest="up", action="store_true", default=None, help="let it pass again")


def _command(words: list[str]) -> list[str]:
    if not words:
        raise InputError("rack exec: found no command, expected one after the host: framegauge rack exec h1 -- ip addr")
    return words


def _up(options: argparse.Namespace) -> None:
    from framegauge.labs import file as lab_file
    from framegauge.study import file as study_file

    if options.preset is not None:
        state = hand.up(study_file.load_preset(options.preset), f"preset {options.preset}", output.say)
    elif options.file is not None and lab_file.is_lab(options.file):
        state = hand.up_lab(lab_file.load(options.file), options.file, output.say)
    elif options.file is not None:
        state = hand.up(study_file.load(options.file), options.file, output.say)
    else:
        raise InputError(
            "rack up: found neither FILE nor --preset, expected one; for example: framegauge rack up --preset demo"
        )
    if options.json:
        output.show_json(state, indent=2)
        return
    output.show(*_text(state))


def _down(_: argparse.Namespace) -> None:
    seconds = hand.down(output.say)
    output.show("no rack is up" if seconds is None else f"the rack is down, in {seconds:.2f} s")


def _show(options: argparse.Namespace) -> None:
    state = hand.show(output.say)
    if options.json:
        output.show_json(state, indent=2)
    elif state is None:
        output.show(f"no rack is up; build one: {hand.HOW}")
    elif state["state"] != "up":
        output.show(f"a rack is being built by process {state['keeper']['pid']}")
    else:
        output.show(*_text(state))
        for host in hand.members(state):
            if not host["running"]:
                output.say(f"{host['name']} has gone (process {host['pid']}): `framegauge rack down`, then up again")


def _watch(options: argparse.Namespace) -> None:
    from framegauge.cli.screen import Screen
    from framegauge.rack import port_rates

    looks = hand.looks(output.say, values.seconds("rack watch: --every", options.every, *SECONDS))
    if options.json:
        for before, after in looks:
            output.show_json(port_rates.between(before, after))
            if options.once or output.has_left():
                return
    before, after = next(looks)  # what is wrong is said before the screen is cleared
    with Screen(output.stream()) as screen:
        while True:
            screen.show(port_rates.table(port_rates.between(before, after), *screen.size()))
            if options.once or output.has_left():
                return
            before, after = next(looks)


def _capture(options: argparse.Namespace) -> None:
    port = ports.named(options.port)
    path = options.write or Path(ports.capture_file(port))
    if path != output.STANDARD_OUTPUT and path.exists():
        raise InputError(f"rack capture: {path}: found a file, expected a new name: --write FILE")
    output.check_file("rack capture: --write", path)
    summary, data = hand.capture(port, values.seconds("rack capture: --for", options.seconds, *SECONDS), output.say)
    output.write("rack capture: --write", path, data, new=True)
    counts = summary["port"]
    text = (
        f"{counts['received_frames']} frames that came to {port}, {counts['sent_frames']} that left, "
        f"{counts['dropped_frames']} that were dropped"
    )
    if path == output.STANDARD_OUTPUT:
        output.say(text)
    else:
        output.show(f"{path}: {text}")
    if summary["left_out"]:
        output.say(f"{summary['left_out']} packets at the end did not fit into the file")


def asked(options: argparse.Namespace) -> dict[str, Any]:
    """What the arguments of `set` ask of the agent; InputError if that is nothing."""
    from framegauge.networks import settings as rack_settings

    names = ("rate", "delay", "mtu", "buffer", "queue")
    return rack_settings.params(options.where, {name: getattr(options, name) for name in names}, options.up)


def _set(options: argparse.Namespace) -> None:
    from framegauge.networks import settings as rack_settings

    request = asked(options)
    result = hand.change(request, output.say)
    changed = result["changed"]
    more = f" and {len(changed) - MOST_NAMED} more" if len(changed) > MOST_NAMED else ""
    change_text = ", ".join(rack_settings.described(request))
    when = result["when"].astimezone().isoformat(sep=" ", timespec="milliseconds")
    output.show(f"{change_text}, since {when}: {', '.join(changed[:MOST_NAMED])}{more}")


def _text(state: Mapping[str, Any]) -> list[str]:
    """What is up, and how to use it."""
    hosts = state["hosts"]
    rows: list[Sequence[str]]
    if state["testbed"] != "lab":
        routers = state.get("routers", [])
        rows = [("node" if routers else "host", "interface", "address", "MTU")]
        for entry in hand.members(state):
            # Racks of older versions have one NIC per host, and say no more of it.
            for place, nic in enumerate(entry.get("nics", [entry])):
                mtu = nic.get("mtu", entry["mtu"])
                rows.append(("" if place else entry["name"], nic["interface"], nic["address"], str(mtu)))
        return [*_table(rows), "", _summary(state), *_usage(state, hosts[0], hosts[-1], hosts[-1]["address"])]
    rows = [("node", "kind", "interface", "MTU", "addresses")]
    for node in hosts:
        for place, entry in enumerate(node["interfaces"]):
            name, kind = ("", "") if place else (node["name"], node["kind"])
            rows.append((name, kind, entry["interface"], str(entry["mtu"]), ", ".join(entry["addresses"])))
    ends = [node for node in hosts if node["kind"] == "host"]
    # The last interface of a host is that of its overlay, if it has one.
    usage = _usage(state, ends[0], ends[-1], ends[-1]["interfaces"][-1]["addresses"][0])
    return [state["about"], "", *_table(rows), "", _summary(state), *usage]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _summary(state: Mapping[str, Any]) -> str:
    from framegauge.quantities import print_bits_per_second, print_seconds

    built = f"built in {state['build_seconds']:.2f} s"
    if state["testbed"] == "lab":
        return f"a lab of {len(state['hosts'])} nodes ({state['study']}), {built}"
    conditions = state["conditions"]
    rate = conditions["bits_per_second"]
    link = "unshaped" if rate is None else print_bits_per_second(rate)
    # Racks of older versions were all hosts on one switch.
    topology = conditions.get("network", {}).get("topology", {"kind": "rack"})["kind"]
    shape = "" if topology == "rack" else f"{topology}, "
    count = f"{len(state['hosts'])} hosts"
    if routers := state.get("routers"):
        filtered = [router["name"] for router in routers if router["icmp"] == "filtered"]
        count += f" and {len(routers)} {'router' if len(routers) == 1 else 'routers'}"
        count += f" (ICMP errors of {', '.join(filtered)} are filtered)" if filtered else ""
    return (
        f"a rack of {count} (testbed {state['testbed']}, {shape}{link}, base RTT "
        f"{print_seconds(conditions['rtt_seconds'])}, {state['study']}), {built}"
    )


def _usage(state: Mapping[str, Any], first: Mapping[str, Any], last: Mapping[str, Any], address: str) -> list[str]:
    lines = [
        f"use it:  framegauge rack exec {first['name']} -- ping -c 3 {address}",
        "end it:  framegauge rack down",
    ]
    # Hosts of older versions know no names.
    if state.get("names"):
        lines.append(f"hosts know each other by name: framegauge rack exec {first['name']} -- ping {last['name']}")
    return lines
