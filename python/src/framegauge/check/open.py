"""Opens the hosts of a check: listed ones, or those of a testbed that is built for it and taken down after."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.agents.privilege import privileged
from framegauge.check.judgement.remedies import count_of
from framegauge.check.plan import Member, Target
from framegauge.errors import InputError
from framegauge.files.machines import Machine
from framegauge.testbeds.base import Host
from framegauge.testbeds.listed import ListedHosts, Unreachable, placed, remote

__all__ = ["opened"]

Say = Callable[[str], None]


@contextmanager
def opened(
    words: Sequence[str],
    testbed: str | None,
    say: Say,
    one_ended: Sequence[str] = (),
    machines: Sequence[Machine] = (),
) -> Iterator[tuple[list[Member], list[Target]]]:
    """The members of a check, and its targets without an agent.

    `words` are HOST or HOST%IFACE, with a testbed those of its hosts that are meant; `machines` are hosts of an
    inventory, which come after them. `one_ended` are addresses and
    names, with a testbed those of its hosts, too; then no words mean this host, or all others of the testbed.
    """
    entries = [word.partition("%") for word in words]
    for name, percent, interface in entries:
        if not name or (percent and not interface):
            raise InputError(f'check: found "{name}{percent}{interface}", expected HOST or HOST%INTERFACE')
    if testbed is None:
        if not one_ended and len(words) + len(machines) < 2:
            there = count_of(len(words) + len(machines), "host")
            raise InputError(
                f"check: found {there}, expected two or more, --hosts FILE, --testbed FILE or --one-ended TARGET; "
                "for example: framegauge check local netns:other"
            )
        entries = entries or ([] if machines else [("local", "", "")])
        names = [*(name for name, _, _ in entries), *(machine.name for machine in machines)]
        if len(set(names)) < len(names):
            raise InputError(f"check: found {' '.join(names)}, expected each host once")
        targets = [_target(name) for name in one_ended]
        known = [placed(record) for record in machines]
        bed = ListedHosts([*(remote(name) for name, _, _ in entries), *known], say)
        interfaces = [*(interface for _, _, interface in entries), *(record.interface for record in machines)]
        try:
            hosts = bed.hosts()
            for host in hosts:
                # The others are checked, which may take long.
                if isinstance(host.agent, Unreachable):
                    say(host.agent.why)
            members = [Member(host, interface or None) for host, interface in zip(hosts, interfaces, strict=True)]
            yield members, targets
        finally:
            bed.close()
        return
    with _built(testbed, say) as (hosts, addresses):
        by_name = {host.name: host for host in hosts}
        for name, _, _ in entries:
            if name not in by_name:
                raise InputError(f"{name}: found no such host in {testbed}, expected one of {', '.join(by_name)}")
        chosen = entries or [(name, "", "") for name in by_name if name not in one_ended]
        targets = [Target(name, addresses[name]) if name in by_name else _target(name) for name in one_ended]
        yield [Member(by_name[name], interface or None) for name, _, interface in chosen], targets


def _target(name: str) -> Target:
    """An address, or what the name of one resolves to here: the first of each family."""
    try:
        infos = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(
            f"--one-ended: found {name or 'nothing'} ({reason}), expected an address or a name that has one"
        ) from None
    addresses: dict[int, str] = {}
    for family, *_, place in infos:
        address = str(place[0])
        # ::ffff:192.0.2.7 is 192.0.2.7, and on no wire (RFC 4291, section 2.5.5.2).
        mapped = ipaddress.IPv6Address(address).ipv4_mapped if family == socket.AF_INET6 else None
        if mapped is not None:
            family, address = socket.AF_INET, str(mapped)
        addresses.setdefault(6 if family == socket.AF_INET6 else 4, address)
    if any(ipaddress.ip_address(address.partition("%")[0]).is_link_local for address in addresses.values()):
        raise InputError(f"--one-ended: found {name}, expected an address that is not local to a link")
    return Target(name, addresses)


_Addresses = Mapping[str, Mapping[int, str]]


@contextmanager
def _built(path: str, say: Say) -> Iterator[tuple[Sequence[Host], _Addresses]]:
    """The hosts of a lab file, or of a study file with every factor at its baseline; their addresses by family."""
    from framegauge.labs import file as lab_file

    if lab_file.is_lab(path):
        from framegauge.testbeds.lab import LabTestbed

        network = lab_file.load(path).network
        with Agent.open(privileged([find_agent(), "rack"], say)) as agent:
            lab = LabTestbed(agent)
            lab.up(network)
            yield lab.hosts(), {host.name: lab.addresses(host.name) for host in lab.hosts()}
        return
    from framegauge.errors import StudyError
    from framegauge.experiment.planning import baseline
    from framegauge.study import file as study_file
    from framegauge.testbeds.rack import RackTestbed
    from framegauge.testbeds.veth import VethTestbed

    study = study_file.load(path)
    able = study.testbed.capabilities
    if able.is_invented or able.is_virtual:
        hosts = "a simulated" if able.is_virtual else "an invented"
        raise StudyError(
            [f'{path}: testbed.kind: found "{study.testbed.kind}", expected rack or veth: nothing runs in {hosts} host']
        )
    if study.testbed.kind == "ssh":
        raise StudyError(
            [f'{path}: testbed.kind: found "ssh", expected rack or veth: your own hosts are named, not built']
        )
    with Agent.open(privileged([find_agent(), "rack"], say)) as agent:
        bed = VethTestbed(agent) if study.testbed.kind == "veth" else RackTestbed(agent)
        bed.up(baseline(study))
        yield bed.hosts(), {host.name: {6 if ":" in host.address else 4: host.address} for host in bed.hosts()}
