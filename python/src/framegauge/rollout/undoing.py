"""Takes a roll-out back by its journal, days later, also where some of its hosts cannot be reached.

A host that this machine cannot reach may still send to the others. If one of them hears from it, it could be sent
packets that it no longer takes in, so no interface is lowered: the routes of all that are reached are held at the
smaller MTU, which loses nothing, and the rest waits. Where nobody hears from it, the others are taken back whole. The
journal remembers who is left, and a later undo goes on from there.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from framegauge.errors import AgentFailure, InputError
from framegauge.rollout import standing, transition
from framegauge.rollout.engine import Outcome
from framegauge.rollout.journal import Journal, folder_of
from framegauge.rollout.model import Json
from framegauge.rollout.run import Opened, described, engine, lines_of, surveyed
from framegauge.rollout.transition import Link
from framegauge.workloads.programs import Running, running

__all__ = ["Undone", "by_hand", "undo"]

LISTENERS = 2  # hosts that try to hear from one that cannot be reached
# So long a neighbour that does not answer is believed in until it has been asked three times (arp(7),
# delay_first_probe_time and ucast_solicit), and a reserve. One that was heard of in the last 45 s is not asked.
HEARING_SECONDS, PATIENCE_SECONDS = 10, 40.0
# $1: the interface; then addresses. Prints those from which something comes: an answer, or the address of its hardware,
# which no firewall holds back. Exit code 3: there is no way to ask.
HEARD = f"""\
interface=$1; shift
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin
command -v ping >/dev/null && command -v ip >/dev/null || exit 3
for address; do ping -n -c 1 -w {HEARING_SECONDS} "$address" >/dev/null 2>&1 && printf '%s\\n' "$address" & done
wait
for address; do
  case $(ip neigh show to "$address" dev "$interface" 2>/dev/null) in
    *FAILED*|*INCOMPLETE*) ;; *lladdr*) printf '%s\\n' "$address" ;;
  esac
