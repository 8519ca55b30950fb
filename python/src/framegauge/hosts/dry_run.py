"""The effects of a study on the user's own hosts, as text and commands, before anything is done."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

from framegauge.files.machines import Machine, full
from framegauge.networks.aggregates import HARDWARE_GRO
from framegauge.study.aggregates import PROBING
from framegauge.study.model import Study, host_mtus
from framegauge.study.tunings import tuned_sysctls
from framegauge.testbeds.leases import CONGESTION_CONTROL, SIZES, SWITCHES

__all__ = ["changes_of", "counts"]


def counts(study: Study) -> bool:
    """Whether a study needs the performance counters of whole hosts."""
    return study.meters.cpu and any(metric.endswith(("_instructions", "_cycles")) for metric in study.margin())


def changes_of(study: Study, places: Callable[[str | None], str]) -> list[str]:
    """Everything that a study would copy and change on the user's own hosts, for --dry-run. `places` says where the
    agent of a machine is looked for; nothing is asked of a host."""
    lines, agent = [], "AGENT"
    for machine in full(study.testbed.machines):
        login = shlex.join(["ssh", *machine.options, machine.destination])
        lines += [
            f"  {machine.name} ({login}): AGENT is {places(machine.agent)},",
            "    which is copied there over the same connection if it is missing",
        ]
        if counts(study):
            lines.append(
                f"    sudo -n -- {agent} counters   (reads the performance counters of all CPUs; without sudo as root)"
            )
        if machine.read_only:
            lines.append("    read only: measured, never changed")
            continue
        for words in _settings(study, machine):
            command = " ".join(["sudo -n --", agent, "lease", f"{study.testbed.lease:g}", *map(shlex.quote, words)])
            lines.append(f"    {command}   (without settings that are in force already; without sudo as root)")
    return lines


def _settings(study: Study, machine: Machine) -> Iterator[list[str]]:
    """The arguments of a lease for each MTU; on|off where it depends on the level of another factor."""
    factors, interface = study.factors, machine.interface or "IFACE"
    for level in factors.mtu.levels:
        words = [f"mtu:{interface}={host_mtus(level, study.testbed.host_names)[machine.name]}"]
        for name, switches in SWITCHES.items():
            if factors.levels(name) != [None] or factors.offloads is not None:
                words += [f"{switch}:{interface}=on|off" for switch in switches]
        if factors.hw_gro is not None:
            words.append(f"{HARDWARE_GRO}:{interface}=on|off")
        for name in SIZES:
            sizes = [size for size in factors.levels(f"{name}_size") if size is not None]
            words += [f"{name}_size:{interface}={'|'.join(f'{size} {size}' for size in sizes)}"] if sizes else []
        if factors.qdisc is not None:
            words.append(f"qdisc:{interface}={'|'.join(factors.qdisc.levels)}")
        words += [f"sysctl:{name}={'|'.join(values)}" for name, values in _sysctls(study).items()]
        if factors.ecn is not None:
            words.append(f"sysctl:net.ipv4.tcp_ecn={'|'.join(str(int(level)) for level in factors.ecn.levels)}")
        if factors.mtu_probing is not None:
            words.append(f"sysctl:{PROBING}={'|'.join(map(str, factors.mtu_probing.levels))}")
        if factors.congestion_control is not None:
            words.append(f"sysctl:{CONGESTION_CONTROL}={'|'.join(factors.congestion_control.levels)}")
        yield words


def _sysctls(study: Study) -> dict[str, list[str]]:
    """The values of each sysctl that the study sets, or a tuning: one, or those of all levels."""
    values: dict[str, list[str]] = {}
    for level in study.factors.levels("tuning"):
        for name, value in tuned_sysctls(study.sysctls, study.tunings, level).items():
            values[name] = list(dict.fromkeys([*values.get(name, []), value]))
    return values
