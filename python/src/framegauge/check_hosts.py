"""Opens the hosts of a check: listed ones, or those of a testbed that is built for it and taken down after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from framegauge.agent import Agent, find_agent, privileged
from framegauge.check_plan import Member
from framegauge.errors import InputError
from framegauge.testbeds.base import Host
from framegauge.testbeds.listed import ListedHosts

__all__ = ["opened"]

Say = Callable[[str], None]


@contextmanager
def opened(words: Sequence[str], testbed: str | None, say: Say) -> Iterator[list[Member]]:
    """The members of a check; `words` are HOST or HOST%IFACE, with a testbed those of its hosts that are meant."""
    asked = [word.partition("%") for word in words]
    if any(not name or (percent and not interface) for name, percent, interface in asked):
        raise InputError(f"check: found {' '.join(words)}, expected HOST or HOST%INTERFACE")
    if testbed is None:
        if len(words) < 2:
            raise InputError(
                f"check: found {len(words)} hosts, expected two or more, or --testbed FILE; for example: "
                "framegauge check local netns:other"
            )
        names = [name for name, _, _ in asked]
        if len(set(names)) < len(names):
            raise InputError(f"check: found {' '.join(names)}, expected each host once")
        listed = ListedHosts(names, say)
        try:
            hosts = listed.hosts()
            yield [Member(host, interface or None) for host, (_, _, interface) in zip(hosts, asked, strict=True)]
        finally:
            listed.close()
        return
    with _built(testbed, say) as hosts:
        found = {host.name: host for host in hosts}
        for name, _, _ in asked:
            if name not in found:
                raise InputError(f"{name}: found no such host in {testbed}, expected one of {', '.join(found)}")
        chosen = asked or [(name, "", "") for name in found]
        yield [Member(found[name], interface or None) for name, _, interface in chosen]


@contextmanager
def _built(path: str, say: Say) -> Iterator[Sequence[Host]]:
    """The hosts of a lab file, or of a study file with every factor at its baseline."""
    from framegauge import lab_file

    if lab_file.is_lab(path):
        from framegauge.testbeds.lab import LabTestbed

        network = lab_file.load(path).network
        with Agent.open(privileged([find_agent(), "rack"], say)) as agent:
            lab = LabTestbed(agent)
            lab.up(network)
            yield lab.hosts()
        return
    from framegauge import hand, study_file
    from framegauge.errors import StudyError
    from framegauge.testbeds.rack import RackTestbed
    from framegauge.testbeds.veth import VethTestbed

    study = study_file.load(path)
    if study.testbed.kind == "fake":
        raise StudyError(
            [f'{path}: testbed.kind: found "fake", expected rack or veth: nothing runs in an invented host']
        )
    with Agent.open(privileged([find_agent(), "rack"], say)) as agent:
        bed = VethTestbed(agent) if study.testbed.kind == "veth" else RackTestbed(agent)
        bed.up(hand.baseline(study))
        yield bed.hosts()