done
exit 0
"""

Say = Callable[[str], None]


@dataclass
class Undone:
    """How it ended. `left`: hosts that are still to be taken back, and why; `heard`: those of them that others hear
    from, and how, for which interfaces are left as they are."""

    outcome: Outcome
    left: Mapping[str, str] = field(default_factory=dict)
    heard: Mapping[str, str] = field(default_factory=dict)


def undo(hosts: Opened, folder: Path | None, say: Say, without: Collection[str] = ()) -> Undone | None:
    """Puts every host back to what the journal says that it was, in the same careful order; None if nothing is to be
    undone. `without`: hosts that were taken back by hand, or are gone for good: they are left out, and forgotten.

    InputError if what was raised on an interface since would not fit any more.
    """
    origin = {name: entry for name, entry in hosts.past.origin.items() if name not in without}
    _demand_known(hosts, without)
    if not origin:
        if without:
            with Journal(folder or folder_of(hosts.rollout.path)) as journal:
                journal.begin("undo", described(hosts), {}, {})
                journal.write("undone")
        return None
    errors: dict[str, str] = {}
    facts = surveyed(hosts, errors)
    unreached = {name: why for name, why in {**hosts.missing, **errors}.items() if name in origin}
    here = [[name for name in wave if name in origin and name not in unreached] for wave in hosts.asked.waves]
    if len(hosts.members) < 2 or not any(here):
        why = [
            *lines_of(unreached),
            *(f"{name}: to be run there: {entry}" for name in unreached for entry in by_hand(hosts, name)),
        ]
        raise AgentFailure(
            "\n".join([*why, f"found {len(hosts.members)} of its hosts that can be reached, expected two or more: "
                             "packets between them are the proof"])
        )  # fmt: skip
    links = {name: _going_back(hosts, name, say) for wave in here for name in wave}
    _demand_room(hosts, facts, {name: origin[name] for name in links})
    changes = transition.back_to([wave for wave in here if wave], hosts.asked.interfaces, origin, links)
    heard = {name: how for name in unreached if (how := _heard(hosts, name, say)) is not None}
    done = "undone_in_part" if unreached else "undone"
    with Journal(folder or folder_of(hosts.rollout.path)) as journal:
        work = engine("undo", hosts, changes, journal, origin, say, done=done)
        if unreached:
            journal.write("left", hosts=unreached, heard=heard)
        return Undone(work.hold() if heard else work.run(), unreached, heard)


def _going_back(hosts: Opened, name: str, say: Say) -> list[Link]:
    """The interfaces of a host that go back: without those that others need by now."""
    along = {link.interface: link.along for link in hosts.links[name]}
    needed = standing.needed_by(hosts.facts[name], hosts.asked.interfaces[name], hosts.past.origin[name], along)
    for interface, why in needed.items():
        say(f"{name}: {interface} keeps what it has: {why} stands on it")
    return [link for link in hosts.links[name] if link.interface not in needed]


def _demand_room(hosts: Opened, facts: Mapping[str, Json], origin: Mapping[str, Mapping[str, str]]) -> None:
    """InputError if something stands on an interface of these hosts that would not fit any more."""
    if against := standing.refused(facts, hosts.asked, origin):
        raise InputError("\n".join(map(str, against)))


def by_hand(hosts: Opened, name: str) -> Iterator[str]:
    """What to type on a host that cannot be reached."""
    settings, interface = hosts.past.origin[name], f"mtu:{hosts.asked.interfaces[name]}"
    links = [setting.removeprefix("mtu:") for setting in settings if setting.startswith("mtu:")]
    now = hosts.past.after.get(name, {}).get(interface, "0")
    # What stands on others goes first where it is lowered, and last where it is raised.
    for link in links if int(settings.get(interface, "0")) > int(now) else reversed(links):
        yield shlex.join(["ip", "link", "set", "dev", link, "mtu", settings[f"mtu:{link}"]])
    for link in links:
        if (own := transition.own_ipv6_mtu(settings, link)) is not None:
            yield from transition.typed({f"mtu6:{link}": str(own)})


def _demand_known(hosts: Opened, without: Collection[str]) -> None:
    """InputError unless the journal and the file mean the same hosts and interfaces."""
    origin, nics = hosts.past.origin, hosts.asked.interfaces
    if strangers := [name for name in without if name not in origin]:
        names = ", ".join(origin) or "none"
        raise InputError(f"--without {strangers[0]}: expected a host that is to be taken back: {names}")
    missing = [name for name in origin if name not in nics and name not in without]
    if missing:
        raise InputError(f"{', '.join(missing)}: found in the journal and not in the file, expected the same hosts")
    for name, settings in origin.items():
        if name not in without and f"mtu:{nics[name]}" not in settings:
            raise InputError(
                f"{name}: found the interface {nics[name]}, expected the one in the journal: {', '.join(settings)}"
            )


def _heard(hosts: Opened, name: str, say: Say) -> str | None:
    """How others hear from a host that cannot be reached, or why that is not known; None if nobody does."""
    plans = [entry["plan"] for entry in hosts.past.entries if entry["event"] == "plan"]
    addresses = [address for plan in plans[-1:] for address in plan["addresses"].get(name, ())]
    if not addresses:
        return "its addresses are not in the journal"
    say(f"{name}: cannot be reached: looking whether others hear from it")
    with ExitStack() as ends:
        programs: list[tuple[str, Running]] = []
        for member in hosts.members[:LISTENERS]:
            words = ["sh", "-c", HEARD, "sh", hosts.asked.interfaces[member.name], *addresses]
            programs.append((member.name, ends.enter_context(running(member.host, "listening", words))))
        for listener, program in programs:
            ended = program.wait(PATIENCE_SECONDS)
            if ended is None or ended["exit_code"] != 0:
                return f"{listener} has no ping or ip with which to look for it"
            if replies := program.output().split():
                return f"{listener} hears from it at {replies[0]}"
    return None
